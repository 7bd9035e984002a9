/**
 * One partition and its owner: turns run one at a time over plain objects in memory, commits collect while one is in
 * flight, and nothing leaves before the state that it speaks of is committed.
 *
 * A turn changes memory at once; what it answers waits for its group's commit. When the outcome of a commit is unknown,
 * memory is thrown away: the owner takes a new epoch (a late put can then no longer land), loads through it, and runs the
 * turns that had no answer again; an operation that was committed after all is known by its id.
 */
import { backoffMs, sleep } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { keys } from '../../schemas/buckets.ts';
import type { OperationRecord } from '../../schemas/container.ts';
import type { OutcomeCode } from '../../schemas/errors.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Ask, ReadAsk, WriteAsk } from '../../schemas/messages.ts';
import { subjects } from '../../schemas/subjects.ts';
import { againBody } from '../container/decide.ts';
import { decideRead, decideWrite, type Prepared } from '../decide.ts';
import { PartitionState, recordKey, type PartitionView, type PlacementLedger, type StateRecord } from '../state.ts';
import {
  isEmpty,
  isSuccess,
  refuse,
  type Changes,
  type EventDraft,
  type FleetView,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { startCheckpointer, type Checkpointer } from './checkpoint.ts';
import { encodeValue, type OutgoingEvent } from './codec.ts';
import { takeEpoch } from './epoch.ts';
import { Dirt, Group, type OutgoingEffect, type Waiter } from './group.ts';
import { readPartition } from './load.ts';
import { Operations } from './operations.ts';
import type { EventSink, Store, WriteOutcome } from './store.ts';

export interface PartitionOptions {
  readonly number: number;
  readonly owner: string;
  readonly store: Store;
  readonly events: EventSink;
  readonly fleet: FleetView;
  readonly ledger: PlacementLedger;
  readonly clock: Clock;
  readonly log: Log;
  readonly newToken: () => string;
  /** After the commit that they belong to. */
  readonly onEffects: (partition: Partition, effects: Iterable<OutgoingEffect>) => void;
  /** The state was loaded: hosts of this partition may have changed while it was elsewhere. */
  readonly onLoaded: (partition: Partition) => void;
  /** Another process has taken the partition. */
  readonly onLost: (partition: Partition) => void;
  readonly observer: PartitionObserver;
}

/** What is measured; metrics.ts makes prom-client of it. */
export interface PartitionObserver {
  turn(kind: Ask['type'] | 'report' | 'hello' | 'sync' | 'sweep'): void;
  commit(seconds: number, turns: number): void;
  quarantined(partition: number, count: number): void;
  journal(partition: number, entriesAboveMark: number): void;
  reload(cause: 'start' | 'unknown_outcome'): void;
}

export type Respond = (code: OutcomeCode, body: string) => void;

/** What a read has to wait for before it may be told. */
const allDirt = '*';
const tenantDirt = (tenant: string): string => `of ${tenant}`;
const hostDirt = (host: HostKey): string => `on ${host}`;

/** Loading and serving; what only a serving partition has lives in its state, so that nothing of it is used outside. */
type Phase =
  | { readonly kind: 'loading' }
  | { readonly kind: 'serving'; readonly epoch: number; readonly checkpointer: Checkpointer }
  | { readonly kind: 'ended' };

interface Held {
  readonly untilMs: number;
  readonly run: () => void;
}

export class Partition {
  readonly number: number;
  readonly #options: PartitionOptions;
  #phase: Phase = { kind: 'loading' };
  #state: PartitionState;
  #operations = new Operations();
  #dirt = new Dirt();
  /** Groups that are not committed, oldest first; turns go into the last. */
  #groups: Group[] = [];
  #committed = 0;
  #last = 0;
  #inFlight: Group | undefined;
  #isPumping = false;
  #held: Held[] = [];
  #nowMs = 0;
  /** By host, the commit that last changed what is desired there. */
  #revisions = new Map<HostKey, number>();
  #loadedRevision = 0;
  readonly #ended = new AbortController();

  constructor(options: PartitionOptions) {
    this.number = options.number;
    this.#options = options;
    this.#state = new PartitionState(options.ledger);
  }

  /** Memory as the turns so far have left it, committed or not. */
  get view(): PartitionView {
    return this.#state;
  }
  get epoch(): number {
    return this.#phase.kind === 'serving' ? this.#phase.epoch : 0;
  }
  /** Number of the newest group, committed or not. */
  get last(): number {
    return this.#last;
  }
  get isServing(): boolean {
    return this.#phase.kind === 'serving';
  }
  /** Raised by every change of what is desired on the host; with the epoch it orders the answers to a sync. */
  revisionOf(host: HostKey): number {
    return this.#revisions.get(host) ?? this.#loadedRevision;
  }

  /** Takes the partition and loads it; resolves when it serves, or has ended. */
  async start(): Promise<void> {
    await this.#load('start', undefined);
  }

  /** Commits what is under way, then lets go. Turns that come after are not answered. */
  async stop(): Promise<void> {
    while (this.#groups.length > 0 && this.#phase.kind === 'serving') await sleep(1);
    if (this.#phase.kind === 'serving') await this.#phase.checkpointer.stop();
    this.#end();
  }

  /** Resolves when every committed value is in its own key. */
  async checkpointed(): Promise<void> {
    if (this.#phase.kind === 'serving') await this.#phase.checkpointer.drained();
  }

  read(ask: ReadAsk, respond: Respond): void {
    this.#whenServing(ask.budgetMs, () => {
      this.#options.observer.turn(ask.type);
      const turn = this.#turnOf(() => decideRead(this.#state, ask, this.#context(ask.rid)), ask.rid);
      this.#answerRead(ask, turn, respond);
    });
  }

  write(ask: WriteAsk, prepared: Prepared | undefined, respond: Respond): void {
    this.#whenServing(ask.budgetMs, () => {
      this.#options.observer.turn(ask.type);
      const known = this.#operations.get(ask.op);
      const again: Waiter = (committed) => {
        if (committed) this.#respondKnown(ask, respond);
        else this.write(ask, prepared, respond);
      };
      if (known !== undefined) {
        this.#after(known.commit, again);
        return;
      }
      if (!this.#hasRoom()) {
        respond('unavailable', JSON.stringify({ error: 'unavailable' }));
        return;
      }
      const turn = this.#turnOf(() => decideWrite(this.#state, ask, this.#context(ask.rid), prepared), ask.rid);
      const { code, body } = turn.reply;
      const waiter: Waiter = (committed) => (committed ? respond(code, body) : this.write(ask, prepared, respond));
      if (isEmpty(turn.changes)) {
        this.#options.onEffects(
          this,
          turn.changes.effects.map((effect) => ({ ...effect, requestId: ask.rid })),
        );
        this.#after(this.#dirt.until('tenant' in ask ? tenantDirt(ask.tenant) : allDirt), waiter);
        return;
      }
      const encoded = this.#encode(turn.changes);
      if (encoded.some((value) => Buffer.byteLength(value) > limits.recordBytes)) {
        respond('too_large', JSON.stringify({ error: 'too_large' }));
        return;
      }
      const group = this.#apply(turn.changes, encoded, ask.rid);
      this.#remember(ask, turn, group);
      group.waiters.push(waiter);
    });
  }

  /**
   * Turns that no operation id guards, for messages that are level-triggered: reports, hellos, the sweep. Each of the
   * changes is decided on the state that the one before it made. `then` is called when all are committed; when one was
   * not, the sender says it again.
   * @returns false where nothing was done: the partition does not serve, or has no room.
   */
  change(
    kind: 'report' | 'hello' | 'sweep',
    decide: (state: PartitionView, context: TurnContext) => Iterable<Changes>,
    then: () => void = () => {},
  ): boolean {
    if (this.#phase.kind !== 'serving' || !this.#hasRoom()) return false;
    this.#options.observer.turn(kind);
    for (const changes of decide(this.#state, this.#context(null))) {
      if (isEmpty(changes)) continue;
      this.#apply(changes, this.#encode(changes), null);
      if (!this.#hasRoom()) return false;
    }
    this.#after(this.#groups.at(-1)?.number ?? 0, (committed) => {
      if (committed) then();
    });
    return true;
  }

  /** What is desired on a host, given out when it is committed; not called where the partition does not serve. */
  project<T>(host: HostKey, render: (state: PartitionView) => T, then: (value: T) => void): void {
    if (this.#phase.kind !== 'serving') return;
    this.#options.observer.turn('sync');
    const value = render(this.#state);
    this.#after(this.#dirt.until(hostDirt(host)), (committed) => {
      if (committed) then(value);
    });
  }

  expireOperations(): void {
    this.#operations.expire(this.#now());
  }

  // Turns

  #now(): number {
    // Never back: the order of creation is the order of these times.
    this.#nowMs = Math.max(this.#nowMs, this.#options.clock.nowMs());
    return this.#nowMs;
  }

  #context(requestId: string | null): TurnContext {
    return { nowMs: this.#now(), fleet: this.#options.fleet, requestId };
  }

  /** A decision that throws is a bug of ours: it changes nothing and fails its own ask alone. */
  #turnOf(decide: () => Turn, rid: string): Turn {
    try {
      return decide();
    } catch (error) {
      this.#options.log.error('turn_failed', { partition: this.number, rid, error });
      return refuse('internal');
    }
  }

  #hasRoom(): boolean {
    const mark = this.#phase.kind === 'serving' ? this.#phase.checkpointer.mark : 0;
    // One slot stays free: the loader tells by it whether an entry after the last can have been lost.
    const isRingFull = this.#last - mark >= limits.journalSlots - 2;
    const queued = this.#groups.reduce((sum, group) => sum + group.waiters.length, 0);
    return !isRingFull && queued < limits.turnsQueued;
  }

  #answerRead(ask: ReadAsk, turn: Turn, respond: Respond): void {
    const { code, body } = turn.reply;
    const key = 'id' in ask ? keys.container(ask.tenant, ask.id) : 'tenant' in ask ? tenantDirt(ask.tenant) : allDirt;
    this.#after(this.#dirt.until(key), (committed) => (committed ? respond(code, body) : this.read(ask, respond)));
  }

  #respondKnown(ask: WriteAsk, respond: Respond): void {
    const known = this.#operations.get(ask.op);
    if (known === undefined) {
      respond('internal', JSON.stringify({ error: 'internal' }));
      return;
    }
    const { code, answer } = known.record;
    const body =
      answer.kind === 'body' ? answer.body : againBody(this.#state, answer.tenant, answer.id, this.#context(ask.rid));
    if (body === undefined) respond('not_found', JSON.stringify({ error: 'not_found' }));
    else respond(code, body);
  }

  #remember(ask: WriteAsk, { reply }: Turn, group: Group): void {
    if (!isSuccess(reply)) return;
    const { code, body, ofContainer } = reply;
    const record: OperationRecord = {
      op: ask.op,
      atMs: this.#now(),
      code,
      answer: ofContainer === undefined ? { kind: 'body', body } : { kind: 'container', ...ofContainer },
    };
    group.operation(record);
    this.#operations.add(record, group.number);
  }

  // Groups

  #openGroup(): Group {
    const open = this.#groups.at(-1);
    if (open !== undefined && open !== this.#inFlight && !open.isFull) return open;
    const group = new Group(++this.#last);
    this.#groups.push(group);
    return group;
  }

  #encode(changes: Changes): string[] {
    return changes.records.map(encodeValue);
  }

  #apply(changes: Changes, encoded: readonly string[], requestId: string | null): Group {
    const group = this.#openGroup();
    for (const [index, record] of changes.records.entries()) {
      this.#touch(record, group);
      this.#state.put(record);
      group.change(recordKey(record), encoded[index] ?? null);
    }
    for (const key of changes.deletes) {
      this.#state.delete(key);
      this.#dirt.mark(key, group);
      group.change(key, null);
    }
    this.#dirt.mark(allDirt, group);
    for (const draft of changes.events) group.event(this.#event(draft, group, requestId));
    for (const effect of changes.effects) group.effect({ ...effect, requestId });
    this.#pump();
    return group;
  }

  /** Marks what a change makes dirty, and raises the revision of the hosts whose desired set it changes. */
  #touch(record: StateRecord, group: Group): void {
    this.#dirt.mark(recordKey(record), group);
    if (record.kind === 'host') return;
    this.#dirt.mark(tenantDirt(record.tenant), group);
    if (record.kind === 'tenant') return;
    const before = this.#state.tenant(record.tenant).containers.get(record.id);
    const after = record.kind === 'container' ? record : undefined;
    if (before?.generation === after?.generation) return;
    for (const side of [before, after]) {
      if (side?.placement.phase !== 'placed') continue;
      this.#dirt.mark(hostDirt(side.placement.host), group);
      this.#revisions.set(side.placement.host, group.number);
    }
  }

  #event({ type, container, status }: EventDraft, group: Group, requestId: string | null): OutgoingEvent {
    const { observed, placement } = container;
    return {
      subject: subjects.event(container.tenant, container.id),
      event: {
        id: `${this.number}-${group.number}-${group.events}`,
        ts: new Date(this.#now()).toISOString(),
        type,
        container_id: container.id,
        name: container.spec.name,
        generation: container.generation,
        host_key: placement.phase === 'placed' ? placement.host : null,
        status,
        reason: observed.reason,
        message: observed.message,
        exit_code: observed.exit_code,
        request_id: requestId,
      },
    };
  }

  /** Calls the waiter when commit number `commit` is settled: at once, if it is behind us. */
  #after(commit: number, waiter: Waiter): void {
    const group = commit <= this.#committed ? undefined : this.#groups.find(({ number }) => number === commit);
    if (group === undefined) waiter(true);
    else group.waiters.push(waiter);
  }

  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    // What else arrived in this tick joins the group.
    setImmediate(() => void this.#commitAll());
  }

  async #commitAll(): Promise<void> {
    for (;;) {
      const [group] = this.#groups;
      const phase = this.#phase;
      if (group === undefined || phase.kind !== 'serving') break;
      const startedMs = this.#options.clock.monotonicMs();
      this.#inFlight = group;
      const { entry, text } = group.entry();
      const slot = group.number % limits.journalSlots;
      const outcome = await this.#options.store.put({ key: keys.journal(slot), value: text }, phase.epoch);
      if (this.#phase !== phase) break;
      if (outcome.kind !== 'written') {
        this.#trouble(outcome);
        break;
      }
      this.#options.observer.commit((this.#options.clock.monotonicMs() - startedMs) / 1000, group.waiters.length);
      this.#groups.shift();
      this.#committed = group.number;
      this.#dirt.committed(group);
      phase.checkpointer.offer(entry);
      this.#options.observer.journal(this.number, this.#last - phase.checkpointer.mark);
      this.#options.onEffects(this, group.effects());
      for (const waiter of group.waiters) waiter(true);
    }
    this.#inFlight = undefined;
    this.#isPumping = false;
    // A reload ended the loop above, and turns have come since.
    if (this.#groups.length > 0 && this.isServing) this.#pump();
  }

  // Loading

  #trouble(outcome: Exclude<WriteOutcome, { kind: 'written' }>): void {
    if (this.#phase.kind !== 'serving') return;
    const { epoch, checkpointer } = this.#phase;
    void checkpointer.stop();
    if (outcome.kind === 'fenced') {
      this.#options.log.warn('partition_fenced', { partition: this.number, epoch });
      this.#end();
      this.#options.onLost(this);
      return;
    }
    this.#options.log.warn('commit_unknown', { partition: this.number, epoch, error: outcome.cause });
    void this.#load('unknown_outcome', epoch);
  }

  async #load(cause: 'start' | 'unknown_outcome', from: number | undefined): Promise<void> {
    const { store, log, number, owner, clock, observer } = this.#options;
    this.#phase = { kind: 'loading' };
    const unanswered = this.#groups.flatMap(({ waiters }) => waiters);
    this.#groups = [];
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
        this.#options.onLost(this);
        return;
      }
      expected = taken.epoch;
      try {
        await this.#become(taken.epoch);
        break;
      } catch (error) {
        log.error('load_failed', { partition: number, error });
        await sleep(backoffMs(attempt, { minMs: 100, maxMs: 5000 }), this.#ended.signal);
      }
    }
    if (!this.isServing) return;
    this.#options.onLoaded(this);
    for (const waiter of unanswered) waiter(false);
    this.#release();
  }

  async #become(epoch: number): Promise<void> {
    const { store, events, log, number, observer, ledger } = this.#options;
    const loaded = readPartition(await store.load(epoch));
    this.#state.release();
    this.#state = new PartitionState(ledger);
    for (const record of loaded.records) this.#state.put(record);
    for (const key of loaded.quarantined) {
      this.#state.quarantine(key);
      log.error('record_quarantined', { partition: number, key });
    }
    observer.quarantined(number, loaded.quarantined.length);
    this.#operations = new Operations();
    for (const { record, commit } of loaded.operations) this.#operations.add(record, commit);
    this.#dirt = new Dirt();
    this.#revisions = new Map();
    this.#loadedRevision = loaded.last;
    this.#committed = loaded.last;
    this.#last = loaded.last;
    this.#phase = {
      kind: 'serving',
      epoch,
      checkpointer: startCheckpointer({
        store,
        events,
        epoch,
        mark: loaded.mark,
        pending: loaded.pending,
        onMark: (mark) => observer.journal(number, this.#last - mark),
        onTrouble: (outcome) => this.#trouble(outcome),
        onEventFailure: (error) => log.warn('events_not_published', { partition: number, error }),
      }),
    };
  }

  #whenServing(budgetMs: number, run: () => void): void {
    switch (this.#phase.kind) {
      case 'serving':
        run();
        return;
      case 'loading':
        if (this.#held.length < limits.turnsQueued) {
          this.#held.push({ untilMs: this.#options.clock.monotonicMs() + budgetMs, run });
        }
        return;
      case 'ended':
        return;
    }
  }

  #release(): void {
    const held = this.#held;
    this.#held = [];
    const nowMs = this.#options.clock.monotonicMs();
    for (const { untilMs, run } of held) if (untilMs > nowMs) run();
  }

  #end(): void {
    this.#phase = { kind: 'ended' };
    this.#ended.abort();
    this.#held = [];
    this.#groups = [];
    this.#state.release();
  }
}
