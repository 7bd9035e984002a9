/**
 * A process that follows the logs of containers, from the API or the engine, and counts lost and
 * duplicated lines.
 */
import { request, type IncomingMessage, type RequestOptions } from 'node:http';
import { Demultiplexer } from '../../host-agent/docker/demux.ts';
import { limits } from '../../schemas/limits.ts';
import { quantile } from '../statistics.ts';
import { readLine, wallMs } from './line.ts';

export type LogSource =
  | { readonly kind: 'api'; readonly baseUrl: string; readonly token: string }
  | { readonly kind: 'engine'; readonly socketPath: string };

export interface ReaderOrder {
  readonly source: LogSource;
  readonly ids: readonly string[];
  readonly linesEach: number;
}

export interface LinesRead {
  readonly lines: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** Latency from write to read. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export type ReaderMessage = { readonly kind: 'ready' } | { readonly kind: 'read'; readonly read: LinesRead };

const answerOf = (url: string, options: RequestOptions): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const outgoing = request(url, { ...options, agent: false }, (answer) => {
      if (answer.statusCode === 200) resolve(answer);
      else reject(new Error(`${url}: ${answer.statusCode}`));
    });
    outgoing.once('error', reject);
    outgoing.end();
  });

/** Calls `take` with each line. Resolves when the response has begun. */
async function follow(source: LogSource, id: string, take: (line: string) => void): Promise<void> {
  switch (source.kind) {
    case 'api': {
      const headers = { authorization: `Bearer ${source.token}` };
      const answer = await answerOf(`${source.baseUrl}/api/v2/compute/${id}/logs?follow=true&limit=1`, { headers });
      answer.setEncoding('utf8');
      let rest = '';
      answer.on('data', (chunk: string) => {
        const fields = (rest + chunk).split('\n');
        rest = fields.pop() ?? '';
        for (const field of fields) {
          if (field.startsWith('data: {"ts"')) take((JSON.parse(field.slice(6)) as { line: string }).line);
        }
      });
      return;
    }
    case 'engine': {
      const url = `http://docker/containers/${id}/logs?follow=1&stdout=1&stderr=1&timestamps=1`;
      const answer = await answerOf(url, { socketPath: source.socketPath });
      const frames = new Demultiplexer(limits.logFrameBytes);
      answer.on('data', (chunk: Buffer) => {
        for (const { payload } of frames.push(chunk)) {
          take(payload.toString('latin1', payload.indexOf(0x20) + 1, payload.length - 1));
        }
      });
      return;
    }
  }
}

/** Counts the lines read from all containers. */
class Tally {
  readonly #linesEach: number;
  readonly #next: number[];
  readonly #latenciesMs: number[] = [];
  #lost = 0;
  #duplicated = 0;
  #fromMs = Infinity;
  #toMs = 0;

  constructor({ ids, linesEach }: ReaderOrder) {
    this.#linesEach = linesEach;
    this.#next = ids.map(() => 0);
  }

  take(container: number, line: string): void {
    const { number, writtenMs } = readLine(line);
    const nowMs = wallMs();
    const next = this.#next[container] ?? 0;
    if (number < next) {
      this.#duplicated += 1;
      return;
    }
    this.#lost += number - next;
    this.#next[container] = number + 1;
    this.#latenciesMs.push(nowMs - writtenMs);
    this.#fromMs = Math.min(this.#fromMs, nowMs);
    this.#toMs = nowMs;
  }

  get isComplete(): boolean {
    return this.#next.every((next) => next >= this.#linesEach);
  }

  read(): LinesRead {
    const unread = this.#next.reduce((sum, next) => sum + this.#linesEach - next, 0);
    return {
      lines: this.#latenciesMs.length,
      lost: this.#lost + unread,
      duplicated: this.#duplicated,
      fromMs: this.#fromMs,
      toMs: this.#toMs,
      p50Ms: quantile(this.#latenciesMs, 0.5),
      p99Ms: quantile(this.#latenciesMs, 0.99),
    };
  }
}

const send = (message: ReaderMessage): void => void process.send?.(message);
const pollMs = 100;

async function main(order: ReaderOrder): Promise<void> {
  const tally = new Tally(order);
  let isOver = false;
  process.once('message', () => (isOver = true));
  await Promise.all(order.ids.map((id, at) => follow(order.source, id, (line) => tally.take(at, line))));
  send({ kind: 'ready' });
  const poll = setInterval(() => {
    if (!isOver && !tally.isComplete) return;
    clearInterval(poll);
    send({ kind: 'read', read: tally.read() });
  }, pollMs);
}

process.once('disconnect', () => process.exit());
process.once('message', (order: ReaderOrder) => void main(order));
