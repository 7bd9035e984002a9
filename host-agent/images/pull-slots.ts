/**
 * Which pull is next. Places go round over tenants, and neither a tenant nor a registry can hold
 * all of them: one that is slow holds up its own. Pure.
 */
import type { TenantId } from '../../schemas/ids.ts';

export interface PullAsk {
  /** Who asked for it first. */
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

/**
 * The one of `waiting` that may begin beside those that are running: of the tenant, then the
 * registry, with fewest.
 */
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
