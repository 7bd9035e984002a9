/**
 * The cost of agents to their hosts: the same number of containers on many hosts, on fewer, and on
 * one. A cost that is linear in the containers of a host is the same for each container everywhere.
 */
import { sleep } from '../../lib/time/backoff.ts';
import { hostMessagesNow } from '../messages.ts';
import type { Bench, Table } from '../section.ts';
import { figure } from '../statistics.ts';
import { createContainers, listAll, runningIn, until } from './measure.ts';
import { startFleetWorld, type FleetWorld } from './world.ts';

export interface HostPlan {
  /** On all hosts together. */
  readonly containers: number;
  readonly hosts: readonly number[];
  readonly idleMs: number;
}

interface HostRun {
  readonly perHost: number;
  readonly agentMs: number;
  readonly engineMs: number;
  readonly idleCores: number;
  readonly messagesPerSecond: number;
}

/** Few at a time, so that a host hears of its containers one after the other. */
const connections = 4;
const declareDeadlineMs = 120_000;
/** Agents write and report what they did last. */
const settleMs = 3_000;

/** CPU seconds of all agents without their engines, and of the engines. */
async function useNow(world: FleetWorld): Promise<{ readonly agent: number; readonly engine: number }> {
  const { cpuSeconds, engineSeconds } = await world.agentsUse();
  return { agent: cpuSeconds - engineSeconds, engine: engineSeconds };
}

async function runHosts(bench: Bench, hosts: number, { containers, idleMs }: HostPlan): Promise<HostRun> {
  const agentSettings = {
    CAPACITY_CONTAINERS: '1023',
    CAPACITY_CPU_MILLIS: '1000000',
    CAPACITY_MEM_BYTES: String(2 ** 41),
  };
  const world = await startFleetWorld(bench, {
    hosts,
    agentProcesses: 1,
    tenants: 20,
    actors: 1,
    gateways: 1,
    agentSettings,
  });
  try {
    await sleep(settleMs, bench.signal);
    const before = await useNow(world);
    await createContainers(bench, world, { from: 0, count: containers, connections });
    const allRun = async (): Promise<boolean> => (await world.engineCounts()).running >= containers;
    await until(bench, `${containers} containers run on the engines`, declareDeadlineMs, allRun);
    const allListed = async (): Promise<boolean> => runningIn(await listAll(world)) === containers;
    await until(bench, `${containers} containers are running in the API`, declareDeadlineMs, allListed, 500);
    await sleep(settleMs, bench.signal);
    const started = await useNow(world);
    const messages = await hostMessagesNow(world.nats);
    const startMs = performance.now();
    await sleep(idleMs, bench.signal);
    bench.signal.throwIfAborted();
    const seconds = (performance.now() - startMs) / 1000;
    const idle = await useNow(world);
    return {
      perHost: containers / hosts,
      agentMs: ((started.agent - before.agent) * 1000) / containers,
      engineMs: ((started.engine - before.engine) * 1000) / containers,
      idleCores: (idle.agent - started.agent) / seconds / hosts,
      messagesPerSecond: ((await hostMessagesNow(world.nats)) - messages) / seconds / hosts,
    };
  } finally {
    await world.stop();
  }
}

export async function tableOfHosts(bench: Bench, plan: HostPlan): Promise<Table> {
  const runs: HostRun[] = [];
  for (const hosts of plan.hosts) runs.push(await runHosts(bench, hosts, plan));
  return {
    title: `What an agent costs its host: ${plan.containers} containers on ${plan.hosts.join(', ')} hosts`,
    columns: [
      'containers per host',
      'agent ms/start',
      'simulated engine ms/start',
      'agent, idle cores',
      'idle messages/s',
    ],
    rows: runs.map((run) => [
      String(run.perHost),
      figure(run.agentMs),
      figure(run.engineMs),
      figure(run.idleCores),
      figure(run.messagesPerSecond),
    ]),
    remarks: [
      `All agents are in one process, on simulated engines, whose CPU time is counted apart. Agent: CPU of that process without the engines, from the first create until ${settleMs / 1000} s after the last container is listed as running, divided by the containers; ${connections} creates at a time.`,
      `Idle: the next ${plan.idleMs / 1000} s, for each host. Messages: to and from the connections of the hosts, counted by the NATS server.`,
    ],
  };
}
