/** The boxes that this host may need again. Pure. */
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { BoxKey } from './boxes.ts';

export function neededBoxes(versions: readonly DesiredContainer[]): BoxKey[] {
  return versions.flatMap(({ tenant, registry, secrets }): BoxKey[] => {
    const uses = [...Object.values(secrets?.env ?? {}), ...Object.values(secrets?.files ?? {})];
    return [{ tenant, registry }, ...uses.map(({ name, version }) => ({ tenant, secret: { name, version } }))];
  });
}
