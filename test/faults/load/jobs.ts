/**
 * Jobs with the policy `never`: each client makes one after another, starts it, and updates, stops
 * or starts it again while it runs or after its end.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { Random } from '../../actors/support/random.ts';
import type { World } from '../world/world.ts';
import { createPlainClient, type PlainClient } from './plain-client.ts';
import { compute, containerIn } from './requests.ts';
import { jobsTenant, jobTag } from './tenants.ts';
import type { Load } from './updates.ts';

/** Requests about a job, as far as they bound its runs. */
export interface Job {
  readonly id: string;
  /**
   * Most runs of each version: one for its update, and one for each start while it may be declared.
   */
  readonly mayRun: Map<string, number>;
  /** A start was answered with success. */
  wasStarted: boolean;
  /** A stop was sent, and may have been executed. */
  wasStopped: boolean;
}

export interface JobsLoad extends Load {
  /** All that were made, those that are deleted too. */
  readonly jobs: readonly Job[];
}

const clients = 3;
/** Jobs that one client keeps; it deletes the oldest. */
const keptMost = 3;
const runMaxMs = 3_000;
const pauseMaxMs = 2_000;
const exitCodes = [0, 0, 3] as const;

export function startJobs(world: World, randomOf: () => Random): JobsLoad {
  const jobs: Job[] = [];
  const stopping = new AbortController();
  const { signal } = stopping;
  let tagsMade = 0;

  const work = async (index: number, random: Random): Promise<void> => {
    const client = await createPlainClient(world, jobsTenant, index);
    const newTag = (): string =>
      jobTag({ afterMs: random.below(runMaxMs), exitCode: random.pick(exitCodes) }, (tagsMade += 1));
    const kept: Job[] = [];
    for (let count = 0; !signal.aborted; count++) {
      const job = await create(client, `j${index}-${count}`, newTag(), signal);
      if (job === undefined) {
        await sleep(pauseMaxMs, signal);
        continue;
      }
      jobs.push(job.job);
      kept.push(job.job);
      await job.start();
      await sleep(random.below(pauseMaxMs), signal);
      const dice = random.below(6);
      if (dice <= 2) await job.update(newTag());
      if (dice === 2) await job.update(newTag());
      if (dice === 3) await job.stop();
      if (dice >= 3 && dice <= 4) await job.start();
      await sleep(random.below(pauseMaxMs), signal);
      if (kept.length > keptMost) {
        await client.insist({ method: 'DELETE', path: `${compute}/${kept.shift()!.id}` }, signal);
      }
    }
    client.close();
  };

  const working = Promise.all(Array.from({ length: clients }, (_, index) => work(index, randomOf())));
  // `stop` awaits it and throws.
  working.catch(() => undefined);
  return {
    jobs,
    stop: async () => {
      stopping.abort();
      await working;
    },
  };
}

async function create(client: PlainClient, name: string, tag: string, signal: AbortSignal) {
  const body = { name, registry: 'registry.test', repository: jobsTenant, tag, cpu_limit: '0.1', mem_limit: '16m' };
  const headers = { 'idempotency-key': `jobs-${name}` };
  const created = await client.insist({ method: 'POST', path: `${compute}?start=false`, body, headers }, signal);
  if (created?.kind !== 'done') return undefined;
  const { id } = containerIn(created.body);
  const path = `${compute}/${id}`;
  const policy = await client.insist({ method: 'PUT', path: `${path}/policy`, body: { restart: 'never' } }, signal);
  if (policy?.kind !== 'done') return undefined;

  const job: Job = { id, mayRun: new Map(), wasStarted: false, wasStopped: false };
  /** More than one while the outcome of an update is unknown. */
  let declared: readonly string[] = [tag];
  const allow = (tags: readonly string[], by: number): void => {
    for (const each of tags) job.mayRun.set(each, (job.mayRun.get(each) ?? 0) + by);
  };
  return {
    job,
    start: async (): Promise<void> => {
      const tags = declared;
      allow(tags, 1);
      const outcome = await client.send({ method: 'POST', path: `${path}/start` });
      if (outcome.kind === 'refused') allow(tags, -1);
      job.wasStarted ||= outcome.kind === 'done';
    },
    stop: async (): Promise<void> => {
      const outcome = await client.send({ method: 'POST', path: `${path}/stop` });
      job.wasStopped ||= outcome.kind !== 'refused';
    },
    update: async (next: string): Promise<void> => {
      allow([next], 1);
      const outcome = await client.send({ method: 'PATCH', path, body: { tag: next } });
      if (outcome.kind === 'refused') allow([next], -1);
      if (outcome.kind === 'done') declared = [next];
      if (outcome.kind === 'unknown') declared = [...declared, next];
    },
  };
}
