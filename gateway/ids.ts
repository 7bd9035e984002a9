/** Ids of containers. */
import { randomFillSync } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Clock } from '../lib/time/clock.ts';

/** Container ids whose random bytes are drawn at once. */
export const idsDrawn = 256;

const uuidLength = 16;

/**
 * Makes UUIDs of version 7 (RFC 9562) that ascend. Within a millisecond a counter with a random
 * start ascends (section 6.2, method 1), and the last 42 bits are random in each id. The library
 * alone would call OpenSSL for each id, which was 7 % of the gateway's time under creates; this
 * draws the random bytes of many ids at once.
 */
export function ascendingIds(
  clock: Pick<Clock, 'nowMs'>,
  fill: (block: Uint8Array) => unknown = randomFillSync,
): () => string {
  const block = new Uint8Array(uuidLength * idsDrawn);
  let next = block.length;
  let msecs = -Infinity;
  let seq = 0;
  return () => {
    if (next === block.length) {
      fill(block);
      next = 0;
    }
    const random = block.subarray(next, next + uuidLength);
    next += uuidLength;
    const nowMs = clock.nowMs();
    if (nowMs > msecs) {
      msecs = nowMs;
      // From bytes that the id itself does not use: 31 of the counter's 32 bits, so that it can
      // ascend.
      seq = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1;
    } else {
      seq = (seq + 1) >>> 0;
      if (seq === 0) msecs++;
    }
    return uuidv7({ random, msecs, seq });
  };
}
