/**
 * Whether this process owns a partition, and what it has while it does: the epoch is taken, the
 * bucket loaded, turns are served while the lease is valid. After an unknown outcome memory is
 * thrown away: a new epoch is taken (a late put can then no longer land), the bucket is loaded
 * through it, and the turns that had no answer run again; an operation that was committed after all
 * is known by its id. What has no answer when the partition goes to another is refused, for its
 * sender to ask there.
 */
import { backoffMs, sleep } from '../../lib/backoff.ts';
import { CautiousClock, noReading } from '../../lib/cautious-clock.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Slices } from '../../lib/slices.ts';
import { limits } from '../../schemas/limits.ts';
import { startCheckpointer, type Checkpointer } from './journal/checkpoint.ts';
import { Commits } from './journal/commits.ts';
import type { Domain, DomainTypes, Memory } from './domain.ts';
import { moveEpoch, type EpochRecord, type MovableFrom } from './store/epoch.ts';
import type { Group } from './journal/group.ts';
import type { Lease } from './lease.ts';
import { LoadError, loading, type Loaded } from './journal/load.ts';
import { Operations } from './operations.ts';
import { EventOutbox } from './events/event-outbox.ts';
import type { EventSink, Store, WriteOutcome } from './store/store.ts';

export interface OwnershipOptions<D extends DomainTypes> {
  readonly number: number;
  readonly domain: Domain<D>;
  readonly lease: Lease;
  /**
   * Whether the partition may be taken from the member that its epoch names; undefined: it names
   * none.
   */
  readonly mayTake: (record: EpochRecord | undefined) => Promise<boolean>;
  readonly store: Store;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
  readonly newToken: () => string;
  readonly onCommitted: (group: Group<D['Effect']>, seconds: number) => void;
  readonly onLoaded: () => void;
  /** Another process has taken it. Not told of one that was never taken, or that was given away. */
  readonly onLost: () => void;
  /**
   * It could not be loaded, and was released: another process, or a later attempt, may reach
   * another replica.
   */
  readonly onUnloadable: (error: unknown) => void;
  readonly observer: OwnershipObserver;
}

export interface OwnershipObserver {
  quarantined(partition: number, count: number): void;
  journal(partition: number, entriesAboveMark: number): void;
  /** Writes are refused from now on, or taken again. */
  room(partition: number, hasRoom: boolean): void;
  /** Events that wait in the bucket for the stream EVENTS. */
  parked(partition: number, events: number): void;
  reload(cause: LoadCause): void;
}

/** Why the journal is full. */
export const causeOf = (outbox: EventOutbox): string =>
  outbox.isFull ? 'the stream EVENTS takes no events, and no more can be parked' : 'the checkpoint is behind';

export type LoadCause = 'start' | 'unknown_outcome';

/**
 * What only a serving partition has, so that nothing of it is used outside. It lives as long as its
 * epoch.
 */
export interface Serving<D extends DomainTypes> {
  readonly epoch: number;
  readonly state: Memory<D>;
  readonly operations: Operations;
  readonly commits: Commits<D['Effect']>;
  readonly checkpointer: Checkpointer;
  readonly outbox: EventOutbox;
  /** Deletions by time go by this clock. */
  readonly expiry: CautiousClock;
}

type Phase<D extends DomainTypes> =
  | { readonly kind: 'loading' }
  | { readonly kind: 'serving'; readonly serving: Serving<D> }
  /** It takes no turns any more; those that it took are being committed. */
  | { readonly kind: 'releasing'; readonly serving: Serving<D> }
  | { readonly kind: 'ended' };

/** A turn that can't run yet. */
interface Held<D extends DomainTypes> {
  readonly untilMs: number;
  readonly run: (serving: Serving<D>) => void;
  readonly refuse: () => void;
}

/** A call is a step. */
function* each<T>(items: readonly T[], call: (item: T) => void): Generator<void, void, void> {
  for (const item of items) {
    call(item);
    yield;
  }
}

export class Ownership<D extends DomainTypes> {
  readonly #options: OwnershipOptions<D>;
  #phase: Phase<D> = { kind: 'loading' };
  /** In the order in which they came. */
  readonly #held = new Set<Held<D>>();
  #isLettingIn = false;
  /** What is on the ledger: the state that serves, or served last. */
  #state: Memory<D>;
  readonly #ended = new AbortController();

  constructor(options: OwnershipOptions<D>) {
    this.#options = options;
    this.#state = options.domain.open({ epoch: 0, last: 0 });
  }

  /** Memory as the turns so far have left it, committed or not. */
  get state(): Memory<D> {
    return this.#state;
  }
  get serving(): Serving<D> | undefined {
    return this.#phase.kind === 'serving' ? this.#phase.serving : undefined;
  }
  /** While it gives the partition away, too. */
  get owned(): Serving<D> | undefined {
    return this.#phase.kind === 'releasing' ? this.#phase.serving : this.serving;
  }
  /** What may be answered from now. */
  get answering(): Serving<D> | undefined {
    return this.#options.lease.isValid() ? this.serving : undefined;
  }

  /** Takes the partition and loads it; resolves when it serves, or when it can't be taken. */
  async start(): Promise<void> {
    await this.#load('start', { mayTake: this.#options.mayTake }, undefined);
  }

  /** Commits what is under way, and lets the partition go to whoever takes it. */
  async release(): Promise<void> {
    const { serving } = this;
    if (serving === undefined) {
      this.end();
      return;
    }
    this.#phase = { kind: 'releasing', serving };
    this.#refuseHeld();
    const { store, clock, log, number } = this.#options;
    const untilMs = clock.monotonicMs() + limits.handOverSettleMs;
    while (!serving.commits.isIdle && !this.#ended.signal.aborted && clock.monotonicMs() < untilMs) await sleep(1);
    // A batch that is still under way lands before the epoch moves, or is refused.
    const stopping = Promise.all([serving.checkpointer.stop(), serving.outbox.stop()]);
    await Promise.race([stopping, sleep(untilMs - clock.monotonicMs(), this.#ended.signal)]);
    await moveEpoch(store, this.#epochRecord({ released: true }), {
      from: { epoch: serving.epoch },
      signal: this.#ended.signal,
      onFailure: (error) => log.warn('epoch_not_released', { partition: number, error }),
    });
    this.end();
  }

  /** Lets go at once. What is under way has no answer; its sender asks again. */
  end(): void {
    if (this.#phase.kind === 'ended') return;
    const unanswered = this.owned?.commits.close() ?? [];
    void this.owned?.checkpointer.stop();
    void this.owned?.outbox.stop();
    this.#phase = { kind: 'ended' };
    this.#ended.abort();
    this.#options.domain.release(this.#state);
    this.#refuseHeld();
    for (const waiter of unanswered) waiter(false);
  }

  /** The lease is valid again. */
  resume(): void {
    this.#letIn();
  }

  /**
   * Runs a turn: now, or when the partition serves with a valid lease, unless its sender waits no
   * longer by then (monotonic). Refuses it where this process is not the owner, or is so no longer.
   */
  whenServing(untilMs: number, run: (serving: Serving<D>) => void, refuse: () => void): void {
    switch (this.#phase.kind) {
      case 'serving':
        if (this.#options.lease.isValid()) this.#inTurn(this.#phase.serving, { untilMs, run, refuse });
        else this.#hold({ untilMs, run, refuse });
        return;
      case 'loading':
        this.#hold({ untilMs, run, refuse });
        return;
      case 'releasing':
      case 'ended':
        refuse();
        return;
    }
  }

  /** Behind those that came before it and still wait. */
  #inTurn(serving: Serving<D>, held: Held<D>): void {
    if (this.#held.size === 0) {
      held.run(serving);
      return;
    }
    this.#hold(held);
    this.#letIn();
  }

  #hold(held: Held<D>): void {
    if (this.#held.size >= limits.turnsQueued) {
      const nowMs = this.#options.clock.monotonicMs();
      for (const waiting of this.#held) if (waiting.untilMs <= nowMs) this.#held.delete(waiting);
    }
    if (this.#held.size < limits.turnsQueued) this.#held.add(held);
    else held.refuse();
  }

  #epochRecord({ released }: { readonly released: boolean }): EpochRecord {
    const { newToken, lease, clock } = this.#options;
    return { token: newToken(), owner: lease.member, takenAtMs: clock.nowMs(), released };
  }

  #trouble(outcome: Exclude<WriteOutcome, { kind: 'written' }>): void {
    const serving = this.owned;
    if (serving === undefined) return;
    const { log, number, onLost } = this.#options;
    const { epoch } = serving;
    void serving.checkpointer.stop();
    void serving.outbox.stop();
    if (outcome.kind === 'fenced') {
      log.warn('partition_fenced', { partition: number, epoch });
      this.end();
      onLost();
      return;
    }
    log.warn('commit_unknown', { partition: number, epoch, error: outcome.cause });
    // Given away, its next owner takes a new epoch, which settles what is unknown.
    if (this.#phase.kind === 'serving') void this.#load('unknown_outcome', { epoch }, serving);
    else for (const waiter of serving.commits.close()) waiter(false);
  }

  async #load(cause: LoadCause, from: MovableFrom, former: Serving<D> | undefined): Promise<void> {
    const { store, log, number, observer, onLost } = this.#options;
    this.#phase = { kind: 'loading' };
    const unanswered = former?.commits.close() ?? [];
    observer.reload(cause);
    let movableFrom = from;
    let refusals = 0;
    for (let attempt = 1; !this.#ended.signal.aborted; attempt++) {
      const moved = await moveEpoch(store, this.#epochRecord({ released: false }), {
        from: movableFrom,
        signal: this.#ended.signal,
        onFailure: (error) => log.warn('epoch_not_taken', { partition: number, error }),
      });
      if (moved.kind === 'refused') {
        const isLost = 'epoch' in movableFrom && !this.#ended.signal.aborted;
        this.end();
        for (const waiter of unanswered) waiter(false);
        if (isLost) onLost();
        return;
      }
      movableFrom = { epoch: moved.epoch };
      try {
        await this.#serve(moved.epoch);
        break;
      } catch (error) {
        if (this.#ended.signal.aborted) break;
        log.error('load_failed', { partition: number, attempt, error });
        if (error instanceof LoadError) refusals++;
        if (refusals === limits.loadAttempts || attempt === limits.loadAttemptsMax) {
          await this.#giveUp(moved.epoch, error);
          break;
        }
        await sleep(
          backoffMs(attempt - 1, { minMs: limits.storeRetryMinMs, maxMs: limits.storeRetryMaxMs }),
          this.#ended.signal,
        );
      }
    }
    if (this.serving !== undefined) this.#options.onLoaded();
    for (const waiter of unanswered) waiter(false);
    if (this.serving !== undefined) this.#letIn();
  }

  /** Releases what can't be loaded here. */
  async #giveUp(epoch: number, error: unknown): Promise<void> {
    const { store, log, number, onUnloadable } = this.#options;
    await moveEpoch(store, this.#epochRecord({ released: true }), {
      from: { epoch },
      signal: this.#ended.signal,
      onFailure: (cause) => log.warn('epoch_not_released', { partition: number, error: cause }),
    });
    if (this.#ended.signal.aborted) return;
    this.end();
    onUnloadable(error);
  }

  /** The records, and the operations with them, a slice at a time. */
  *#filling(
    { records, operations: known }: Loaded<D['Record']>,
    { state, operations }: Pick<Serving<D>, 'state' | 'operations'>,
    quarantine: (key: string) => void,
  ): Generator<void, void, void> {
    const { domain, log, number } = this.#options;
    for (const record of records) {
      try {
        domain.put(state, record);
      } catch (error) {
        // A bug of ours, or a record that is not what it seems: it harms itself, and not its
        // partition.
        const key = domain.records.keyOf(record);
        log.error('record_not_taken', { partition: number, key, error });
        domain.remove(state, key);
        quarantine(key);
      }
      yield;
    }
    for (const operation of known) {
      operations.add(operation);
      yield;
    }
  }

  async #serve(epoch: number): Promise<void> {
    const { domain, store, events, log, number, observer, clock, slices, onCommitted } = this.#options;
    const { signal } = this.#ended;
    const loaded = await slices.run('load', loading(await store.load(epoch), domain.records), signal);
    if (loaded.verified !== 'verified' && loaded.mark > 0) {
      const fields = { partition: number, why: loaded.verified, mark: loaded.mark, records: loaded.records.length };
      if (loaded.verified === 'overridden') log.error('records_not_verified', fields);
      else log.warn('records_not_verified', fields);
    }
    domain.release(this.#state);
    const { last } = loaded;
    const state = (this.#state = domain.open({ epoch, last }));
    const operations = new Operations();
    let quarantined = 0;
    const quarantine = (key: string): void => {
      quarantined++;
      domain.quarantine(state, key);
      log.error('record_quarantined', { partition: number, key });
    };
    await slices.run('load', this.#filling(loaded, { state, operations }, quarantine), signal);
    await slices.run('load', each(loaded.quarantined, quarantine), signal);
    observer.quarantined(number, quarantined);
    // A release before 0.1.0 kept no time: nothing is taken for older than the newest record says.
    const newestMs = domain.newestMs(state);
    const newest = newestMs === undefined ? undefined : { ...noReading, atMs: newestMs };
    const expiry = new CautiousClock(clock, limits.clockAgreedMs, loaded.clock ?? newest);
    const onTrouble = (outcome: Exclude<WriteOutcome, { kind: 'written' }>): void => {
      // Of this epoch: trouble of a former one has been dealt with.
      if (this.owned?.epoch === epoch) this.#trouble(outcome);
    };
    const opening = EventOutbox.opening({
      sink: events,
      clock,
      last,
      mark: loaded.mark,
      pending: loaded.pending,
      checkpointed: loaded.checkpointed,
      parked: loaded.parked,
      onFailure: (error) => log.warn('events_not_published', { partition: number, error }),
    });
    const outbox = await slices.run('load', opening, signal);
    for (const key of loaded.damagedEvents) log.error('events_damaged', { partition: number, key });
    let parked = 0;
    const observeEvents = (count: number): void => {
      if (count > 0 && parked === 0) log.warn('events_parked', { partition: number, events: count });
      if (count === 0 && parked > 0) log.warn('events_published_again', { partition: number });
      parked = count;
      observer.parked(number, count);
    };
    observeEvents(outbox.parkedEvents);
    const checkpointer = startCheckpointer({
      store,
      outbox,
      epoch,
      clock,
      expiry,
      mark: loaded.mark,
      pending: loaded.pending,
      digest: loaded.digest,
      onMark: () => {
        observer.journal(number, commits.entriesAboveMark);
        // There may be room again, and nobody who asks for it.
        commits.hasRoom();
        observeEvents(outbox.parkedEvents);
      },
      onTrouble,
    });
    const onFault = (error: unknown): void => log.error('answer_failed', { partition: number, error });
    observer.room(number, true);
    const onRoom = (hasRoom: boolean, load: { readonly entries: number; readonly queued: number }): void => {
      observer.room(number, hasRoom);
      log.warn(hasRoom ? 'writes_taken_again' : 'writes_refused', {
        partition: number,
        ...load,
        cause: causeOf(outbox),
      });
    };
    const told = { onCommitted, onRoom, onFault, onTrouble };
    const commits = new Commits<D['Effect']>({ store, epoch, last, checkpointer, outbox, clock, expiry, ...told });
    this.#phase = {
      kind: 'serving',
      serving: { epoch, state, operations, commits, checkpointer, outbox, expiry },
    };
  }

  /** Turns that came while the partition was loading, or the lease had lapsed. */
  #letIn(): void {
    if (this.#isLettingIn || this.#held.size === 0 || this.answering === undefined) return;
    this.#isLettingIn = true;
    const { slices, log, number } = this.#options;
    slices
      .run('held_turns', this.#lettingIn())
      .catch((error: unknown) => log.error('held_turns_failed', { partition: number, error }))
      .finally(() => (this.#isLettingIn = false));
  }

  *#lettingIn(): Generator<void, void, void> {
    for (const held of this.#held) {
      const serving = this.answering;
      // A load or a renewal lets the rest in.
      if (serving === undefined) return;
      this.#held.delete(held);
      if (held.untilMs > this.#options.clock.monotonicMs()) held.run(serving);
      yield;
    }
  }

  #refuseHeld(): void {
    const held = [...this.#held];
    this.#held.clear();
    for (const { refuse } of held) refuse();
  }
}
