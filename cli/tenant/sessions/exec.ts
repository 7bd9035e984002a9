/** `exec`: a process of a container at this terminal. */
import type { WebSocket } from 'ws';
import { oneLine } from '../../../schemas/visible.ts';
import { execProtocol } from '../../../schemas/words.ts';
import { InterruptedError } from '../../client/errors.ts';
import type { Context } from '../../context.ts';
import { Exit, Refused } from '../../terminal/errors.ts';
import { findContainer } from '../find.ts';
import { channel } from './channels.ts';
import { endOf, openSession, pour, saidIn, Upstream } from './session.ts';

export interface ExecOptions {
  readonly interactive?: true;
  readonly tty?: true;
  readonly user?: string;
  readonly workdir?: string;
}

/** Connects the terminal with the process; resolves to its exit code. */
async function carry(
  socket: WebSocket,
  { terminal, tell }: Context,
  { interactive, tty }: ExecOptions,
): Promise<number> {
  const { stdin, stdout, stderr, signal } = terminal;
  let exitCode: number | undefined;
  const say = (control: object): void =>
    socket.send(Buffer.concat([Buffer.of(channel.control), Buffer.from(JSON.stringify(control))]));
  const input = new Upstream(
    (bytes) => socket.send(Buffer.concat([Buffer.of(channel.input), bytes])),
    () => stdin.resume(),
  );
  socket.on('message', (data: Buffer) => {
    const [kind, bytes] = [data[0], data.subarray(1)];
    // As with docker and kubectl, the program writes to the terminal itself.
    if (kind === channel.output) pour(socket, stdout.raw, bytes);
    if (kind === channel.errors) pour(socket, stderr.raw, bytes);
    if (kind !== channel.control) return;
    const said = saidIn(bytes);
    if (said.type === 'exit') exitCode = said.code;
    if (said.type === 'window') input.grant(said.bytes ?? 0);
    if (said.type === 'error') tell(oneLine(said.message ?? ''));
  });
  const resize = (): void => say({ type: 'resize', cols: stdout.raw.columns || 80, rows: stdout.raw.rows || 24 });
  const onInput = (bytes: Buffer): void => {
    if (!input.write(bytes)) stdin.pause();
  };
  const onInputEnd = (): void => input.whenEmpty(() => say({ type: 'end' }));
  const isRaw = tty === true && stdin.isTTY;
  // In a terminal of the container, Ctrl-C is a byte of the input.
  const onInterrupt = (): void => say({ type: 'signal', signal: 'SIGINT' });
  signal.addEventListener('abort', onInterrupt, { once: true });
  if (isRaw) stdin.setRawMode(true);
  if (tty === true) {
    resize();
    stdout.raw.on('resize', resize);
  }
  if (interactive === true) {
    stdin.on('data', onInput);
    stdin.once('end', onInputEnd);
  }
  try {
    const ending = endOf(socket);
    socket.resume();
    const end = await ending;
    if (exitCode !== undefined) return exitCode;
    if (signal.aborted) throw new InterruptedError();
    throw new Refused(`the session ended: ${end.reason === '' ? `code ${end.code}` : oneLine(end.reason)}`);
  } finally {
    signal.removeEventListener('abort', onInterrupt);
    stdout.raw.removeListener('resize', resize);
    stdin.removeListener('data', onInput);
    stdin.removeListener('end', onInputEnd);
    if (isRaw) stdin.setRawMode(false);
    stdin.pause();
  }
}

export async function exec(
  context: Context,
  name: string,
  command: readonly string[],
  options: ExecOptions,
): Promise<void> {
  const { id } = await findContainer(context, name);
  const { interactive, tty, user, workdir } = options;
  if (tty === true && !context.terminal.stdout.isTTY)
    throw new Refused('--tty needs a terminal; leave it out for programs');
  const query = new URLSearchParams({
    ...(interactive === true ? { stdin: 'true' } : {}),
    ...(tty === true ? { tty: 'true' } : {}),
    ...(user === undefined ? {} : { user }),
    ...(workdir === undefined ? {} : { workdir }),
  });
  for (const part of command) query.append('command', part);
  const socket = await openSession(context, `/api/v2/compute/${id}/exec?${query}`, execProtocol);
  throw new Exit(await carry(socket, context, options));
}
