/**
 * Puts the usage that hosts report into the stream USAGE. A message holds absolute sums that only
 * grow, so this needs no fence: of two owners the second is refused by the compare-and-set, reads
 * what the first has put, and merges its own (ADR 40).
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { LRUCache } from 'lru-cache';
import { decoder } from '../../lib/decode.ts';
import { readLast } from '../../lib/nats/direct-reads.ts';
import { compareAndSet } from '../../lib/nats/kv-keys.ts';
import { createSemaphore } from '../../lib/semaphore.ts';
import { KiB, MiB, seconds } from '../../schemas/limits/units.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { UsageDay, merged, noUsage, type OwnedItem } from '../../schemas/records/usage.ts';

/** A message that a report would make larger is refused. */
const usageMessageBytes = 768 * KiB;
/** One put, and how often it is tried when another was first. */
const usagePutMs = 3 * seconds;
const usagePutAttempts = 5;
const usagePutsAtOnce = 16;
/** Maximum number of puts that wait; further reports are refused, and sent again. */
const usagePutsWaiting = 10_000;
/** Newest messages of subjects that an owner remembers, so that it need not read them again. */
const usageRemembered = 20_000;
const usageRememberedBytes = 32 * MiB;

const decodeDay = decoder(UsageDay);

interface Stored {
  /** The sequence in the stream; 0 if there is none. */
  readonly sequence: number;
  readonly day: UsageDay;
  readonly bytes: number;
}

export interface UsageStore {
  /**
   * Resolves when the stream has at least these sums, all of one message's day; `too large`: they
   * would make the message larger than any honest agent does.
   * @throws if the stream does not take them now
   */
  put(subject: string, items: readonly OwnedItem[]): Promise<'stored' | 'too large'>;
  /** Content of the stream for the day of this message. @throws if it does not answer */
  read(subject: string): Promise<UsageDay>;
}

export function createUsageStore(nc: NatsConnection): UsageStore {
  const semaphore = createSemaphore(usagePutsAtOnce, {
    most: usagePutsWaiting - usagePutsAtOnce,
    refuse: () => new Error('too many puts wait for the stream USAGE'),
  });
  const known = new LRUCache<string, Stored>({
    max: usageRemembered,
    maxSize: usageRememberedBytes,
    sizeCalculation: ({ bytes }, subject) => bytes + subject.length,
  });

  const read = async (subject: string): Promise<Stored> => {
    const stored = await readLast(nc, {
      stream: streams.usage.name,
      filter: subject,
      timeoutMs: usagePutMs,
    });
    if (stored === undefined) return { sequence: 0, day: noUsage, bytes: 1 };
    return { sequence: stored.sequence, day: decodeDay(stored.data), bytes: stored.data.length };
  };

  const put = async (subject: string, items: readonly OwnedItem[]): Promise<'stored' | 'too large'> => {
    for (let attempt = 1; ; attempt++) {
      // The remembered message may be outdated, and so may a replica's answer: then the put is
      // refused.
      const before = known.get(subject) ?? (await read(subject));
      known.delete(subject);
      const day = merged(before.day, items);
      if (day === before.day) {
        known.set(subject, before);
        return 'stored';
      }
      const text = JSON.stringify(day);
      if (text.length > usageMessageBytes) return 'too large';
      const sequence = await compareAndSet(nc, subject, text, before.sequence, { timeoutMs: usagePutMs });
      if (sequence !== undefined) {
        known.set(subject, { sequence, day, bytes: text.length });
        return 'stored';
      }
      if (attempt >= usagePutAttempts) throw new Error(`${subject} was always put by another first`);
    }
  };

  return {
    put: (subject, items) => semaphore.run(() => put(subject, items)),
    read: async (subject) => (await semaphore.run(() => read(subject))).day,
  };
}
