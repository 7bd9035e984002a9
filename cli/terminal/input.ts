/** Input of a command beside its arguments: standard input, files and prompts. */
import { readFileSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { addAbortSignal, Writable, type Readable } from 'node:stream';
import { messageOf } from '../../lib/error-message.ts';
import { within } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { minutes } from '../../schemas/limits/units.ts';
import { visible } from '../../schemas/visible.ts';
import { InterruptedError } from '../client/errors.ts';
import { Refused } from './errors.ts';

const cliInputMs = 5 * minutes;

/** Standard input, and Ctrl-C. */
export interface Input {
  readonly stdin: Readable;
  readonly signal: AbortSignal;
}

/** All of standard input. @throws Refused beyond `limits.cliInputBytes` */
async function readAll(stream: Readable): Promise<Buffer> {
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

/** @throws InterruptedError, and Refused if it is too large */
export async function readInput({ stdin, signal }: Input): Promise<Buffer> {
  try {
    return await within(readAll(addAbortSignal(signal, stdin)), cliInputMs, 'standard input');
  } catch (error) {
    if (signal.aborted) throw new InterruptedError();
    throw error;
  }
}

export function unreadable(path: string, error: unknown): Refused {
  const message = messageOf(error);
  // ENOENT: no such file or directory, stat 'web.env'
  const [, reason] = /^\w+: (.*?)(?:, \w+.*)?$/.exec(message) ?? [];
  return new Refused(`${path} can't be read: ${reason ?? message}`);
}

/** @throws Refused if it can't be read, or is too large */
export function readFile(path: string): Buffer {
  try {
    if (statSync(path).size <= limits.cliInputBytes) return readFileSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
  throw new Refused(`${path} is larger than ${limits.cliInputBytes} bytes`);
}

/**
 * Content of a file, or of standard input for `-`.
 * @throws as `readInput` and `readFile`
 */
export const readSource = async (path: string, input: Input): Promise<Buffer> =>
  path === '-' ? readInput(input) : readFile(path);

/** Without the line break that a shell or an editor adds. */
export const withoutLastBreak = (bytes: Buffer): Buffer => (bytes.at(-1) === 0x0a ? bytes.subarray(0, -1) : bytes);

/** A line from the terminal, which does not show it. */
export function askHidden(question: string): Promise<string> {
  const answer = ask('', new Writable({ write: (_chunk, _encoding, done) => done() }));
  // Asks only now: from here on the terminal does not show what is typed.
  process.stderr.write(visible(question));
  return answer.finally(() => process.stderr.write('\n'));
}

/** A line from the terminal. */
export const askLine = (question: string): Promise<string> => ask(question, process.stderr);

/** @throws InterruptedError on Ctrl-C, and where the input ends without an answer */
function ask(question: string, output: NodeJS.WritableStream): Promise<string> {
  const reader = createInterface({ input: process.stdin, output, terminal: true, prompt: visible(question) });
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
