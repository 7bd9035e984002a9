/**
 * The phases of a fleet's measurement: declare all containers, wait until they run, measure the
 * cost, kill the actors and time their restart.
 */
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { sleep } from '../../lib/time/backoff.ts';
import type { Bench } from '../section.ts';
import { quantile } from '../statistics.ts';
import type { Generated, GeneratorTask } from './generator.ts';
import {
  cpuBetween,
  cpuNow,
  livesOf,
  residentBytes,
  settledMemory,
  storedNow,
  type CpuSeconds,
  type Memory,
  type Stored,
} from './observe.ts';
import { messagesNow } from '../messages.ts';
import { each, type FleetWorld } from './world.ts';

const pollMs = 100;
/** Longer than a gateway's own deadline. */
const readDeadlineMs = 15_000;
const connectionsOfAll = 256;
/** Body of every create, without the name. */
const containerBody = { repository: 'bench/app', tag: '1', env: { PORT: '8080' } };

/** Runs the generator. Rejects if an answer is not a success after all retries. */
export function generate(bench: Bench, task: GeneratorTask): Promise<Generated> {
  const ended = new AbortController();
  return new Promise<Generated>((resolve, reject) => {
    const worker = new Worker(join(import.meta.dirname, 'generator.js'), { workerData: task });
    const abort = (): void => reject(new Error('interrupted'));
    // A run has one signal and many generators.
    bench.signal.addEventListener('abort', abort, { once: true, signal: ended.signal });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the load generator ended without a result')));
  }).finally(() => ended.abort());
}

export interface Creates {
  /** Number of the first one; those below are there already. */
  readonly from: number;
  readonly count: number;
  /** Creates a second at most; by default as many as are accepted. */
  readonly perSecond?: number;
  readonly connections?: number;
}

export const createContainers = (
  bench: Bench,
  world: FleetWorld,
  { connections = connectionsOfAll, ...creates }: Creates,
): Promise<Generated> =>
  generate(bench, {
    ports: world.gatewayPorts,
    connections,
    tokens: world.tokens,
    work: { kind: 'create', body: containerBody, ...creates },
  });

interface Listed {
  readonly id: string;
  readonly status: string;
}

/** All containers of each tenant, as the API lists them. */
export async function listAll(world: FleetWorld): Promise<Listed[][]> {
  const all: Listed[][] = world.tokens.map(() => []);
  await each(world.tokens, async (token, tenant) => {
    const list = '/api/v2/compute?limit=100';
    for (let path: string | undefined = list; path !== undefined;) {
      const answer = await fetch(world.api.baseUrl + path, {
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(readDeadlineMs),
      });
      if (!answer.ok) throw new Error(`list: ${answer.status}`);
      const page = (await answer.json()) as { data: Listed[]; next_cursor?: string };
      all[tenant]?.push(...page.data.map(({ id, status }) => ({ id, status })));
      path = page.next_cursor === undefined ? undefined : `${list}&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
  });
  return all;
}

export const runningIn = (lists: readonly (readonly Listed[])[]): number =>
  lists.flat().filter(({ status }) => status === 'running').length;

/** Polls until `look` resolves to true. */
export async function until(
  bench: Bench,
  what: string,
  deadlineMs: number,
  look: () => Promise<boolean>,
  everyMs = pollMs,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await look())) {
    bench.signal.throwIfAborted();
    if (performance.now() > end) throw new Error(`${what}: not within ${deadlineMs} ms`);
    await sleep(everyMs, bench.signal);
  }
}

export interface Declared {
  readonly count: number;
  readonly acceptedPerSecond: number;
  readonly acceptP50Ms: number;
  readonly acceptP99Ms: number;
  readonly refused: Readonly<Record<string, number>>;
  readonly runningPerSecond: number;
  readonly toRunningP50Ms: number;
  readonly toRunningP99Ms: number;
  /** Time from the first create to the last running container. */
  readonly seconds: number;
  readonly cpu: CpuSeconds;
  /** The agents' processes: seconds of the simulated engines, and of everything else. */
  readonly agents: { readonly agentSeconds: number; readonly engineSeconds: number };
}

/** Declares containers, and waits until they run on the engines and in the API. */
export async function declareAll(
  bench: Bench,
  world: FleetWorld,
  creates: Creates,
  deadlineMs: number,
): Promise<Declared> {
  const { from, count } = creates;
  const [before, agentsBefore] = [cpuNow(world), await world.agentsUse()];
  const generated = await createContainers(bench, world, creates);
  const allRun = async (): Promise<boolean> => (await world.engineCounts()).running >= from + count;
  await until(bench, `${from + count} containers run on the engines`, deadlineMs, allRun);
  const [cpu, agentsAfter] = [cpuBetween(before, cpuNow(world)), await world.agentsUse()];
  const engineSeconds = agentsAfter.engineSeconds - agentsBefore.engineSeconds;
  const agentSeconds = agentsAfter.cpuSeconds - agentsBefore.cpuSeconds - engineSeconds;
  const allListed = async (): Promise<boolean> => runningIn(await listAll(world)) === from + count;
  await until(bench, `${from + count} containers are running in the API`, deadlineMs, allListed, 1_000);
  const lives = await livesOf(world.nats, count, generated.startedAtMs);
  const seconds = (lives.lastRunningAtMs - generated.startedAtMs) / 1000;
  return {
    count,
    acceptedPerSecond: (count * 1000) / generated.elapsedMs,
    acceptP50Ms: quantile(generated.tookMs, 0.5),
    acceptP99Ms: quantile(generated.tookMs, 0.99),
    refused: generated.refused,
    runningPerSecond: count / seconds,
    toRunningP50Ms: quantile(lives.tookMs, 0.5),
    toRunningP99Ms: quantile(lives.tookMs, 0.99),
    seconds,
    cpu,
    agents: { agentSeconds, engineSeconds },
  };
}

export interface Footprint {
  readonly actors: Memory;
  readonly gatewayResidentBytes: number;
  readonly natsResidentBytes: number;
  readonly stored: Stored;
}

export const footprintOf = async (world: FleetWorld): Promise<Footprint> => ({
  actors: await settledMemory(world),
  gatewayResidentBytes: residentBytes(world, 'gateway'),
  natsResidentBytes: residentBytes(world, 'nats-server'),
  stored: await storedNow(world.nats),
});

export interface Idle {
  /** CPU seconds per second. */
  readonly cpu: CpuSeconds;
  readonly takenPerSecond: number;
  readonly givenPerSecond: number;
}

export async function idleFor(bench: Bench, world: FleetWorld, forMs: number): Promise<Idle> {
  const [messages, cpu, startMs] = [await messagesNow(world.nats), cpuNow(world), performance.now()];
  await sleep(forMs, bench.signal);
  bench.signal.throwIfAborted();
  const used = cpuBetween(cpu, cpuNow(world));
  const seconds = (performance.now() - startMs) / 1000;
  const after = await messagesNow(world.nats);
  return {
    cpu: Object.fromEntries(Object.entries(used).map(([role, one]) => [role, one / seconds])) as CpuSeconds,
    takenPerSecond: (after.taken - messages.taken) / seconds,
    givenPerSecond: (after.given - messages.given) / seconds,
  };
}

export interface Reload {
  /** Time from the start of the processes until all are ready. */
  readonly readyMs: number;
  /** Time from the kill until a read of every tenant is answered. */
  readonly servedMs: number;
  readonly stillRunning: number;
}

/**
 * Kills all actors processes, starts them again, and waits `watchMs` for every agent to sync.
 * @throws if an agent created or removed a container because of that
 */
export async function killAndLoad(bench: Bench, world: FleetWorld, watchMs: number): Promise<Reload> {
  const before = await world.engineCounts();
  const startMs = performance.now();
  const readyMs = await world.restartActors();
  const readsAnswer = async (): Promise<boolean> => {
    let isServed = true;
    await each(world.tokens, async (token) => {
      const answer = await fetch(`${world.api.baseUrl}/api/v2/compute/quota`, {
        headers: { authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(readDeadlineMs),
      });
      isServed &&= answer.ok;
    });
    return isServed;
  };
  await until(bench, 'reads of every tenant are answered', 120_000, readsAnswer);
  const servedMs = performance.now() - startMs;
  await sleep(watchMs, bench.signal);
  const after = await world.engineCounts();
  const [made, removed] = [after.created - before.created, after.removed - before.removed];
  if (made + removed > 0) throw new Error(`after the kill agents created ${made} containers and removed ${removed}`);
  return { readyMs, servedMs, stillRunning: runningIn(await listAll(world)) };
}
