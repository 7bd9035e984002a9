/** Lines for a person at a terminal: commands and tooling. Programs write a log (log.ts). */
import { visibleLines } from '../schemas/visible.ts';

/** A text as it is written: exact to a file or a pipe; a terminal gets nothing that it obeys. */
export const textFor = ({ isTTY }: { readonly isTTY?: boolean }, text: string): string =>
  isTTY === true ? visibleLines(text) : text;

const writeLine = (stream: NodeJS.WriteStream, text: string): void => void stream.write(`${textFor(stream, text)}\n`);

export const say = (text: string): void => writeLine(process.stdout, text);
/** On standard error. */
export const complain = (text: string): void => writeLine(process.stderr, text);

export const took = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
