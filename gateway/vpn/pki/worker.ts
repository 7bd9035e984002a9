/** A thread of the pool: it executes one order at a time and reports the result. */
import { getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { Order, Report } from './jobs.ts';
import { perform } from './perform.ts';

/** A third of the weight of the API: with less, a busy machine leaves no time for keys. */
const niceness = 5;

/**
 * Gives the API's thread precedence over keys. On Linux a nice value belongs to a thread, and 0
 * means the calling thread (setpriority(2), "C library/kernel differences");
 * test/gateway/vpn/pki/pool.test.ts looks at /proc/self/task. Elsewhere it would slow down the
 * whole process.
 */
if (process.platform === 'linux') setPriority(0, Math.min(19, getPriority(0) + niceness));

function report(order: Order): Report {
  try {
    return { ok: true, output: perform(order) };
  } catch (error) {
    // Errors of node:crypto and of ours do not contain their input.
    return { ok: false, message: error instanceof Error ? `${error.name}: ${error.message}` : 'unknown' };
  }
}

parentPort?.on('message', (order: Order) => parentPort?.postMessage(report(order)));
