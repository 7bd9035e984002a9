/** Looks at the engine: all containers of ours, or those of one id. What is not ours is never seen (invariant A4). */
import { isContainerId, type ContainerId } from '../schemas/ids.ts';
import type { Engine } from './docker/engine.ts';
import { foundFrom, labels, observedFrom, type Found, type Observed } from './observed.ts';
import { ownerLabels, type Owner } from './spec.ts';

/** What a list shows of each id, in one string: differs when something worth a look has changed. */
export type Fingerprints = ReadonlyMap<ContainerId, string>;

export async function inventory(engine: Engine, owner: Owner): Promise<Fingerprints> {
  const fingerprints = new Map<ContainerId, string>();
  const summaries = await engine.list(ownerLabels(owner));
  for (const { Id, State, Status, Labels } of summaries.sort((left, right) => (left.Id < right.Id ? -1 : 1))) {
    const id = Labels?.[labels.container] ?? '';
    if (!isContainerId(id)) continue;
    const health = /\((healthy|unhealthy|health: starting)\)/.exec(Status)?.[1] ?? '';
    fingerprints.set(id, `${fingerprints.get(id) ?? ''}${Id} ${State} ${health};`);
  }
  return fingerprints;
}

export async function observe(engine: Engine, owner: Owner, id: ContainerId): Promise<Observed> {
  const summaries = await engine.list({ ...ownerLabels(owner), [labels.container]: id });
  const found: Found[] = [];
  for (const { Id } of summaries) {
    const inspection = await engine.inspect(Id);
    const each = inspection === undefined ? undefined : foundFrom(inspection);
    if (each !== undefined) found.push(each);
  }
  return observedFrom(found);
}
