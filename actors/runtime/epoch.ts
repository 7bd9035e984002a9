/** Taking a partition: its epoch key is moved by compare-and-set, and the new revision fences every former owner. */
import { backoffMs, sleep } from '../../lib/backoff.ts';
import { encodeValue } from './codec.ts';
import type { Store } from './store.ts';

export interface EpochRecord {
  /** Of this taking alone: tells our own compare-and-set, whose answer was lost, from another's. */
  readonly token: string;
  readonly owner: string;
  readonly takenAtMs: number;
}

export type Taken = { readonly kind: 'taken'; readonly epoch: number } | { readonly kind: 'refused' };

/**
 * Moves the epoch to a new revision.
 * `from`: only if it is still at this one (the owner renews after an unknown outcome); absent: whatever it is at.
 * Retries while the store does not answer, until the signal aborts.
 */
export async function takeEpoch(
  store: Store,
  record: EpochRecord,
  options: { readonly from?: number; readonly signal: AbortSignal; readonly onFailure: (error: unknown) => void },
): Promise<Taken> {
  const value = encodeValue(record);
  for (let attempt = 0; !options.signal.aborted; attempt++) {
    try {
      const current = await store.readEpoch();
      if (current.value === value) return { kind: 'taken', epoch: current.revision };
      if (options.from !== undefined && current.revision !== options.from) return { kind: 'refused' };
      const epoch = await store.takeEpoch(value, current.revision);
      if (epoch !== undefined) return { kind: 'taken', epoch };
    } catch (error) {
      options.onFailure(error);
    }
    await sleep(backoffMs(attempt, { minMs: 50, maxMs: 2000 }), options.signal);
  }
  return { kind: 'refused' };
}
