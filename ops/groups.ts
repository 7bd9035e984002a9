/** The commands of the whole `longshore`: those of cli/, and an operator's. */
import { groupsWith, type Group } from '../cli/groups.ts';
import type { FindTarget } from './backup/target.ts';

/**
 * @param findOther finds the cluster where the environment names none; if absent, that is refused
 */
export const groupsWithOps = (findOther?: FindTarget): readonly Group[] =>
  groupsWith(async () => {
    const { addOps } = await import('./commands.ts');
    return (program, terminal) => addOps(program, terminal, findOther);
  });
