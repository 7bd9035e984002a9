/**
 * One partition: turns run one at a time over plain objects in memory, commits collect while one is
 * in flight, and nothing leaves before the state that it shows is committed.
 *
 * A turn changes memory at once; its answer waits for its group's commit (commits.ts). Ownership of
 * the partition, and turns whose commit has an unknown outcome, are in ownership.ts.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Span, Tracer } from '../../lib/trace/tracer.ts';
import type { Slices } from '../../lib/time/slices.ts';
import type { OperationRecord } from '../../schemas/records/operation.ts';
import { errorBody } from '../../schemas/errors.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { traceIdOf } from '../../schemas/wire/trace.ts';
import type { Ask, Origin, ReadAsk, WriteAsk } from '../../schemas/wire/asks.ts';
import type { Cause } from '../../schemas/wire/audit.ts';
import { notOwner, type AnswerCode } from '../../schemas/wire/codec.ts';
import type { Journals } from './journal/journals.ts';
import {
  isEmpty,
  isSuccess,
  wholePartition,
  type Changes,
  type Domain,
  type DomainTypes,
  type Reply,
  type Turn,
} from './domain.ts';
import type { EpochRecord } from './store/epoch.ts';
import { draftOf, isTooLarge, type Draft, type Group, type OutgoingEffect, type Waiter } from './journal/group.ts';
import type { Lease } from './lease.ts';
import type { KnownOperation } from './operations.ts';
import { Ownership, type OwnershipObserver } from './ownership.ts';
import type { WentBack } from './store/fence.ts';
import type { Reading } from './reading.ts';
import { causeOf, type Serving } from './serving.ts';
import type { MadeAnswer } from './waiting-answers.ts';
import type { EventSink, Store } from './store/store.ts';

export interface PartitionOptions<D extends DomainTypes> {
  readonly number: number;
  readonly domain: Domain<D>;
  readonly lease: Lease;
  /**
   * Resolves to `true` if the partition may be taken from the member that its epoch record names.
   * `record` is `undefined` if there is none, or none that can be read.
   */
  readonly mayTake: (record: EpochRecord | undefined) => Promise<boolean>;
  readonly store: Store;
  readonly events: EventSink;
  readonly audit: EventSink;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
  /** `undefined` if nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly journals: Pick<Journals, 'open' | 'commitsOf'>;
  /** Takes what this process has read ahead of the bucket; `undefined` if it may not be used. */
  readonly readAhead: () => Promise<Reading<D['Record']> | undefined>;
  readonly newToken: () => string;
  /** Called after the commit of these effects. */
  readonly onEffects: (partition: Partition<D>, effects: Iterable<OutgoingEffect<D['Effect']>>) => void;
  /** Called after a load: hosts of this partition may have changed while it was elsewhere. */
  readonly onLoaded: (partition: Partition<D>) => void;
  /**
   * Called when another process has taken the partition, unless this one never had it or handed it
   * over.
   */
  readonly onLost: (partition: Partition<D>) => void;
  /** Called when the partition could not be loaded and was released. */
  readonly onUnloadable: (partition: Partition<D>, error: unknown) => void;
  /**
   * Called when its bucket went back in time; the journal of this process acknowledges no more.
   */
  readonly onWentBack: (partition: Partition<D>, sequences: WentBack) => void;
  readonly observer: PartitionObserver;
}

/** Measurements; metrics.ts exports them with prom-client. */
export interface PartitionObserver extends OwnershipObserver {
  /** @param kind the type of the ask, or what else made the turn */
  turn(kind: string): void;
  commit(seconds: number, turns: number): void;
  /** Called when a turn, or a slice of long work, kept the event loop busy for so long. */
  worked(kind: string, seconds: number): void;
}

export type Respond = (code: AnswerCode, body: string) => void;

const nothing = { records: [], deletes: [], events: [], effects: [] } as const;

const tooLarge: Reply = { code: 'too_large', body: errorBody({ error: 'too_large' }) };
const tooManyWait = errorBody({ error: 'unavailable', message: 'too many requests wait for a commit; try again' });

/**
 * The refusal of a tenant whose writes take more than its share, while there is room for those of
 * others; `undefined` if they do not.
 */
function excessOf(
  { outbox, operations, commits }: Pick<Serving<DomainTypes>, 'outbox' | 'operations' | 'commits'>,
  tenant: TenantId,
): { readonly message: string; readonly retry_after_seconds: number } | undefined {
  const full = outbox.fullFor(tenant);
  if (full !== undefined) {
    return {
      message: `the stream ${full} takes no events, and as many of yours wait as may`,
      retry_after_seconds: 10,
    };
  }
  if (!commits.hasShare(tenant)) {
    return { message: 'as many of your writes wait to be stored as may', retry_after_seconds: 1 };
  }
  if (operations.hasShare(tenant)) return undefined;
  return { message: 'as many long answers to your last writes are kept as may', retry_after_seconds: 10 };
}

/**
 * `false` for a write of an operator about a tenant, such as to revoke the tokens of one that
 * floods.
 */
const isByItself = ({ tenant, cause }: { readonly tenant: TenantId; readonly cause?: Cause }): boolean =>
  (cause?.by.tenant ?? tenant) === tenant;

/** The name under which an ask counts in the shares of tenants. */
const tenantOf = (ask: Ask): string => ('tenant' in ask ? ask.tenant : '');

/** A look at memory whose result waits until everything that it rests on is committed. */
export interface Projection<D extends DomainTypes, T> {
  /** Whose it is, among those that share what may wait: not a tenant, so not in its form. */
  readonly by: string;
  /** Nobody waits for it longer (monotonic). */
  readonly untilMs: number;
  readonly dirtyKeys: (state: D['View']) => readonly string[];
  /**
   * Takes records as they are, which never change; making messages of them is long work for `then`.
   */
  readonly look: (state: D['View'], nowMs: number) => T;
  /** The memory of the value while it waits, without that of records. */
  readonly bytesOf: (value: T) => number;
  readonly then: (value: T) => void;
}

/** A write, from its arrival to its answer; it runs again if its commit's outcome is unknown. */
interface Write<D extends DomainTypes> {
  readonly ask: WriteAsk;
  readonly prepared: D['Prepared'] | undefined;
  readonly respond: Respond;
  /** Monotonic. */
  readonly untilMs: number;
}

export class Partition<D extends DomainTypes> {
  readonly number: number;
  readonly #options: PartitionOptions<D>;
  readonly #ownership: Ownership<D>;
  #nowMs = 0;

  constructor(options: PartitionOptions<D>) {
    this.number = options.number;
    this.#options = options;
    const { observer } = options;
    this.#ownership = new Ownership({
      ...options,
      onCommitted: (group, seconds) => {
        observer.commit(seconds, group.waiters.length);
        observer.uncheckpointed(this.number, this.#ownership.owned?.commits.commitsAboveMark ?? 0);
        options.onEffects(this, group.effects());
      },
      onLoaded: () => options.onLoaded(this),
      onLost: () => options.onLost(this),
      onUnloadable: (error) => options.onUnloadable(this, error),
      onWentBack: (sequences) => options.onWentBack(this, sequences),
    });
  }

  /** Memory as the turns so far have left it, committed or not. */
  get view(): D['View'] {
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
  /** Milliseconds for which its checkpoint has not moved although commits wait; 0 if none waits. */
  get checkpointStalledMs(): number {
    return this.#ownership.owned?.checkpointer.stalledMs ?? 0;
  }
  get isServing(): boolean {
    return this.#ownership.serving !== undefined;
  }

  /** Takes and loads the partition; resolves when it serves, or when it cannot be taken. */
  async start(): Promise<void> {
    await this.#ownership.start();
  }

  /**
   * Commits and checkpoints what is under way and releases the partition, so that another member
   * can take it. Later asks are refused.
   * @returns `false` if it can't be checkpointed in time: then it is served again
   */
  async release(): Promise<boolean> {
    return this.#ownership.release();
  }

  /** Drops the partition at once: another process has it, or may have. */
  drop(): void {
    this.#ownership.end();
  }

  /** The lease is valid again: the turns that waited for it run. */
  resume(): void {
    this.#ownership.resume();
  }

  /** Resolves when every committed value is in its own key. */
  async checkpointed(): Promise<void> {
    await this.#ownership.serving?.checkpointer.drain();
  }

  /** Monotonic time, in ms, at which the sender of an ask that has just arrived stops waiting. */
  deadlineOf({ budgetMs }: Pick<Ask, 'budgetMs'>): number {
    return this.#options.clock.monotonicMs() + budgetMs;
  }

  read(ask: ReadAsk, respond: Respond, untilMs = this.deadlineOf(ask)): void {
    this.#whenServing(ask, untilMs, (serving) => this.#read(serving, ask, untilMs, respond), respond);
  }

  write(ask: WriteAsk, prepared: D['Prepared'] | undefined, respond: Respond, untilMs = this.deadlineOf(ask)): void {
    this.#write({ ask, prepared, respond, untilMs });
  }

  /**
   * Turns that no operation id guards, for messages that are level-triggered: reports, hellos, the
   * sweep. Each of the changes is decided on the state that the one before it made. `then` is
   * called when all are committed; if one was not, the sender repeats its message. A change with
   * events beyond the share of its tenant while EVENTS is away is left out, and `onLeft` called
   * before the next is decided.
   * @returns `false` if nothing was done: the partition does not serve, or has no room.
   */
  change(
    kind: string,
    decide: (state: D['View'], context: D['Context']) => Iterable<Changes<D>>,
    then: () => void = () => {},
    onLeft: () => void = () => {},
  ): boolean {
    const serving = this.#ownership.answering;
    if (serving?.commits.hasRoom() !== true) return false;
    return this.#timed(kind, () => this.#change(serving, kind, decide, { then, onLeft }));
  }

  /**
   * `true` if sweeps may add events of this tenant: `false` while EVENTS is away and its share
   * waits.
   */
  mayTell(tenant: TenantId): boolean {
    return this.#ownership.owned?.outbox.events.hasShare(tenant) !== false;
  }

  /**
   * Looks at memory for a host, and hands on what was seen when it is committed. Not called where
   * nothing may be answered now, and where nobody waits for it any more.
   */
  project<T>(projection: Projection<D, T>): void {
    const serving = this.#ownership.answering;
    if (serving === undefined) return;
    this.#options.observer.turn('sync');
    this.#look(serving, 'sync', projection, () => this.project(projection));
  }

  /**
   * Looks at the whole partition; what was seen is handed on when it is committed, or never. For
   * what is looked at again with every sweep.
   */
  survey<T>(
    look: (state: D['View'], nowMs: number) => T,
    then: (value: T) => void,
    untilMs = this.deadlineOf({ budgetMs: limits.journalStalledMs }),
  ): void {
    const serving = this.#ownership.answering;
    if (serving === undefined) return;
    const whole = { by: 'a survey', untilMs, dirtyKeys: () => [wholePartition], bytesOf: () => 0 };
    this.#look(serving, 'survey', { ...whole, look, then }, () => this.survey(look, then, untilMs));
  }

  /** Called at every sweep. */
  keepTime(): void {
    const { serving } = this.#ownership;
    const nowMs = this.#options.clock.monotonicMs();
    serving?.operations.expire(nowMs);
    serving?.answers.expire(nowMs);
    serving?.checkpointer.keepClock();
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

  #whenServing(ask: Ask, untilMs: number, turn: (serving: Serving<D>) => void, respond: Respond): void {
    const run = (serving: Serving<D>): void => this.#timed(ask.type, () => turn(serving));
    const { ready } = this.#ownership;
    if (ready !== undefined) run(ready);
    else this.#ownership.wait({ tenant: tenantOf(ask), untilMs, run, refuse: () => respond(notOwner, '') });
  }

  #look<T>(
    { state, commits, answers }: Serving<D>,
    kind: string,
    { by, untilMs, dirtyKeys, look, bytesOf, then }: Projection<D, T>,
    again: () => void,
  ): void {
    answers.add(Math.max(...dirtyKeys(state).map((key) => commits.dirtyUntil(key))), {
      by,
      untilMs,
      make: () => {
        const value = this.#timed(kind, () => look(state, this.#now()));
        return { bytes: bytesOf(value), give: () => then(value) };
      },
      again,
      // Who wants it looks again.
      refuse: () => {},
    });
  }

  #read(serving: Serving<D>, ask: ReadAsk, untilMs: number, respond: Respond): void {
    const { state, answers, commits, outbox } = serving;
    const { domain, observer } = this.#options;
    observer.turn(ask.type);
    if (ask.type === 'event.recent') {
      respond('ok', JSON.stringify({ data: outbox.recentEvents(ask) }));
      return;
    }
    if (ask.type === 'audit.recent') {
      respond('ok', JSON.stringify({ data: outbox.recentLines(ask) }));
      return;
    }
    answers.add(commits.dirtyUntil(domain.dirtyKeyOf(ask)), {
      by: tenantOf(ask),
      untilMs,
      make: () => {
        const { reply } = this.#turnOf(() => domain.read(state, ask, this.#context(serving, ask)), ask.rid);
        return { bytes: reply.body.length, give: () => respond(reply.code, reply.body) };
      },
      again: () => this.read(ask, respond, untilMs),
      refuse: () => respond('unavailable', tooManyWait),
    });
  }

  #write(write: Write<D>): void {
    const { ask, untilMs, respond } = write;
    this.#whenServing(ask, untilMs, (serving) => this.#runWrite(serving, write), respond);
  }

  #runWrite(serving: Serving<D>, write: Write<D>): void {
    const { state, operations, commits, outbox, journal } = serving;
    const { ask, prepared, respond, untilMs } = write;
    const { clock, domain, observer } = this.#options;
    observer.turn(ask.type);
    const known = operations.get(ask.op);
    if (known !== undefined) {
      this.#answerKnown(serving, write, known);
      return;
    }
    // Its sender has given up, and may have sent something else since.
    if (clock.monotonicMs() > untilMs) return;
    if (!commits.hasRoom()) {
      const message = journal.isHeld || outbox.full !== undefined ? { message: causeOf(serving) } : {};
      respond('unavailable', errorBody({ error: 'unavailable', ...message }));
      return;
    }
    const excess = 'tenant' in ask && isByItself(ask) ? excessOf(serving, ask.tenant) : undefined;
    if (excess !== undefined) {
      const message = `${excess.message}: try again later`;
      const reply = {
        code: 'rate_limited',
        body: errorBody({ error: 'rate_limited', ...excess, message }),
      } as const;
      operations.addUnchanged({ record: this.#outcomeOf(ask, reply), commit: 0, tenant: tenantOf(ask) });
      respond(reply.code, reply.body);
      return;
    }
    const turn = this.#turnOf(() => domain.write(state, ask, this.#context(serving, ask), prepared), ask.rid);
    if (isEmpty(turn.changes)) this.#answerUnchanged(serving, write, turn);
    else this.#commit(serving, write, turn);
  }

  /**
   * The answer of the first time. A body that is made again shows its subject as it is now, so the
   * newest change of that has to be committed too.
   */
  #answerKnown(serving: Serving<D>, write: Write<D>, { code, answer, commit }: KnownOperation): void {
    const { state, commits } = serving;
    const { ask, respond } = write;
    const { domain } = this.#options;
    const isKept = answer.kind === 'body';
    const dirty = isKept ? 0 : commits.dirtyUntil(domain.dirtyKeyOfRepeat(answer));
    // It has been executed: a refusal would say that it was not. Its sender asks again.
    const refuse = (): void => {};
    const make = (): MadeAnswer => {
      const body = isKept ? answer.body : domain.repeated(state, answer, this.#context(serving, ask), ask);
      if (body !== undefined) return { bytes: body.length, give: () => respond(code, body) };
      return { bytes: 0, give: () => respond('not_found', errorBody({ error: 'not_found' })) };
    };
    this.#answerAfter(serving, write, Math.max(commit, dirty), { make, refuse });
  }

  /** The answer to a write that needs no commit of its own. */
  #answerAfter(
    { answers }: Serving<D>,
    write: Write<D>,
    commit: number,
    how: { readonly make: () => MadeAnswer; readonly refuse: () => void },
  ): void {
    const { ask, untilMs } = write;
    answers.add(commit, { by: tenantOf(ask), untilMs, ...how, again: () => this.#write(write) });
  }

  /**
   * A refusal, or a write that found everything as it should be. If it leaves a line in the audit,
   * that is committed before the answer, and with the outcome: a repetition leaves no other.
   */
  #answerUnchanged(serving: Serving<D>, write: Write<D>, { reply, changes }: Turn<D>): void {
    const { operations, commits } = serving;
    const { ask } = write;
    const { domain } = this.#options;
    this.#carryOut(changes, ask.rid);
    const draft = this.#draftOf(nothing, ask, reply);
    if (isTooLarge(draft)) {
      this.#answerUnchanged(serving, write, { reply: tooLarge, changes: nothing });
      return;
    }
    if (draft.lines.length > 0) {
      const group = this.#add(serving, draft);
      group.answer(draft.tenant, reply.body.length, this.#waiterOf(write, reply));
      return;
    }
    const commit = commits.dirtyUntil(domain.dirtyKeyAround(ask));
    if (domain.isFinal(ask, reply)) {
      operations.addUnchanged({ record: this.#outcomeOf(ask, reply), commit, tenant: tenantOf(ask) });
    }
    const make = (): MadeAnswer => {
      const waiter = this.#waiterOf(write, reply);
      return { bytes: reply.body.length, give: () => waiter(true) };
    };
    const refuse = (): void => write.respond('unavailable', tooManyWait);
    this.#answerAfter(serving, write, commit, { make, refuse });
  }

  /** The effects of a turn that commits nothing, as of most items of reports. */
  #carryOut({ effects }: Changes<D>, requestId: string | null): void {
    if (effects.length === 0) return;
    this.#options.onEffects(
      this,
      effects.map((effect) => ({ ...effect, requestId })),
    );
  }

  /** Applies the turn to memory; its answer leaves with the commit (invariant A3). */
  #commit(serving: Serving<D>, write: Write<D>, { reply, changes }: Turn<D>): void {
    const draft = this.#draftOf(changes, write.ask, reply);
    if (isTooLarge(draft)) {
      this.#answerUnchanged(serving, write, { reply: tooLarge, changes: nothing });
      return;
    }
    const group = this.#apply(serving, changes, draft, write.ask.rid);
    group.answer(draft.tenant, reply.body.length, this.#waiterOf(write, reply));
  }

  #waiterOf(write: Write<D>, { code, body }: Reply): Waiter {
    const { trace } = write.ask;
    const span = trace === undefined ? undefined : this.#commitSpan(trace);
    return (committed) => {
      span?.end({ isError: !committed });
      if (!committed) {
        this.#write(write);
        return;
      }
      this.#note(write.ask, code);
      write.respond(code, body);
    };
  }

  #commitSpan(trace: string): Span | undefined {
    const attributes = { 'longshore.partition': this.number };
    return this.#options.tracer?.below(trace, { name: 'commit', kind: 'internal', attributes });
  }

  /** The line of a write. A request that is traced has one at the usual level of logs, too. */
  #note({ type, rid, trace }: WriteAsk, code: AnswerCode): void {
    const { log } = this.#options;
    const level = trace === undefined ? 'debug' : 'info';
    log[level]('turn_taken', { partition: this.number, ask: type, code, requestId: rid, traceId: traceIdOf(trace) });
  }

  #change(
    serving: Serving<D>,
    kind: string,
    decide: (state: D['View'], context: D['Context']) => Iterable<Changes<D>>,
    { then, onLeft }: { readonly then: () => void; readonly onLeft: () => void },
  ): boolean {
    const { state, commits, outbox } = serving;
    const { domain, log, observer } = this.#options;
    observer.turn(kind);
    try {
      for (const changes of decide(state, this.#context(serving, null))) {
        if (isEmpty(changes)) {
          if (changes.heard !== undefined) domain.applyHeard(state, changes.heard);
          this.#carryOut(changes, null);
          continue;
        }
        const draft = this.#draftOf(changes);
        if (!outbox.haveShare(draft.events)) {
          onLeft();
          continue;
        }
        if (changes.heard !== undefined) domain.applyHeard(state, changes.heard);
        if (isTooLarge(draft)) {
          // It would fill a message that the server refuses for ever. What a host reports is not
          // worth that.
          const keys = changes.records.map((record) => domain.records.keyOf(record));
          log.error('record_too_large', { partition: this.number, kind, keys });
          continue;
        }
        this.#apply(serving, changes, draft, null);
        if (!commits.hasRoom()) return false;
      }
    } catch (error) {
      log.error('turn_failed', { partition: this.number, kind, error });
      return false;
    }
    commits.after(commits.last, (committed) => {
      if (committed) then();
    });
    return true;
  }

  #now(): number {
    // Never back: the order of creation is the order of these times.
    this.#nowMs = Math.max(this.#nowMs, this.#options.clock.nowMs());
    return this.#nowMs;
  }

  #context({ expiry, startedMs }: Serving<D>, origin: Origin | null): D['Context'] {
    const { domain, clock } = this.#options;
    const servedMs = clock.monotonicMs() - startedMs;
    return domain.context({ nowMs: this.#now(), expiryMs: expiry.nowMs(), servedMs }, origin);
  }

  /** A decision that throws is a bug of ours: it changes nothing and fails its own ask alone. */
  #turnOf(decide: () => Turn<D>, requestId: string): Turn<D> {
    const { domain, log } = this.#options;
    try {
      return decide();
    } catch (error) {
      log.error('turn_failed', { partition: this.number, requestId, error });
      return domain.failed;
    }
  }

  #outcomeOf({ op }: WriteAsk, reply: Reply): OperationRecord {
    const answer = (isSuccess(reply) ? reply.repeat : undefined) ?? { kind: 'body' as const, body: reply.body };
    return { op, atMs: this.#now(), code: reply.code, answer };
  }

  /**
   * The draft of a turn, with the lines of the audit and the outcome, which is kept if the turn may
   * not run again.
   * @param ask `undefined` if nobody asked for it
   */
  #draftOf(changes: Changes<D>, ask?: WriteAsk, reply?: Reply): Draft {
    const { domain } = this.#options;
    const nowMs = this.#now();
    const head = { nowMs, requestId: ask?.rid ?? null, by: ask?.cause?.by };
    if (ask === undefined || reply === undefined) {
      return draftOf(domain, { tenant: '', changes, head, lines: [], outcome: undefined });
    }
    const lines = domain.lines(ask, reply, nowMs);
    const mayRepeat = !isSuccess(reply) || reply.isIdempotent === true;
    const outcome = mayRepeat && lines.length === 0 ? undefined : this.#outcomeOf(ask, reply);
    return draftOf(domain, { tenant: tenantOf(ask), changes, head, lines, outcome });
  }

  /**
   * Puts what a turn changes into memory, and into the group that commits it.
   * @param requestId `null` if nobody asked for it
   */
  #apply(serving: Serving<D>, changes: Changes<D>, draft: Draft, requestId: string | null): Group<D['Effect']> {
    const { domain } = this.#options;
    const group = this.#add(serving, draft);
    const follow = domain.apply(serving.state, changes, group);
    group.markDirty(wholePartition);
    for (const effect of [...changes.effects, ...follow])
      group.effect(domain.effectKey(effect), { ...effect, requestId });
    return group;
  }

  #add({ commits, operations }: Serving<D>, draft: Draft): Group<D['Effect']> {
    const group = commits.open(draft.bytes);
    group.take(draft, this.number);
    const { tenant, outcome } = draft;
    if (outcome !== undefined) operations.add({ record: outcome, commit: group.number, tenant });
    return group;
  }
}
