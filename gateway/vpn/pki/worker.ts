/** A thread of the pool: takes an order, does it, reports; one at a time. */
import { constants, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import type { Order, Report } from './jobs.ts';
import { perform } from './perform.ts';

/**
 * Reads and writes of the API come before keys. setpriority(2), "C library/kernel differences": on
 * Linux a nice value is a thread's own, and 0 means the thread that calls;
 * test/gateway/vpn/pki/pool.test.ts looks at /proc/self/task. Elsewhere it would slow the whole
 * process, so there it is left as it is.
 */
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);

function report(order: Order): Report {
  try {
    return { ok: true, output: perform(order) };
  } catch (error) {
    // Of node:crypto and of our own: neither puts what it was given into its text.
    return { ok: false, message: error instanceof Error ? `${error.name}: ${error.message}` : 'unknown' };
  }
}

parentPort?.on('message', (order: Order) => parentPort?.postMessage(report(order)));
