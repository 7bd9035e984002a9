/** A fleet of real agents on simulated engines, and what it costs the control plane. */
import { say } from '../../dev/steps.ts';
import type { Bench, Section, Table } from '../section.ts';
import { figure } from '../statistics.ts';
import { declareAll, footprintOf, idleFor, killAndLoad } from './measure.ts';
import type { Declared, Footprint, Idle, Reload } from './measure.ts';
import { tableOfHosts, type HostPlan } from './one-host.ts';
import { startFleetWorld, type FleetSize, type FleetWorld } from './world.ts';

export interface FleetRun {
  readonly size: FleetSize;
  readonly declared: Declared;
  readonly empty: Footprint;
  readonly full: Footprint;
  readonly idle: Idle;
  readonly reload: Reload;
}

export interface FleetPlan {
  readonly size: FleetSize;
  readonly containers: number;
  readonly declareDeadlineMs: number;
  /** Creates a second at most; by default as many as are answered. */
  readonly perSecond?: number;
  readonly idleMs: number;
  /** Time to watch after the kill; longer than the longest interval between an agent's syncs. */
  readonly watchMs: number;
}

/** @param measureBeside further measurements, made before the kill while all containers run */
export async function runFleet<T>(
  bench: Bench,
  plan: FleetPlan,
  measureBeside: (world: FleetWorld, declared: Declared) => Promise<T>,
): Promise<{ readonly run: FleetRun; readonly beside: T }> {
  const { size, containers, perSecond } = plan;
  say(`· ${size.hosts} hosts, ${size.actors} actors, ${size.gateways} gateways …`);
  const world = await startFleetWorld(bench, size);
  try {
    const empty = await footprintOf(world);
    say(`· ${containers} containers …`);
    const creates = { from: 0, count: containers, ...(perSecond === undefined ? {} : { perSecond }) };
    const declared = await declareAll(bench, world, creates, plan.declareDeadlineMs);
    say(`· accepted ${figure(declared.acceptedPerSecond)}/s, running ${figure(declared.runningPerSecond)}/s`);
    const idle = await idleFor(bench, world, plan.idleMs);
    const full = await footprintOf(world);
    const beside = await measureBeside(world, declared);
    const reload = await killAndLoad(bench, world, plan.watchMs);
    say(
      `· actors killed: ready after ${seconds(reload.readyMs)}, every tenant served after ${seconds(reload.servedMs)}`,
    );
    return { run: { size, declared, empty, full, idle, reload }, beside };
  } finally {
    await world.stop();
  }
}

export const kilobytes = (bytes: number): string => `${figure(bytes / 1024)} KiB`;
const cores = (share: number): string => `${figure(share)} cores`;
const perStart = ({ count }: Declared, used: number): string => `${figure((used * 1000) / count)} ms`;
const seconds = (ms: number): string => `${figure(ms / 1000)} s`;

export const perContainer = (run: FleetRun, of: (footprint: Footprint) => number): number =>
  (of(run.full) - of(run.empty)) / run.declared.count;

export const cpuWords = ({ cpu, seconds: took }: Declared): string =>
  Object.entries(cpu)
    .map(([role, used]) => `${role} ${figure(used / took)}`)
    .join(', ');

export const refusedWords = (refused: Readonly<Record<string, number>>): string =>
  Object.entries(refused)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ') || 'none';

export const settingsWords = (settings: Readonly<Record<string, string>>): string =>
  Object.entries(settings)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');

/** CPU seconds of the control plane from the first create to the last container that runs. */
export const controlPlaneSeconds = ({ cpu }: Pick<Declared, 'cpu'>): number =>
  cpu.actors + cpu.gateway + cpu['nats-server'];

/** @param half further containers, declared at half of the rate that all reached */
function tableOf(run: FleetRun, half: Declared): Table {
  const { declared, idle, reload, size } = run;
  return {
    title: `A fleet of ${size.hosts} hosts and ${declared.count} containers`,
    columns: ['', 'figure'],
    rows: [
      ['accepted', `${figure(declared.acceptedPerSecond)}/s`],
      ['declared and running', `${figure(declared.runningPerSecond)}/s`],
      ['create, p50 / p99', `${figure(declared.acceptP50Ms)} / ${figure(declared.acceptP99Ms)} ms`],
      ['declare → running, p50', seconds(declared.toRunningP50Ms)],
      ['declare → running, p99', seconds(declared.toRunningP99Ms)],
      ['at half of that rate: declare → running, p50', seconds(half.toRunningP50Ms)],
      ['at half of that rate: declare → running, p99', seconds(half.toRunningP99Ms)],
      ['control plane: CPU per container', perStart(declared, controlPlaneSeconds(declared))],
      ['control plane: running/s for each core it used', figure(declared.count / controlPlaneSeconds(declared))],
      ['agents: CPU per container', perStart(declared, declared.agents.agentSeconds)],
      ['simulated engines: CPU per container', perStart(declared, declared.agents.engineSeconds)],
      ['actors: heap per container', kilobytes(perContainer(run, ({ actors }) => actors.heapBytes))],
      ['actors: resident per container', kilobytes(perContainer(run, ({ actors }) => actors.residentBytes))],
      ['NATS: state per container', kilobytes(perContainer(run, ({ stored }) => stored.stateBytes))],
      ['NATS: events per container', kilobytes(perContainer(run, ({ stored }) => stored.eventBytes))],
      ['NATS: on disk per container', kilobytes(perContainer(run, ({ stored }) => stored.diskBytes))],
      ['NATS: resident per container', kilobytes(perContainer(run, ({ natsResidentBytes }) => natsResidentBytes))],
      ['idle: actors', cores(idle.cpu.actors)],
      ['idle: gateways', cores(idle.cpu.gateway)],
      ['idle: NATS', cores(idle.cpu['nats-server'])],
      ['idle: messages to NATS', `${figure(idle.takenPerSecond)}/s`],
      ['idle: messages from NATS', `${figure(idle.givenPerSecond)}/s`],
      ['all actors killed → ready again', seconds(reload.readyMs)],
      ['all actors killed → every tenant served', seconds(reload.servedMs)],
      ['containers running before and after', `${declared.count + half.count} / ${reload.stillRunning}`],
    ],
    remarks: [
      `Actors processes: ${size.actors}, gateways: ${size.gateways}, one nats-server (fsync of every write), Redis; ${size.tenants} tenants; one request in flight on each of 256 connections.`,
      `Real: gateways, actors and NATS, and for each host its enrolment, keys, NATS connection and agent (${settingsWords(size.agentSettings ?? {}) || 'at its default intervals'}). Simulated: the Docker engines (in the agents’ process, without HTTP; each call is answered at once, images are present, containers write no log) and the hosts’ disks (in memory).`,
      `Cores in use from the first create to the last running container: ${cpuWords(declared)}. Agents are a cost of the hosts, but run on the same two cores here.`,
      `Answers that were not a success, repeated with the same Idempotency-Key: ${refusedWords(declared.refused)}.`,
      'Declare → running: from the event `created` of each container to its first event `running`. After the kill no agent created or removed a container. Per container: the difference from the same fleet without containers.',
    ],
  };
}

const minutes = 60_000;

const plans = {
  short: {
    size: {
      hosts: 10,
      agentProcesses: 1,
      tenants: 20,
      actors: 1,
      gateways: 1,
      agentSettings: { SYNC_INTERVAL: '5s' },
    },
    containers: 1_000,
    declareDeadlineMs: 1 * minutes,
    idleMs: 3_000,
    watchMs: 8_000,
  },
  full: {
    size: { hosts: 1_000, agentProcesses: 4, tenants: 200, actors: 1, gateways: 1 },
    containers: 100_000,
    declareDeadlineMs: 8 * minutes,
    idleMs: 20_000,
    watchMs: 40_000,
  },
} as const satisfies Record<string, FleetPlan>;

const hostPlans = {
  short: { containers: 100, hosts: [10, 1], idleMs: 3_000 },
  full: { containers: 1_000, hosts: [100, 10, 1], idleMs: 40_000 },
} as const satisfies Record<string, HostPlan>;

export const fleet: Section = {
  name: 'fleet',
  run: async (bench) => {
    const plan = bench.isShort ? plans.short : plans.full;
    const containers = Math.min(plan.containers, bench.largestFleet);
    const { run, beside: half } = await runFleet(
      bench,
      { ...plan, containers },
      async (world, { runningPerSecond }) => {
        const creates = { from: containers, count: containers / 10, perSecond: runningPerSecond / 2 };
        say(`· ${creates.count} more, ${figure(creates.perSecond)} a second …`);
        return declareAll(bench, world, creates, plan.declareDeadlineMs);
      },
    );
    return {
      tables: [tableOf(run, half), await tableOfHosts(bench, bench.isShort ? hostPlans.short : hostPlans.full)],
    };
  },
};
