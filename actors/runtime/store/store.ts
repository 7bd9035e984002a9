/**
 * The storage interface of a partition. The runtime is written against this interface, so that the
 * same code runs over JetStream (jetstream-store.ts) and over a model of it under a seeded
 * scheduler.
 *
 * Every write but the taking of an epoch is fenced: the server refuses it when the bucket's epoch
 * key is at another revision. Writes rest on this alone.
 */
import type { Encoded } from '../journal/codec.ts';

/** A key's new value, or its deletion. `ttlMs`: the server drops the message after this time. */
export interface StoreWrite {
  readonly key: string;
  readonly value: Encoded | null;
  readonly ttlMs?: number;
}

export interface StoredValue {
  readonly key: string;
  /** `null` for a delete marker. */
  readonly value: Uint8Array | null;
  readonly revision: number;
}

export type WriteOutcome =
  /**
   * `sequence`: of the write in the stream; of the last one of a batch. 0 if the batch was empty.
   * `first`: of the first one of a batch.
   */
  | { readonly kind: 'written'; readonly sequence: number; readonly first?: number }
  /** The epoch has moved: another process owns the partition. Nothing was written. */
  | { readonly kind: 'fenced' }
  /** Larger than the server takes: nothing was written, and never will be (our bug). */
  | { readonly kind: 'refused'; readonly cause: unknown }
  /** No answer, or an inconclusive one. The write may have happened, or may yet happen. */
  | { readonly kind: 'unknown'; readonly cause: unknown };

export interface Store {
  /** Revision and value of the epoch key; revision 0 where there is none yet. */
  readEpoch(): Promise<{ readonly revision: number; readonly value: string | null }>;
  /**
   * Compare-and-set of the epoch key; `undefined` if it had moved. A retry after a failure is safe.
   */
  takeEpoch(value: string, expectedRevision: number): Promise<number | undefined>;
  put(write: StoreWrite, epoch: number): Promise<WriteOutcome>;
  /** All or none. */
  putBatch(writes: readonly StoreWrite[], epoch: number): Promise<WriteOutcome>;
  /** The newest value of a key, as its leader knows it; `null` if there is none. */
  read(key: string): Promise<Uint8Array | null>;
  /**
   * The newest value of every key that was written at this sequence or after it, as of `epoch` or
   * later. `untilSequence`: of those that were written before it; something was written there or
   * after it.
   * @throws where the replica lags: it does not have the epoch's own record yet, or nothing from
   * `untilSequence` on
   */
  load(epoch: number, fromSequence?: number, untilSequence?: number): Promise<StoredValue[]>;
  /**
   * The same, oldest first and page by page, as the replicas have it that answer: any of it may be
   * older than what the leader has.
   */
  pages(fromSequence: number): AsyncIterable<readonly StoredValue[]>;
}

/** A message of the stream EVENTS: a list of events of one container. */
export interface StoredEvent {
  readonly subject: string;
  readonly payload: string;
  /** The header that says who caused them (schemas/records/event-authors.ts). */
  readonly by?: string;
}

/** Publishes events of partitions: when a call resolves, all its events are stored. */
export interface EventSink {
  publish(events: readonly StoredEvent[]): Promise<void>;
}
