/**
 * Moves journalled values, in the order of the journal, to their own keys: in paced atomic batches,
 * each fenced and each ending with the mark. A value that changes often between two batches is
 * written once. Events of the entries are published before the mark moves, or parked in the same
 * batch (event-outbox.ts), so an event is as durable as the state it reports; after a crash between
 * the two they are published again under the same ids.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { keys } from '../../../schemas/records/buckets.ts';
import type { OperationRecord } from '../../../schemas/records/operation.ts';
import { limits } from '../../../schemas/limits.ts';
import { minutes, seconds } from '../../../schemas/limits/units.ts';
import { jitter, sleep } from '../../../lib/time/backoff.ts';
import { noReading, type CautiousClock, type ClockReading } from '../../../lib/time/cautious-clock.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import {
  bytesOf,
  clockFields,
  encodeValue,
  eventBytes,
  lineBytes,
  operationBytes,
  type Commit,
  type Encoded,
} from './codec.ts';
import { encodeMark, type Mark } from './mark.ts';
import type { RecordsDigest } from './digest.ts';
import type { Outboxes } from '../events/outboxes.ts';
import type { Journal } from './journal.ts';
import type { Fence } from '../store/fence.ts';
import type { Store, StoreWrite } from '../store/store.ts';

/** Interval at which a partition that rests looks whether the journal fills. */
export const checkpointLookMs = 250;

/**
 * Time that a checkpoint waits for its events; then they are parked in the bucket, and the mark
 * moves.
 */
const eventsPatienceMs = 2 * seconds;
/** Interval at which an idle partition commits its clock. */
const clockKeptMs = 10 * minutes;

export interface Checkpointer {
  /** The number of the last entry whose values are in their own keys. */
  readonly mark: number;
  /** Milliseconds for which the mark has not moved although commits wait; 0 if none waits. */
  readonly stalledMs: number;
  /** Commits above the mark that were offered. */
  readonly pending: readonly Commit[];
  offer(entry: Commit): void;
  /** Stores the time after a long time without writes, so that the next owner continues from it. */
  keepClock(): void;
  /** Starts no more batches; resolves when the one under way has ended. */
  stop(): Promise<void>;
  /**
   * Writes all that was offered, without pauses; resolves when it is below the mark, or after
   * `stop`.
   */
  drain(): Promise<void>;
}

export interface CheckpointerOptions {
  readonly store: Store;
  readonly outbox: Pick<Outboxes, 'publishTo' | 'publishedTo' | 'isFailing' | 'park' | 'hasFreed' | 'onFreed'>;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly expiry: CautiousClock;
  readonly mark: number;
  readonly pending: readonly Commit[];
  /** The digest of the records under their own keys; updated as they are written. */
  readonly digest: RecordsDigest;
  /** The mark to store at this number. */
  readonly markAt: (number: number) => Mark;
  /** The journal, which the checkpoints of all partitions share in turns. */
  readonly journal: {
    /** `true` if it has little room left: a checkpoint is due then. */
    readonly isFilling: () => boolean;
    readonly inTurn: Journal['inTurn'];
  };
  /** Called when the mark has moved. */
  readonly onMark: (mark: number) => void;
}

/**
 * The number of entries that fit a batch; at least one. All their outcomes go into one message, and
 * so may the events of one container: a container that is started and stopped a thousand times
 * makes neither too large for the server.
 */
export function takeBatch(entries: readonly Commit[]): number {
  const touched = new Set<string>();
  let [bytes, outcomes, told] = [0, 0, 0];
  let taken = 0;
  for (const { changes, operations, events, lines = [] } of entries) {
    for (const [key, value] of changes) {
      touched.add(key);
      bytes += key.length + (value === null ? 0 : bytesOf(value));
    }
    for (const operation of operations) outcomes += operationBytes(operation);
    for (const event of events) told += eventBytes(event);
    for (const line of lines) told += lineBytes(line);
    const isOver =
      touched.size > limits.checkpointBatchMessages ||
      bytes > limits.checkpointBatchBytes ||
      outcomes > limits.journalEntryBytes ||
      told > limits.journalEntryBytes;
    if (isOver && taken > 0) break;
    taken++;
  }
  return taken;
}

/** The content of a checkpoint that moves no commits. */
export interface CheckpointState {
  readonly mark: number;
  readonly clock: ClockReading;
}

/** Stored with every digest: a load that finds one without the other knows that one is lost. */
const StoredClock = Type.Object({
  ...clockFields,
  /** The checkpoint mark that it belongs to. */
  mark: Type.Integer(),
});
export type StoredClock = Readonly<Static<typeof StoredClock>>;
export const clockShape = Compile(StoredClock);

/**
 * The writes that bring the keys to where these entries left them, and the digest of the records
 * that are there then.
 */
export function batchWrites(
  entries: readonly Commit[],
  digest: RecordsDigest,
  markAt: (number: number) => Mark,
  before: CheckpointState = { mark: 0, clock: noReading },
): StoreWrite[] {
  const newest = new Map<string, Encoded | null>();
  const operations: OperationRecord[] = [];
  for (const entry of entries) {
    for (const [key, value] of entry.changes) newest.set(key, value);
    operations.push(...entry.operations);
  }
  const newestEntry = entries.at(-1);
  const last = newestEntry?.number ?? before.mark;
  const stored: StoredClock = { mark: last, ...(newestEntry?.clock ?? before.clock) };
  const writes: StoreWrite[] = Array.from(newest, ([key, value]) => ({ key, value }));
  if (operations.length > 0) {
    writes.push({ key: keys.operations(last), value: encodeValue(operations), ttlMs: limits.operationTtlMs });
  }
  for (const [key, value] of newest) digest.set(key, value);
  writes.push({ key: keys.digest, value: encodeValue(digest.at(last)) });
  writes.push({ key: keys.clock, value: encodeValue(stored) });
  writes.push({ key: keys.checkpoint, value: encodeMark(markAt(last)) });
  return writes;
}

export function startCheckpointer(options: CheckpointerOptions): Checkpointer {
  const { store, outbox, fence, clock, expiry, journal } = options;
  let queue: Commit[] = [...options.pending];
  let mark = options.mark;
  let keptAtMs = clock.monotonicMs();
  /** The monotonic time at which the mark last moved, or the first commit began to wait. */
  let movedAtMs = keptAtMs;
  let running: Promise<void> | undefined;
  let isHurried = false;
  const stopped = new AbortController();
  let pause = new AbortController();

  /**
   * Events are in the stream before the mark moves past their entries, or in the bucket together
   * with it.
   * @returns further writes for the batch; after a stop nothing is written
   */
  async function keepEvents(entry: number): Promise<readonly StoreWrite[]> {
    while (!stopped.signal.aborted) {
      await outbox.publishTo(entry, eventsPatienceMs);
      const writes = outbox.park(entry);
      if (writes !== undefined) return writes;
      await sleep(checkpointLookMs, stopped.signal);
    }
    return [];
  }

  /**
   * The entries that a batch may take without waiting for their events: those whose events are
   * published, and all while the stream is away. All too, if there is none of these.
   */
  function ready(): readonly Commit[] {
    if (outbox.isFailing) return queue;
    const { publishedTo } = outbox;
    const waiting = queue.findIndex(({ number }) => number > publishedTo);
    return waiting <= 0 ? queue : queue.slice(0, waiting);
  }

  /**
   * Waits, so that few batches are written: each costs a server as much as many commits (ADR 10).
   */
  async function rest(): Promise<void> {
    const { signal } = pause;
    const untilMs = clock.monotonicMs() + jitter(limits.checkpointPaceMs);
    while (!signal.aborted && !journal.isFilling()) {
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) return;
      await sleep(Math.min(leftMs, checkpointLookMs), signal);
    }
  }

  const isStale = (): boolean => clock.monotonicMs() - keptAtMs >= clockKeptMs;
  const isNeeded = (): boolean => queue.length > 0 || outbox.hasFreed || isStale();

  async function run(): Promise<void> {
    while (isNeeded() && !stopped.signal.aborted) {
      const entries = ready();
      const batch = entries.slice(0, takeBatch(entries));
      const isBehind = batch.length < entries.length;
      const events = await keepEvents(batch.at(-1)?.number ?? mark);
      if (stopped.signal.aborted) return;
      const hasEnd = batch.length > 0 || isStale();
      const writes = hasEnd ? batchWrites(batch, options.digest, options.markAt, { mark, clock: expiry.read() }) : [];
      const all = [...events, ...writes];
      const written = await journal.inTurn(() => fence.write((epoch) => store.putBatch(all, epoch)));
      if (written.kind === 'lost') {
        stopped.abort();
        return;
      }
      if (hasEnd) keptAtMs = clock.monotonicMs();
      queue = queue.slice(batch.length);
      mark = batch.at(-1)?.number ?? mark;
      movedAtMs = clock.monotonicMs();
      options.onMark(mark);
      if (!isBehind && !isHurried) await rest();
    }
  }

  const wake = (): void => {
    if (running !== undefined || stopped.signal.aborted) return;
    running = run().finally(() => {
      running = undefined;
      if (isNeeded()) wake();
    });
  };
  outbox.onFreed(wake);
  wake();

  return {
    get mark() {
      return mark;
    },
    get stalledMs() {
      return queue.length === 0 ? 0 : clock.monotonicMs() - movedAtMs;
    },
    get pending() {
      return queue;
    },
    offer(entry) {
      if (queue.length === 0) movedAtMs = clock.monotonicMs();
      queue.push(entry);
      wake();
    },
    keepClock() {
      if (isStale()) wake();
    },
    async stop() {
      stopped.abort();
      pause.abort();
      await running;
    },
    async drain() {
      isHurried = true;
      pause.abort();
      pause = new AbortController();
      wake();
      while (running !== undefined) await running;
      isHurried = false;
    },
  };
}
