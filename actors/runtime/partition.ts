/**
 * One partition: turns run one at a time over plain objects in memory, commits collect while one is
 * in flight, and nothing leaves before the state that it speaks of is committed.
 *
 * A turn changes memory at once; what it answers waits for its group's commit (commits.ts). Who
 * owns the partition, and what becomes of a turn whose commit has an unknown outcome, is in
 * ownership.ts.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Slices } from '../../lib/slices.ts';
import { keys } from '../../schemas/records/buckets.ts';
import type { ContainerRecord, OperationRecord, TombstoneRecord } from '../../schemas/api/container.ts';
import { isNetworkName, type HostKey, type NetworkName } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Ask, ReadAsk, WriteAsk } from '../../schemas/wire/asks.ts';
import { notOwner, type AnswerCode } from '../../schemas/wire/codec.ts';
import { againBody } from '../domain/container/decide.ts';
import { decideRead, decideWrite, type Prepared, type StateRead } from '../domain/decide.ts';
import { recordKey, type PartitionView, type PlacementLedger, type StateRecord } from '../domain/state.ts';
import { isOfNetwork } from '../domain/vpn-state.ts';
import {
  isEmpty,
  isSuccess,
  refuse,
  type Changes,
  type Reply,
  type FleetView,
  type Turn,
  type TurnContext,
} from '../domain/turn.ts';
import { encodeValue } from './codec.ts';
import type { EpochRecord } from './epoch.ts';
import { outgoingEvent, type Group, type OutgoingEffect, type Waiter } from './group.ts';
import type { Lease } from './lease.ts';
import type { KnownOperation } from './operations.ts';
import { causeOf, Ownership, type OwnershipObserver, type Serving } from './ownership.ts';
import type { EventSink, Store } from './store.ts';
import { errorBody } from '../../schemas/errors.ts';

export interface PartitionOptions {
  readonly number: number;
  /** Of the cluster: see schemas/records/cluster.ts. */
  readonly incarnation: number;
  readonly lease: Lease;
  /**
   * Whether the partition may be taken from the member that its epoch names; undefined: it names
   * none.
   */
  readonly mayTake: (record: EpochRecord | undefined) => Promise<boolean>;
  readonly store: Store;
  readonly events: EventSink;
  readonly fleet: FleetView;
  readonly ledger: PlacementLedger;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
  readonly newToken: () => string;
  /** After the commit that they belong to. */
  readonly onEffects: (partition: Partition, effects: Iterable<OutgoingEffect>) => void;
  /** The state was loaded: hosts of this partition may have changed while it was elsewhere. */
  readonly onLoaded: (partition: Partition) => void;
  /**
   * Another process has taken the partition; not told of one that was never had, or was given away.
   */
  readonly onLost: (partition: Partition) => void;
  /** It could not be loaded, and was released. */
  readonly onUnloadable: (partition: Partition, error: unknown) => void;
  readonly observer: PartitionObserver;
}

type ChangeKind = 'report' | 'hello' | 'sweep' | 'outbox';

/** What is measured; metrics.ts makes prom-client of it. */
export interface PartitionObserver extends OwnershipObserver {
  turn(kind: Ask['type'] | ChangeKind | 'sync'): void;
  commit(seconds: number, turns: number): void;
  /** A turn, or a slice of long work, kept the event loop for so long. */
  worked(kind: string, seconds: number): void;
}

export type Respond = (code: AnswerCode, body: string) => void;

const refusal = (respond: Respond) => (): void => respond(notOwner, '');

/** What a read has to wait for before it may be told. */
const partitionDirtyKey = '*';
const tenantDirtyKey = (tenant: string): string => `of ${tenant}`;
const hostDirtyKey = (host: HostKey): string => `on ${host}`;

const networkDirtyKey = (network: NetworkName): string => `net ${network}`;

const dirtyKeyOf = (ask: StateRead): string => ('id' in ask ? keys.container(ask.tenant, ask.id) : dirtyKeyAround(ask));

/** What a turn that changes nothing has seen, however little of it. */
const dirtyKeyAround = (ask: Ask): string =>
  'tenant' in ask ? tenantDirtyKey(ask.tenant) : 'network' in ask ? networkDirtyKey(ask.network) : partitionDirtyKey;

/** What is read of a tenant or a network is dirty with each of its records. */
function dirtyKeyAroundKey(key: string): string | undefined {
  const [kind, first = ''] = key.split('.');
  if (isOfNetwork(kind) && isNetworkName(first)) return networkDirtyKey(first);
  return kind === 'peer' ? tenantDirtyKey(first) : undefined;
}

/**
 * Of a turn that changed nothing: its sender has heard the answer and asks no more, so a late copy
 * of the message must not do what the first did not. What partitions say to one another is repeated
 * until it succeeds.
 */
const isFinal = ({ type }: WriteAsk, reply: Reply): boolean =>
  isSuccess(reply)
    ? reply.isIdempotent !== true
    : reply.code !== 'unavailable' && type !== 'network.learn' && type !== 'peer.forgo';

const isTooLarge = (encoded: string): boolean => Buffer.byteLength(encoded) > limits.recordBytes;

export class Partition {
  readonly number: number;
  readonly #options: PartitionOptions;
  readonly #ownership: Ownership;
  #nowMs = 0;
  /** By host, the change that last touched what is desired there. */
  #revisions = new Map<HostKey, number>();
  /** Counts these changes: of two in one commit, a sync between them has seen the first alone. */
  #revision = 0;

  constructor(options: PartitionOptions) {
    this.number = options.number;
    this.#options = options;
    const { observer } = options;
    this.#ownership = new Ownership({
      ...options,
      onCommitted: (group, seconds) => {
        observer.commit(seconds, group.waiters.length);
        observer.journal(this.number, this.#ownership.owned?.commits.entriesAboveMark ?? 0);
        options.onEffects(this, group.effects());
      },
      onLoaded: () => {
        this.#revisions = new Map();
        this.#revision = this.#ownership.serving?.loadedLast ?? 0;
        options.onLoaded(this);
      },
      onLost: () => options.onLost(this),
      onUnloadable: (error) => options.onUnloadable(this, error),
    });
  }

  /** Memory as the turns so far have left it, committed or not. */
  get view(): PartitionView {
    return this.#ownership.state;
  }
  get epoch(): number {
    return this.#ownership.owned?.epoch ?? 0;
  }
  /** Number of the newest group, committed or not. */
  get last(): number {
    return this.#ownership.owned?.commits.last ?? 0;
  }
  get committed(): number {
    return this.#ownership.owned?.commits.committed ?? 0;
  }
  get isServing(): boolean {
    return this.#ownership.serving !== undefined;
  }
  /**
   * Raised by every change of what is desired on the host; with the epoch it orders the answers to
   * a sync.
   */
  revisionOf(host: HostKey): number {
    return this.#revisions.get(host) ?? this.#ownership.serving?.loadedLast ?? 0;
  }

  /** Takes the partition and loads it; resolves when it serves, or when it can't be had. */
  async start(): Promise<void> {
    await this.#ownership.start();
  }

  /**
   * Commits what is under way and lets the partition go to whoever takes it. Asks that come after
   * are refused.
   */
  async release(): Promise<void> {
    await this.#ownership.release();
  }

  /** Lets go at once: it is another's, or may be. */
  drop(): void {
    this.#ownership.end();
  }

  /** The lease is valid again: what waited for it is done. */
  resume(): void {
    this.#ownership.resume();
  }

  /** Resolves when every committed value is in its own key. */
  async checkpointed(): Promise<void> {
    await this.#ownership.serving?.checkpointer.drained();
  }

  /** Until when the sender of an ask that has just arrived waits (monotonic). */
  deadlineOf({ budgetMs }: Ask): number {
    return this.#options.clock.monotonicMs() + budgetMs;
  }

  read(ask: ReadAsk, respond: Respond, untilMs = this.deadlineOf(ask)): void {
    this.#read(ask, untilMs, respond);
  }

  write(ask: WriteAsk, prepared: Prepared | undefined, respond: Respond, untilMs = this.deadlineOf(ask)): void {
    this.#write(ask, prepared, untilMs, respond);
  }

  /**
   * Turns that no operation id guards, for messages that are level-triggered: reports, hellos, the
   * sweep. Each of the changes is decided on the state that the one before it made. `then` is
   * called when all are committed; when one was not, the sender says it again.
   * @returns false where nothing was done: the partition does not serve, or has no room.
   */
  change(
    kind: ChangeKind,
    decide: (state: PartitionView, context: TurnContext) => Iterable<Changes>,
    then: () => void = () => {},
  ): boolean {
    const serving = this.#ownership.answering;
    if (serving?.commits.hasRoom() !== true) return false;
    return this.#timed(kind, () => this.#change(serving, kind, decide, then));
  }

  #change(
    serving: Serving,
    kind: ChangeKind,
    decide: (state: PartitionView, context: TurnContext) => Iterable<Changes>,
    then: () => void,
  ): boolean {
    const { state, commits } = serving;
    this.#options.observer.turn(kind);
    try {
      for (const changes of decide(state, this.#context(serving, null))) {
        if (changes.heard !== undefined) state.hear(changes.heard.id, changes.heard.order);
        if (isEmpty(changes)) continue;
        const encoded = changes.records.map(encodeValue);
        if (encoded.some(isTooLarge)) {
          // It would fill a message that the server refuses for ever. What a host reports is not
          // worth that.
          this.#options.log.error('record_too_large', {
            partition: this.number,
            kind,
            keys: changes.records.map(recordKey),
          });
          continue;
        }
        this.#apply(serving, changes, encoded, null);
        if (!commits.hasRoom()) return false;
      }
    } catch (error) {
      this.#options.log.error('turn_failed', { partition: this.number, kind, error });
      return false;
    }
    commits.after(commits.last, (committed) => {
      if (committed) then();
    });
    return true;
  }

  /**
   * What is desired on a host, given out when it is committed, and so is what stands under
   * `others`; not called where nothing may be answered now. `look` takes records as they are, which
   * never change; making messages of them is long work for `then`.
   */
  project<T>(
    host: HostKey,
    look: (state: PartitionView) => T,
    then: (value: T) => void,
    others: readonly string[] = [],
  ): void {
    const serving = this.#ownership.answering;
    if (serving === undefined) return;
    this.#options.observer.turn('sync');
    const value = this.#timed('sync', () => look(serving.state));
    const { commits } = serving;
    const dirty = Math.max(...[hostDirtyKey(host), ...others].map((key) => commits.dirtyUntil(key)));
    commits.after(dirty, (committed) => {
      if (committed) then(value);
    });
  }

  /**
   * What of the whole partition is to be told to others; given out when it is committed, or never.
   */
  survey<T>(render: (state: PartitionView, nowMs: number) => T, then: (value: T) => void): void {
    const serving = this.#ownership.answering;
    if (serving === undefined) return;
    const value = this.#timed('survey', () => render(serving.state, this.#now()));
    serving.commits.after(serving.commits.dirtyUntil(partitionDirtyKey), (committed) => {
      if (committed) then(value);
    });
  }

  /** At every sweep. */
  keepTime(): void {
    this.#ownership.serving?.operations.expire(this.#options.clock.monotonicMs());
    this.#ownership.serving?.checkpointer.keepClock();
  }

  // Turns

  #timed<T>(kind: string, work: () => T): T {
    const { clock, observer } = this.#options;
    const startMs = clock.monotonicMs();
    try {
      return work();
    } finally {
      observer.worked(kind, (clock.monotonicMs() - startMs) / 1000);
    }
  }

  #whenServing(ask: Ask, untilMs: number, turn: (serving: Serving) => void, respond: Respond): void {
    const timed = (serving: Serving): void => this.#timed(ask.type, () => turn(serving));
    this.#ownership.whenServing(untilMs, timed, refusal(respond));
  }

  #read(ask: ReadAsk, untilMs: number, respond: Respond): void {
    const turn = (serving: Serving): void => {
      const { state, commits, outbox } = serving;
      this.#options.observer.turn(ask.type);
      if (ask.type === 'event.recent') {
        respond('ok', JSON.stringify({ data: outbox.recent(ask) }));
        return;
      }
      const { code, body } = this.#turnOf(() => decideRead(state, ask, this.#context(serving, ask.rid)), ask.rid).reply;
      commits.after(commits.dirtyUntil(dirtyKeyOf(ask)), (committed) => {
        if (committed) respond(code, body);
        else this.#read(ask, untilMs, respond);
      });
    };
    this.#whenServing(ask, untilMs, turn, respond);
  }

  #write(ask: WriteAsk, prepared: Prepared | undefined, untilMs: number, respond: Respond): void {
    const turn = (serving: Serving): void => {
      const { state, operations, commits, outbox } = serving;
      const again = (): void => this.#write(ask, prepared, untilMs, respond);
      this.#options.observer.turn(ask.type);
      const known = operations.get(ask.op);
      if (known !== undefined) {
        this.#answerKnown(serving, ask, known, { respond, again });
        return;
      }
      // Its sender has given it up, and may have said something else since.
      if (this.#options.clock.monotonicMs() > untilMs) return;
      if (!commits.hasRoom()) {
        const message = outbox.isFull ? { message: causeOf(outbox) } : {};
        respond('unavailable', errorBody({ error: 'unavailable', ...message }));
        return;
      }
      const decided = this.#turnOf(() => decideWrite(state, ask, this.#context(serving, ask.rid), prepared), ask.rid);
      const { code, body } = decided.reply;
      const waiter: Waiter = (committed) => (committed ? respond(code, body) : again());
      if (isEmpty(decided.changes)) {
        this.#options.onEffects(
          this,
          decided.changes.effects.map((effect) => ({ ...effect, requestId: ask.rid })),
        );
        const commit = commits.dirtyUntil(dirtyKeyAround(ask));
        if (isFinal(ask, decided.reply))
          operations.addUnchanged({ record: this.#outcomeOf(ask, decided.reply), commit });
        commits.after(commit, waiter);
        return;
      }
      const encoded = decided.changes.records.map(encodeValue);
      if (encoded.some(isTooLarge)) {
        respond('too_large', errorBody({ error: 'too_large' }));
        return;
      }
      const group = this.#apply(serving, decided.changes, encoded, ask.rid);
      this.#remember(serving, ask, decided, group);
      group.waiters.push(waiter);
    };
    this.#whenServing(ask, untilMs, turn, respond);
  }

  /**
   * The answer of the first time. A container is shown as it is now, so its newest change has to be
   * committed too.
   */
  #answerKnown(
    serving: Serving,
    ask: WriteAsk,
    { record: { code, answer }, commit }: KnownOperation,
    { respond, again }: { readonly respond: Respond; readonly again: () => void },
  ): void {
    const { state, commits } = serving;
    const body =
      answer.kind === 'body'
        ? answer.body
        : againBody(state, answer.tenant, answer.id, this.#context(serving, ask.rid));
    const dirty = answer.kind === 'body' ? 0 : commits.dirtyUntil(keys.container(answer.tenant, answer.id));
    commits.after(Math.max(commit, dirty), (committed) => {
      if (!committed) again();
      else if (body === undefined) respond('not_found', errorBody({ error: 'not_found' }));
      else respond(code, body);
    });
  }

  #now(): number {
    // Never back: the order of creation is the order of these times.
    this.#nowMs = Math.max(this.#nowMs, this.#options.clock.nowMs());
    return this.#nowMs;
  }

  #context({ expiry }: Serving, requestId: string | null): TurnContext {
    return { nowMs: this.#now(), expiryMs: expiry.nowMs(), fleet: this.#options.fleet, requestId };
  }

  /** A decision that throws is a bug of ours: it changes nothing and fails its own ask alone. */
  #turnOf(decide: () => Turn, requestId: string): Turn {
    try {
      return decide();
    } catch (error) {
      this.#options.log.error('turn_failed', { partition: this.number, requestId, error });
      return refuse('internal');
    }
  }

  /** The view of a container is not kept: it is made again. */
  #outcomeOf({ op }: WriteAsk, reply: Reply): KnownOperation['record'] {
    const container = isSuccess(reply) ? reply.ofContainer : undefined;
    const answer =
      container === undefined
        ? { kind: 'body' as const, body: reply.body }
        : { kind: 'container' as const, ...container };
    return { op, atMs: this.#now(), code: reply.code, answer };
  }

  #remember({ operations }: Serving, ask: WriteAsk, { reply }: Turn, group: Group): void {
    if (!isSuccess(reply) || reply.isIdempotent === true) return;
    const record: OperationRecord = { ...this.#outcomeOf(ask, reply), code: reply.code };
    group.operation(record);
    operations.add({ record, commit: group.number });
  }

  // What a turn changes

  #apply(serving: Serving, changes: Changes, encoded: readonly string[], requestId: string | null): Group {
    const { state, commits } = serving;
    const group = commits.open();
    for (const [index, record] of changes.records.entries()) {
      this.#touch(serving, record, group);
      state.put(record);
      group.change(recordKey(record), encoded[index] ?? null);
    }
    for (const key of changes.deletes) {
      state.delete(key);
      commits.markDirty(key, group);
      const around = dirtyKeyAroundKey(key);
      if (around !== undefined) commits.markDirty(around, group);
      group.change(key, null);
    }
    commits.markDirty(partitionDirtyKey, group);
    for (const draft of changes.events) {
      const id = `${this.number}-${group.number}-${group.events}`;
      group.event(outgoingEvent(draft, { id, nowMs: this.#now(), requestId }));
    }
    for (const effect of changes.effects) group.effect({ ...effect, requestId });
    return group;
  }

  /** Marks what a change makes dirty. */
  #touch({ state, commits }: Serving, record: StateRecord, group: Group): void {
    commits.markDirty(recordKey(record), group);
    switch (record.kind) {
      // Read by surveys of the whole partition alone.
      case 'revoked_key':
        return;
      case 'host':
        // A sync of this host tells the operator's word about its orphans.
        commits.markDirty(hostDirtyKey(record.key), group);
        return;
      case 'network':
        commits.markDirty(networkDirtyKey(record.name), group);
        return;
      case 'lease':
      case 'revoked':
        commits.markDirty(networkDirtyKey(record.network), group);
        return;
      case 'tenant':
      case 'peer':
      case 'peer_tombstone':
        commits.markDirty(tenantDirtyKey(record.tenant), group);
        return;
      case 'container':
      case 'tombstone':
        commits.markDirty(tenantDirtyKey(record.tenant), group);
        this.#raise({ state, commits }, record, group);
        return;
    }
  }

  /** Raises the revision of the hosts whose desired set changes with this record. */
  #raise(
    { state, commits }: Pick<Serving, 'state' | 'commits'>,
    record: ContainerRecord | TombstoneRecord,
    group: Group,
  ): void {
    const before = state.tenant(record.tenant).containers.get(record.id);
    const after = record.kind === 'container' ? record : undefined;
    if (before?.generation === after?.generation) return;
    for (const side of [before, after]) {
      if (side?.placement.phase !== 'placed') continue;
      commits.markDirty(hostDirtyKey(side.placement.host), group);
      this.#revisions.set(side.placement.host, ++this.#revision);
    }
  }
}
