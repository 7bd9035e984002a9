/** A3: commit precedes every reply and every effect that depends on it. */
import type { Guard } from '../mutant.ts';

export const a3: readonly Guard[] = [
  {
    name: 'reply before its commit',
    guard: 'Commit precedes every reply',
    file: 'actors/runtime/partition.ts',
    changes: [
      {
        in: 'Partition.#commit',
        replace: 'group.answer(draft.tenant, reply.body.length, this.#waiterOf(write, reply))',
        by: 'this.#waiterOf(write, reply)(true)',
      },
    ],
    killedBy: 'simulation',
  },
  {
    name: 'read before the commit',
    guard: 'A read of an uncommitted value waits for the commit',
    file: 'actors/runtime/partition.ts',
    changes: [{ in: 'Partition.#read', replace: 'commits.dirtyUntil(domain.dirtyKeyOf(ask))', by: '0' }],
    killedBy: 'simulation',
  },
  {
    name: 'verdict answered before its commit',
    guard: 'A host learns that its container was given away only after the commit',
    file: 'actors/runtime/partition.ts',
    changes: [{ in: 'Partition.#look', replace: 'dirtyKeys(state).map', by: 'dirtyKeys(state).slice(0, 1).map' }],
    killedBy: 'test/actors/runtime/partition.test.ts',
  },
  {
    name: 'unknown outcome taken as a commit',
    guard: 'A write whose outcome is unknown is not acknowledged',
    file: 'actors/runtime/store/fence.ts',
    changes: [{ in: 'Fence.write', replace: "outcome.kind === 'written'", by: "outcome.kind !== 'fenced'" }],
    killedBy: 'test/actors/runtime/store/fence.test.ts',
  },
  {
    name: 'checkpoint mark moved early',
    guard: 'The mark moves in one batch with the values that it covers (ADR 4)',
    file: 'actors/runtime/journal/checkpoint.ts',
    changes: [{ in: 'batchWrites', replace: 'markAt(last)', by: 'markAt(last + 1)' }],
    killedBy: 'simulation',
  },
  {
    name: 'events not awaited before the mark',
    guard: 'Events are published before the mark moves, or parked with it (ADR 12)',
    file: 'actors/runtime/journal/checkpoint.ts',
    changes: [{ in: 'startCheckpointer.keepEvents', replace: 'outbox.park(entry)', by: '[]' }],
    killedBy: 'test/actors/runtime/events/event-outbox.test.ts',
  },
  {
    name: 'report acknowledged before its commit',
    guard: 'A report is acknowledged when all of it is committed',
    file: 'actors/endpoints/hosts/report.ts',
    changes: [{ in: 'takingIn.onCommitted', replace: '--turnsLeft === 0', by: '--turnsLeft >= 0' }],
    killedBy: 'test/integration/actors/partitions/blocks.test.ts',
  },
  {
    name: 'line of the audit left out of the commit',
    guard: 'A line of the audit is in the commit of what it tells of (ADR 42)',
    file: 'actors/runtime/journal/group.ts',
    changes: [
      {
        in: 'Group.take',
        replace: 'this.#lines.push(outgoing)',
        by: 'void outgoing',
      },
    ],
    killedBy: 'test/actors/runtime/audit.test.ts',
  },
  {
    name: 'refusal answered before its line is committed',
    guard: 'The answer to a refused write waits for the commit of its line (ADR 42)',
    file: 'actors/runtime/partition.ts',
    changes: [
      {
        in: 'Partition.#answerUnchanged',
        replace: 'group.answer(draft.tenant, reply.body.length, this.#waiterOf(write, reply))',
        by: 'this.#waiterOf(write, reply)(true)',
      },
    ],
    killedBy: 'test/actors/runtime/audit.test.ts',
  },
];
