/** The process that generates the load of open-loop.ts, on plain sockets. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { within } from '../../../lib/time/backoff.ts';
import { quantile } from '../../statistics.ts';
import { drainMs, type OpenLoop, type OpenMeasured, type Outcome } from './open-loop.ts';
import { numberDigits } from './traffic.ts';

const tickMs = 1;
const warmMs = 1_000;
const headEnd = '\r\n\r\n';
const lengthPattern = /^content-length: *(\d+)/im;

/** A connection with one request in flight. */
class Connection {
  readonly #socket: Socket;
  readonly #onAnswer: (connection: Connection, dueMs: number) => void;
  #received: Buffer = Buffer.alloc(0);
  #dueMs = 0;

  constructor(
    port: number,
    onAnswer: (connection: Connection, dueMs: number) => void,
    onFailure: (error: Error) => void,
  ) {
    this.#onAnswer = onAnswer;
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('error', onFailure);
    this.#socket.on('close', () => onFailure(new Error('the connection was closed')));
    this.#socket.on('data', (chunk) => {
      try {
        this.#take(chunk);
      } catch (error) {
        onFailure(error as Error);
      }
    });
  }

  ready(): Promise<unknown> {
    return once(this.#socket, 'connect');
  }

  close(): void {
    this.#socket.removeAllListeners('close').destroy();
  }

  ask(request: string, dueMs: number): void {
    this.#dueMs = dueMs;
    this.#socket.write(request, 'latin1');
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const end = this.#received.indexOf(headEnd);
    if (end < 0) return;
    const head = this.#received.toString('latin1', 0, end);
    const length = lengthPattern.exec(head)?.[1];
    if (!/^HTTP\/1\.1 2\d\d /.test(head) || length === undefined)
      throw new Error(`not a successful answer with a length: ${head}`);
    const missing = end + headEnd.length + Number(length) - this.#received.length;
    if (missing > 0) return;
    if (missing < 0) throw new Error('the server sent more than one answer');
    this.#received = Buffer.alloc(0);
    this.#onAnswer(this, this.#dueMs);
  }
}

let number = 0;

async function generate({ port, traffic, connections, perSecond, forMs }: OpenLoop): Promise<OpenMeasured> {
  const { heads, body } = traffic;
  const next = (): string => {
    const head = heads[Math.floor(Math.random() * heads.length)] ?? '';
    return body === undefined ? head : head + body[0] + String(++number).padStart(numberDigits, '0') + body[1];
  };
  const total = Math.floor((perSecond * forMs) / 1000);
  const tookMs = new Float64Array(total);
  let answered = 0;
  let finish = (): void => undefined;
  let fail = (_error: Error): void => undefined;
  const finished = new Promise<void>((resolve, reject) => {
    [finish, fail] = [resolve, reject];
  });
  /** The scheduled time of each request; those from `nextDue` on wait for a connection. */
  const due: number[] = [];
  let nextDue = 0;
  const idle: Connection[] = [];
  const all = Array.from({ length: connections }, () => new Connection(port, onAnswer, (error) => fail(error)));

  function begin(): void {
    while (nextDue < due.length) {
      const connection = idle.pop();
      if (connection === undefined) return;
      connection.ask(next(), due[nextDue++] ?? 0);
    }
  }
  function onAnswer(connection: Connection, dueMs: number): void {
    tookMs[answered++] = performance.now() - dueMs;
    idle.push(connection);
    if (answered === total) finish();
    begin();
  }

  await Promise.all(all.map((connection) => connection.ready()));
  idle.push(...all);
  const startMs = performance.now();
  const ticker = setInterval(() => {
    const ticks = Math.floor((performance.now() - startMs) / tickMs);
    while (due.length < total) {
      const tick = Math.floor((due.length * 1000) / perSecond / tickMs) + 1;
      if (tick > ticks) break;
      due.push(startMs + tick * tickMs);
    }
    if (due.length === total) clearInterval(ticker);
    begin();
  }, tickMs);
  await within(finished, forMs + drainMs, `${total} answers`);
  for (const connection of all) connection.close();
  return { p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99) };
}

process.once('disconnect', () => process.exit(1));
process.once('message', (job: OpenLoop) => {
  // Warm-up: this process and the server's connections to it are new.
  const warm = generate({ ...job, forMs: warmMs });
  const measured = warm.then(() => generate(job));
  measured.then(
    (measured) => process.send?.({ measured } satisfies Outcome),
    (error: unknown) => process.send?.({ failure: (error as Error).message } satisfies Outcome),
  );
});
