/**
 * The commits of one epoch. Changes of turns collect in groups, one group's journal entry is in
 * flight at a time, and waiting callers are notified when their commit is settled (invariant A3).
 * Each epoch has its own object, so that a late answer to an earlier epoch changes nothing.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { CautiousClock } from '../../../lib/time/cautious-clock.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Checkpointer } from './checkpoint.ts';
import { DirtyKeys, Group, type Waiter } from './group.ts';
import type { EventOutbox } from '../events/event-outbox.ts';
import type { Fence } from '../store/fence.ts';
import type { Store } from '../store/store.ts';

export interface CommitsOptions<Effect extends object> {
  readonly store: Store;
  readonly fence: Fence;
  /** Number of the last entry that the load found. */
  readonly last: number;
  readonly checkpointer: Checkpointer;
  readonly outbox: EventOutbox;
  readonly clock: Clock;
  /** Each entry records the time of this clock, by which the partition deletes. */
  readonly expiry: CautiousClock;
  /** Before the waiters of the group are notified. */
  readonly onCommitted: (group: Group<Effect>, seconds: number) => void;
  /** Writes are refused from now on, or accepted again. */
  readonly onRoom: (hasRoom: boolean, load: { readonly entries: number; readonly queued: number }) => void;
  /** A listener threw (our bug); the other listeners still run, and commits go on. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Pause before the next entry: as the ring fills, entries get fewer and larger before writes are
 * refused. Pure.
 */
export function throttleMs(entriesAboveMark: number): number {
  const beyondHalf = Math.max(0, (entriesAboveMark / limits.journalSlots) * 2 - 1);
  return Math.floor(limits.journalThrottleMs * Math.min(1, beyondHalf ** 2));
}

export class Commits<Effect extends object> {
  readonly #options: CommitsOptions<Effect>;
  readonly #dirtyKeys = new DirtyKeys();
  /** Groups that are not committed, oldest first; turns go into the last. */
  #groups: Group<Effect>[] = [];
  #committed: number;
  #last: number;
  #inFlight: Group<Effect> | undefined;
  #isPumping = false;
  readonly #closed = new AbortController();
  #hadRoom = true;

  constructor(options: CommitsOptions<Effect>) {
    this.#options = options;
    this.#committed = options.last;
    this.#last = options.last;
  }

  /** Number of the newest group, committed or not. */
  get last(): number {
    return this.#last;
  }
  get committed(): number {
    return this.#committed;
  }
  get isIdle(): boolean {
    return this.#groups.length === 0;
  }
  get entriesAboveMark(): number {
    return this.#last - this.#options.checkpointer.mark;
  }

  hasRoom(): boolean {
    // One slot stays free: the loader tells by it whether an entry after the last can have been
    // lost.
    const isRingFull = this.entriesAboveMark >= limits.journalSlots - 2;
    const queued = this.#groups.reduce((sum, group) => sum + group.waiters.length, 0);
    const hasRoom = !isRingFull && queued < limits.turnsQueued;
    if (hasRoom !== this.#hadRoom) this.#options.onRoom(hasRoom, { entries: this.entriesAboveMark, queued });
    this.#hadRoom = hasRoom;
    return hasRoom;
  }

  /**
   * The group that the changes of a turn go into. It is committed after the tick in which it was
   * asked for.
   */
  open(): Group<Effect> {
    const open = this.#groups.at(-1);
    this.#pump();
    if (open !== undefined && open !== this.#inFlight && !open.isFull) return open;
    const group = new Group<Effect>(++this.#last, this.#dirtyKeys);
    this.#groups.push(group);
    return group;
  }

  /** The number of the commit that a reader of this key waits for; 0 for none. */
  dirtyUntil(key: string): number {
    return this.#dirtyKeys.until(key);
  }

  /** Calls the waiter when this commit is settled: at once if it already is. */
  after(commit: number, waiter: Waiter): void {
    const group = commit <= this.#committed ? undefined : this.#groups.find(({ number }) => number === commit);
    if (group === undefined) waiter(true);
    else group.waiters.push(waiter);
  }

  /** Commits nothing more. @returns the waiters that are left */
  close(): Waiter[] {
    this.#closed.abort();
    const unanswered = this.#groups.flatMap(({ waiters }) => waiters);
    this.#groups = [];
    return unanswered;
  }

  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    // What else arrived in this tick joins the group.
    setImmediate(() => void this.#commitAll());
  }

  async #commitAll(): Promise<void> {
    const { store, fence, checkpointer, outbox, clock, expiry } = this.#options;
    for (;;) {
      if (this.#groups.length === 0) break;
      const waitMs = throttleMs(this.entriesAboveMark);
      if (waitMs > 0) await sleep(waitMs, this.#closed.signal);
      const [group] = this.#groups;
      if (group === undefined) return;
      const startedMs = clock.monotonicMs();
      this.#inFlight = group;
      const { entry, text } = group.entry(expiry.read());
      const write = { key: keys.journal(group.number % limits.journalSlots), value: text };
      const outcome = await fence.write((epoch) => store.put(write, epoch));
      if (outcome === 'lost' || this.#closed.signal.aborted) return;
      this.#groups.shift();
      this.#committed = group.number;
      this.#dirtyKeys.committed(group);
      // Before the waiters run: they may ask for the events of this commit.
      outbox.offer(entry);
      checkpointer.offer(entry);
      this.#notify(group, (clock.monotonicMs() - startedMs) / 1000);
    }
    this.#inFlight = undefined;
    this.#isPumping = false;
  }

  #notify(group: Group<Effect>, seconds: number): void {
    const { onCommitted, onFault } = this.#options;
    const listeners = [() => onCommitted(group, seconds), ...group.waiters.map((waiter) => () => waiter(true))];
    for (const listener of listeners) {
      try {
        listener();
      } catch (error) {
        onFault(error);
      }
    }
  }
}
