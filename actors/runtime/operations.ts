/**
 * Outcomes of operations, by operation id: a retry of a write gets the first answer. They are kept
 * for a time that is longer than any deadline, and never by count: a ring broke under a storm of
 * pauses. A tenant whose long answers take too many bytes writes no more until some have ended.
 */
import type { OperationRecord } from '../../schemas/records/operation.ts';
import type { OperationId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { Shares } from './shares.ts';
import { MiB } from '../../schemas/limits/units.ts';

/**
 * Outcomes of writes that changed nothing, including refusals, in the memory of a partition; they
 * are kept as long as other outcomes.
 */
export const unchangedKept = 20_000;
/**
 * Answers that outcomes in memory share, in number and in bytes; beyond either it forgets them.
 */
export const sharedAnswers = 256;
export const sharedAnswersBytes = 1 * MiB;
/**
 * Bytes of answers longer than the first that are kept with outcomes in a partition; a tenant
 * alone gets half of them. Beyond this its writes are refused.
 */
export const shortAnswerBytes = 512;
export const longAnswersBytes = 64 * MiB;

export interface KnownOperation extends Pick<OperationRecord, 'code' | 'answer'> {
  /** Number of the commit that it is part of, or that it rests on. */
  readonly commit: number;
}

interface Kept extends KnownOperation {
  readonly addedAtMs: number;
  readonly tenant: string;
}

interface NewOperation {
  readonly record: OperationRecord;
  readonly commit: number;
  /** The tenant of the write; empty if there is none, or if the load cannot tell. */
  readonly tenant: string;
}

/** A short answer is bounded by the rate of requests. */
const longBytesOf = (answer: OperationRecord['answer']): number =>
  answer.kind === 'body' && answer.body.length > shortAnswerBytes ? answer.body.length : 0;

/** Between two calls of `expire`, no more than this counts. */
const longestStepMs = 3 * limits.sweepIntervalMs;

export class Operations {
  readonly #known = new Map<OperationId, Kept>();
  /**
   * Outcomes of writes that changed nothing and left no line in the audit, kept in memory only:
   * refusals, and a start of a container that runs. The client may have done something else since,
   * so a second copy of the message, which comes late, must not take effect.
   */
  readonly #unchanged = new Map<OperationId, Kept>();
  /**
   * Milliseconds that this process ran. Time in which it was stopped does not count: a retry from
   * before may still be unread.
   */
  #ranMs = 0;
  #expiredAtMs: number | undefined;
  /** Answers with a body, by that: most refusals say the same, and keep it once. */
  readonly #shared = new Map<string, OperationRecord['answer']>();
  #sharedBytes = 0;
  /** Bytes of long answers, by tenant. Each counts, shared or not: each is stored. */
  readonly #long = new Shares();

  get(op: OperationId): KnownOperation | undefined {
    return this.#known.get(op) ?? this.#unchanged.get(op);
  }

  /** `true` if the outcomes of this tenant leave room for another. */
  hasShare(tenant: string): boolean {
    return this.#long.has(tenant, longAnswersBytes);
  }

  /**
   * The outcomes as they are stored; those in memory only are left out.
   * @param nowMs wall clock
   */
  *records(nowMs: number): Generator<OperationRecord, void, void> {
    for (const [op, { code, answer, addedAtMs }] of this.#known) {
      yield { op, atMs: nowMs - (this.#ranMs - addedAtMs), code, answer };
    }
  }

  add(operation: NewOperation): void {
    this.#known.set(operation.record.op, this.#kept(operation));
  }

  /** Bounded: when full, it forgets the oldest. */
  addUnchanged(operation: NewOperation): void {
    const [oldest] = this.#unchanged;
    if (this.#unchanged.size >= unchangedKept && oldest !== undefined) this.#forget(this.#unchanged, ...oldest);
    this.#unchanged.set(operation.record.op, this.#kept(operation));
  }

  #kept({ record: { code, answer }, commit, tenant }: NewOperation): Kept {
    if (tenant !== '') this.#long.add(tenant, longBytesOf(answer));
    return { code, answer: this.#sharedOf(answer), commit, addedAtMs: this.#ranMs, tenant };
  }

  #forget(kept: Map<OperationId, Kept>, op: OperationId, { tenant, answer }: Kept): void {
    kept.delete(op);
    if (tenant !== '') this.#long.add(tenant, -longBytesOf(answer));
  }

  #sharedOf(answer: OperationRecord['answer']): OperationRecord['answer'] {
    if (answer.kind !== 'body') return answer;
    const shared = this.#shared.get(answer.body);
    if (shared !== undefined) return shared;
    if (this.#shared.size >= sharedAnswers || this.#sharedBytes >= sharedAnswersBytes) {
      this.#shared.clear();
      this.#sharedBytes = 0;
    }
    this.#shared.set(answer.body, answer);
    this.#sharedBytes += answer.body.length;
    return answer;
  }

  /**
   * Drops what is older than `operationTtlMs`; entries are in the order of their time.
   * @param nowMs monotonic: a wall clock may step
   */
  expire(nowMs: number): void {
    this.#ranMs += Math.min(nowMs - (this.#expiredAtMs ?? nowMs), longestStepMs);
    this.#expiredAtMs = nowMs;
    for (const kept of [this.#known, this.#unchanged]) {
      for (const [op, one] of kept) {
        if (one.addedAtMs + limits.operationTtlMs > this.#ranMs) break;
        this.#forget(kept, op, one);
      }
    }
  }
}
