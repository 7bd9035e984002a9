/**
 * A bucket in memory, as honest as the server's: one sequence for all keys, writes fenced by the
 * revision of the epoch key, batches whole or not at all, a fence looked at when a write lands and
 * not when it is sent. It takes no larger message and no longer batch than a server does. It
 * outlives the stores that speak to it, each of which stands for one process and its connection.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { bytesOf } from '../../../actors/runtime/journal/codec.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { EventSink, Store, StoreWrite, StoredValue, WriteOutcome } from '../../../actors/runtime/store/store.ts';
import type { Random } from './random.ts';

export interface BucketCopy {
  readonly values: readonly StoredValue[];
  readonly sequence: number;
}

export class MemoryBucket {
  readonly #values = new Map<string, StoredValue>();
  #sequence = 0;

  get epoch(): number {
    return this.#values.get(keys.epoch)?.revision ?? 0;
  }
  get(key: string): Uint8Array | null {
    return this.#values.get(key)?.value ?? null;
  }
  /** Writes without a fence, for a test that damages or loses stored values. */
  set(key: string, value: Uint8Array | string | null): void {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    this.#values.set(key, { key, value: bytes, revision: ++this.#sequence });
  }
  lose(key: string): void {
    this.#values.delete(key);
  }
  write(writes: readonly StoreWrite[], epoch: number): WriteOutcome {
    const refusal = refusalOf(writes);
    if (refusal !== undefined) return { kind: 'refused', cause: new Error(refusal) };
    if (this.epoch !== epoch) return { kind: 'fenced' };
    for (const { key, value } of writes) this.set(key, value);
    return { kind: 'written', sequence: this.#sequence, first: this.#sequence - writes.length + 1 };
  }
  /** A copy of the values stored now. */
  copy(): BucketCopy {
    return { values: this.values(), sequence: this.#sequence };
  }
  /** The store is as it was when the copy was made. */
  goBack({ values, sequence }: BucketCopy): void {
    this.#values.clear();
    for (const stored of values) this.#values.set(stored.key, stored);
    this.#sequence = sequence;
  }
  takeEpoch(value: string, expected: number): number | undefined {
    if (this.epoch !== expected) return undefined;
    this.set(keys.epoch, value);
    return this.epoch;
  }
  values(): StoredValue[] {
    return [...this.#values.values()].sort((a, b) => a.revision - b.revision);
  }
}

/** Refusal of writes that are too large for a server with the smallest `max_payload`, if any. */
function refusalOf(writes: readonly StoreWrite[]): string | undefined {
  if (writes.length > limits.natsBatchMessages) return `${writes.length} messages in a batch`;
  const bytes = Math.max(0, ...writes.map(({ key, value }) => headerBytes + key.length + bytesOf(value ?? '')));
  return bytes > limits.natsPayloadBytes ? `a message of ${bytes} bytes` : undefined;
}

/** Bytes of the headers of a message: its fence, its place in a batch, its lifetime. */
const headerBytes = 512;

/** A bucket that is loaded with these values, and takes writes without keeping them. */
export function storeWith(values: readonly StoredValue[]): Store {
  const epoch = 1 + values.reduce((newest, { revision }) => Math.max(newest, revision), 0);
  let sequence = epoch;
  const all = [...values, { key: keys.epoch, value: Buffer.from(''), revision: epoch }];
  return {
    readEpoch: async () => Promise.resolve({ revision: 0, value: null }),
    takeEpoch: async () => Promise.resolve(epoch),
    put: async () => Promise.resolve({ kind: 'written', sequence: ++sequence }),
    putBatch: async () => Promise.resolve({ kind: 'written', sequence: ++sequence }),
    read: async () => Promise.resolve(null),
    load: async () => Promise.resolve(all),
    async *pages() {
      yield Promise.resolve(all);
    },
  };
}

const textOf = (bytes: Uint8Array | null): string | null => (bytes === null ? null : Buffer.from(bytes).toString());

/** Outcomes of a write on an unreliable network. */
export type Fate = 'done' | 'ack lost' | 'never sent' | 'late';

export interface Network {
  fate(): Fate;
  /** Turns of the event loop that a message takes. */
  delay(): number;
  /** A process that is gone hears nothing any more, and what it says is not heard. */
  readonly isGone: () => boolean;
}

export const calm: Network = { fate: () => 'done', delay: () => 0, isGone: () => false };

export const stormy = (random: Random, isGone: () => boolean = () => false): Network => ({
  fate: () => (random.once(8) ? random.pick(['ack lost', 'never sent', 'late']) : 'done'),
  delay: () => random.below(4),
  isGone,
});

const lost = (what: Fate): WriteOutcome => ({ kind: 'unknown', cause: new Error(what) });

async function pass(turns: number): Promise<void> {
  for (let passed = 0; passed < turns; passed++) await turn();
}

export function createMemoryStore(bucket: MemoryBucket, network: Network = calm): Store {
  const silence = async (): Promise<never> => new Promise<never>(() => {});

  async function send(writes: readonly StoreWrite[], epoch: number): Promise<WriteOutcome> {
    if (network.isGone()) return silence();
    const fate = network.fate();
    await pass(network.delay());
    switch (fate) {
      case 'never sent':
        return lost(fate);
      case 'late':
        // It lands whenever it does: what it may then overwrite is the fence's business.
        void pass(5 + network.delay() * 10).then(() => bucket.write(writes, epoch));
        return lost(fate);
      case 'ack lost':
        bucket.write(writes, epoch);
        return lost(fate);
      case 'done': {
        const outcome = bucket.write(writes, epoch);
        await pass(network.delay());
        // The write of a process that is killed may have landed all the same.
        return network.isGone() ? silence() : outcome;
      }
    }
  }

  return {
    async readEpoch() {
      if (network.isGone()) return silence();
      await pass(network.delay());
      if (network.fate() === 'never sent') throw new Error('no answer');
      return { revision: bucket.epoch, value: textOf(bucket.get(keys.epoch)) };
    },
    async takeEpoch(value, expected) {
      if (network.isGone()) return silence();
      const fate = network.fate();
      await pass(network.delay());
      if (fate === 'never sent') throw new Error('no answer');
      const epoch = bucket.takeEpoch(value, expected);
      if (fate !== 'done') throw new Error('the acknowledgement was lost');
      return epoch;
    },
    put: async (write, epoch) => send([write], epoch),
    putBatch: send,
    read: async (key) => Promise.resolve(bucket.get(key)),
    async load(epoch, fromSequence = 1, untilSequence = Infinity) {
      if (network.isGone()) return silence();
      await pass(network.delay());
      if (network.fate() !== 'done') throw new Error('a stale replica');
      if (bucket.epoch !== epoch) throw new Error('the epoch has moved');
      return bucket.values().filter(({ revision }) => revision >= fromSequence && revision < untilSequence);
    },
    async *pages(fromSequence) {
      if (network.isGone()) await silence();
      await pass(network.delay());
      if (network.fate() !== 'done') throw new Error('no replica answers');
      yield bucket.values().filter(({ revision }) => revision >= fromSequence);
    },
  };
}

export interface Told {
  readonly subject: string;
  readonly payload: string;
}

/** Events as a stream has them: those of a call whose acknowledgement was lost come again. */
export function createMemorySink(told: Told[], network: Network = calm): EventSink {
  return {
    async publish(events) {
      if (network.isGone()) return new Promise<never>(() => {});
      const fate = network.fate();
      await pass(network.delay());
      if (fate !== 'never sent') told.push(...events);
      if (fate !== 'done') throw new Error(fate);
    },
  };
}
