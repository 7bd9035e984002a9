/** The boxes that this host may need again. Pure. */
import { noSecrets, usesIn } from '../../schemas/api/secret.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { SealedKey } from './sealed-cache.ts';

export function neededSealed(versions: readonly DesiredContainer[]): SealedKey[] {
  return versions.flatMap(({ tenant, registry, secrets = noSecrets }): SealedKey[] => [
    { tenant, registry },
    ...usesIn(secrets).map(({ name, version }) => ({ tenant, secret: { name, version } })),
  ]);
}
