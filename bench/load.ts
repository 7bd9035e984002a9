/**
 * A closed-loop HTTP load in the process of the benchmark: each connection sends its next request
 * as soon as the last is answered.
 */
import { Agent, request } from 'node:http';
import { quantile } from './statistics.ts';

export interface Ask {
  readonly method?: 'GET' | 'POST';
  readonly path: string;
  readonly token?: string;
}

export interface Load {
  readonly baseUrl: string;
  readonly connections: number;
  /** Ends after this time, or when `next` returns undefined. */
  readonly forMs: number;
  readonly next: () => Ask | undefined;
}

export interface Measured {
  readonly answers: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const answerDeadlineMs = 60_000;

/** @throws if the answer is not a success, because failures would distort the figures */
function answered(agent: Agent, baseUrl: string, { method = 'GET', path, token }: Ask): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const outgoing = request(baseUrl + path, { method, agent, headers, timeout: answerDeadlineMs }, (answer) => {
      answer.resume();
      answer.on('end', () => {
        const status = answer.statusCode ?? 0;
        if (status >= 200 && status < 300) resolve();
        else reject(new Error(`${method} ${path.split('?')[0]}: ${status}`));
      });
      answer.on('error', reject);
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path.split('?')[0]}: no answer`)));
    outgoing.on('error', reject);
    outgoing.end();
  });
}

export async function load({ baseUrl, connections, forMs, next }: Load): Promise<Measured> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const tookMs: number[] = [];
  const startMs = performance.now();
  const worker = async (): Promise<void> => {
    while (performance.now() - startMs < forMs) {
      const ask = next();
      if (ask === undefined) return;
      const askedMs = performance.now();
      await answered(agent, baseUrl, ask);
      tookMs.push(performance.now() - askedMs);
    }
  };
  try {
    await Promise.all(Array.from({ length: connections }, worker));
  } finally {
    agent.destroy();
  }
  const elapsedMs = performance.now() - startMs;
  return {
    answers: tookMs.length,
    perSecond: (tookMs.length * 1000) / elapsedMs,
    p50Ms: quantile(tookMs, 0.5),
    p99Ms: quantile(tookMs, 0.99),
  };
}
