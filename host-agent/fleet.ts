/**
 * What this host should have, per container: the desired set with admission, orphans and isolation applied. Holds the
 * newest of each; `wanted` answers for one id.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Capacity } from '../schemas/host.ts';
import type { ContainerId } from '../schemas/ids.ts';
import type { DesiredContainer } from '../schemas/messages.ts';
import { admit, type Admission } from './admission.ts';
import { containersOf, heldIdsOf, isComplete, isConfirmed, type DesiredSet } from './desired.ts';
import { judgeOrphans, type OperatorLeave, type OrphanMemory } from './orphans.ts';
import { specHash } from './spec.ts';
import type { Wanted } from './wanted.ts';

interface Entry {
  readonly container: DesiredContainer;
  readonly spec: string;
}

export interface FleetInput {
  readonly capacity: Capacity;
  /** Every container of ours that the engine has, as last seen; undefined before the first look. */
  readonly present: ReadonlySet<ContainerId> | undefined;
  readonly orphanMemory: OrphanMemory;
  readonly leave: OperatorLeave;
  readonly isIsolated: boolean;
  /**
   * No answers are under way. Before that nothing new is judged an orphan: many that are lost together must be seen
   * together, or the first partitions' would pass for a few.
   */
  readonly isSettled: boolean;
  readonly nowMs: number;
}

export interface Fleet {
  /** Takes in a new set. Answers which ids may have changed. */
  setDesired(desired: DesiredSet): ContainerId[];
  /** Judges admission and orphans anew. Answers what is to be remembered of orphans, and whom the verdict changed. */
  judge(input: FleetInput): { readonly orphanMemory: OrphanMemory; readonly changed: ContainerId[] };
  wanted(id: ContainerId): Wanted;
  /** The desired set speaks of it. */
  knows(id: ContainerId): boolean;
  /** Everything that a full look must cover. */
  ids(): ContainerId[];
  used(): Capacity;
  orphansHeld(): number;
  isComplete(): boolean;
}

const nothingAdmitted: Admission = { admitted: new Set(), used: { cpu_millis: 0, mem_bytes: 0, containers: 0 } };

export function createFleet(): Fleet {
  let desired: DesiredSet | undefined;
  let entries: ReadonlyMap<ContainerId, Entry> = new Map();
  let damaged: ReadonlySet<ContainerId> = new Set();
  let admission = nothingAdmitted;
  let approved: ReadonlySet<ContainerId> = new Set();
  let held: ReadonlySet<ContainerId> = new Set();
  let isIsolated = false;

  const setDesired = (next: DesiredSet): ContainerId[] => {
    desired = next;
    const before = entries;
    const fresh = new Map<ContainerId, Entry>();
    const changed: ContainerId[] = [];
    for (const container of containersOf(next)) {
      const known = before.get(container.id);
      if (known !== undefined && isDeepStrictEqual(known.container, container)) {
        fresh.set(container.id, known);
        continue;
      }
      fresh.set(container.id, { container, spec: specHash(container) });
      changed.push(container.id);
    }
    for (const id of before.keys()) if (!fresh.has(id)) changed.push(id);
    const stillDamaged = new Set(heldIdsOf(next));
    changed.push(...difference(damaged, stillDamaged), ...difference(stillDamaged, damaged));
    entries = fresh;
    damaged = stillDamaged;
    return changed;
  };

  const orphansAmong = (present: ReadonlySet<ContainerId> | undefined): ReadonlySet<ContainerId> => {
    if (desired === undefined || present === undefined || !isConfirmed(desired)) return new Set();
    return new Set([...present].filter((id) => !entries.has(id) && !damaged.has(id)));
  };

  const judge: Fleet['judge'] = (input) => {
    const { present, orphanMemory, leave, nowMs } = input;
    const beforeAdmitted = admission.admitted;
    const beforeApproved = approved;
    const wasIsolated = isIsolated;
    isIsolated = input.isIsolated;
    const containers = [...entries.values()].map(({ container }) => container);
    // Who was admitted keeps its place, also while its image is still being pulled.
    const keepsPlace = (id: ContainerId) => present?.has(id) === true || beforeAdmitted.has(id);
    admission = admit(containers, keepsPlace, input.capacity);
    let after = orphanMemory;
    if (input.isSettled) {
      const verdict = judgeOrphans(orphanMemory, orphansAmong(present), present?.size ?? 0, leave, nowMs);
      after = verdict.memory;
      approved = after.approved;
      held = verdict.held;
    }
    const changed = [...difference(approved, beforeApproved), ...difference(admission.admitted, beforeAdmitted)];
    if (wasIsolated !== isIsolated) changed.push(...entries.keys());
    return { orphanMemory: after, changed };
  };

  const wanted = (id: ContainerId): Wanted => {
    if (damaged.has(id)) return { want: 'untouched' };
    const entry = entries.get(id);
    if (entry === undefined) return approved.has(id) ? { want: 'nothing' } : { want: 'untouched' };
    const { container, spec } = entry;
    const want = isIsolated && container.desired === 'running' ? 'stopped' : container.desired;
    return { want, container, spec, admitted: admission.admitted.has(id) };
  };

  return {
    setDesired,
    judge,
    wanted,
    knows: (id) => entries.has(id) || damaged.has(id),
    ids: () => [...entries.keys()],
    used: () => admission.used,
    orphansHeld: () => held.size,
    isComplete: () => desired !== undefined && isComplete(desired),
  };
}

const difference = (left: ReadonlySet<ContainerId>, right: ReadonlySet<ContainerId>): ContainerId[] =>
  [...left].filter((id) => !right.has(id));
