/**
 * Decides which pull is next. Places rotate over tenants, and no tenant and no registry can take
 * them all: a slow registry delays its own pulls. Pure.
 */
import type { TenantId } from '../../schemas/ids.ts';

export interface PullAsk {
  /** The tenant that asked first. */
  readonly tenant: TenantId;
  readonly registry: string;
  /** Rises with every ask. */
  readonly order: number;
}

export interface PullBounds {
  readonly places: number;
  readonly perTenant: number;
  readonly perRegistry: number;
}

/** The waiting pull to begin now: of the tenant, then the registry, with the fewest running. */
export function nextPull<A extends PullAsk>(
  waiting: readonly A[],
  running: readonly PullAsk[],
  bounds: PullBounds,
): A | undefined {
  if (running.length >= bounds.places) return undefined;
  const ofTenant = countBy(running, ({ tenant }) => tenant);
  const ofRegistry = countBy(running, ({ registry }) => registry);
  const isFree = ({ tenant, registry }: PullAsk): boolean =>
    ofTenant(tenant) < bounds.perTenant && ofRegistry(registry) < bounds.perRegistry;
  return waiting
    .filter(isFree)
    .toSorted(
      (left, right) =>
        ofTenant(left.tenant) - ofTenant(right.tenant) ||
        ofRegistry(left.registry) - ofRegistry(right.registry) ||
        left.order - right.order,
    )[0];
}

function countBy(asks: readonly PullAsk[], keyOf: (ask: PullAsk) => string): (key: string) => number {
  const counts = new Map<string, number>();
  for (const ask of asks) counts.set(keyOf(ask), (counts.get(keyOf(ask)) ?? 0) + 1);
  return (key) => counts.get(key) ?? 0;
}
