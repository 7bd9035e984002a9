/**
 * HTTP to the engine, over its unix socket or TCP. Every call ends by its deadline: an engine that
 * hangs (its process stopped, its disk full) must not hang the agent.
 */
import {
  Agent,
  request,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestOptions,
} from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { messageOf } from '../../lib/error-message.ts';
import { limits } from '../../schemas/limits.ts';
import { asEngineError, EngineError } from './errors.ts';
import { JsonFilter, TooLarge, type Shape } from './json-filter.ts';
import { MiB } from '../../schemas/limits/units.ts';

/**
 * Bytes that are kept of one answer of the engine; the rest is skipped as it arrives
 * (json-filter.ts).
 */
export const engineAnswerBytes = 4 * MiB;

/** An unused connection to the engine is closed after so long. */
const engineIdleMs = 30_000;

/** The address of an engine, from `DOCKER_HOST`. */
export type EngineAddress =
  | { readonly kind: 'unix'; readonly socketPath: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/** `true` if the engine is on this machine, and sees its files and processes as the agent does. */
export const isHere = ({ kind }: EngineAddress): boolean => kind === 'unix';

/**
 * Parses `unix:///run/docker.sock` and `tcp://127.0.0.1:2375`; `undefined` for anything else. TLS
 * to an engine is not supported.
 */
export function parseEngineAddress(text: string): EngineAddress | undefined {
  const unix = /^unix:\/\/(\/.+)$/.exec(text);
  if (unix?.[1] !== undefined) return { kind: 'unix', socketPath: unix[1] };
  const tcp = /^(?:tcp|http):\/\/(\[[0-9a-fA-F:]+\]|[^/:]+):(\d{1,5})\/?$/.exec(text);
  if (tcp?.[1] === undefined) return undefined;
  return { kind: 'tcp', host: tcp[1].replace(/^\[|\]$/g, ''), port: Number(tcp[2]) };
}

export interface Call {
  /** For people and metrics, such as "container create". */
  readonly name: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD';
  readonly path: string;
  readonly body?: { readonly type: string; readonly bytes: Uint8Array };
  readonly headers?: OutgoingHttpHeaders;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  /**
   * The parts of a JSON answer (200) to keep; the rest is skipped as it arrives. Absent: keep the
   * whole answer.
   */
  readonly keep?: Shape;
  /**
   * The most bytes to keep, of each element if there is an `onElement`. By default
   * `engineAnswerBytes`.
   */
  readonly maxBytes?: number;
  /**
   * Called with each element of an answer that is an array, as it arrives; the reply has no body.
   * So the number of elements is not bounded.
   */
  readonly onElement?: (element: Buffer) => void;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

/** A reply whose body is still coming. Destroy `stream` when done with it. */
export interface OpenReply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly stream: Readable;
}

export interface Transport {
  /**
   * A connection that the engine turns into raw bytes both ways (Docker Engine API, "Hijacking").
   * Absent if the engine is simulated, and has no processes.
   */
  hijack?(call: Call): Promise<Hijacked>;
  /** A whole answer within the deadline, whatever its status. */
  call(call: Call): Promise<Reply>;
  /** Headers within the deadline; the body until the signal aborts. */
  open(call: Call): Promise<OpenReply>;
  close(): void;
}

export type Hijacked =
  | { readonly status: 101; readonly stream: Duplex }
  /** The engine refused; `body` is its whole answer. */
  | { readonly status: number; readonly stream?: undefined; readonly body: Buffer };

export type ObserveCall = (name: string, seconds: number, outcome: 'ok' | 'refused' | 'failed') => void;

const headersOf = ({ headers, body }: Call): OutgoingHttpHeaders => ({
  host: 'docker',
  ...headers,
  ...(body === undefined ? {} : { 'content-type': body.type, 'content-length': body.bytes.byteLength }),
});

export function createTransport(
  address: EngineAddress,
  observeCall: ObserveCall,
  idleMs: number = engineIdleMs,
): Transport {
  const target: RequestOptions =
    address.kind === 'unix' ? { socketPath: address.socketPath } : { host: address.host, port: address.port };
  // Calls share connections; each stream has a connection of its own. The timeout ends only those
  // that no call uses: one that waits for its answer has its own deadline.
  const agent = new Agent({ keepAlive: true, maxSockets: limits.engineConnections, timeout: idleMs });

  const send = (call: Call, streaming: boolean): Promise<OpenReply> =>
    new Promise((resolve, reject) => {
      const outgoing = request({
        ...target,
        agent: streaming ? false : agent,
        method: call.method,
        path: call.path,
        headers: headersOf(call),
      });
      const lasting = lifetime(call, outgoing);
      outgoing.once('response', (stream) => {
        lasting.answered(stream);
        const { statusCode: status = 0, headers } = stream;
        // A refusal is short, and arrives at once.
        if (streaming && status === 200) lasting.untimed();
        resolve({ status, headers, stream });
      });
      outgoing.on('error', (error) => {
        lasting.end();
        reject(asEngineError(call.name, error));
      });
      outgoing.end(call.body?.bytes);
    });

  const hijack = (call: Call): Promise<Hijacked> =>
    new Promise((resolve, reject) => {
      const outgoing = request({
        ...target,
        agent: false,
        method: call.method,
        path: call.path,
        headers: { ...headersOf(call), connection: 'Upgrade', upgrade: 'tcp' },
      });
      const lasting = lifetime(call, outgoing);
      outgoing.once('upgrade', (_response, stream, head) => {
        lasting.end();
        if (head.length > 0) stream.unshift(head);
        resolve({ status: 101, stream });
      });
      outgoing.once('response', (response) => {
        lasting.answered(response);
        readWhole(call.name, response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
      });
      outgoing.on('error', (error) => {
        lasting.end();
        reject(asEngineError(call.name, error));
      });
      outgoing.end(call.body?.bytes);
    });

  const timed = async <T extends { status: number }>(call: Call, work: () => Promise<T>): Promise<T> => {
    const startMs = performance.now();
    const seconds = () => (performance.now() - startMs) / 1000;
    try {
      const reply = await work();
      observeCall(call.name, seconds(), reply.status < 400 ? 'ok' : 'refused');
      return reply;
    } catch (error) {
      observeCall(call.name, seconds(), 'failed');
      throw error;
    }
  };

  return {
    call: (call) =>
      timed(call, async () => {
        const { status, headers, stream } = await send(call, false);
        const { name, keep } = call;
        const isSieved = keep !== undefined && status === 200;
        const body = isSieved ? await readKept(call, keep, stream) : await readWhole(name, stream);
        return { status, headers, body };
      }),
    open: (call) => timed(call, () => send(call, true)),
    hijack: (call) => timed(call, () => hijack(call)),
    close: () => agent.destroy(),
  };
}

export async function readWhole(name: string, stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.byteLength;
      if (bytes > engineAnswerBytes) throw oversized(name, `the answer has over ${engineAnswerBytes} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw asEngineError(name, error);
  }
  return Buffer.concat(chunks);
}

/** The kept text of an answer, which is one document; empty if each element went to `onElement`. */
async function readKept(call: Call, shape: Shape, stream: Readable): Promise<Buffer> {
  const { name, onElement, maxBytes = engineAnswerBytes } = call;
  const filter = new JsonFilter(shape, maxBytes, onElement !== undefined);
  const documents: Buffer[] = [];
  const take = onElement ?? ((document: Buffer) => void documents.push(document));
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>)
      filtering(name, () => filter.push(chunk)).forEach((document) => take(document));
    filtering(name, () => filter.end()).forEach((document) => take(document));
  } catch (error) {
    throw asEngineError(name, error);
  }
  return documents[0] ?? Buffer.alloc(0);
}

const oversized = (name: string, detail: string): EngineError => new EngineError(name, { kind: 'oversized' }, detail);

/** An error of the filter is a fault of the answer, not of the connection. */
export function filtering<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TooLarge) throw oversized(name, error.message);
    throw new EngineError(name, { kind: 'malformed' }, messageOf(error), error);
  }
}

/**
 * Applies the deadline and the caller's signal to one call, until its answer is read; `untimed`
 * lifts the deadline and keeps the signal.
 */
function lifetime(call: Call, outgoing: ClientRequest) {
  const ms = call.deadlineMs ?? limits.engineCallMs;
  let ended: ClientRequest | IncomingMessage = outgoing;
  const late = () => ended.destroy(new EngineError(call.name, { kind: 'deadline', ms }, `no answer within ${ms} ms`));
  const abort = () => ended.destroy(new EngineError(call.name, { kind: 'aborted' }, 'given up'));
  const timer = setTimeout(late, ms);
  const untimed = () => clearTimeout(timer);
  const end = () => {
    untimed();
    call.signal?.removeEventListener('abort', abort);
  };
  if (call.signal?.aborted === true) queueMicrotask(abort);
  call.signal?.addEventListener('abort', abort, { once: true });
  return {
    untimed,
    end,
    /** From now on the answer fails: its reader would not notice an error of the request. */
    answered: (answer: IncomingMessage) => {
      ended = answer;
      answer.once('close', end);
    },
  };
}
