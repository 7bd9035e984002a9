/** The values of a secret that containers need, and those that they should be made from. Pure. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { policyOf } from '../../../schemas/api/policy.ts';
import { noSecrets, usesIn, type SecretUse, type SecretUses } from '../../../schemas/api/secret.ts';
import type { TenantView } from '../tenant/state.ts';
import { currentOf, isStaged, type Values } from './state.ts';

/**
 * Above every version that the tenant ever had under the name, also before a delete, and before a
 * restore of an older backup: an incarnation is a time in milliseconds. Hosts keep values by name
 * and version.
 */
export function nextVersion(newest: number | undefined, floor: number, incarnation: number): number {
  return Math.max(newest ?? floor, incarnation) + 1;
}

/**
 * `true` if the container is made from another value than this one, and has not gone back from it:
 * a value that failed is tried again only after the next update.
 */
export function isBehind({ secrets, update }: ContainerRecord, name: string, version: number): boolean {
  const uses = (of: SecretUses | undefined) => (of === undefined ? [] : usesIn(of)).filter((use) => use.name === name);
  const hasFailed = update?.phase === 'rolled_back' && uses(update.to.secrets).some((use) => use.version === version);
  return !hasFailed && uses(secrets).some((use) => use.version !== version);
}

/** The uses of the container, with those that are behind at the current version. */
export const newest = (tenant: TenantView, record: ContainerRecord): SecretUses =>
  raisedIn(tenant, record, record.secrets ?? noSecrets, () => true);

/**
 * The uses of a version that starts now: values that wait for a start are taken. A container that
 * may run once has every newer value: nothing brings one to it later.
 */
export const withStaged = (tenant: TenantView, record: ContainerRecord, uses: SecretUses): SecretUses =>
  raisedIn(tenant, record, uses, policyOf(record).restart === 'never' ? () => true : isStaged);

function raisedIn(
  { secrets }: TenantView,
  record: ContainerRecord,
  { env, files }: SecretUses,
  isMeant: (values: Values | undefined) => boolean,
): SecretUses {
  const raised = <U extends SecretUse>(uses: Readonly<Record<string, U>>): Record<string, U> =>
    Object.fromEntries(
      Object.entries(uses).map(([key, use]) => {
        const values = secrets.values.get(use.name);
        const version = currentOf(values);
        return [
          key,
          version !== undefined && isMeant(values) && isBehind(record, use.name, version) ? { ...use, version } : use,
        ];
      }),
    );
  return { env: raised(env), files: raised(files) };
}
