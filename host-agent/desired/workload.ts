/**
 * The workload of this host: the desired set with admission, orphans and isolation applied. A sync
 * passes on the owners' answers; the workload keeps the newest of each, evaluates it again when
 * something changes that it depends on, and emits the ids of the containers that are affected.
 * `wanted` answers for one id.
 */
import { EventEmitter } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../lib/log.ts';
import type { Capacity } from '../../schemas/api/host.ts';
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import { asVersion, type DesiredContainer, type Stranger } from '../../schemas/wire/host.ts';
import { Admissions } from './admission.ts';
import { emptyDesired, heldIdsOf, isComplete, isConfirmed, type DesiredSet } from './desired-set.ts';
import { judgeOrphans, type OrphanState, type OwnersVerdict } from './orphans.ts';
import { specHash } from '../spec/create-body.ts';
import { imagesOf, versionsOf, type DeclaredVersion, type Updating, type Wanted } from './wanted.ts';

type Entry = DeclaredVersion & Partial<Updating>;

function entryOf(container: DesiredContainer): Entry {
  const version = { container, spec: specHash(container) };
  if (container.update === undefined) return version;
  const { update, ...rest } = container;
  const previous = asVersion(rest, update.previous);
  return { ...version, update: { since: update.since, previous: { container: previous, spec: specHash(previous) } } };
}

/** The containers of this host on the engine, as last observed. */
export type Present = ReadonlyMap<ContainerId, { readonly tenant: TenantId; readonly placement: number }>;

interface WorkloadParts {
  readonly cluster: string;
  /** Keeps the desired set on disk. */
  readonly store: { save(desired: DesiredSet): void };
  readonly capacity: () => Capacity;
  /** `undefined` before the engine has listed its containers. */
  readonly present: { all(): Present | undefined };
  /** Keeps the operator's approvals of orphans on disk. */
  readonly orphans: { orphans(): OrphanState; setOrphans(state: OrphanState): void };
  readonly log: Log;
}

interface WorkloadEvents {
  /** An ask for the desired set is about to be sent. */
  asked: [];
  /**
   * The desired set has changed for these containers. From `disk` it comes when the agent starts,
   * then from its owners.
   */
  desired: [ids: readonly ContainerId[], from: 'disk' | 'owners'];
  /** The goal of these containers may have changed. */
  changed: [ids: readonly ContainerId[]];
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
  readonly events: EventEmitter<WorkloadEvents>;
  /** The desired set. */
  desired(): DesiredSet;
  /** An ask for the desired set is about to be sent. */
  asked(): void;
  /** Takes in a new set. */
  accept(desired: DesiredSet, from: 'disk' | 'owners'): void;
  /**
   * No sync answers are outstanding: what is absent from the set now may be an orphan. Until then
   * an operator's approval does not cover new orphans.
   */
  settled(): void;
  /** The number of the operator's latest approval of held orphans. */
  approveOrphans(word: number): void;
  /** @param isIsolated no container may run here: this host is cut off, superseded or fenced */
  isolate(isIsolated: boolean): void;
  /**
   * Evaluates admission and orphans again.
   * @param touched containers that may have come or gone on the engine; `any`: it was listed
   */
  evaluate(touched: readonly ContainerId[] | 'any'): void;
  /** The goal of a container, as far as it is known now. */
  wanted(id: ContainerId): Wanted;
  /** Containers on the engine that the desired set does not name; those without a verdict first. */
  strangers(): Stranger[];
  /** Strangers without a verdict. */
  unjudged(): Stranger[];
  /**
   * Takes in the owner's verdict on the named strangers, for the version of the set that is known.
   */
  applyVerdicts(named: readonly Stranger[], gone: readonly Pick<Stranger, 'id' | 'placement'>[]): void;
  /** `true` if the desired set names the container, or names it as damaged. */
  knows(id: ContainerId): boolean;
  /** All ids that a full reconciliation must cover. */
  ids(): ContainerId[];
  /** References of the images that this host should run. */
  images(): string[];
  /** The versions that this host should have, or may roll back to; `undefined` if not known yet. */
  versions(): readonly DesiredContainer[] | undefined;
  used(): Capacity;
  orphansHeld(): number;
}

export function createWorkload({ cluster, store, capacity, orphans, log, ...parts }: WorkloadParts): Workload {
  const events = new EventEmitter<WorkloadEvents>();
  let desired = emptyDesired(cluster);
  const entries = new Map<ContainerId, Entry>();
  let damaged: ReadonlySet<ContainerId> = new Set();
  const admissions = new Admissions();
  /** Containers whose desired state has changed since the last evaluation. */
  const changedHere = new Set<ContainerId>();
  /** Containers on the engine that the desired set does not name. */
  let strange: Set<ContainerId> = new Set();
  let present: Present | undefined;
  const verdicts = new Map<ContainerId, Verdict>();
  /** Orphans that go: their owner gave them away, or an operator approved. */
  let leaving: ReadonlySet<ContainerId> = new Set();
  let held: ReadonlySet<ContainerId> = new Set();
  let isIsolated = false;
  /** As of the last evaluation. */
  let wasIsolated = false;
  let isSettled = false;
  let orphanApproval: number | null = null;

  const takeInSet = (next: DesiredSet): ContainerId[] => {
    const before = desired;
    desired = next;
    const changed = new Set<ContainerId>();
    for (const [partition, set] of next.sets) {
      const known = before.sets.get(partition);
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
  /** `undefined` if no verdict covers the container that is there now. */
  const verdictOf = (id: ContainerId): OwnersVerdict | undefined => {
    const verdict = verdicts.get(id);
    const placement = present?.get(id)?.placement;
    if (verdict === undefined || placement === undefined) return undefined;
    return placement <= verdict.placement ? verdict.verdict : undefined;
  };

  const evaluate: Workload['evaluate'] = (candidates) => {
    const orphanState = orphans.orphans();
    present = parts.present.all();
    const beforeLeaving = leaving;
    const touched = candidates === 'any' ? undefined : new Set([...candidates, ...changedHere]);
    changedHere.clear();
    const admitted = admissions.judge(touched, {
      containers: () => Array.from(entries.values(), ({ container }) => container),
      get: (id) => entries.get(id)?.container,
      isPresent: (id) => present?.has(id) === true,
      capacity: capacity(),
    });

    if (touched === undefined) strange = new Set([...(present?.keys() ?? [])].filter((id) => !isKnown(id)));
    for (const id of touched ?? []) strange[present?.has(id) === true && !isKnown(id) ? 'add' : 'delete'](id);
    const strangers = [...strange];
    for (const id of verdicts.keys()) if (present?.has(id) === false) verdicts.delete(id);
    // An approval ends when the container is known again.
    const approved = new Set([...orphanState.approved].filter((id) => !isKnown(id)));
    const heldBefore = held.size;
    let after: OrphanState = { ...orphanState, approved };
    let allowed: ReadonlySet<ContainerId> = new Set([...approved].filter((id) => beforeLeaving.has(id)));
    if (isSettled && isConfirmed(desired) && present !== undefined) {
      const said = new Map<ContainerId, OwnersVerdict>();
      for (const id of strangers) {
        const verdict = verdictOf(id);
        if (verdict !== undefined) said.set(id, verdict);
      }
      const judgement = judgeOrphans(after, new Set(strangers), said, orphanApproval);
      after = judgement.state;
      allowed = after.approved;
      held = judgement.held;
    }
    leaving = new Set(strangers.filter((id) => verdictOf(id) === 'gone' || allowed.has(id)));
    const changed = [...difference(leaving, beforeLeaving), ...admitted];
    if (wasIsolated !== isIsolated) changed.push(...entries.keys());
    wasIsolated = isIsolated;
    orphans.setOrphans(after);
    if (held.size !== heldBefore) log.warn('orphans_held', { orphans: held.size, present: present?.size });
    events.emit('changed', changed);
  };

  const strangerOf = (id: ContainerId): Stranger[] => {
    const found = present?.get(id);
    return found === undefined ? [] : [{ id, tenant: found.tenant, placement: found.placement }];
  };
  const unjudged = (): Stranger[] =>
    [...strange].filter((id) => !isKnown(id) && verdictOf(id) === undefined).flatMap(strangerOf);

  const applyVerdicts: Workload['applyVerdicts'] = (named, gone) => {
    const given = new Map(gone.map(({ id, placement }) => [id, placement]));
    for (const { id, placement } of named) {
      if (isKnown(id)) continue;
      // Moved to the end: the next ask names the oldest verdicts first.
      verdicts.delete(id);
      verdicts.set(id, { verdict: given.get(id) === placement ? 'gone' : 'unknown', placement });
    }
    evaluate([]);
  };

  const wanted = (id: ContainerId): Wanted => {
    if (damaged.has(id)) return { want: 'ignored' };
    const entry = entries.get(id);
    if (entry === undefined) return leaving.has(id) ? { want: 'nothing' } : { want: 'ignored' };
    return { want: wantOf(entry.container, isIsolated), ...entry, admitted: admissions.has(id) };
  };

  return {
    events,
    desired: () => desired,
    asked: () => void events.emit('asked'),
    accept: (next, from) => {
      if (from === 'owners') store.save(next);
      const changed = takeInSet(next);
      events.emit('desired', changed, from);
      isSettled = false;
      evaluate([]);
      events.emit('changed', changed);
    },
    settled: () => {
      if (isSettled) return;
      isSettled = true;
      evaluate([]);
    },
    approveOrphans: (word) => {
      if (word === orphanApproval) return;
      orphanApproval = word;
      evaluate([]);
    },
    isolate: (next) => {
      if (next === isIsolated) return;
      isIsolated = next;
      evaluate([]);
    },
    evaluate,
    wanted,
    strangers: () => {
      const judged = [...verdicts.keys()].filter((id) => !isKnown(id) && verdictOf(id) !== undefined);
      return [...unjudged(), ...judged.flatMap(strangerOf)];
    },
    unjudged,
    applyVerdicts,
    knows: isKnown,
    ids: () => [...entries.keys()],
    images: () => [...entries.keys()].flatMap((id) => imagesOf(wanted(id))),
    versions: () => (isComplete(desired) ? [...entries.keys()].flatMap((id) => versionsOf(wanted(id))) : undefined),
    used: () => admissions.used(),
    orphansHeld: () => held.size,
  };
}

function wantOf({ desired, prepare }: DesiredContainer, isIsolated: boolean) {
  if (desired === 'stopped' && prepare === true) return 'prepared' as const;
  return isIsolated && desired === 'running' ? ('stopped' as const) : desired;
}

const difference = (left: ReadonlySet<ContainerId>, right: ReadonlySet<ContainerId>): ContainerId[] =>
  [...left].filter((id) => !right.has(id));
