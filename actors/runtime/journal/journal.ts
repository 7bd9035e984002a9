/**
 * The journal of a member: one log for all partitions that it owns, as a tablet server has one for
 * all of its tablets (Bigtable, section 6). The changes that the turns of all partitions make
 * during a put go into the next entry: one put, one fsync.
 *
 * Entry `n` is in slot `n mod journalSlots`. A slot is used again when every commit in it is in a
 * checkpoint of its partition. A partition whose checkpoint does not move would fill the ring for
 * all: from three quarters on, the commits of the oldest quarter are put again, in entries of their
 * own. They fit into the last quarter, because their bytes are bounded (`journalBytes`), so the
 * ring is never full. One slot stays free: the reader tells by it whether an entry after the last
 * can have been lost.
 *
 * Every put names the journal's own fence. A taker of a partition of a dead member seals that
 * member's journal first, which moves the fence (read-journal.ts).
 *
 * A journal of a store that went back in time is held: it may lack entries that were acknowledged,
 * so nothing more is put into it or acknowledged.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import type { Fence } from '../store/fence.ts';
import type { Store } from '../store/store.ts';
import { type Commit, type EncodedSection, encodeEntry, encodeSection } from './codec.ts';

/** From this share of the ring on, commits of partitions that do not checkpoint are put again. */
export const journalCarryShare = 0.75;
/**
 * The pause between two entries when the ring is full; from half full on it grows with the
 * square.
 */
export const journalThrottleMs = 100;
/** Time for which a batch keeps those of other partitions from being sent. */
export const checkpointTurnMs = 250;

/** A commit of a partition, and what to call when it is in the journal. */
export interface PutCommit {
  readonly commit: Commit;
  /** The commit, encoded. */
  readonly section: Uint8Array;
  readonly onWritten: (seconds: number) => void;
}

/** A partition that puts commits into the journal. */
export interface CommitSource {
  readonly partition: number;
  /** `true` if there are commits that were not taken yet. */
  readonly hasMore: boolean;
  /**
   * The oldest commit that was not taken yet, unless it has more bytes than this: then it waits for
   * the next entry. Nothing is added to it from now on.
   */
  take(maxBytes: number): PutCommit | undefined;
}

export interface JournalObserver {
  /** Entries with a commit that is in no checkpoint. */
  journal(entries: number): void;
}

export interface JournalOptions {
  readonly member: MemberId;
  readonly store: Store;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly observer: JournalObserver;
  /** A listener threw (our bug); the others still run. */
  readonly onFault: (error: unknown) => void;
}

/** An entry with commits that are in no checkpoint. */
interface LiveEntry {
  readonly number: number;
  readonly bytes: number;
  readonly sequence: number;
  /** Its commits that are in no checkpoint. */
  needed: number;
}

interface LiveCommit {
  readonly commit: Commit;
  readonly bytes: number;
  entry: LiveEntry;
  /** `true` if it is in a checkpoint: no entry is needed for it. */
  isSettled: boolean;
}

/** Commits of a partition above its mark, oldest first. */
interface LivePartition {
  readonly commits: LiveCommit[];
  bytes: number;
}

/**
 * Pause before the next entry: as the ring fills, entries get fewer and larger before writes are
 * refused. Pure.
 */
export function throttleMs(entries: number): number {
  const beyondHalf = Math.max(0, (entries / limits.journalSlots) * 2 - 1);
  return Math.floor(journalThrottleMs * Math.min(1, beyondHalf ** 2));
}

export class Journal {
  readonly member: MemberId;
  readonly #options: JournalOptions;
  /** Partitions with commits to put, in the order in which they asked. */
  readonly #sources = new Set<CommitSource>();
  /** Oldest first. */
  #live: LiveEntry[] = [];
  #liveBytes = 0;
  readonly #partitions = new Map<number, LivePartition>();
  #last = 0;
  #lastSequence: number;
  #isPumping = false;
  /** Resolves when the last batch of a checkpoint has ended, or takes long. */
  #checkpointing: Promise<void> = Promise.resolve();
  /** The put under way, or the last one. */
  #putting: Promise<unknown> = Promise.resolve();
  /** Monotonic time at which the put under way began; `undefined` if there is none. */
  #puttingSinceMs: number | undefined;
  #isHeld = false;
  readonly #closed = new AbortController();

  constructor(options: JournalOptions) {
    this.member = options.member;
    this.#options = options;
    // Nothing of it is before its fence.
    this.#lastSequence = options.fence.revision;
  }

  /** Entries from the oldest that is needed to the newest. */
  get entries(): number {
    const [oldest] = this.#live;
    return oldest === undefined ? 0 : this.#last - oldest.number + 1;
  }

  /** `true` if the put under way has had no outcome for so long that it may never get one. */
  get isStalled(): boolean {
    const sinceMs = this.#puttingSinceMs;
    return sinceMs !== undefined && this.#options.clock.monotonicMs() - sinceMs >= limits.journalStalledMs;
  }

  /** `true` after the store went back in time: nothing is acknowledged any more. */
  get isHeld(): boolean {
    return this.#isHeld;
  }

  /**
   * Called when the store went back in time: a put under way is not acknowledged, and no other
   * begins. Commits stay where they are.
   */
  hold(): void {
    this.#isHeld = true;
    this.close();
  }

  /** `true` if the partition may commit more. */
  hasRoom(partition: number): boolean {
    if (this.#isHeld) return false;
    const isFull = this.#liveBytes >= limits.journalBytes;
    return !isFull && !this.isStalled && (this.#partitions.get(partition)?.bytes ?? 0) < limits.uncheckpointedBytes;
  }

  /**
   * `true` if a checkpoint of this partition is due, so that the journal is far from full. When the
   * ring fills, those with the oldest commits are due, and not all at the same time.
   */
  isFilling(partition: number): boolean {
    const live = this.#partitions.get(partition);
    const oldest = live?.commits[0];
    if (live === undefined || oldest === undefined) return false;
    if (live.bytes > limits.checkpointDueBytes) return true;
    const share = Math.max(this.entries / limits.journalSlots, this.#liveBytes / limits.journalBytes);
    return share > limits.journalFillingShare && this.#last - oldest.entry.number >= this.entries / 2;
  }

  /**
   * Writes a batch of a checkpoint after those that were asked for before it: together they would
   * hold up commits. None waits longer than `checkpointTurnMs` for the one before it.
   */
  async inTurn<T>(write: () => Promise<T>): Promise<T> {
    const before = this.#checkpointing;
    const writing = before.then(write);
    const ended = new AbortController();
    this.#checkpointing = before.then(() => sleep(checkpointTurnMs, ended.signal));
    try {
      return await writing;
    } finally {
      ended.abort();
    }
  }

  /**
   * Notes that the source has a commit to put. It goes into the entry after the tick in which it
   * asked.
   */
  ask(source: CommitSource): void {
    if (this.#isHeld) return;
    this.#sources.add(source);
    if (this.#isPumping) return;
    this.#isPumping = true;
    // Commits that arrive in this tick join the entry.
    setImmediate(() => void this.#putAll());
  }

  /** Called when the commits of the partition up to this one are under keys of their own. */
  checkpointed(partition: number, mark: number): void {
    const live = this.#partitions.get(partition);
    if (live === undefined) return;
    const above = live.commits.findIndex(({ commit }) => commit.number > mark);
    for (const commit of live.commits.splice(0, above < 0 ? live.commits.length : above)) {
      commit.isSettled = true;
      commit.entry.needed--;
      live.bytes -= commit.bytes;
    }
    this.#free();
  }

  /** Called when this member no longer owns the partition: nothing of it is needed here. */
  forget(partition: number): void {
    this.checkpointed(partition, Infinity);
    this.#partitions.delete(partition);
    for (const source of this.#sources) if (source.partition === partition) this.#sources.delete(source);
  }

  /**
   * The commits that are in no checkpoint, of a partition that this member owned and loads again.
   * Resolves once the put under way has an outcome.
   */
  async commitsOf(partition: number): Promise<readonly Commit[]> {
    await this.#putting;
    return (this.#partitions.get(partition)?.commits ?? []).map(({ commit }) => commit);
  }

  /** Puts nothing more. */
  close(): void {
    this.#closed.abort();
    this.#options.fence.close();
    this.#sources.clear();
  }

  #free(): void {
    const needed = this.#live.findIndex((entry) => entry.needed > 0);
    const freed = this.#live.splice(0, needed < 0 ? this.#live.length : needed);
    for (const { bytes } of freed) this.#liveBytes -= bytes;
    this.#options.observer.journal(this.entries);
  }

  async #putAll(): Promise<void> {
    const { signal } = this.#closed;
    while (this.#sources.size > 0 && !signal.aborted) {
      const waitMs = throttleMs(this.entries);
      if (waitMs > 0) await sleep(waitMs, signal);
      const isStuck = this.entries >= limits.journalSlots * journalCarryShare;
      const carried = isStuck ? this.#carried() : new Gathered();
      const putting = this.#put(carried.sections.length > 0 ? carried : this.#gathered());
      this.#putting = putting;
      if ((await putting) === 'lost') break;
    }
    this.#isPumping = false;
  }

  /** A commit of each source in turn, as many as fit. */
  #gathered(): Gathered {
    const gathered = new Gathered();
    for (const source of this.#sources) {
      const room = gathered.bytes === 0 ? Infinity : limits.journalEntryBytes - gathered.bytes;
      const taken = source.take(room);
      if (taken !== undefined) gathered.add(source.partition, taken);
      // Those whose commit did not fit are the first of the next entry.
      if (taken === undefined && source.hasMore) continue;
      this.#sources.delete(source);
      if (source.hasMore) this.#sources.add(source);
      if (gathered.bytes >= limits.journalEntryBytes) break;
    }
    return gathered;
  }

  /** Commits of the oldest entries, whose partitions do not checkpoint. */
  #carried(): Gathered {
    const gathered = new Gathered();
    const oldest = this.#live.at(0)?.number ?? 0;
    const until = oldest + limits.journalSlots * (1 - journalCarryShare);
    for (const [partition, { commits }] of this.#partitions) {
      for (const live of commits) {
        if (live.entry.number >= until) continue;
        const section = encodeSection(live.commit);
        if (gathered.bytes + section.length > limits.journalEntryBytes && gathered.bytes > 0) return gathered;
        gathered.carry(partition, section, live);
      }
    }
    return gathered;
  }

  async #put({ sections, bytes, puts, carried }: Gathered): Promise<'written' | 'lost'> {
    if (sections.length === 0) return 'written';
    const { store, fence, clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const number = this.#last + 1;
    const low = this.#live.at(0) ?? { number, sequence: this.#lastSequence };
    const value = encodeEntry(number, { number: low.number, sequence: low.sequence }, sections);
    const write = { key: keys.entry(number % limits.journalSlots), value };
    this.#puttingSinceMs = startedMs;
    const outcome = await fence.write((revision) => store.put(write, revision));
    this.#puttingSinceMs = undefined;
    if (outcome.kind === 'lost' || this.#isHeld) return 'lost';
    this.#last = number;
    this.#lastSequence = outcome.sequence;
    const entry: LiveEntry = { number, bytes, sequence: outcome.sequence, needed: 0 };
    this.#live.push(entry);
    this.#liveBytes += bytes;
    for (const live of carried) {
      // Checkpointed while it was being put again.
      if (live.isSettled) continue;
      live.entry.needed--;
      live.entry = entry;
      entry.needed++;
    }
    for (const { partition, commit, section } of puts) {
      this.#add(partition, { commit, bytes: section.length, entry, isSettled: false });
    }
    this.#free();
    const seconds = (clock.monotonicMs() - startedMs) / 1000;
    for (const { onWritten } of puts) {
      try {
        onWritten(seconds);
      } catch (error) {
        this.#options.onFault(error);
      }
    }
    return 'written';
  }

  #add(partition: number, commit: LiveCommit): void {
    let live = this.#partitions.get(partition);
    if (live === undefined) this.#partitions.set(partition, (live = { commits: [], bytes: 0 }));
    live.commits.push(commit);
    live.bytes += commit.bytes;
    commit.entry.needed++;
  }
}

/** Bytes of a section in the head of an entry: partition, length, checksum. */
const headBytesOfSection = 80;

/** The content of one entry. */
class Gathered {
  readonly sections: EncodedSection[] = [];
  readonly puts: (PutCommit & { readonly partition: number })[] = [];
  readonly carried: LiveCommit[] = [];
  bytes = 0;

  add(partition: number, put: PutCommit): void {
    this.#section({ partition, bytes: put.section });
    this.puts.push({ ...put, partition });
  }

  carry(partition: number, section: Uint8Array, live: LiveCommit): void {
    this.#section({ partition, bytes: section, carried: true });
    this.carried.push(live);
  }

  #section(section: EncodedSection): void {
    this.sections.push(section);
    this.bytes += section.bytes.length + headBytesOfSection;
  }
}
