/**
 * Takes and releases a partition: compare-and-set moves its epoch key, and the new revision fences
 * every earlier owner.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { backoffMs } from '../../../lib/time/backoff.ts';
import { retry } from '../../../lib/time/retry.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { decodeValue, encodeValue } from '../journal/codec.ts';
import type { Store } from './store.ts';

/**
 * Reads of an epoch before the own one, in about ten seconds: a leader that is cut off notices it
 * by then, or the store went back in time.
 */
const epochStaleReads = 20;
/** The wait between two attempts to take an epoch. */
const epochRetryMinMs = 50;
const epochRetryMaxMs = 500;

const EpochRecord = Type.Object({
  /** Unique to this move: tells our own compare-and-set, whose answer was lost, from another's. */
  token: Type.String(),
  owner: Type.Unsafe<MemberId>(Type.String()),
  takenAtMs: Type.Number(),
  /** The owner has released it: any member may take it. Absent in records from before leases. */
  released: Type.Optional(Type.Boolean()),
  /** Set for a journal whose member is dead: nothing is put into it any more. */
  sealed: Type.Optional(Type.Boolean()),
  /** Set for a sealed journal that no partition needs: its entries are purged. */
  emptied: Type.Optional(Type.Boolean()),
});
export type EpochRecord = Readonly<Static<typeof EpochRecord>>;
export const epochShape = Compile(EpochRecord);

export type Moved = { readonly kind: 'moved'; readonly epoch: number } | { readonly kind: 'refused' };

/** The epoch that a move may start from: the mover's own, or any that the rule allows. */
export type MovableFrom =
  | { readonly epoch: number }
  /** `record` is `undefined` if there is none, or none that can be read. */
  | { readonly mayTake: (record: EpochRecord | undefined) => Promise<boolean> };

/** The pause between attempts to move an epoch. */
export const epochPauseMs = (attempt: number): number =>
  backoffMs(attempt, { minMs: epochRetryMinMs, maxMs: epochRetryMaxMs });

/**
 * Moves the epoch to a new revision. Retries while the store does not answer, until the signal
 * aborts.
 */
export async function moveEpoch(
  store: Store,
  record: EpochRecord,
  options: {
    readonly from: MovableFrom;
    readonly signal: AbortSignal;
    readonly onFailure: (error: unknown) => void;
  },
): Promise<Moved> {
  const { from, signal, onFailure } = options;
  const value = encodeValue(record);
  let stale = 0;
  const attempt = async (): Promise<Moved | undefined> => {
    const current = await store.readEpoch();
    if (current.value === value) return { kind: 'moved', epoch: current.revision };
    // From before our own epoch: a leader that is cut off does not know who has the partition now.
    if ('epoch' in from && current.revision < from.epoch) {
      // For good, if the store went back in time; then nobody knows whose it was since.
      if (stale++ === epochStaleReads) return { kind: 'refused' };
      throw new Error('a stale replica returned an older epoch');
    }
    const mayMove = 'epoch' in from ? current.revision === from.epoch : await from.mayTake(recordOf(current.value));
    if (!mayMove) return { kind: 'refused' };
    const epoch = await store.takeEpoch(value, current.revision);
    return epoch === undefined ? undefined : { kind: 'moved', epoch };
  };
  return (await retry(attempt, { pauseMs: epochPauseMs, signal, onFailure })) ?? { kind: 'refused' };
}

function recordOf(value: string | null): EpochRecord | undefined {
  const decoded = value === null ? undefined : decodeValue(value, epochShape);
  return decoded?.ok === true ? decoded.value : undefined;
}
