/** Lines for a person at a terminal: commands and tooling. Programs write a log (log.ts). */

export const say = (text: string): void => void process.stdout.write(`${text}\n`);

export const took = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
