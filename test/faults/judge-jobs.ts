/**
 * Judges the jobs with the policy `never`: no version ran more often than it was asked to, and the
 * status of each says how its last run ended.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { ContainerStatusView } from '../../schemas/api/container.ts';
import { settledFaults } from './asking.ts';
import { grouped } from './check/items.ts';
import type { Run } from './engine/programs.ts';
import type { Judgement } from './judge.ts';
import type { Job } from './load/jobs.ts';
import { compute } from './load/requests.ts';
import { jobsTenant } from './load/tenants.ts';
import type { World } from './world/world.ts';

const decodeList = decoder(Type.Object({ data: Type.Array(Type.Object({ id: Type.String() })) }));
const decodeStatus = decoder(Type.Object({ data: ContainerStatusView }));

type Status = Pick<ContainerStatusView, 'status' | 'reason' | 'message' | 'exit_code'>;

/** Versions that ran too often. @param runs of this job, in the order of their starts */
export function runFaults({ id, mayRun }: Job, runs: readonly Run[]): string[] {
  return [...grouped(runs, ({ tag }) => tag)].flatMap(([tag, its]) => {
    const may = mayRun.get(tag) ?? 0;
    return its.length <= may ? [] : [`${id}: ${tag} was started ${its.length} times, and asked to ${may} times`];
  });
}

const isUnknown = (message: Status['message']): boolean => message?.includes('nobody knows') === true;

/** True if the status may be said of the last of these runs. */
function isHonest({ status, reason, message, exit_code: code }: Status, job: Job, last: Run | undefined): boolean {
  const isAtRest = status === 'stopped' && reason === null;
  if (last === undefined) return !job.wasStarted || job.wasStopped ? isAtRest || status === 'pending' : false;
  if (last.end === undefined) return false;
  const { by, exitCode } = last.end;
  // It may have ended by itself meanwhile.
  if (last.wasAsked && exitCode === 0 && code === null && status === 'failed') return isUnknown(message);
  if (job.wasStopped && isAtRest) return true;
  const tags = [...job.mayRun.keys()];
  const isReplaced = tags.slice(0, -1).includes(last.tag);
  // The agent was about to stop it for another version, and cannot know that it came too late.
  const isUnclear = status === 'failed' && code === null && isUnknown(message);
  if (isReplaced && by === 'itself' && (isUnclear || isOfAgentsStop({ status, code, message }))) return true;
  switch (by) {
    case 'itself':
      return exitCode === 0
        ? status === 'stopped' && reason === 'completed' && code === 0
        : status === 'failed' && reason === 'exited' && code === exitCode;
    case 'hand':
      return status === 'failed' && (code === exitCode || isUnknown(message));
    case 'agent':
      return isOfAgentsStop({ status, code, message });
  }
}

const isOfAgentsStop = ({ status, code, message }: Pick<Status, 'status' | 'message'> & { code: number | null }) =>
  status === 'failed' && code === null && message?.startsWith('stopped before its end') === true;

export function statusFaults(job: Job, runs: readonly Run[], status: Status): string[] {
  const last = runs.at(-1);
  if (isHonest(status, job, last)) return [];
  const end = last === undefined ? 'it never ran' : `its last run is ${JSON.stringify(last)}`;
  const { reason, message, exit_code } = status;
  const said = JSON.stringify({ status: status.status, reason, message, exit_code });
  const { wasStarted, wasStopped } = job;
  return [`${job.id} says ${said}; ${end}; asked: ${JSON.stringify({ wasStarted, wasStopped })}`];
}

export async function judgeJobs(world: World, jobs: readonly Job[]): Promise<Judgement> {
  const runs = grouped(world.engine.programs.runs, ({ container }) => container);
  const faults = await settledFaults(world, async (askerOf) => {
    const ask = await askerOf(jobsTenant);
    const existing = new Set((await ask(compute, decodeList)).data.map(({ id }) => id));
    const found: string[] = [];
    for (const job of jobs) {
      const its = runs.get(job.id) ?? [];
      found.push(...runFaults(job, its));
      if (!existing.has(job.id)) continue;
      const { data: status } = await ask(`${compute}/${job.id}/status`, decodeStatus);
      found.push(...statusFaults(job, its, status));
    }
    return found;
  });
  const count = jobs.reduce((sum, { id }) => sum + (runs.get(id)?.length ?? 0), 0);
  return { what: `${jobs.length} jobs ran ${count} times, none too often, and say how they ended`, faults };
}
