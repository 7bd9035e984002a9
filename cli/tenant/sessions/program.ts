/** A program in a container that reads and writes streams of this process, without a terminal. */
import type { Readable, Writable } from 'node:stream';
import { execProtocol } from '../../../schemas/words.ts';
import { InterruptedError } from '../../client/errors.ts';
import type { Context } from '../../context.ts';
import { Refused } from '../../terminal/errors.ts';
import { channel } from './channels.ts';
import { endOf, openSession, pour, saidIn, Upstream } from './session.ts';

/** Characters of error output that are kept. */
const cliErrorChars = 4096;

export interface Ended {
  readonly code: number;
  /** The beginning of its error output. */
  readonly errors: string;
}

/**
 * @param input standard input of the program; empty if absent
 * @throws Refused if the session broke; InterruptedError; and as `openSession`
 */
export async function runProgram(
  context: Context,
  id: string,
  command: readonly string[],
  { input, output }: { readonly input?: Readable; readonly output: Writable },
): Promise<Ended> {
  const query = new URLSearchParams(input === undefined ? {} : { stdin: 'true' });
  for (const part of command) query.append('command', part);
  const socket = await openSession(context, `/api/v2/compute/${id}/exec?${query}`, execProtocol);
  const { signal } = context.terminal;
  const send = (kind: number, bytes: Buffer): void => socket.send(Buffer.concat([Buffer.of(kind), bytes]));
  const upstream = new Upstream(
    (bytes) => send(channel.input, bytes),
    () => input?.resume(),
  );
  let [code, errors]: [number | undefined, string] = [undefined, ''];
  const failures: Error[] = [];
  socket.on('message', (data: Buffer) => {
    const [kind, bytes] = [data[0], data.subarray(1)];
    if (kind === channel.output) pour(socket, output, bytes);
    if (kind === channel.errors) errors = `${errors}${bytes.toString()}`.slice(0, cliErrorChars);
    if (kind !== channel.control) return;
    const said = saidIn(bytes);
    if (said.type === 'exit') code = said.code;
    if (said.type === 'window') upstream.grant(said.bytes ?? 0);
  });
  input?.on('data', (bytes: Buffer) => {
    if (!upstream.write(bytes)) input.pause();
  });
  input?.once('end', () => upstream.whenEmpty(() => send(channel.control, Buffer.from('{"type":"end"}'))));
  const leave = (): void => socket.terminate();
  const fail = (error: Error): void => {
    failures.push(error);
    leave();
  };
  input?.once('error', fail);
  output.once('error', fail);
  signal.addEventListener('abort', leave, { once: true });
  try {
    const ending = endOf(socket);
    socket.resume();
    const end = await ending;
    const [failure] = failures;
    if (failure !== undefined) throw failure;
    if (signal.aborted) throw new InterruptedError();
    if (code === undefined)
      throw new Refused(`the session ended: ${end.reason === '' ? `code ${end.code}` : end.reason}`);
    return { code, errors };
  } finally {
    signal.removeEventListener('abort', leave);
    input?.destroy();
  }
}
