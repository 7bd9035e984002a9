/** `exec` and `forward`. */
import { createServer, type Socket } from 'node:net';
import { InvalidArgumentError, type Command } from 'commander';
import Type from 'typebox';
import type { WebSocket } from 'ws';
import { decoder } from '../../lib/decode.ts';
import { execProtocol, forwardProtocol } from '../../schemas/api/sessions/control.ts';
import { limits } from '../../schemas/limits.ts';
import { InterruptedError } from '../client/errors.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { Exit, Refused, wordsOf } from '../terminal/errors.ts';
import { findContainer } from './find.ts';
import { endOf, openSession, pour, Upstream } from './session.ts';

interface ExecOptions {
  readonly interactive?: true;
  readonly tty?: true;
  readonly user?: string;
  readonly workdir?: string;
}

const channel = { input: 0, output: 1, errors: 2, control: 3 } as const;

/** What the host and the gateway say; a later release may say more. */
const decodeSaid = decoder(
  Type.Object({
    type: Type.String(),
    code: Type.Optional(Type.Integer()),
    bytes: Type.Optional(Type.Integer()),
    message: Type.Optional(Type.String()),
  }),
);

/** Carries the terminal into the process, and its output back; resolves to its exit code. */
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
    if (kind === channel.output) pour(socket, stdout, bytes);
    if (kind === channel.errors) pour(socket, stderr, bytes);
    if (kind !== channel.control) return;
    const said = decodeSaid(bytes);
    if (said.type === 'exit') exitCode = said.code;
    if (said.type === 'window') input.grant(said.bytes ?? 0);
    if (said.type === 'error') tell(said.message ?? '');
  });
  const resize = (): void => say({ type: 'resize', cols: stdout.columns || 80, rows: stdout.rows || 24 });
  const onInput = (bytes: Buffer): void => {
    if (!input.write(bytes)) stdin.pause();
  };
  const onInputEnd = (): void => input.whenEmpty(() => say({ type: 'end' }));
  const isRaw = tty === true && stdin.isTTY;
  // With a terminal in between, Ctrl-C is a byte of the input.
  const onInterrupt = (): void => say({ type: 'signal', signal: 'SIGINT' });
  signal.addEventListener('abort', onInterrupt, { once: true });
  if (isRaw) stdin.setRawMode(true);
  if (tty === true) {
    resize();
    stdout.on('resize', resize);
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
    throw new Refused(`the session ended: ${end.reason === '' ? `code ${end.code}` : end.reason}`);
  } finally {
    signal.removeEventListener('abort', onInterrupt);
    stdout.removeListener('resize', resize);
    stdin.removeListener('data', onInput);
    stdin.removeListener('end', onInputEnd);
    if (isRaw) stdin.setRawMode(false);
    stdin.pause();
  }
}

async function exec(context: Context, name: string, command: readonly string[], options: ExecOptions): Promise<void> {
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

interface Ports {
  /** 0: any free one. */
  readonly local: number;
  readonly remote: number;
}

const portsIn = (text: string): Ports => {
  const [, local, remote] = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(text) ?? [];
  const ports = { local: Number(local ?? remote), remote: Number(remote) };
  if (remote === undefined || ports.local > 65_535 || ports.remote > 65_535 || ports.remote < 1) {
    throw new InvalidArgumentError('It must be LOCAL:REMOTE or PORT, such as 8080:80.');
  }
  return ports;
};

/** Joins one connection to a session of its own. */
async function join(context: Context, id: string, remote: number, local: Socket): Promise<void> {
  local.on('error', () => local.destroy());
  local.pause();
  const socket = await openSession(context, `/api/v2/compute/${id}/forward?port=${remote}`, forwardProtocol);
  const upstream = new Upstream(
    (bytes) => socket.send(bytes, { binary: true }),
    () => local.resume(),
  );
  local.on('data', (bytes: Buffer) => {
    if (!upstream.write(bytes)) local.pause();
  });
  local.once('end', () => upstream.whenEmpty(() => socket.send(JSON.stringify({ type: 'end' }))));
  local.once('close', () => socket.close());
  socket.on('message', (data: Buffer, isBinary) => {
    if (isBinary) return pour(socket, local, data);
    const said = decodeSaid(data);
    if (said.type === 'window') upstream.grant(said.bytes ?? 0);
    if (said.type === 'end') local.end();
  });
  const ending = endOf(socket);
  socket.resume();
  local.resume();
  const { code, reason } = await ending;
  if (code !== 1000 && !local.destroyed) context.tell(reason);
  local.destroySoon();
}

async function forward(
  context: Context,
  name: string,
  { local, remote }: Ports,
  { address }: { readonly address: string },
): Promise<void> {
  const { id } = await findContainer(context, name);
  const { signal } = context.terminal;
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (connection) => {
    open.add(connection);
    connection.once('close', () => open.delete(connection));
    join(context, id, remote, connection).catch((error: unknown) => {
      context.tell(wordsOf(error));
      connection.destroy();
    });
  });
  server.maxConnections = limits.cliForwardConnections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new Refused(`port ${local} of this machine is in use; give another one: ${local + 1}:${remote}`)
          : error,
      ),
    );
    server.listen({ host: address, port: local, backlog: limits.cliForwardBacklog }, resolve);
  });
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : local;
  context.tell(`${address}:${port} is port ${remote} of ${name}. Ctrl-C ends it.`);
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  for (const connection of open) connection.destroy();
  server.close();
}

export function addSessions(program: Command, terminal: Terminal): void {
  program
    .command('exec <container> <command...>')
    .description('run a program in a container; its exit code is that of this command')
    .option('-i, --interactive', 'give it the input of this terminal')
    .option('-t, --tty', 'give it a terminal')
    .option('-u, --user <user>', 'who runs it; default: the user of the container')
    .option('-w, --workdir <path>', 'where it runs')
    .passThroughOptions()
    .action(action<[string, string[], ExecOptions]>(terminal, exec));
  program
    .command('forward <container>')
    .description('reach a port of a container from this machine')
    .argument('<local:remote>', 'the ports, such as 8080:80; one number: the same on both sides', portsIn)
    .option('--address <address>', 'where to listen', '127.0.0.1')
    .action(action<[string, Ports, { address: string }]>(terminal, forward));
}
