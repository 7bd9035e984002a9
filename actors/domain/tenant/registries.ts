/** The registries that a tenant's images may come from. Pure. */
import type { ContainerSpec } from '../../../schemas/api/fields/container.ts';
import type { FieldErrors } from '../../../schemas/errors.ts';
import type { Region } from '../../../schemas/ids.ts';
import { judgeRegistry } from '../../../schemas/api/registry.ts';
import type { TenantRecord } from '../../../schemas/api/tenant.ts';

/**
 * `null` if all registries are allowed that the host allows. Its agent checks again before each
 * pull, addresses too.
 */
const rulesOf = ({ registries = null, regionRegistries }: TenantRecord, region: Region): readonly string[] | null =>
  regionRegistries !== undefined && Object.hasOwn(regionRegistries, region)
    ? (regionRegistries[region] ?? null)
    : registries;

function isRegistryAllowed(tenant: TenantRecord, region: Region, registry: string): boolean {
  const rules = rulesOf(tenant, region);
  return rules === null || judgeRegistry(registry, rules) !== 'refused';
}

/**
 * Those of the regions in which its image may be pulled. A container without an image needs none.
 */
export const regionsThatMayPull = (
  tenant: TenantRecord,
  regions: readonly Region[],
  { registry, repository }: ContainerSpec,
): readonly Region[] =>
  repository === null ? regions : regions.filter((region) => isRegistryAllowed(tenant, region, registry));

export const registryRefusal: FieldErrors = {
  registry: [
    'is not allowed for this tenant in any region where the container may run; name another registry, or ask an operator to allow this one',
  ],
};
