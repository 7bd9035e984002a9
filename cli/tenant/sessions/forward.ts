/** `forward`: ports of a container on this machine. */
import { createServer, isIPv6, type Socket } from 'node:net';
import { aborted } from '../../../lib/time/backoff.ts';
import { oneLine } from '../../../schemas/visible.ts';
import { forwardProtocol } from '../../../schemas/words.ts';
import type { Context } from '../../context.ts';
import { Refused, wordsOf } from '../../terminal/errors.ts';
import { findContainer } from '../find.ts';
import { endOf, openSession, pour, saidIn, Upstream } from './session.ts';

/** Connections of one `forward` at once; a container has as many sessions at each gateway. */
const cliForwardConnections = 8;
/** Connections of programs on this machine that wait to be accepted. */
const cliForwardBacklog = 64;

/** Duration of a trial connection. */
const cliForwardTryMs = 2000;
/** The code of a session whose port did not open (schemas/api/sessions). */
const refusedCode = 4502;

export interface Ports {
  /** 0 for any free port. */
  readonly local: number;
  readonly remote: number;
}

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
    const said = saidIn(data);
    if (said.type === 'window') upstream.grant(said.bytes ?? 0);
    if (said.type === 'end') local.end();
  });
  const ending = endOf(socket);
  socket.resume();
  local.resume();
  const { code, reason } = await ending;
  if (code !== 1000 && !local.destroyed) context.tell(oneLine(reason));
  local.destroySoon();
}

function refusalOf(error: NodeJS.ErrnoException, address: string, { local, remote }: Ports): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new Refused(`port ${local} of this machine is in use; give another one: ${local + 1}:${remote}`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Refused(`${address} is no address of this machine: give --address one that is, such as 127.0.0.1`);
    case 'EACCES':
      return new Refused(`port ${local} may be opened by root alone; give another one: ${local + 8000}:${remote}`);
    default:
      return error;
  }
}

interface Forwarded {
  readonly id: string;
  readonly name: string;
  readonly address: string;
}

/** Listens, and joins each connection to the container. Resolves to a function that ends it. */
async function listen(context: Context, { id, name, address }: Forwarded, ports: Ports): Promise<() => void> {
  const { local, remote } = ports;
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (connection) => {
    open.add(connection);
    connection.once('close', () => open.delete(connection));
    join(context, id, remote, connection).catch((error: unknown) => {
      context.tell(wordsOf(error));
      connection.destroy();
    });
  });
  server.maxConnections = cliForwardConnections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(refusalOf(error, address, ports)));
    server.listen({ host: address, port: local, backlog: cliForwardBacklog }, resolve);
  });
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? bound.port : local;
  context.tell(`${isIPv6(address) ? `[${address}]` : address}:${port} is port ${remote} of ${name}. Ctrl-C ends it.`);
  return () => {
    for (const connection of open) connection.destroy();
    server.close();
  };
}

/** Opens and ends a trial connection, and reports a port at which nothing listens. */
async function tryPort(context: Context, { id, name }: Forwarded, { remote }: Ports): Promise<void> {
  const socket = await openSession(context, `/api/v2/compute/${id}/forward?port=${remote}`, forwardProtocol);
  const ending = endOf(socket);
  const timer = setTimeout(() => socket.close(), cliForwardTryMs);
  socket.resume();
  const { code, reason } = await ending;
  clearTimeout(timer);
  if (code === refusedCode) context.tell(`port ${remote} of ${name} is not open yet: ${oneLine(reason)}`);
}

export async function forward(
  context: Context,
  name: string,
  all: readonly Ports[],
  { address }: { readonly address: string },
): Promise<void> {
  const { id, status } = await findContainer(context, name);
  if (status === 'stopped' || status === 'failed')
    throw new Refused(`${name} is ${status}: start it with "longshore start ${name}"`);
  const forwarded = { id, name, address };
  const ends: (() => void)[] = [];
  try {
    for (const ports of all) ends.push(await listen(context, forwarded, ports));
    // If the trial fails, the first real connection reports the reason.
    for (const ports of all) void tryPort(context, forwarded, ports).catch(() => {});
    await aborted(context.terminal.signal);
  } finally {
    for (const end of ends) end();
  }
}
