/** What a person or a program gives a command beside its arguments. */
import { readFileSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { within } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { InterruptedError } from '../client/errors.ts';
import { Refused } from './errors.ts';

/** All of standard input. @throws Refused beyond `limits.cliInputBytes` */
async function readAll(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    const piece = Buffer.from(chunk as Uint8Array);
    bytes += piece.length;
    if (bytes > limits.cliInputBytes) throw new Refused(`the input is larger than ${limits.cliInputBytes} bytes`);
    chunks.push(piece);
  }
  return Buffer.concat(chunks);
}

export const readInput = (stream: NodeJS.ReadableStream): Promise<Buffer> =>
  within(readAll(stream), limits.cliInputMs, 'standard input');

/** A file, or standard input as `-`. */
export async function readSource(path: string, stdin: NodeJS.ReadableStream): Promise<Buffer> {
  if (path === '-') return readInput(stdin);
  if (statSync(path).size > limits.cliInputBytes)
    throw new Refused(`${path} is larger than ${limits.cliInputBytes} bytes`);
  return readFileSync(path);
}

/** A line from the terminal, which does not show it. */
export function askHidden(question: string): Promise<string> {
  process.stderr.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: process.stdin, output: silent, terminal: true });
  return new Promise((resolve, reject) => {
    reader.once('line', (line) => {
      reader.close();
      process.stderr.write('\n');
      resolve(line.trim());
    });
    reader.once('SIGINT', () => {
      reader.close();
      process.stderr.write('\n');
      reject(new InterruptedError());
    });
  });
}
