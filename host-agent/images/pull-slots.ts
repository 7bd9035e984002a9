/**
 * Decides which pull is next. Places rotate over tenants, and no tenant and no registry can take
 * them all. A pull that takes long moves to a place aside, so that slow pulls delay their own
 * tenants. Pure.
 */
import type { TenantId } from '../../schemas/ids.ts';

export interface PullAsk {
  /** The tenants that wait for it. */
  readonly tenants: Iterable<TenantId>;
  readonly registry: string;
  /** Rises with every ask. */
  readonly order: number;
}

export interface RunningPull {
  /** The tenant that it counts for. */
  readonly tenant: TenantId;
  readonly registry: string;
  readonly isAside: boolean;
}

export interface PullBounds {
  readonly places: number;
  readonly placesAside: number;
  /** The most pulls of a tenant, aside or not. */
  readonly perTenant: number;
  /** The most pulls from a registry that are not aside. */
  readonly perRegistry: number;
}

/**
 * The waiting pull to begin now, and the tenant that it counts for: the tenant, then the registry,
 * with the fewest running. A tenant that waits for an image does not wait for the places of another
 * tenant that asked for it first.
 */
export function nextPull<A extends PullAsk>(
  waiting: Iterable<A>,
  running: readonly RunningPull[],
  bounds: PullBounds,
): { readonly ask: A; readonly tenant: TenantId } | undefined {
  const inPlaces = running.filter(({ isAside }) => !isAside);
  if (inPlaces.length >= bounds.places) return undefined;
  const ofTenant = countBy(running, ({ tenant }) => tenant);
  const ofRegistry = countBy(inPlaces, ({ registry }) => registry);
  return [...waiting]
    .filter(({ registry }) => ofRegistry(registry) < bounds.perRegistry)
    .flatMap((ask) => [...ask.tenants].map((tenant) => ({ ask, tenant })))
    .filter(({ tenant }) => ofTenant(tenant) < bounds.perTenant)
    .toSorted(
      (left, right) =>
        ofTenant(left.tenant) - ofTenant(right.tenant) ||
        ofRegistry(left.ask.registry) - ofRegistry(right.ask.registry) ||
        left.ask.order - right.ask.order,
    )[0];
}

/** `true` if another pull that takes long may move aside. */
export const hasRoomAside = (running: readonly RunningPull[], { placesAside }: PullBounds): boolean =>
  running.filter(({ isAside }) => isAside).length < placesAside;

function countBy<T>(all: readonly T[], keyOf: (one: T) => string): (key: string) => number {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1);
  return (key) => counts.get(key) ?? 0;
}
