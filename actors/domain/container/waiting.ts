/**
 * Containers that a sweep gives another host, by tenant and by kind: those of a kind need the same
 * of a host, so they find room together or not at all. A sweep looks at one of each kind.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import { WaitingByTenant, type Waiting } from '../tenant/turns.ts';
import type { Alike, Departure } from '../turn.ts';
import { hostOf, leavingOf, movesFrom, preparationOf } from './moving.ts';
import { isRunningOnce } from './runs.ts';
import { isUpdating } from './updates.ts';

/** Everything that decides where a container may go, and whether it is to go there. */
export function kindOf(record: ContainerRecord): string {
  // Each move has its own times.
  if (movesFrom(record) !== undefined) return record.id;
  const { tenant, spec, desired, observed, placement, rejections } = record;
  const stays = `${isRunningOnce(record)} ${isUpdating(record)}`;
  const from = placement.phase === 'placed' ? `${placement.host} ${placement.chosenBy} ${stays}` : '-';
  const needs = [spec.cpu_limit, spec.mem_limit, spec.ports.length, record.diskBytes, spec.registry];
  return [tenant, ...needs, desired, observed.status, from, ...rejections.map(({ host }) => host)].join(' ');
}

interface Kind extends Alike {
  readonly containers: Map<ContainerId, ContainerRecord>;
}

class Kinds {
  readonly #kinds = new WaitingByTenant<Kind>();

  get waiting(): Waiting<Alike> {
    return this.#kinds;
  }

  add(name: string, record: ContainerRecord): Kind {
    const { tenant, id } = record;
    let kind = this.#kinds.get(tenant, name);
    if (kind === undefined) this.#kinds.put(tenant, name, (kind = { tenant, name, containers: new Map() }));
    kind.containers.set(id, record);
    return kind;
  }

  /** @returns the kind, if it has no container any more */
  delete(name: string, { tenant, id }: ContainerRecord): Kind | undefined {
    const kind = this.#kinds.get(tenant, name);
    kind?.containers.delete(id);
    if (kind?.containers.size !== 0) return undefined;
    this.drop(kind);
    return kind;
  }

  drop({ tenant, name }: Kind): void {
    this.#kinds.delete(tenant, name);
  }

  served({ tenant, name }: Alike): void {
    this.#kinds.served(tenant, name);
  }
}

const isWaiting = ({ desired, placement }: ContainerRecord): boolean =>
  desired === 'running' && placement.phase === 'unplaced';

/** Those that should run and have no host. */
export class WaitingContainers extends Kinds {
  note(record: ContainerRecord): void {
    if (isWaiting(record)) this.add(kindOf(record), record);
  }

  /** @param record as it was noted */
  forget(record: ContainerRecord): void {
    if (isWaiting(record)) this.delete(kindOf(record), record);
  }
}

interface HostThatIsLeft {
  readonly why: Departure['why'];
  /** All of its containers were noted. */
  isWhole: boolean;
  readonly kinds: Set<Kind>;
}

/** Hosts that this container may leave, or be released by. */
function hostsOf(record: ContainerRecord): HostKey[] {
  return [hostOf(record), leavingOf(record)?.host].filter((host) => host !== undefined);
}

/** `true` if the sweep may change what is on the host, or what the host has not released yet. */
function mayLeave(record: ContainerRecord, host: HostKey, why: Departure['why']): boolean {
  const { placement, desired } = record;
  if (placement.phase !== 'placed' || placement.host !== host) return why === 'lost';
  // A host that its tenant chose is kept.
  return placement.chosenBy === 'platform' || (why === 'lost' && (desired === 'removed' || isRunningOnce(record)));
}

const leavingKindOf = (record: ContainerRecord, host: HostKey): string =>
  movesFrom(record) === undefined ? kindOf(record) : `${host} ${record.id}`;

/**
 * Those that another host prepares, each by itself, and those of hosts that are lost, gone or
 * drained. What can't leave its host is not among them, and costs a sweep nothing.
 */
export class LeavingContainers extends Kinds {
  readonly #hosts = new Map<HostKey, HostThatIsLeft>();

  departureFrom(host: HostKey): Pick<HostThatIsLeft, 'why' | 'isWhole'> | undefined {
    return this.#hosts.get(host);
  }

  /** @param departure undefined: the host keeps what it has */
  depart(host: HostKey, departure: Departure | undefined): void {
    let left = this.#hosts.get(host);
    if (left !== undefined && left.why !== departure?.why) {
      for (const kind of left.kinds) this.drop(kind);
      this.#hosts.delete(host);
      left = undefined;
    }
    if (departure === undefined) return;
    const { why, of, isFirst, isLast } = departure;
    if (left === undefined) {
      // Nothing was on the host for a moment, which ended the departure.
      if (!isFirst) return;
      this.#hosts.set(host, (left = { why, isWhole: false, kinds: new Set() }));
    }
    for (const record of of) this.#noteOn(host, left, record);
    left.isWhole ||= isLast;
  }

  note(record: ContainerRecord): void {
    if (preparationOf(record) !== undefined) this.add(record.id, record);
    if (this.#hosts.size === 0) return;
    for (const host of hostsOf(record)) {
      const left = this.#hosts.get(host);
      if (left !== undefined) this.#noteOn(host, left, record);
    }
  }

  #noteOn(host: HostKey, { why, kinds }: HostThatIsLeft, record: ContainerRecord): void {
    if (preparationOf(record) !== undefined || !mayLeave(record, host, why)) return;
    kinds.add(this.add(leavingKindOf(record, host), record));
  }

  /** @param record as it was noted */
  forget(record: ContainerRecord): void {
    if (preparationOf(record) !== undefined) this.delete(record.id, record);
    if (this.#hosts.size === 0) return;
    for (const host of hostsOf(record)) {
      const left = this.#hosts.get(host);
      const kind = left && this.delete(leavingKindOf(record, host), record);
      if (kind !== undefined) left?.kinds.delete(kind);
    }
  }
}
