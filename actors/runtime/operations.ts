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

export class Operations {
  readonly #known = new Map<OperationId, KnownOperation>();

  get(op: OperationId): KnownOperation | undefined {
    return this.#known.get(op);
  }

  add(record: OperationRecord, commit: number): void {
    this.#known.set(record.op, { record, commit });
  }

  /** Drops what is older than `operationTtlMs`; they stand in the order of their time. */
  expire(nowMs: number): void {
    for (const [op, { record }] of this.#known) {
      if (record.atMs + limits.operationTtlMs > nowMs) return;
      this.#known.delete(op);
    }
  }
}
