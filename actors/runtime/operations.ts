/**
 * Outcomes of operations, by operation id: a retry of a write gets the answer of the first. Kept by time, never by count
 * (a ring by count was seen to break under a storm of pauses), and longer than any deadline.
 */
import type { OperationRecord } from '../../schemas/container.ts';
import type { OperationId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';

export interface KnownOperation {
  readonly record: OperationRecord;
  /** Number of the commit that it is part of. */
  readonly commit: number;
}

/** Between two calls of `expire`, no more than this counts. */
const longestStepMs = 3 * limits.sweepIntervalMs;

export class Operations {
  readonly #known = new Map<OperationId, { readonly operation: KnownOperation; readonly addedAtMs: number }>();
  /** Time in which this process ran. While it was stopped nobody was forgotten: a retry from before may be unread yet. */
  #ranMs = 0;
  #expiredAtMs: number | undefined;

  get(op: OperationId): KnownOperation | undefined {
    return this.#known.get(op)?.operation;
  }

  add(operation: KnownOperation): void {
    this.#known.set(operation.record.op, { operation, addedAtMs: this.#ranMs });
  }

  /** Drops what was known for `operationTtlMs`; they stand in the order of their time. Monotonic: a wall clock may step. */
  expire(nowMs: number): void {
    this.#ranMs += Math.min(nowMs - (this.#expiredAtMs ?? nowMs), longestStepMs);
    this.#expiredAtMs = nowMs;
    for (const [op, { addedAtMs }] of this.#known) {
      if (addedAtMs + limits.operationTtlMs > this.#ranMs) return;
      this.#known.delete(op);
    }
  }
}
