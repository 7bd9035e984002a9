/** A client of sessions, as a program of a tenant has it. */
import { WebSocket } from 'ws';
import { execProtocol, forwardProtocol } from '../../../schemas/words.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { until } from '../../support/until.ts';

const openMs = 30_000;
const openPauseMs = 500;

export interface Refusal {
  readonly status: number;
  readonly body: string;
  readonly headers: NodeJS.Dict<string | string[]>;
}

export interface OpenSession {
  readonly socket: WebSocket;
  /** Received bytes by channel; those of a forward have the channel 0. */
  bytes(channel: number): Buffer;
  count(channel: number): number;
  /** Control messages of the host and of the gateway. */
  readonly controls: Record<string, unknown>[];
  control(type: string): Promise<Record<string, unknown>>;
  /** Bytes that may be sent now. */
  room(): number;
  /** Sends all of it, as the window allows. */
  send(bytes: Uint8Array): Promise<void>;
  say(control: object): void;
  closed(): Promise<{ readonly code: number; readonly reason: string }>;
}

export interface Asking {
  readonly token?: string;
  readonly headers?: Record<string, string>;
  readonly protocols?: string[];
}

/** Resolves to the session, or to how the handshake was refused. */
export function ask(url: string, { token, headers = {}, protocols }: Asking): Promise<OpenSession | Refusal> {
  const isExec = new URL(url).pathname.endsWith('/exec');
  const protocol = isExec ? execProtocol : forwardProtocol;
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols ?? [protocol], {
    headers: { ...authorization, ...headers },
    perMessageDeflate: false,
  });
  const session = sessionOn(socket, isExec);
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(session));
    socket.once('unexpected-response', (_request, response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
    });
    socket.once('error', reject);
  });
}

/**
 * The session; a host that does not answer in time is asked again, as a client does.
 * @throws if it is refused
 */
export async function open(url: string, asking: Asking): Promise<OpenSession> {
  for (const endMs = performance.now() + openMs; ; await sleep(openPauseMs)) {
    const session = await ask(url, asking);
    if (!('status' in session)) return session;
    if (session.status !== 503 || performance.now() > endMs) throw new Error(`${session.status} ${session.body}`);
  }
}

export async function refused(url: string, asking: Asking): Promise<Refusal> {
  const refusal = await ask(url, asking);
  if ('socket' in refusal) throw new Error('it is open');
  return refusal;
}

const inputChannel = 0;
const controlChannel = 3;

function sessionOn(socket: WebSocket, isExec: boolean): OpenSession {
  const chunks = new Map<number, Buffer[]>();
  const counts = new Map<number, number>();
  const controls: Record<string, unknown>[] = [];
  let room: number = limits.tunnelWindowBytes;
  let close: { code: number; reason: string } | undefined;
  const hear = (text: string): void => {
    const control = JSON.parse(text) as Record<string, unknown>;
    controls.push(control);
    if (control['type'] === 'window') room += Number(control['bytes']);
  };
  socket.on('message', (data: Buffer, isBinary) => {
    const channel = isExec ? (data[0] ?? -1) : 0;
    if (!isBinary || (isExec && channel === controlChannel)) {
      hear((isExec ? data.subarray(1) : data).toString());
      return;
    }
    const bytes = Buffer.from(isExec ? data.subarray(1) : data);
    chunks.set(channel, [...(chunks.get(channel) ?? []), bytes]);
    counts.set(channel, (counts.get(channel) ?? 0) + bytes.length);
  });
  socket.on('close', (code, reason) => (close = { code, reason: reason.toString() }));
  socket.on('error', () => undefined);
  const framed = (channel: number, bytes: Uint8Array): Uint8Array =>
    isExec ? Buffer.concat([Buffer.of(channel), bytes]) : bytes;
  return {
    socket,
    bytes: (channel) => Buffer.concat(chunks.get(channel) ?? []),
    count: (channel) => counts.get(channel) ?? 0,
    controls,
    control: async (type) => {
      const find = () => controls.find((control) => control['type'] === type);
      await until(
        () => `a control "${type}"; it is ${close?.reason ?? 'open'}`,
        () => find() !== undefined,
      );
      return find() ?? {};
    },
    room: () => room,
    send: async (bytes) => {
      for (let at = 0; at < bytes.length;) {
        if (room === 0)
          await until(
            () => `room; it is ${close?.reason ?? 'open'}`,
            () => room > 0,
          );
        const part = bytes.subarray(at, at + Math.min(room, limits.tunnelMessageBytes));
        room -= part.length;
        at += part.length;
        socket.send(framed(inputChannel, part));
      }
    },
    say: (control) => {
      const text = JSON.stringify(control);
      if (isExec) socket.send(framed(controlChannel, Buffer.from(text)));
      else socket.send(text);
    },
    closed: async () => {
      await until('it is closed', () => close !== undefined);
      return close ?? { code: 0, reason: '' };
    },
  };
}
