/** Which registries a tenant's images may come from. Pure. */
import type { FieldErrors } from '../../schemas/errors.ts';
import type { Region } from '../../schemas/ids.ts';
import { judgeRegistry } from '../../schemas/registry.ts';
import type { TenantRecord } from '../../schemas/tenant.ts';

/** Null: all that the host allows. Its agent looks once more before each pull, and there at addresses too. */
const rulesOf = (tenant: TenantRecord, region: Region): readonly string[] | null =>
  Object.hasOwn(tenant.regionRegistries ?? {}, region)
    ? (tenant.regionRegistries?.[region] ?? null)
    : (tenant.registries ?? null);

export function isRegistryAllowed(tenant: TenantRecord, region: Region, registry: string): boolean {
  const rules = rulesOf(tenant, region);
  return rules === null || judgeRegistry(registry, rules) !== 'refused';
}

export const registryRefusal: FieldErrors = {
  registry: ['is not allowed; use a registry that the operator allows this tenant, or ask for this one'],
};
