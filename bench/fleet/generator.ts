/**
 * A worker thread that sends requests over keep-alive connections, each with one request in flight.
 * It writes bytes to sockets without an HTTP client, because the generator shares the cores with
 * the programs that it measures.
 */
import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

export interface GeneratorTask {
  /** Ports of the gateways; connections are spread over them. */
  readonly ports: readonly number[];
  readonly connections: number;
  /** Bearer tokens of the tenants, used in turn. */
  readonly tokens: readonly string[];
  readonly work:
    | {
        readonly kind: 'create';
        readonly from: number;
        readonly count: number;
        readonly body: object;
        /** Requests a second at most, sent evenly; by default as many as are answered. */
        readonly perSecond?: number;
      }
    /** Paths of each tenant, used in turn. */
    | { readonly kind: 'get'; readonly paths: readonly (readonly string[])[]; readonly forMs: number };
}

export interface Generated {
  readonly answered: number;
  /** Time from the first request to the last answer. */
  readonly elapsedMs: number;
  /** Time of the first request, in milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly tookMs: Float64Array;
  /** Number of unsuccessful answers by status; their requests were repeated. */
  readonly refused: Readonly<Record<string, number>>;
}

interface Ask {
  readonly bytes: string;
  startMs: number;
}

const task = workerData as GeneratorTask;
/** The pause that `Retry-After` asks for. */
const retryPauseMs = 1000;
/** Longer than an overloaded owner takes to load a million containers and serve them again. */
const patienceMs = 600_000;
const headers = task.tokens.map((token) => `host: localhost\r\nauthorization: Bearer ${token}\r\n`);

function askOf(number: number): Ask | undefined {
  const { work, tokens } = task;
  const tenant = number % tokens.length;
  if (work.kind === 'get') {
    if (performance.now() - startMs > work.forMs) return undefined;
    const paths = work.paths[tenant] ?? [];
    const path = paths[Math.floor(number / tokens.length) % paths.length];
    return { bytes: `GET ${path} HTTP/1.1\r\n${headers[tenant]}\r\n`, startMs: 0 };
  }
  if (number >= work.count) return undefined;
  const name = `c-${work.from + number}`;
  const body = JSON.stringify({ name, ...work.body });
  const length = Buffer.byteLength(body);
  const more = `content-type: application/json\r\ncontent-length: ${length}\r\nidempotency-key: ${name}\r\n`;
  return { bytes: `POST /api/v2/compute HTTP/1.1\r\n${headers[tenant]}${more}\r\n${body}`, startMs: 0 };
}

/** Milliseconds until the request may go; below 0: it is late; 0: it is not paced. */
function dueInMs(number: number): number {
  const { work } = task;
  if (work.kind !== 'create' || work.perSecond === undefined) return 0;
  return startMs + (number * 1000) / work.perSecond - performance.now();
}

const tookMs: number[] = [];
const refused: Record<string, number> = {};
let nextNumber = 0;

/** Sends requests on one connection until there are no more. */
const worker = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let asked: Ask | undefined;
    let received = '';
    const send = (ask: Ask): void => void socket.write(ask.bytes);
    const next = (): void => {
      asked = askOf(nextNumber++);
      if (asked === undefined) {
        resolve();
        socket.destroy();
        return;
      }
      const waitMs = dueInMs(nextNumber - 1);
      // A request that had to wait for a connection is late from the time it was due.
      asked.startMs = performance.now() + Math.min(0, waitMs);
      if (waitMs > 0) setTimeout(start, waitMs, asked);
      else send(asked);
    };
    const start = (ask: Ask): void => {
      ask.startMs = performance.now();
      send(ask);
    };
    const take = (status: string, ask: Ask): void => {
      if (status.startsWith('2')) {
        tookMs.push(performance.now() - ask.startMs);
        next();
        return;
      }
      refused[status] = (refused[status] ?? 0) + 1;
      const isRetryable = status === '503' || status === '504' || status === '429';
      if (!isRetryable || performance.now() - ask.startMs > patienceMs)
        reject(new Error(`answered ${status}: ${received.slice(0, 600)}`));
      else setTimeout(() => send(ask), retryPauseMs);
    };
    socket.setEncoding('latin1');
    socket.on('connect', next);
    socket.on('data', (text: string) => {
      received += text;
      const headEnd = received.indexOf('\r\n\r\n');
      if (headEnd < 0 || asked === undefined) return;
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received.slice(0, headEnd + 2))?.[1] ?? Number.NaN);
      if (Number.isNaN(length)) {
        reject(new Error(`an answer without a length: ${received.slice(0, headEnd)}`));
        return;
      }
      if (received.length < headEnd + 4 + length) return;
      const status = received.slice(9, 12);
      const ask = asked;
      take(status, ask);
      received = '';
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the gateway closed a connection')));
  });

const startedAtMs = Date.now();
const startMs = performance.now();
await Promise.all(
  Array.from({ length: task.connections }, (_, number) => worker(task.ports[number % task.ports.length] ?? 0)),
);
const generated: Generated = {
  answered: tookMs.length,
  elapsedMs: performance.now() - startMs,
  startedAtMs,
  tookMs: Float64Array.from(tookMs),
  refused,
};
parentPort?.postMessage(generated);
