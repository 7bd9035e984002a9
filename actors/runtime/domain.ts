/**
 * The interface between the runtime and the domain that it runs. The runtime takes partitions, runs
 * turns, commits their changes, and loads them again. The domain decides what a turn changes and
 * what a record means; `createDomain` in actors/domain/domain.ts implements it.
 *
 * Each function is synchronous, and pure except for the memory that it is given.
 */
import type { OperationRecord } from '../../schemas/records/operation.ts';
import { isSuccessCode, type ErrorCode, type SuccessCode } from '../../schemas/errors.ts';
import type { AuditLine, Author } from '../../schemas/api/audit/line.ts';
import type { Origin, ReadAsk, RecentAsk, RecentLinesAsk, WriteAsk } from '../../schemas/wire/asks.ts';
import type { OutgoingEvent } from './journal/codec.ts';

/** The domain's own types, which the runtime passes on without looking into them. */
export interface DomainTypes {
  /** The read-only view of a partition in memory. */
  readonly View: unknown;
  /** A partition in memory, which only the domain itself changes. */
  readonly State: unknown;
  readonly Record: unknown;
  readonly Event: unknown;
  readonly Effect: object;
  /** A change of state that is kept in memory only. */
  readonly Heard: unknown;
  /** The input of a turn besides the state and the ask. */
  readonly Context: unknown;
  /** Values that were made before the turn, for an ask that needs them. */
  readonly Prepared: unknown;
}

export type Memory<D extends DomainTypes> = D['State'] & D['View'];

/** The changes a turn requests, and the effects to carry out once they are committed. */
export interface Changes<D extends DomainTypes> {
  readonly records: readonly D['Record'][];
  /** Keys of records. */
  readonly deletes: readonly string[];
  readonly events: readonly D['Event'][];
  /** Each may be lost, and none is harmful if it is repeated (invariant A3). */
  readonly effects: readonly D['Effect'][];
  readonly heard?: D['Heard'];
}

/** `true` if there is nothing to commit; there may still be effects. */
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
  /** Stored in place of the body, which is made again from it: see `Domain.repeated`. */
  readonly repeat?: Repeat;
  /**
   * The turn gives the same answer when it is asked again, and changes nothing. Its outcome, which
   * may be long, is kept only if the write leaves a line in the audit, so that a repetition leaves
   * no second line.
   */
  readonly isIdempotent?: true;
}

export const isSuccess = (reply: Reply): reply is SuccessReply => isSuccessCode(reply.code);

export type Repeat = Exclude<OperationRecord['answer'], { readonly kind: 'body' }>;

export interface TurnTimes {
  /** Wall clock; it never goes back. */
  readonly nowMs: number;
  /** The time that has certainly come, by which things are deleted (ADR 13). */
  readonly expiryMs: number;
  /** Milliseconds since the load of the partition, by a clock that never steps. */
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

/** The fields of an event that do not come from its turn. */
export interface EventHead {
  readonly id: string;
  readonly nowMs: number;
  readonly requestId: string | null;
  /** The author of the request; `undefined` if no request caused the turn. */
  readonly by: Author | undefined;
}

/**
 * Marks keys as dirty: their changes are not committed yet. A reader of a dirty key waits for the
 * commit.
 */
export interface DirtyMarks {
  markDirty(key: string): void;
}

/** A key that every commit makes dirty. */
export const wholePartition = '*';

/** The rules by which a load finds, checks and orders records. */
export interface RecordFormat<R> {
  /** `true` for keys of records, `false` for the runtime's own. */
  isKey(key: string): boolean;
  /** `true` for keys of records that digests count separately. */
  isNewKey(key: string): boolean;
  /** `true` for keys of records that 0.2.0 introduced: earlier digests leave them out. */
  isNewestKey(key: string): boolean;
  /** `true` if a decoded value has the shape of a record. */
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
  /** The result of a turn that threw. */
  readonly failed: Turn<D>;
  /**
   * `true` if the sender of a write that changed nothing does not ask again after this answer. Then
   * a late copy of its message must not take effect.
   */
  isFinal(ask: WriteAsk, reply: Reply): boolean;
  /** The body of an operation's answer, made again; `undefined` if its subject no longer exists. */
  repeated(state: D['View'], repeat: Repeat, context: D['Context'], ask: WriteAsk): string | undefined;

  // Dirty keys, whose commits an answer waits for

  dirtyKeyOf(ask: StateRead): string;
  /** The dirty key for a write that changed nothing. */
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
  /** Notes that the record under this key is damaged; keeps what the key itself says. */
  quarantine(state: Memory<D>, key: string): void;
  /**
   * Applies the changes of a turn, and marks the keys of readers dirty.
   * @returns effects that follow from the changes, besides their own
   */
  apply(state: Memory<D>, changes: Changes<D>, marks: DirtyMarks): readonly D['Effect'][];
  applyHeard(state: Memory<D>, heard: D['Heard']): void;
  /** All stored records except damaged ones. */
  all(state: D['View']): Iterable<D['Record']>;
  /** Called when this process no longer owns the partition. */
  release(state: Memory<D>): void;
  /** The newest time in any record; `undefined` if no record has one. */
  newestMs(state: Memory<D>): number | undefined;
  readonly records: RecordFormat<D['Record']>;

  // Output after the commit

  event(event: D['Event'], head: EventHead): OutgoingEvent;
  /** The audit lines of a write with this answer; they are committed before the answer leaves. */
  lines(ask: WriteAsk, reply: Reply, nowMs: number): readonly LineDraft[];
  /** Of effects with the same key, a commit carries out the last. */
  effectKey(effect: D['Effect']): string;
}
