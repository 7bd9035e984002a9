/**
 * An open loop: requests begin by a schedule, whether or not earlier ones were answered, and a
 * latency counts from the scheduled time. All requests of one millisecond begin together, because
 * timers of Node are no finer. A child process (open-loop-child.ts) generates the load.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { within } from '../../../lib/time/backoff.ts';
import type { Bench } from '../../section.ts';
import type { System } from '../ground.ts';
import type { Traffic } from './traffic.ts';

export interface OpenLoop {
  readonly port: number;
  readonly traffic: Traffic;
  readonly connections: number;
  readonly perSecond: number;
  readonly forMs: number;
}

export interface OpenMeasured {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export type Outcome = { readonly measured: OpenMeasured } | { readonly failure: string };

/** Time for the last answers, after the last request has begun. */
export const drainMs = 10_000;
const graceMs = 20_000;
const connections = 64;

/** @throws if an answer is missing or not a success */
export async function openLoop(
  bench: Bench,
  system: System,
  traffic: Traffic,
  rate: { readonly perSecond: number; readonly forMs: number },
): Promise<OpenMeasured> {
  bench.signal.throwIfAborted();
  const child = fork(join(import.meta.dirname, 'open-loop-child.js'), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  try {
    const ended = once(child, 'exit').then(([code]) => ({ failure: `the generator ended with ${code}` }));
    const finished = once(child, 'message').then(([message]) => message as Outcome);
    const job: OpenLoop = { port: Number(new URL(system.baseUrl).port), traffic, connections, ...rate };
    child.send(job);
    const outcome = await within(Promise.race([finished, ended]), rate.forMs + 2 * drainMs + graceMs, 'an open loop');
    if ('failure' in outcome) throw new Error(`${system.name}: ${outcome.failure}`);
    return outcome.measured;
  } finally {
    child.kill('SIGKILL');
  }
}
