/**
 * The scrub: at intervals, each process compares the replicas of the streams of its partitions, and
 * reports those that diverge. It repairs nothing: an operator decides which replica is right
 * (docs/runbook.md).
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { createRounds } from '../../lib/time/every.ts';
import { buckets, bucketStream, journalBuckets } from '../../schemas/records/buckets.ts';
import { scrubStream, type Divergence, type ScrubResult } from './scrub-stream.ts';

/** The time between a suspicion and the second comparison. */
const scrubConfirmMs = 10_000;

export interface ScrubOptions {
  readonly nc: NatsConnection;
  /** The partitions that this process serves. */
  readonly owned: () => Iterable<number>;
  /** 0 for never. */
  readonly intervalMs: number;
  readonly confirmMs?: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly onScrubbed: (outcome: 'whole' | 'partial' | 'failed') => void;
}

export interface Scrubbed {
  readonly stream: string;
  /** The time at which a scrub last compared all replicas; 0 for never. */
  readonly wholeAtMs: number;
  /** By server, as the last scrub found it. */
  readonly divergent: ReadonlyMap<string, Divergence>;
}

export interface Scrub {
  start(): void;
  stop(): Promise<void>;
  /** The results of the streams that this process looks after now. */
  results(): readonly Scrubbed[];
}

const journals = Array.from({ length: journalBuckets }, (_, number) => buckets.journal.bucket(number));

/** One process looks after each stream: the owner of its partition, or of partition 0. */
function streamsOf(owned: Iterable<number>): string[] {
  const numbers = [...owned];
  const common = numbers.includes(0) ? [buckets.cluster.bucket, buckets.members.bucket, ...journals] : [];
  return [...common, ...numbers.map((number) => buckets.state.bucket(number))].map(bucketStream);
}

const total = ({ missing, extra, different }: Divergence): number => missing + extra + different;

export function createScrub(options: ScrubOptions): Scrub {
  const { nc, owned, clock, log, confirmMs = scrubConfirmMs } = options;
  const rounds = createRounds(options.intervalMs);
  const { signal } = rounds;
  const results = new Map<string, Scrubbed>();

  function learn(stream: string, result: ScrubResult): void {
    if (result.outcome === 'alone') return;
    const { outcome, away, divergent } = result;
    options.onScrubbed(outcome);
    const wholeAtMs = outcome === 'whole' ? clock.nowMs() : (results.get(stream)?.wholeAtMs ?? 0);
    results.set(stream, { stream, wholeAtMs, divergent });
    if (away.length > 0) log.warn('replica_compare_failed', { stream, servers: away });
    for (const [server, counts] of divergent)
      if (total(counts) > 0) log.error('replica_divergent', { stream, server, ...counts });
  }

  async function scrubOne(stream: string): Promise<void> {
    try {
      learn(stream, await scrubStream({ nc, stream, signal, confirmMs, clock }));
    } catch (error) {
      if (signal.aborted) return;
      options.onScrubbed('failed');
      log.warn('scrub_failed', { stream, error });
    }
  }

  async function scrubAll(): Promise<void> {
    for (const stream of streamsOf(owned())) {
      if (signal.aborted) return;
      await scrubOne(stream);
    }
  }

  return {
    start() {
      if (options.intervalMs > 0) rounds.start(scrubAll);
    },
    stop: rounds.stop,
    results() {
      const mine = new Set(streamsOf(owned()));
      return [...results.values()].filter(({ stream }) => mine.has(stream));
    },
  };
}
