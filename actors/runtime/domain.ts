/**
 * What the runtime is given of the domain that it runs. The runtime takes partitions, runs turns,
 * commits what they change, and loads it again. What a turn decides and what a record means is
 * behind this interface; `createDomain` in actors/domain/domain.ts implements it.
 *
 * Each function is synchronous, and pure but for the memory that it is handed.
 */
import type { OperationRecord } from '../../schemas/records/operation.ts';
import { isSuccessCode, type ErrorCode, type SuccessCode } from '../../schemas/errors.ts';
import type { AuditLine, Author } from '../../schemas/api/audit/line.ts';
import type { Origin, ReadAsk, RecentAsk, RecentLinesAsk, WriteAsk } from '../../schemas/wire/asks.ts';
import type { OutgoingEvent } from './journal/codec.ts';

/** The domain's own types, which the runtime hands on without looking into them. */
export interface DomainTypes {
  /** A partition in memory, as those may see it who must not change it. */
  readonly View: unknown;
  /** The same, for the domain itself to change. */
  readonly State: unknown;
  readonly Record: unknown;
  readonly Event: unknown;
  readonly Effect: object;
  /** What memory alone keeps. */
  readonly Heard: unknown;
  /** What a turn knows besides the state. */
  readonly Context: unknown;
  /** What was made before the turn, for an ask that needs it. */
  readonly Prepared: unknown;
}

export type Memory<D extends DomainTypes> = D['State'] & D['View'];

/** What a turn wants changed, and done once that is committed. */
export interface Changes<D extends DomainTypes> {
  readonly records: readonly D['Record'][];
  /** Keys of records. */
  readonly deletes: readonly string[];
  readonly events: readonly D['Event'][];
  /** All of them may be lost, and none is harmful twice (invariant A3). */
  readonly effects: readonly D['Effect'][];
  readonly heard?: D['Heard'];
}

/** Nothing to commit; there may still be effects. */
export const isEmpty = ({
  records,
  deletes,
}: {
  readonly records: readonly unknown[];
  readonly deletes: readonly string[];
}) => records.length === 0 && deletes.length === 0;

/** `body` is the JSON of the HTTP response. */
export type Reply = SuccessReply | { readonly code: ErrorCode; readonly body: string };

export interface SuccessReply {
  readonly code: SuccessCode;
  readonly body: string;
  /** What is kept in place of the body, which is made again from it: see `Domain.repeated`. */
  readonly repeat?: Repeat;
  /**
   * Asked again, the turn gives the same answer and changes nothing: its outcome, which may be
   * long, is kept only where the write leaves a line in the audit, so that it leaves no other.
   */
  readonly isIdempotent?: true;
}

export const isSuccess = (reply: Reply): reply is SuccessReply => isSuccessCode(reply.code);

export type Repeat = Exclude<OperationRecord['answer'], { readonly kind: 'body' }>;

export interface TurnTimes {
  /** Wall clock; never back. */
  readonly nowMs: number;
  /** The time that has certainly come, by which things are deleted (ADR 13). */
  readonly expiryMs: number;
  /** How long the partition has been served since its load, by a clock that never steps. */
  readonly servedMs: number;
}

export interface Turn<D extends DomainTypes> {
  readonly reply: Reply;
  readonly changes: Changes<D>;
}

/** Reads that are answered from the state; recent events and lines are in the outboxes. */
export type StateRead = Exclude<ReadAsk, RecentAsk | RecentLinesAsk>;

/** A line of the audit, and the subject on which it is published. */
export interface LineDraft {
  readonly subject: string;
  readonly line: Omit<AuditLine, 'id'>;
}

/** What an event says besides what its turn has told. */
export interface EventHead {
  readonly id: string;
  readonly nowMs: number;
  readonly requestId: string | null;
  /** Who asked for the turn; undefined: nobody. */
  readonly by: Author | undefined;
}

/**
 * What is not committed yet, by the names of what readers look at: a reader of what is dirty waits
 * for the commit.
 */
export interface DirtyMarks {
  markDirty(key: string): void;
}

/** Dirty with every commit. */
export const wholePartition = '*';

/** How records are found, checked and ordered in a load. */
export interface RecordFormat<R> {
  /** Of a record, and not of the runtime's own. */
  isKey(key: string): boolean;
  /** Of a record that digests count apart. */
  isNewKey(key: string): boolean;
  /** Of a record that the last release does not know: its digests leave it out. */
  isNewestKey(key: string): boolean;
  /** Whether a value that was decoded has the shape of a record. */
  isRecord(value: unknown): value is R;
  keyOf(record: R): string;
  /** The order in which memory is filled. */
  compare(one: R, other: R): number;
}

export interface Domain<D extends DomainTypes> {
  // Turns

  context(times: TurnTimes, origin: Origin | null): D['Context'];
  read(state: D['View'], ask: StateRead, context: D['Context']): Turn<D>;
  write(state: D['View'], ask: WriteAsk, context: D['Context'], prepared: D['Prepared'] | undefined): Turn<D>;
  /** In place of a turn that threw. */
  readonly failed: Turn<D>;
  /**
   * Whether the sender of a write that changed nothing asks no more after this answer, so that a
   * late copy of its message must not do what the first did not.
   */
  isFinal(ask: WriteAsk, reply: Reply): boolean;
  /** The body of an operation's answer, made again; undefined where its subject is gone since. */
  repeated(state: D['View'], repeat: Repeat, context: D['Context'], ask: WriteAsk): string | undefined;

  // What has to be committed before an answer leaves

  dirtyKeyOf(ask: StateRead): string;
  /** What a write that changed nothing has seen. */
  dirtyKeyAround(ask: WriteAsk): string;
  dirtyKeyOfRepeat(repeat: Repeat): string;

  // Memory

  /**
   * An empty memory.
   * @param at the epoch that it is loaded under, and the number of the last commit
   */
  open(at: { readonly epoch: number; readonly last: number }): Memory<D>;
  /** Puts a loaded record into its place. */
  put(state: Memory<D>, record: D['Record']): void;
  remove(state: Memory<D>, key: string): void;
  /** The record under this key is damaged: what the key itself says is kept. */
  quarantine(state: Memory<D>, key: string): void;
  /** Applies what a turn changed, and marks what of it others may look at. */
  apply(state: Memory<D>, changes: Changes<D>, marks: DirtyMarks): void;
  applyHeard(state: Memory<D>, heard: D['Heard']): void;
  /** All that is stored, but for what is damaged. */
  all(state: D['View']): Iterable<D['Record']>;
  /** The memory is no longer this process's. */
  release(state: Memory<D>): void;
  /** The newest time that a record says; undefined where none says one. */
  newestMs(state: Memory<D>): number | undefined;
  readonly records: RecordFormat<D['Record']>;

  // What leaves after the commit

  event(event: D['Event'], head: EventHead): OutgoingEvent;
  /** What the audit says of a write with this answer; committed before the answer leaves. */
  lines(ask: WriteAsk, reply: Reply, nowMs: number): readonly LineDraft[];
  /** Effects that follow from these changes of the state, which does not have them yet. */
  follow(state: D['View'], changes: Changes<D>): readonly D['Effect'][];
  /** Of effects with the same key, a commit carries out the last. */
  effectKey(effect: D['Effect']): string;
}
