import type { Stats } from '../../../host-agent/docker/answers.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import type { Rig } from './rig.ts';

/**
 * Stats of a running container by the engine itself; `undefined` if the engine can't read the
 * cgroups of its containers, so that there is nothing to compare with.
 */
export async function engineStats({ engine }: Rig, id: ContainerId): Promise<Stats | undefined> {
  const { Id } = await engine.only(id);
  const { text } = await engine.call('GET', `/containers/${Id}/stats?stream=false&one-shot=true`);
  const stats = JSON.parse(text) as Stats;
  return stats.memory_stats.usage === undefined ? undefined : stats;
}

export const notCompared = 'not compared: this engine has no figures of its containers';
