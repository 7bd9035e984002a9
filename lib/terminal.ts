/** Lines for a person at a terminal: commands and tooling. Programs write a log (log.ts). */
import { visibleLines } from '../schemas/visible.ts';

/** A text as it is written: exact to a file or a pipe; a terminal gets nothing that it obeys. */
export const textFor = ({ isTTY }: { readonly isTTY?: boolean }, text: string): string =>
  isTTY === true ? visibleLines(text) : text;

export const say = (text: string): void => void process.stdout.write(`${textFor(process.stdout, text)}\n`);

export const took = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
