/** Growth of cost with the size of the fleet, and with the number of processes. */
import { perContainer, runFleet, type FleetPlan, type FleetRun } from '../fleet/fleet.ts';
import type { Bench, Plot, Results, Section, Table } from '../section.ts';
import { figure } from '../statistics.ts';
import { measureWork, type Work, type WorkPlan } from './measure.ts';

/** Containers per host and per tenant. */
const containersEach = 100;
const minutes = 60_000;
const MiB = 1024 ** 2;

interface Grown {
  readonly run: FleetRun;
  readonly work: Work;
}

interface GrowthPlan {
  readonly sizes: readonly number[];
  /** Numbers of actors processes and gateways to measure with `shared` containers. */
  readonly processes: readonly number[];
  readonly shared: number;
  readonly idleMs: number;
  readonly work: WorkPlan;
}

const plans = {
  short: { sizes: [200, 400], processes: [1, 2], shared: 200, idleMs: 500, work: { readMs: 300, burst: 50 } },
  full: {
    sizes: [1_000, 10_000, 100_000],
    processes: [1, 2, 4],
    shared: 10_000,
    idleMs: 5_000,
    work: { readMs: 4_000, burst: 2_000 },
  },
} as const satisfies Record<string, GrowthPlan>;

const fleetOf = (containers: number, processes: number, idleMs: number): FleetPlan => ({
  size: {
    hosts: containers / containersEach,
    agentProcesses: containers < 10_000 ? 1 : containers < 100_000 ? 2 : 4,
    tenants: containers / containersEach,
    actors: processes,
    gateways: processes,
  },
  containers,
  declareDeadlineMs: 8 * minutes,
  idleMs,
  watchMs: 0,
});

async function grow(bench: Bench, plan: GrowthPlan, containers: number, processes: number): Promise<Grown> {
  const { run, beside: work } = await runFleet(bench, fleetOf(containers, processes, plan.idleMs), (world) =>
    measureWork(bench, world, plan.work),
  );
  return { run, work };
}

const grownColumns = [
  'accepted/s',
  'running/s',
  'to running p99 ms',
  'reads/s',
  'list of 100 p50 ms',
  'creates/s, full fleet',
  'sync p50 ms',
  'load ms',
] as const;

const grownCells = ({ run: { declared, reload }, work }: Grown): string[] => [
  figure(declared.acceptedPerSecond),
  figure(declared.runningPerSecond),
  figure(declared.toRunningP99Ms),
  figure(work.readsPerSecond),
  figure(work.listP50Ms),
  figure(work.createsPerSecond),
  figure(work.syncP50Ms),
  figure(reload.servedMs),
];

const actorsCpuMs = ({ run: { declared } }: Grown): number => declared.cpu.actors * 1000;

const storedBytes = ({ run }: Grown): number =>
  perContainer(run, ({ stored }) => stored.stateBytes + stored.eventBytes);
const heapBytes = ({ run }: Grown): number => perContainer(run, ({ actors }) => actors.heapBytes);

const sizesTable = (grown: readonly Grown[]): Table => ({
  title: 'Growth of the fleet: one actors process, one gateway, 100 containers per host and per tenant',
  columns: [
    'containers',
    ...grownColumns,
    'actors CPU ms/container',
    'actors KiB/container',
    'NATS KiB/container',
    'idle cores',
  ],
  rows: grown.map((one) => [
    one.run.declared.count.toLocaleString('en-US'),
    ...grownCells(one),
    figure(actorsCpuMs(one) / one.run.declared.count),
    figure(heapBytes(one) / 1024),
    figure(storedBytes(one) / 1024),
    figure(one.run.idle.cpu.actors + one.run.idle.cpu.gateway + one.run.idle.cpu['nats-server']),
  ]),
  remarks: [
    'The fleet of the section `fleet`; agents and load generator run on the same cores.',
    'Sync: one host asks every partition for its whole desired state. Load: from SIGKILL of all actors processes until a read of every tenant is answered, including the time until the dead processes’ leases expire.',
    'Idle: actors, gateways and NATS, with the heartbeats and syncs of all hosts.',
  ],
});

const processesTable = (grown: readonly Grown[], containers: number): Table => ({
  title: `More actors processes and gateways, ${containers.toLocaleString('en-US')} containers`,
  columns: ['of each kind', ...grownColumns],
  rows: grown.map((one) => [String(one.run.size.actors), ...grownCells(one)]),
  remarks: ['With more processes than cores, these figures show the cost of sharing the work, not its gain.'],
});

const plotOf = (grown: readonly Grown[]): Plot => {
  const series = (name: string, value: (one: Grown) => number) => ({
    name,
    points: grown.map((one) => [one.run.declared.count, value(one)] as const),
  });
  return {
    file: 'performance-growth.svg',
    title: 'Cost of a fleet as it grows (slope 1 is linear)',
    xLabel: 'containers',
    yLabel: 'milliseconds, MB',
    series: [
      series('CPU of actors, ms', actorsCpuMs),
      series('load after a kill, ms', ({ run }) => run.reload.servedMs),
      series('list of 100, p50 ms', ({ work }) => work.listP50Ms),
      series('sync of a host, ms', ({ work }) => work.syncP50Ms),
      series('actors’ heap, MB', (one) => (heapBytes(one) * one.run.declared.count) / MiB),
      series('in NATS, MB', (one) => (storedBytes(one) * one.run.declared.count) / MiB),
    ],
  };
};

async function runGrowth(bench: Bench): Promise<Results> {
  const plan: GrowthPlan = bench.isShort ? plans.short : plans.full;
  const sizes: Grown[] = [];
  for (const containers of plan.sizes.filter((size) => size <= bench.largestFleet))
    sizes.push(await grow(bench, plan, containers, 1));
  const shared: Grown[] = [];
  for (const processes of plan.processes) {
    const known = processes === 1 ? sizes.find(({ run }) => run.declared.count === plan.shared) : undefined;
    shared.push(known ?? (await grow(bench, plan, plan.shared, processes)));
  }
  return { tables: [sizesTable(sizes), processesTable(shared, plan.shared)], plots: [plotOf(sizes)] };
}

export const growth: Section = { name: 'growth', run: runGrowth };
