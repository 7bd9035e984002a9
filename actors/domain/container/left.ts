/**
 * Hosts on which a container has left data: the content of its volumes stays there for a time (ADR
 * 46). Pure.
 */
import type { ContainerRecord, LeftBehind } from '../../../schemas/api/container.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { TurnContext } from '../turn.ts';
import { hostOf } from './moving.ts';

/** Newest first. Builds before 0.2.0 changed only the newest, and left the others as they were. */
const allOf = ({ left, leftBefore = [] }: ContainerRecord): LeftBehind[] =>
  left === undefined ? [...leftBefore] : [left, ...leftBefore.filter(({ host }) => host !== left.host)];

/**
 * The record on another host, or on none for now, with the data that it leaves behind. Data on the
 * host that it comes back to is remembered: it may leave again before its copy reports it.
 */
export function movedTo(record: ContainerRecord, host: HostKey | undefined, { nowMs }: TurnContext): ContainerRecord {
  const from = hostOf(record);
  const hasLeftNone = record.left === undefined && record.leftBefore === undefined;
  if (from === host || (from === undefined && hasLeftNone && record.observed.volumes === undefined)) return record;
  const { left: _, leftBefore: __, observed, ...rest } = record;
  const { volumes, ...seen } = observed;
  const all = allOf(record);
  const behind = volumes ?? all.find((each) => each.host === from)?.volumes;
  const now =
    from === undefined || behind === undefined
      ? all
      : [{ host: from, volumes: behind, atMs: nowMs }, ...all.filter((each) => each.host !== from)];
  const [newest, ...others] = now.filter((each) => each.host !== host).slice(0, limits.leftHosts);
  const before = [...others, ...now.filter((each) => each.host === host)];
  return {
    ...rest,
    observed: seen,
    ...(newest === undefined ? {} : { left: newest }),
    ...(before.length === 0 ? {} : { leftBefore: before }),
  };
}

/** Other hosts that have data of it, newest first. A host that is not heard has removed none. */
export function leftOn(record: ContainerRecord, { fleet, nowMs }: TurnContext): LeftBehind[] {
  const current = hostOf(record);
  const isThere = ({ host, atMs }: LeftBehind): boolean => {
    const condition = fleet.condition(host);
    return nowMs - atMs < limits.volumesLeftMs || (condition !== 'up' && condition !== 'removed');
  };
  return allOf(record)
    .filter((each) => each.host !== current && isThere(each))
    .slice(0, limits.leftHosts);
}
