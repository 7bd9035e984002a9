/**
 * Whether this process owns a partition, and what it has while it does: the epoch is taken, the bucket loaded, turns are
 * served. After an unknown outcome memory is thrown away: a new epoch is taken (a late put can then no longer land), the
 * bucket is loaded through it, and the turns that had no answer run again; an operation that was committed after all is
 * known by its id.
 */
import { backoffMs, sleep } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { PartitionState, type PlacementLedger } from '../state.ts';
import { startCheckpointer, type Checkpointer } from './checkpoint.ts';
import { Commits } from './commits.ts';
import { takeEpoch } from './epoch.ts';
import type { Group } from './group.ts';
import { readPartition } from './load.ts';
import { Operations } from './operations.ts';
import type { EventSink, Store, WriteOutcome } from './store.ts';

export interface OwnershipOptions {
  readonly number: number;
  readonly owner: string;
  readonly store: Store;
  readonly events: EventSink;
  readonly ledger: PlacementLedger;
  readonly clock: Clock;
  readonly log: Log;
  readonly newToken: () => string;
  readonly onCommitted: (group: Group, seconds: number) => void;
  readonly onLoaded: () => void;
  readonly onLost: () => void;
  readonly observer: OwnershipObserver;
}

export interface OwnershipObserver {
  quarantined(partition: number, count: number): void;
  journal(partition: number, entriesAboveMark: number): void;
  reload(cause: LoadCause): void;
}

export type LoadCause = 'start' | 'unknown_outcome';

/** What only a serving partition has, so that nothing of it is used outside. It lives as long as its epoch. */
export interface Serving {
  readonly epoch: number;
  readonly state: PartitionState;
  readonly operations: Operations;
  readonly commits: Commits;
  readonly checkpointer: Checkpointer;
  /** Number of the last entry that the load found. */
  readonly loadedLast: number;
}

type Phase =
  { readonly kind: 'loading' } | { readonly kind: 'serving'; readonly serving: Serving } | { readonly kind: 'ended' };

interface Held {
  readonly untilMs: number;
  readonly run: (serving: Serving) => void;
}

export class Ownership {
  readonly #options: OwnershipOptions;
  #phase: Phase = { kind: 'loading' };
  #held: Held[] = [];
  /** What is on the ledger: the state that serves, or served last. */
  #state: PartitionState;
  readonly #ended = new AbortController();

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.#state = new PartitionState(options.ledger);
  }

  /** Memory as the turns so far have left it, committed or not. */
  get state(): PartitionState {
    return this.#state;
  }
  get serving(): Serving | undefined {
    return this.#phase.kind === 'serving' ? this.#phase.serving : undefined;
  }

  /** Takes the partition and loads it; resolves when it serves, or has ended. */
  async start(): Promise<void> {
    await this.#load('start', undefined, undefined);
  }

  /** Commits what is under way, then lets go. Turns that come after are not answered. */
  async stop(): Promise<void> {
    while (this.serving?.commits.isIdle === false) await sleep(1);
    await this.serving?.checkpointer.stop();
    this.#end();
  }

  /** Runs a turn: now, or when the partition serves again, unless its sender waits no longer by then (monotonic). */
  whenServing(untilMs: number, run: (serving: Serving) => void): void {
    switch (this.#phase.kind) {
      case 'serving':
        run(this.#phase.serving);
        return;
      case 'loading':
        if (this.#held.length < limits.turnsQueued) this.#held.push({ untilMs, run });
        return;
      case 'ended':
        return;
    }
  }

  #trouble(outcome: Exclude<WriteOutcome, { kind: 'written' }>): void {
    const { serving } = this;
    if (serving === undefined) return;
    const { log, number, onLost } = this.#options;
    const { epoch } = serving;
    void serving.checkpointer.stop();
    if (outcome.kind === 'fenced') {
      log.warn('partition_fenced', { partition: number, epoch });
      this.#end();
      onLost();
      return;
    }
    log.warn('commit_unknown', { partition: number, epoch, error: outcome.cause });
    void this.#load('unknown_outcome', epoch, serving);
  }

  async #load(cause: LoadCause, from: number | undefined, former: Serving | undefined): Promise<void> {
    const { store, log, number, owner, clock, observer } = this.#options;
    this.#phase = { kind: 'loading' };
    const unanswered = former?.commits.close() ?? [];
    observer.reload(cause);
    let expected = from;
    for (let attempt = 0; !this.#ended.signal.aborted; attempt++) {
      const record = { token: this.#options.newToken(), owner, takenAtMs: clock.nowMs() };
      const taken = await takeEpoch(store, record, {
        ...(expected === undefined ? {} : { from: expected }),
        signal: this.#ended.signal,
        onFailure: (error) => log.warn('epoch_not_taken', { partition: number, error }),
      });
      if (taken.kind === 'refused') {
        if (this.#ended.signal.aborted) return;
        this.#end();
        this.#options.onLost();
        return;
      }
      expected = taken.epoch;
      try {
        await this.#serve(taken.epoch);
        break;
      } catch (error) {
        log.error('load_failed', { partition: number, error });
        await sleep(backoffMs(attempt, { minMs: 100, maxMs: 5000 }), this.#ended.signal);
      }
    }
    const { serving } = this;
    if (serving === undefined) return;
    this.#options.onLoaded();
    for (const waiter of unanswered) waiter(false);
    this.#release(serving);
  }

  async #serve(epoch: number): Promise<void> {
    const { store, events, log, number, observer, ledger, clock, onCommitted } = this.#options;
    const loaded = readPartition(await store.load(epoch));
    if (this.#ended.signal.aborted) return;
    this.#state.release();
    const state = (this.#state = new PartitionState(ledger));
    for (const record of loaded.records) state.put(record);
    for (const key of loaded.quarantined) {
      state.quarantine(key);
      log.error('record_quarantined', { partition: number, key });
    }
    observer.quarantined(number, loaded.quarantined.length);
    const operations = new Operations();
    for (const { record, commit } of loaded.operations) operations.add(record, commit);
    const onTrouble = (outcome: Exclude<WriteOutcome, { kind: 'written' }>): void => {
      // Of this epoch: trouble of a former one has been dealt with.
      if (this.serving?.epoch === epoch) this.#trouble(outcome);
    };
    const checkpointer = startCheckpointer({
      store,
      events,
      epoch,
      mark: loaded.mark,
      pending: loaded.pending,
      onMark: () => observer.journal(number, commits.entriesAboveMark),
      onTrouble,
      onEventFailure: (error) => log.warn('events_not_published', { partition: number, error }),
    });
    const onFault = (error: unknown): void => log.error('answer_failed', { partition: number, error });
    const { last } = loaded;
    const onRoom = (hasRoom: boolean, load: { readonly entries: number; readonly queued: number }): void =>
      log.warn(hasRoom ? 'writes_taken_again' : 'writes_refused', { partition: number, ...load });
    const commits = new Commits({ store, epoch, last, checkpointer, clock, onCommitted, onRoom, onFault, onTrouble });
    this.#phase = {
      kind: 'serving',
      serving: { epoch, state, operations, commits, checkpointer, loadedLast: last },
    };
  }

  /** Turns that came while the partition was loading. */
  #release(serving: Serving): void {
    const held = this.#held;
    this.#held = [];
    const nowMs = this.#options.clock.monotonicMs();
    for (const { untilMs, run } of held) if (untilMs > nowMs) run(serving);
  }

  #end(): void {
    this.serving?.commits.close();
    this.#phase = { kind: 'ended' };
    this.#ended.abort();
    this.#held = [];
    this.#state.release();
  }
}
