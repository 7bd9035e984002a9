/**
 * Lists this host's containers on the engine, all or those of one id. Others never appear
 * (invariant A4).
 */
import { isContainerId, isTenantId, type ContainerId, type TenantId } from '../../../schemas/ids.ts';
import type { Engine } from '../../docker/engine.ts';
import { foundFrom, observedFrom, type Found, type Observed } from './observed.ts';
import { labels, type Owner, ownerLabels } from '../../docker/ownership.ts';

/** A container of this host that the engine has. */
export interface Presence {
  readonly tenant: TenantId;
  /** The newest placement of all containers with this id. */
  readonly placement: number;
  /** The list's entry as one string: it differs when a change needs a look. */
  readonly fingerprint: string;
}

export async function inventory(engine: Engine, owner: Owner): Promise<Map<ContainerId, Presence>> {
  const present = new Map<ContainerId, Presence>();
  const summaries = await engine.list(ownerLabels(owner));
  for (const { Id, State, Status, Labels } of summaries.sort((left, right) => (left.Id < right.Id ? -1 : 1))) {
    const id = Labels?.[labels.container] ?? '';
    const tenant = Labels?.[labels.tenant] ?? '';
    const placement = Number(Labels?.[labels.placement] ?? Number.NaN);
    // Without these labels, no agent made it.
    if (!isContainerId(id) || !isTenantId(tenant) || !Number.isSafeInteger(placement) || placement < 0) continue;
    const before = present.get(id);
    const health = /\((healthy|unhealthy|health: starting)\)/.exec(Status)?.[1] ?? '';
    present.set(id, {
      tenant,
      placement: Math.max(placement, before?.placement ?? 0),
      fingerprint: `${before?.fingerprint ?? ''}${Id} ${State} ${health};`,
    });
  }
  return present;
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
