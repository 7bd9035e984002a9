/**
 * Runs in a thread of the pool, and makes it end, throw an uncaught error, or hang on certain
 * texts.
 */
import { parentPort } from 'node:worker_threads';
import type { Order } from '../../../../gateway/vpn/pki/jobs.ts';

export const faults = { exit: 'fault: exit', throws: 'fault: throw', hang: 'fault: hang' } as const;

parentPort?.addEventListener('message', (event) => {
  const order = (event as MessageEvent).data as Order;
  const text = order.kind === 'qr' ? order.input.text : '';
  if (text === faults.exit) process.exit(7);
  if (text === faults.hang) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (text !== faults.throws) return;
  // Keep the error from the next listener, which would answer the order.
  event.stopImmediatePropagation();
  throw new Error('thrown in the thread');
});
