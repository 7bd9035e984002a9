/**
 * Containers that should run and have no host, by tenant and by kind: those of a kind need the same
 * of a host, so they find room together or not at all. A sweep looks at one of each kind.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { WaitingByTenant, type Waiting } from '../tenant/turns.ts';
import type { Alike } from '../turn.ts';
import { movesFrom } from './moving.ts';

/** Everything that decides where a container may go, and whether it is to go there. */
export function kindOf(record: ContainerRecord): string {
  // Each move has its own times.
  if (movesFrom(record) !== undefined) return record.id;
  const { tenant, spec, desired, observed, placement, rejections } = record;
  const from = placement.phase === 'placed' ? `${placement.host} ${placement.chosenBy}` : '-';
  const needs = [spec.cpu_limit, spec.mem_limit, spec.ports.length, record.diskBytes, spec.registry];
  return [tenant, ...needs, desired, observed.status, from, ...rejections.map(({ host }) => host)].join(' ');
}

const isWaiting = ({ desired, placement }: ContainerRecord): boolean =>
  desired === 'running' && placement.phase === 'unplaced';

interface Kind extends Alike {
  readonly containers: Map<ContainerId, ContainerRecord>;
}

export class WaitingContainers {
  readonly #kinds = new WaitingByTenant<Kind>();

  get kinds(): Waiting<Alike> {
    return this.#kinds;
  }

  add(record: ContainerRecord): void {
    if (!isWaiting(record)) return;
    const { tenant, id } = record;
    const name = kindOf(record);
    let kind = this.#kinds.get(tenant, name);
    if (kind === undefined) this.#kinds.put(tenant, name, (kind = { tenant, name, containers: new Map() }));
    kind.containers.set(id, record);
  }

  /** @param record as it was added */
  delete(record: ContainerRecord): void {
    if (!isWaiting(record)) return;
    const { tenant, id } = record;
    const name = kindOf(record);
    const kind = this.#kinds.get(tenant, name);
    kind?.containers.delete(id);
    if (kind?.containers.size === 0) this.#kinds.delete(tenant, name);
  }

  served({ tenant, name }: Alike): void {
    this.#kinds.served(tenant, name);
  }
}
