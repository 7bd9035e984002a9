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

/** Without the line break that a shell or an editor adds. */
export const withoutLastBreak = (bytes: Buffer): Buffer => (bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes);

/** A line from the terminal, which does not show it. */
export function askHidden(question: string): Promise<string> {
  process.stderr.write(question);
  return ask('', new Writable({ write: (_chunk, _encoding, done) => done() })).finally(() =>
    process.stderr.write('\n'),
  );
}

/** A line from the terminal. */
export const askLine = (question: string): Promise<string> => ask(question, process.stderr);

/** @throws InterruptedError on Ctrl-C, and where the input ends without an answer */
function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  const reader = createInterface({ input: process.stdin, output, terminal: true, prompt: question });
  reader.prompt();
  return new Promise((resolve, reject) => {
    reader.once('line', (line) => {
      resolve(line.trim());
      reader.close();
    });
    reader.once('SIGINT', () => reader.close());
    reader.once('close', () => reject(new InterruptedError()));
  });
}
