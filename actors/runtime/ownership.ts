/**
 * The ownership of a partition: this process takes the epoch, loads the bucket, and serves turns
 * while its lease is valid. When the partition goes to another process, unanswered turns are
 * refused, and their senders ask there.
 */
import { fill } from '../../lib/fill.ts';
import { backoffMs, sleep } from '../../lib/time/backoff.ts';
import { keys } from '../../schemas/records/buckets.ts';
import { limits } from '../../schemas/limits.ts';
import type { DomainTypes, Memory } from './domain.ts';
import type { Journal } from './journal/journal.ts';
import type { Journals } from './journal/journals.ts';
import { loading, readMark } from './journal/load.ts';
import { encodeValue, operationBytes } from './journal/codec.ts';
import { LoadError } from './journal/load-error.ts';
import { encodeMark } from './journal/mark.ts';
import { rewrite } from './journal/rewrite.ts';
import type { Lease } from './lease.ts';
import { Reading } from './reading.ts';
import { startServing, type Serving, type ServingObserver, type ServingOptions } from './serving.ts';
import { moveEpoch, type EpochRecord, type MovableFrom, type Moved } from './store/epoch.ts';
import { Fence, type WentBack } from './store/fence.ts';
import type { StoreWrite } from './store/store.ts';
import { WaitingTurns, type WaitingTurn } from './waiting-turns.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Time for which a hand-over checkpoints while turns still run. */
export const handOverDrainMs = 2 * seconds;
/**
 * Time for commits under way at a hand-over; senders repeat asks that are not acknowledged by
 * then.
 */
export const handOverSettleMs = 3 * seconds;
/** Loads that find records missing before the partition is released. */
export const loadAttempts = 4;

/** Loads that fail for any reason before it is released, such as no replica answering. */
const loadAttemptsMax = 20;

export interface OwnershipOptions<D extends DomainTypes> extends ServingOptions<D> {
  readonly lease: Lease;
  /**
   * Resolves to `true` if the partition may be taken from the member that its epoch record names.
   * `record` is `undefined` if there is none, or none that can be read.
   */
  readonly mayTake: (record: EpochRecord | undefined) => Promise<boolean>;
  readonly journals: Pick<Journals, 'open' | 'commitsOf'>;
  /** Takes what this process has read ahead of the bucket; `undefined` if it may not be used. */
  readonly readAhead: () => Promise<Reading<D['Record']> | undefined>;
  readonly newToken: () => string;
  readonly onLoaded: () => void;
  /** Another process has taken it. Not called for one that was never taken, or was given away. */
  readonly onLost: () => void;
  /**
   * It could not be loaded, and was released: another process, or a later attempt, may reach
   * another replica.
   */
  readonly onUnloadable: (error: unknown) => void;
  /** The bucket went back in time; the journal of this process is held. */
  readonly onWentBack: (sequences: WentBack) => void;
  readonly observer: OwnershipObserver;
}

export interface OwnershipObserver extends ServingObserver {
  load(): void;
  /** A write had no answer, and is resolved in place. */
  unknown(): void;
}

type Phase<D extends DomainTypes> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'serving'; readonly serving: Serving<D> }
  /** It accepts no more turns; those that it ran are being committed. */
  | { readonly kind: 'releasing'; readonly serving: Serving<D> }
  | { readonly kind: 'ended' };

export class Ownership<D extends DomainTypes> {
  readonly #options: OwnershipOptions<D>;
  #phase: Phase<D> = { kind: 'loading' };
  readonly #waiting: WaitingTurns<Serving<D>>;
  /** The state that serves, or served last. */
  #state: Memory<D>;
  readonly #ended = new AbortController();

  constructor(options: OwnershipOptions<D>) {
    this.#options = options;
    const { clock, slices, log, number } = options;
    this.#waiting = new WaitingTurns({
      answering: () => this.answering,
      clock,
      slices,
      onFault: (error) => log.error('held_turns_failed', { partition: number, error }),
    });
    this.#state = options.domain.open({ epoch: 0, last: 0 });
  }

  /** Memory as the turns so far have left it, committed or not. */
  get state(): Memory<D> {
    return this.#state;
  }
  get serving(): Serving<D> | undefined {
    return this.#phase.kind === 'serving' ? this.#phase.serving : undefined;
  }
  /** The serving partition, also while it is being released. */
  get owned(): Serving<D> | undefined {
    return this.#phase.kind === 'releasing' ? this.#phase.serving : this.serving;
  }
  /** The serving partition, if the lease is valid. */
  get answering(): Serving<D> | undefined {
    return this.#options.lease.isValid() ? this.serving : undefined;
  }

  /** Takes and loads the partition; resolves when it serves, or cannot be taken. */
  async start(): Promise<void> {
    const { observer, onLoaded, onLost } = this.#options;
    observer.load();
    const { isLost } = await this.#takeAndServe({ mayTake: this.#options.mayTake });
    if (this.serving !== undefined) onLoaded();
    if (isLost) onLost();
    this.#waiting.run();
  }

  /**
   * Commits and checkpoints what is under way, and releases the partition, so that another member
   * can take it and load its keys alone.
   * @returns `false` if it can't be checkpointed in time: then it is served again
   */
  async release(): Promise<boolean> {
    const { serving } = this;
    if (serving === undefined) {
      this.end();
      return true;
    }
    const { checkpointer, commits, journal } = serving;
    if (journal.isHeld) return this.#storeAll(serving);
    const { signal } = this.#ended;
    // Nearly all of it while turns still run, so that the pause is short.
    await Promise.race([checkpointer.drain(), sleep(handOverDrainMs, signal)]);
    if (this.serving !== serving) return true;
    this.#phase = { kind: 'releasing', serving };
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + handOverSettleMs;
    const isOver = (): boolean => signal.aborted || clock.monotonicMs() >= untilMs;
    while (!commits.isIdle && !isOver()) await sleep(1);
    await Promise.race([checkpointer.drain(), sleep(untilMs - clock.monotonicMs(), signal)]);
    if (signal.aborted) return true;
    if (journal.isHeld) return this.#storeAll(serving);
    if (!commits.isIdle || checkpointer.mark < commits.last) {
      this.#phase = { kind: 'serving', serving };
      this.#waiting.run();
      return false;
    }
    this.#waiting.refuseAll();
    await this.#leaveBehind(serving);
    if (journal.isHeld) return this.#storeAll(serving);
    await this.#leave(serving);
    return true;
  }

  async #leave({ fence, journal }: Serving<D>): Promise<void> {
    await fence.release();
    journal.forget(this.#options.number);
    this.end();
  }

  /**
   * The store went back in time: memory is stored again, as a whole, before another member can take
   * the partition. There is no deadline, because nothing else has what was acknowledged. Reads go
   * on until the end.
   * @returns `false` if it failed: then it is served as before, without writes
   */
  async #storeAll(serving: Serving<D>): Promise<boolean> {
    const { signal } = this.#ended;
    if (signal.aborted) return true;
    const { log, number } = this.#options;
    this.#phase = { kind: 'serving', serving };
    this.#waiting.run();
    try {
      if ((await this.#rewrite(serving)) === 'lost') return true;
      await this.#leave(serving);
      log.warn('partition_stored_again', { partition: number, commit: serving.commits.last });
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      log.error('partition_store_failed', { partition: number, error });
      this.#phase = { kind: 'serving', serving };
      this.#waiting.run();
      await sleep(limits.storeRetryMaxMs, signal);
      return false;
    }
  }

  async #rewrite(serving: Serving<D>): Promise<'written' | 'lost'> {
    const { checkpointer, commits, digest, expiry, fence, journal, outbox, state, quarantined } = serving;
    const { domain, store, slices } = this.#options;
    await checkpointer.stop();
    // A put that was under way when the store went back is in no journal that counts. Its turns
    // ran, so they are stored with the rest; their senders ask again.
    const uncommitted = commits.uncommitted();
    for (const { changes } of [...checkpointer.pending, ...uncommitted]) {
      for (const [key, value] of changes) digest.set(key, value);
    }
    return rewrite({
      ...{ store, fence, slices, digest, quarantined },
      inTurn: (write) => journal.inTurn(write),
      signal: this.#ended.signal,
      format: domain.records,
      last: commits.last,
      clock: expiry.read(),
      records: () => domain.all(state),
      others: async () => {
        if (this.#phase.kind === 'serving') this.#phase = { kind: 'releasing', serving };
        await outbox.stop();
        for (const commit of uncommitted) if (commit.number > outbox.last) outbox.offer(commit);
        return [...outbox.parkAll(), ...this.#outcomes(serving)];
      },
    });
  }

  /** Writes of the outcomes of operations, in as few keys as hold them. */
  *#outcomes({ operations, commits }: Serving<D>): Generator<StoreWrite, void, void> {
    let rest = [...operations.records(this.#options.clock.nowMs())];
    for (let index = 0; rest.length > 0; index++) {
      const { values } = fill(rest, { bytes: limits.journalEntryBytes }, (record) => ({
        value: record,
        bytes: operationBytes(record),
      }));
      rest = rest.slice(values.length);
      const key = `${keys.operations(commits.last)}.${index}`;
      yield { key, value: encodeValue(values), ttlMs: limits.operationTtlMs };
    }
  }

  /** All is under keys of its own: no journal is needed, and events are published again. */
  async #leaveBehind({ fence, checkpointer, outbox, commits: { last } }: Serving<D>): Promise<void> {
    await Promise.all([checkpointer.stop(), outbox.stop()]);
    const mark = encodeMark({ number: last, journals: [] });
    const batch = [...outbox.parkPublished(), { key: keys.checkpoint, value: mark }];
    await fence.write((epoch) => this.#options.store.putBatch(batch, epoch));
  }

  /** Drops the partition at once. What is under way gets no answer; its senders ask again. */
  end(): void {
    if (this.#phase.kind === 'ended') return;
    const unanswered = this.owned?.commits.close() ?? [];
    void this.owned?.checkpointer.stop();
    void this.owned?.outbox.stop();
    this.#phase = { kind: 'ended' };
    this.#ended.abort();
    this.#options.domain.release(this.#state);
    this.#waiting.refuseAll();
    for (const waiter of unanswered) waiter(false);
  }

  /** Called when the lease is valid again. */
  resume(): void {
    this.#waiting.run();
  }

  /**
   * The partition that a new turn runs on; `undefined` if the turn has to wait, also behind others.
   */
  get ready(): Serving<D> | undefined {
    return this.#waiting.isEmpty ? this.answering : undefined;
  }

  /**
   * Keeps a turn until the partition serves with a valid lease. Refuses it where this process is
   * not the owner, or is so no longer.
   */
  wait(turn: WaitingTurn<Serving<D>>): void {
    if (this.#phase.kind === 'ended') {
      turn.refuse();
      return;
    }
    this.#waiting.add(turn);
    this.#waiting.run();
  }

  async #moveEpoch(from: MovableFrom, { released }: { readonly released: boolean }): Promise<Moved> {
    const { store, log, number, newToken, lease, clock } = this.#options;
    const record: EpochRecord = { token: newToken(), owner: lease.member, takenAtMs: clock.nowMs(), released };
    const event = released ? 'epoch_release_failed' : 'epoch_take_failed';
    return moveEpoch(store, record, {
      from,
      signal: this.#ended.signal,
      onFailure: (error) => log.warn(event, { partition: number, error }),
    });
  }

  #lost(epoch: number): void {
    const { log, number, onLost } = this.#options;
    log.warn('partition_fenced', { partition: number, epoch });
    this.end();
    onLost();
  }

  /**
   * Takes an epoch and loads the partition through it, some times over.
   * @returns `isLost`: `true` if another process has taken the partition from this one
   */
  async #takeAndServe(from: MovableFrom): Promise<{ readonly isLost: boolean }> {
    const { log, number } = this.#options;
    const { signal } = this.#ended;
    let movableFrom = from;
    let refusals = 0;
    for (let attempt = 1; !signal.aborted; attempt++) {
      const moved = await this.#moveEpoch(movableFrom, { released: false });
      if (moved.kind === 'refused') {
        const isLost = 'epoch' in movableFrom && !signal.aborted;
        this.end();
        return { isLost };
      }
      movableFrom = { epoch: moved.epoch };
      try {
        await this.#serve(moved.epoch);
        break;
      } catch (error) {
        if (signal.aborted) break;
        log.error('load_failed', { partition: number, attempt, error });
        if (error instanceof LoadError) refusals++;
        if (refusals === loadAttempts || attempt === loadAttemptsMax) {
          await this.#giveUp(moved.epoch, error);
          break;
        }
        const restMs = backoffMs(attempt - 1, { minMs: limits.storeRetryMinMs, maxMs: limits.storeRetryMaxMs });
        await sleep(restMs, signal);
      }
    }
    return { isLost: false };
  }

  /** Releases what can't be loaded here. */
  async #giveUp(epoch: number, error: unknown): Promise<void> {
    await this.#moveEpoch({ epoch }, { released: true });
    if (this.#ended.signal.aborted) return;
    this.end();
    this.#options.onUnloadable(error);
  }

  async #serve(epoch: number): Promise<void> {
    const { domain, store, slices, journals, lease, number, readAhead } = this.#options;
    const { signal } = this.#ended;
    const journal = await journals.open(lease.member);
    const reading = (await readAhead()) ?? new Reading(domain.records);
    await reading.readTo(epoch, { store, slices }, signal);
    const mark = readMark(reading.others());
    const commits = await journals.commitsOf(mark.journals, number, signal);
    const loaded = await slices.run('load', loading(reading, mark, commits, domain.records), signal);
    domain.release(this.#state);
    const state = (this.#state = domain.open({ epoch, last: loaded.last }));
    const fence = this.#fenceAt(epoch, journal);
    const serving = await startServing(this.#options, { epoch, fence, journal, loaded, state, signal });
    signal.throwIfAborted();
    this.#phase = { kind: 'serving', serving };
  }

  #fenceAt(epoch: number, journal: Journal): Fence {
    const { log, number, observer, onWentBack } = this.#options;
    const fence = new Fence({
      revision: epoch,
      move: (from, to) => this.#moveEpoch({ epoch: from }, to),
      onUnknown: (error) => {
        log.warn('write_unknown', { partition: number, epoch, error });
        observer.unknown();
      },
      onRefused: (error) => log.error('write_refused', { partition: number, epoch, error }),
      onWentBack: (sequences) => {
        journal.hold();
        onWentBack(sequences);
      },
      onLost: () => this.#lost(epoch),
    });
    this.#ended.signal.addEventListener('abort', () => fence.close(), { once: true });
    return fence;
  }
}
