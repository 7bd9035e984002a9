/** A million containers on 10,000 hosts: whether it works on one machine, and what it costs. */
import { performance } from 'node:perf_hooks';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { say } from '../../dev/steps.ts';
import { DrainProgress } from '../../schemas/api/drain.ts';
import type { Bench, Section, Table } from '../section.ts';
import { figure } from '../statistics.ts';
import {
  controlPlaneSeconds,
  cpuWords,
  kilobytes,
  perContainer,
  refusedWords,
  runFleet,
  settingsWords,
  type FleetPlan,
  type FleetRun,
} from './fleet.ts';
import { until } from './measure.ts';
import { cpuBetween, cpuNow } from './observe.ts';
import { each, type FleetWorld } from './world.ts';

interface MillionPlan extends FleetPlan {
  readonly drainedHosts: number;
  readonly drainDeadlineMs: number;
}

const minutes = 60_000;

/** Ten thousand hosts on two cores: each says less often that it is there, and is missed later. */
const agentSettings = { HEARTBEAT_INTERVAL: '1m', SYNC_INTERVAL: '10m' } as const;
const actorsSettings = { HOST_UNKNOWN: '4m' } as const;
const sparing = { areSimulated: true, agentSettings, actorsSettings } as const;

const plans = {
  short: {
    size: { hosts: 20, agentProcesses: 1, tenants: 20, actors: 2, gateways: 1, ...sparing },
    containers: 1_000,
    declareDeadlineMs: 1 * minutes,
    idleMs: 1_000,
    watchMs: 1_000,
    drainedHosts: 2,
    drainDeadlineMs: 1 * minutes,
  },
  full: {
    size: { hosts: 10_000, agentProcesses: 4, tenants: 1_000, actors: 2, gateways: 1, ...sparing },
    containers: 1_000_000,
    declareDeadlineMs: 60 * minutes,
    perSecond: 700,
    idleMs: 60_000,
    watchMs: 660_000,
    drainedHosts: 100,
    drainDeadlineMs: 20 * minutes,
  },
} as const satisfies Record<string, MillionPlan>;

interface Drained {
  readonly hosts: number;
  readonly containers: number;
  readonly seconds: number;
  /** Of actors, gateways and NATS. */
  readonly controlPlaneSeconds: number;
}

const askDeadlineMs = 60_000;
const decodeHost = decoder(
  Type.Object({
    data: Type.Object({ drain: Type.Union([Type.Object({ left: DrainProgress.properties.left }), Type.Null()]) }),
  }),
);

/** With fewer containers, on as many fewer hosts. */
function within(plan: MillionPlan, largest: number): MillionPlan {
  const containers = Math.min(plan.containers, largest);
  const hosts = Math.max(2 * plan.drainedHosts, Math.ceil((plan.size.hosts * containers) / plan.containers));
  return { ...plan, containers, size: { ...plan.size, hosts } };
}

/** Drains the first hosts at once, at the default pace, until no container is left on them. */
async function drain(
  bench: Bench,
  world: FleetWorld,
  { drainedHosts, drainDeadlineMs }: MillionPlan,
): Promise<Drained> {
  const keys = Array.from({ length: drainedHosts }, (_, number) => `h${number}`);
  const hostCall = async (key: string, method: string, body?: object): Promise<number | undefined> => {
    const answer = await fetch(`${world.api.baseUrl}/api/v2/operator/hosts/${key}`, {
      method,
      headers: { authorization: `Bearer ${world.operator}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(askDeadlineMs),
    });
    if (!answer.ok) throw new Error(`${method} ${key}: ${answer.status} ${await answer.text()}`);
    if (method !== 'GET') return undefined;
    return decodeHost(new Uint8Array(await answer.arrayBuffer())).data.drain?.left;
  };
  const [before, cpu, startMs] = [await world.engineCounts(), cpuNow(world), performance.now()];
  await each(keys, async (key) => void (await hostCall(key, 'PATCH', { draining: true })));
  let full = keys;
  const areEmpty = async (): Promise<boolean> => {
    const left = new Set<string>();
    await each(full, async (key) => {
      if ((await hostCall(key, 'GET')) !== 0) left.add(key);
    });
    full = keys.filter((key) => left.has(key));
    return left.size === 0;
  };
  await until(bench, `${drainedHosts} hosts are drained`, drainDeadlineMs, areEmpty, 1_000);
  const seconds = (performance.now() - startMs) / 1000;
  const used = cpuBetween(cpu, cpuNow(world));
  const after = await world.engineCounts();
  if (after.running !== before.running)
    throw new Error(`${before.running} ran before the drain, ${after.running} after`);
  return {
    hosts: drainedHosts,
    containers: after.started - before.started,
    seconds,
    controlPlaneSeconds: controlPlaneSeconds({ cpu: used }),
  };
}

const mib = (bytes: number): string => `${figure(bytes / 1024 ** 2)} MiB`;

const tableOf = (run: FleetRun, drained: Drained): Table => {
  const { declared, idle, reload, size, full } = run;
  return {
    title: `${declared.count.toLocaleString('en-US')} containers on ${size.hosts.toLocaleString('en-US')} hosts`,
    columns: ['', 'figure'],
    rows: [
      ['declared and running', `${figure(declared.runningPerSecond)}/s`],
      ['time until all ran', `${figure(declared.seconds / 60)} min`],
      ['declare → running, p50 / p99', `${figure(declared.toRunningP50Ms)} / ${figure(declared.toRunningP99Ms)} ms`],
      ['control plane: CPU per container', `${figure((controlPlaneSeconds(declared) * 1000) / declared.count)} ms`],
      ['control plane: running/s for each core it used', figure(declared.count / controlPlaneSeconds(declared))],
      ['simulated hosts: CPU per container', `${figure((declared.cpu.agents * 1000) / declared.count)} ms`],
      ['actors: resident, all / per container', residents(run, ({ actors }) => actors.residentBytes)],
      ['actors: heap per container', kilobytes(perContainer(run, ({ actors }) => actors.heapBytes))],
      ['NATS: resident, all / per container', residents(run, ({ natsResidentBytes }) => natsResidentBytes)],
      ['NATS: on disk, all / per container', residents(run, ({ stored }) => stored.diskBytes)],
      ['gateway: resident', mib(full.gatewayResidentBytes)],
      ['idle: actors', `${figure(idle.cpu.actors)} cores`],
      ['idle: gateway', `${figure(idle.cpu.gateway)} cores`],
      ['idle: NATS', `${figure(idle.cpu['nats-server'])} cores`],
      ['idle: messages to NATS', `${figure(idle.takenPerSecond)}/s`],
      [`drain of ${drained.hosts} hosts at once`, `${figure(drained.seconds)} s`],
      ['containers that the drain moved', String(drained.containers)],
      ['drain: control plane, CPU per move', `${figure((drained.controlPlaneSeconds * 1000) / drained.containers)} ms`],
      ['all actors killed → ready again', `${figure(reload.readyMs / 1000)} s`],
      ['all actors killed → every tenant served', `${figure(reload.servedMs / 1000)} s`],
      ['containers running before and after', `${declared.count} / ${reload.stillRunning}`],
    ],
    remarks: [
      `Actors processes: ${size.actors}, gateways: ${size.gateways}, one nats-server (fsync of every write), Redis, ${size.tenants} tenants, and ${size.agentProcesses} processes of simulated hosts, all on the same cores.`,
      'A simulated host has an enrolment, keys, a NATS connection, and the agent’s own code for session, heartbeat, sync and reports. It has no engine: each container is at once as it should be.',
      `Settings that differ from the defaults: ${settingsWords({ ...agentSettings, ...actorsSettings })}. With the defaults 2,000 such hosts, idle, took 0.64 cores of this machine.`,
      `Cores in use from the first create to the last running container: ${cpuWords(declared)}.`,
      `Creates that were not answered with a success, and were repeated after a second: ${refusedWords(declared.refused)}.`,
      'Each host is drained at the default pace (`DRAIN_AT_ONCE`); a move ends when the former host has reported the stop and the other one the start.',
      'Beside it: Nomad’s C1M (2016) made 3,750 a second with five server machines and 5,000 real hosts: 750 for each server. Its jobs were groups of 1,000 tasks; here each container is a request, a record and a place of its own.',
    ],
  };
};

const residents = (run: FleetRun, of: Parameters<typeof perContainer>[1]): string =>
  `${mib(of(run.full))} / ${kilobytes(perContainer(run, of))}`;

export const million: Section = {
  name: 'million',
  run: async (bench) => {
    const plan = within(bench.isShort ? plans.short : plans.full, bench.largestFleet);
    const { run, beside: drained } = await runFleet(bench, plan, (world) => {
      say(`· drain of ${plan.drainedHosts} hosts …`);
      return drain(bench, world, plan);
    });
    return { tables: [tableOf(run, drained)] };
  },
};
