/**
 * The workload of this host: the desired set with admission, orphans and isolation applied. Keeps
 * the newest of each; `wanted` answers for one id.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Capacity } from '../../schemas/api/host.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import type { DesiredContainer, Stranger } from '../../schemas/wire/host.ts';
import { Admissions } from './admission.ts';
import { heldIdsOf, isComplete, isConfirmed, type DesiredSet } from './desired.ts';
import { judgeOrphans, type OrphanState, type OwnersVerdict } from './orphans.ts';
import { specHash } from '../spec/create-body.ts';
import type { DeclaredVersion, Updating, Wanted } from './wanted.ts';

type Entry = DeclaredVersion & Partial<Updating>;

function entryOf(container: DesiredContainer): Entry {
  const version = { container, spec: specHash(container) };
  if (container.update === undefined) return version;
  // What the version before may have lacked.
  const { update, policy: _, secrets: __, ...rest } = container;
  const previous = { ...rest, ...update.previous };
  return { ...version, update: { since: update.since, previous: { container: previous, spec: specHash(previous) } } };
}

/** Every container of this host on the engine, as last seen. */
export type Present = ReadonlyMap<ContainerId, { readonly tenant: TenantId; readonly placement: number }>;

export interface WorkloadInput {
  readonly capacity: Capacity;
  /** Undefined before the first look. */
  readonly present: Present | undefined;
  /** Those that may have come or gone on the engine since the last judgement; undefined: any. */
  readonly touched: readonly ContainerId[] | undefined;
  readonly orphanState: OrphanState;
  /** The number of the operator's latest approval of held orphans; null: not known yet. */
  readonly orphanWord: number | null;
  readonly isIsolated: boolean;
  /**
   * No sync answers are outstanding. Until then an operator's approval does not cover new orphans.
   */
  readonly isSettled: boolean;
}

/**
 * The owner's verdict on a stranger: it covers containers made under this placement or an earlier
 * one.
 */
interface Verdict {
  readonly verdict: OwnersVerdict;
  readonly placement: number;
}

export interface Workload {
  /** Takes in a new set. Returns the ids that may have changed. */
  setDesired(desired: DesiredSet): ContainerId[];
  /** Judges admission and orphans again. Returns the new orphan state and the ids that changed. */
  judge(input: WorkloadInput): { readonly orphanState: OrphanState; readonly changed: ContainerId[] };
  wanted(id: ContainerId): Wanted;
  /** Containers on the engine that the desired set does not name; those without a verdict first. */
  strangers(): Stranger[];
  /** Strangers without a verdict. */
  unjudged(): Stranger[];
  /**
   * Takes in the owner's verdict on the named strangers, for the version of the set that is known.
   */
  hearVerdicts(named: readonly Stranger[], gone: readonly Pick<Stranger, 'id' | 'placement'>[]): void;
  /** The desired set names it, or names it as damaged. */
  knows(id: ContainerId): boolean;
  /** Everything that a full look must cover. */
  ids(): ContainerId[];
  used(): Capacity;
  orphansHeld(): number;
  isComplete(): boolean;
}

export function createWorkload(): Workload {
  let desired: DesiredSet | undefined;
  const entries = new Map<ContainerId, Entry>();
  let damaged: ReadonlySet<ContainerId> = new Set();
  const admissions = new Admissions();
  /** Containers whose desired state has changed since the last judgement. */
  const changedHere = new Set<ContainerId>();
  /** Containers on the engine that the desired set does not name. */
  let strange: Set<ContainerId> = new Set();
  let present: Present | undefined;
  const verdicts = new Map<ContainerId, Verdict>();
  /** Orphans that go: their owner gave them away, or an operator approved. */
  let leaving: ReadonlySet<ContainerId> = new Set();
  let held: ReadonlySet<ContainerId> = new Set();
  let isIsolated = false;

  const setDesired = (next: DesiredSet): ContainerId[] => {
    const before = desired;
    desired = next;
    const changed = new Set<ContainerId>();
    for (const [partition, set] of next.sets) {
      const known = before?.sets.get(partition);
      // Most syncs change one partition of many.
      if (known?.containers !== set.containers) takeIn(known?.containers ?? [], set.containers, changed);
    }
    const stillDamaged = new Set(heldIdsOf(next));
    for (const id of [...difference(damaged, stillDamaged), ...difference(stillDamaged, damaged)]) changed.add(id);
    damaged = stillDamaged;
    for (const id of changed) changedHere.add(id);
    // A container that is this host's again is no stranger; if it leaves again, the agent asks its
    // owner again.
    for (const id of verdicts.keys()) if (isKnown(id)) verdicts.delete(id);
    return [...changed];
  };

  /** Takes in the containers of one partition, and adds the ids of those that are not as before. */
  const takeIn = (
    before: readonly DesiredContainer[],
    next: readonly DesiredContainer[],
    changed: Set<ContainerId>,
  ): void => {
    const left = new Set(before.map(({ id }) => id));
    for (const container of next) {
      left.delete(container.id);
      const known = entries.get(container.id)?.container;
      if (known === container || (known !== undefined && isDeepStrictEqual(known, container))) continue;
      entries.set(container.id, entryOf(container));
      changed.add(container.id);
    }
    for (const id of left) {
      entries.delete(id);
      changed.add(id);
    }
  };

  const isKnown = (id: ContainerId): boolean => entries.has(id) || damaged.has(id);
  /** Undefined: no verdict covers the container that is there now. */
  const verdictOf = (id: ContainerId): OwnersVerdict | undefined => {
    const verdict = verdicts.get(id);
    const placement = present?.get(id)?.placement;
    if (verdict === undefined || placement === undefined) return undefined;
    return placement <= verdict.placement ? verdict.verdict : undefined;
  };

  const judge: Workload['judge'] = (input) => {
    const { orphanState, orphanWord } = input;
    ({ present } = input);
    const beforeLeaving = leaving;
    const wasIsolated = isIsolated;
    isIsolated = input.isIsolated;
    const touched = input.touched === undefined ? undefined : new Set([...input.touched, ...changedHere]);
    changedHere.clear();
    const admitted = admissions.judge(touched, {
      containers: () => Array.from(entries.values(), ({ container }) => container),
      get: (id) => entries.get(id)?.container,
      isPresent: (id) => present?.has(id) === true,
      capacity: input.capacity,
    });

    if (touched === undefined) strange = new Set([...(present?.keys() ?? [])].filter((id) => !isKnown(id)));
    for (const id of touched ?? []) strange[present?.has(id) === true && !isKnown(id) ? 'add' : 'delete'](id);
    const strangers = [...strange];
    for (const id of verdicts.keys()) if (present?.has(id) === false) verdicts.delete(id);
    // An approval ends when the container is known again.
    const approved = new Set([...orphanState.approved].filter((id) => !isKnown(id)));
    let after: OrphanState = { ...orphanState, approved };
    let allowed: ReadonlySet<ContainerId> = new Set([...approved].filter((id) => beforeLeaving.has(id)));
    if (input.isSettled && desired !== undefined && isConfirmed(desired) && present !== undefined) {
      const said = new Map<ContainerId, OwnersVerdict>();
      for (const id of strangers) {
        const verdict = verdictOf(id);
        if (verdict !== undefined) said.set(id, verdict);
      }
      const judgement = judgeOrphans(after, new Set(strangers), said, orphanWord);
      after = judgement.state;
      allowed = after.approved;
      held = judgement.held;
    }
    leaving = new Set(strangers.filter((id) => verdictOf(id) === 'gone' || allowed.has(id)));
    const changed = [...difference(leaving, beforeLeaving), ...admitted];
    if (wasIsolated !== isIsolated) changed.push(...entries.keys());
    return { orphanState: after, changed };
  };

  const strangerOf = (id: ContainerId): Stranger[] => {
    const found = present?.get(id);
    return found === undefined ? [] : [{ id, tenant: found.tenant, placement: found.placement }];
  };
  const unjudged = (): Stranger[] =>
    [...strange].filter((id) => !isKnown(id) && verdictOf(id) === undefined).flatMap(strangerOf);

  const hearVerdicts: Workload['hearVerdicts'] = (named, gone) => {
    const given = new Map(gone.map(({ id, placement }) => [id, placement]));
    for (const { id, placement } of named) {
      if (isKnown(id)) continue;
      // Moved to the end: the next ask names the oldest verdicts first.
      verdicts.delete(id);
      verdicts.set(id, { verdict: given.get(id) === placement ? 'gone' : 'unknown', placement });
    }
  };

  const wanted = (id: ContainerId): Wanted => {
    if (damaged.has(id)) return { want: 'untouched' };
    const entry = entries.get(id);
    if (entry === undefined) return leaving.has(id) ? { want: 'nothing' } : { want: 'untouched' };
    return { want: wantOf(entry.container, isIsolated), ...entry, admitted: admissions.has(id) };
  };

  return {
    setDesired,
    judge,
    wanted,
    strangers: () => {
      const judged = [...verdicts.keys()].filter((id) => !isKnown(id) && verdictOf(id) !== undefined);
      return [...unjudged(), ...judged.flatMap(strangerOf)];
    },
    unjudged,
    hearVerdicts,
    knows: isKnown,
    ids: () => [...entries.keys()],
    used: () => admissions.used(),
    orphansHeld: () => held.size,
    isComplete: () => desired !== undefined && isComplete(desired),
  };
}

function wantOf({ desired, prepare }: DesiredContainer, isIsolated: boolean) {
  if (desired === 'stopped' && prepare === true) return 'prepared' as const;
  return isIsolated && desired === 'running' ? ('stopped' as const) : desired;
}

const difference = (left: ReadonlySet<ContainerId>, right: ReadonlySet<ContainerId>): ContainerId[] =>
  [...left].filter((id) => !right.has(id));
