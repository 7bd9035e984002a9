/** Lists this host's containers on the engine. Others never appear (invariant A4). */
import { isTenantId, type ContainerId, type TenantId } from '../../../schemas/ids.ts';
import type { CachedEngine } from '../../docker/cached-engine.ts';
import { healthIn } from '../../docker/answers.ts';
import type { ListedSandbox, SandboxList } from '../../sandbox/sandboxes.ts';
import { sandboxOf } from '../../docker/observed.ts';
import { containerIn, labels, sandboxLabel, tenantIn } from '../../docker/ownership.ts';
import { publishedFrom } from '../../sandbox/shape.ts';

/** A container of this host that the engine has. */
export interface Presence {
  readonly tenant: TenantId;
  /** The newest placement of all containers with this id. */
  readonly placement: number;
  /** The list's entry as one string: it differs if a change calls for a reconciliation. */
  readonly fingerprint: string;
}

export interface Inventory extends SandboxList {
  readonly present: Map<ContainerId, Presence>;
}

export async function inventory(engine: Pick<CachedEngine, 'listAll'>): Promise<Inventory> {
  const present = new Map<ContainerId, Presence>();
  const sandboxes: ListedSandbox[] = [];
  const users = new Map<ContainerId, string>();
  const inUse = new Set<string>();
  const summaries = await engine.listAll();
  for (const summary of summaries.sort((left, right) => (left.Id < right.Id ? -1 : 1))) {
    const { Id, State, Labels, HostConfig, NetworkSettings } = summary;
    const shape = sandboxLabel(Labels);
    if (shape !== undefined) {
      const published = publishedFrom(Labels?.[labels.published]);
      const isRunning = State === 'running';
      const networks = NetworkSettings?.Networks ?? undefined;
      const isCut = isRunning && networks !== undefined && Object.keys(networks).length === 0;
      sandboxes.push({ dockerId: Id, shape, published, isRunning, isCut });
    }
    const sandbox = sandboxOf(HostConfig?.NetworkMode);
    if (sandbox !== undefined) inUse.add(sandbox);
    const id = containerIn(Labels);
    const tenant = tenantIn(Labels);
    const placement = Number(Labels?.[labels.placement] ?? Number.NaN);
    // Without these labels, no agent made it.
    if (id === undefined || !isTenantId(tenant) || !Number.isSafeInteger(placement) || placement < 0) continue;
    const before = present.get(id);
    const last = before?.placement ?? -1;
    // For the copies of an update, this is the one that runs.
    const isUser = placement > last || (placement === last && (State === 'running' || !users.has(id)));
    if (sandbox !== undefined && isUser) users.set(id, sandbox);
    present.set(id, {
      tenant,
      placement: Math.max(placement, before?.placement ?? 0),
      fingerprint: `${before?.fingerprint ?? ''}${Id} ${State} ${healthIn(summary) ?? ''};`,
    });
  }
  return { present, sandboxes, users, inUse };
}
