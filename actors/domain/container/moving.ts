/** A container on its way from one host to another (ADR 32), as its record has it. Pure. */
import type { ContainerRecord, Leaving, MoveView, Preparation } from '../../../schemas/api/container.ts';
import type { SpecPlan } from '../../../schemas/api/spec.ts';
import type { HostKey } from '../../../schemas/ids.ts';

/** The host of its placement. */
export const hostOf = ({ placement }: ContainerRecord): HostKey | undefined =>
  placement.phase === 'placed' ? placement.host : undefined;

/** The copy that another host gets ready; `undefined` if there is none, or if it was given up. */
export function preparationOf({ preparing, placement, desired }: ContainerRecord): Preparation | undefined {
  if (preparing === undefined || preparing.givenUp !== undefined) return undefined;
  if (placement.phase !== 'placed' || desired !== 'running') return undefined;
  // A release that knows nothing of preparations has placed it since.
  return preparing.since > placement.since ? preparing : undefined;
}

/** The host that it was moved from, and that has not reported yet that it has stopped it. */
export function leavingOf({ leaving, placement }: ContainerRecord): Leaving | undefined {
  if (leaving === undefined) return undefined;
  return placement.phase === 'placed' && placement.host === leaving.host ? undefined : leaving;
}

/** Hosts beside that of the placement whose desired set has the container. */
export function otherHostsOf(record: ContainerRecord): HostKey[] {
  const hosts = [preparationOf(record)?.host, leavingOf(record)?.host];
  return hosts.filter((host) => host !== undefined);
}

/** The host that a move under way takes it from. */
export function movesFrom(record: ContainerRecord): HostKey | undefined {
  const leaving = leavingOf(record);
  if (leaving !== undefined) return leaving.host;
  return preparationOf(record) === undefined ? undefined : hostOf(record);
}

/** The host that its tenant last asked for, or where it is. */
export function declaredHostOf(record: ContainerRecord): HostKey | undefined {
  const preparing = preparationOf(record);
  return preparing?.chosenBy === 'tenant' ? preparing.host : hostOf(record);
}

/** The host that it is moving to, or where it is. */
const targetOf = (record: ContainerRecord): HostKey | undefined => preparationOf(record)?.host ?? hostOf(record);

/** The move to another host that a write makes; `undefined` if it makes none. */
export function moveIn(before: ContainerRecord, after: ContainerRecord): SpecPlan['move'] {
  const from = hostOf(before);
  const to = targetOf(after);
  if (from === undefined || to === undefined || to === targetOf(before)) return undefined;
  return { from, to, volumes: [...(before.observed.volumes ?? [])] };
}

/**
 * The move as it is shown; `undefined` if none is under way, and none that its tenant asked for has
 * failed.
 */
export function moveView(record: ContainerRecord): MoveView | undefined {
  const { placement, preparing } = record;
  if (placement.phase !== 'placed') return undefined;
  if (leavingOf(record) !== undefined) return { host_key: placement.host, phase: 'stopping', reason: null };
  if (preparing === undefined) return undefined;
  const { host: host_key, generation, givenUp = null } = preparing;
  const asked = { host_key, ...(generation === undefined ? {} : { generation }) };
  if (preparationOf(record) !== undefined) return { ...asked, phase: 'preparing', reason: null };
  return preparing.chosenBy === 'tenant' && givenUp !== null
    ? { ...asked, phase: 'failed', reason: givenUp }
    : undefined;
}
