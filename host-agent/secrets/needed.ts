/** The boxes that this host may need again. Pure. */
import { noSecrets, usesIn } from '../../schemas/api/secret.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { BoxKey } from './boxes.ts';

export function neededBoxes(versions: readonly DesiredContainer[]): BoxKey[] {
  return versions.flatMap(({ tenant, registry, secrets = noSecrets }): BoxKey[] => [
    { tenant, registry },
    ...usesIn(secrets).map(({ name, version }) => ({ tenant, secret: { name, version } })),
  ]);
}
