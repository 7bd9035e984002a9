/** The outcomes of writes, as a partition stores them. */
import Type, { type Static } from 'typebox';
import type { OutcomeCode } from '../errors.ts';
import type { ContainerId, OperationId, TenantId } from '../ids.ts';

/**
 * The outcome of a write, kept for `operationTtlMs` under the id of the operation, so that a retry
 * gets the same answer. If the body is a container's view, it is not stored but made again from the
 * record.
 */
export const OperationRecord = Type.Object({
  op: Type.Unsafe<OperationId>(Type.String()),
  atMs: Type.Number(),
  // Any text: a release may go back to the one before while newer outcomes are stored.
  code: Type.Unsafe<OutcomeCode>(Type.String()),
  answer: Type.Union([
    Type.Object({
      kind: Type.Literal('container'),
      tenant: Type.Unsafe<TenantId>(Type.String()),
      id: Type.Unsafe<ContainerId>(Type.String()),
    }),
    Type.Object({ kind: Type.Literal('body'), body: Type.String() }),
  ]),
});
export type OperationRecord = Readonly<Static<typeof OperationRecord>>;
