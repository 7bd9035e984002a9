/** Readers of what containers use now. */
import t from 'tap';
import type { Inspection, Stats } from '../../../host-agent/docker/answers.ts';
import type { Cgroups } from '../../../host-agent/usage/cgroups.ts';
import { createLiveStats } from '../../../host-agent/usage/live-stats.ts';
import type { ContainerStats } from '../../../schemas/api/usage/stats.ts';
import { quietLog } from '../../actors/support.ts';
import { until } from '../../support/until.ts';

const firstStart = '2026-11-24T12:00:00.000000001Z';
const inspectionOf = (more: Partial<Inspection['State']> = {}): Inspection => ({
  Id: 'd1',
  State: {
    Status: 'running',
    Pid: 7,
    OOMKilled: false,
    ExitCode: 0,
    Error: '',
    StartedAt: firstStart,
    FinishedAt: '',
    ...more,
  },
  Config: { Labels: {} },
  HostConfig: { NetworkMode: 'container:box', Memory: 64_000 },
  NetworkSettings: {},
});

/** A container whose clock and counters a test moves. */
function stage({ hasFiles = true } = {}) {
  const now = {
    ms: 0,
    cpuMs: 500,
    inspection: inspectionOf() as Inspection | undefined,
    isEngineUp: true,
  };
  const counts = { inspected: 0, asked: [] as string[] };
  const cgroups: Cgroups = {
    read: () => ({ cpuMs: now.cpuMs, memBytes: 3000 }),
    pids: () => 2,
    oomKills: () => 0,
    machineOomKills: () => 0,
    net: () => ({ rxBytes: 10, txBytes: 20 }),
    isCutOff: () => false,
  };
  const stats = (id: string): Stats => ({
    cpu_stats: { cpu_usage: { total_usage: now.cpuMs * 1e6 } },
    memory_stats: { usage: 3000 },
    pids_stats: { current: 2 },
    ...(id === 'box' ? { networks: { eth0: { rx_bytes: 4, tx_bytes: 9 }, eth1: { rx_bytes: 6, tx_bytes: 11 } } } : {}),
  });
  const live = createLiveStats({
    engine: {
      inspect: () => {
        counts.inspected++;
        return now.isEngineUp ? Promise.resolve(now.inspection) : Promise.reject(new Error('away'));
      },
      stats: (id) => {
        counts.asked.push(id);
        return Promise.resolve(stats(id));
      },
    },
    cgroups: hasFiles ? cgroups : undefined,
    clock: { nowMs: () => Date.parse('2026-11-24T12:00:10Z') + now.ms, monotonicMs: () => now.ms },
    log: quietLog,
  });
  const watch = () => {
    const seen: ContainerStats[] = [];
    const ends = { count: 0 };
    const leave = live.watch('d1', { onStats: (one) => void seen.push(one), onEnd: () => void ends.count++ });
    return { seen, ends, leave };
  };
  return { now, counts, live, watch };
}

t.test('CPU is a rate between two samples; the rest is as it is', async (t) => {
  const { now, counts, live, watch } = stage();
  const one = watch();
  await until('it has looked once', () => counts.inspected === 1);
  now.ms += 500;
  now.cpuMs += 200;
  await until('a sample', () => one.seen.length === 1);
  t.match(one.seen, [
    {
      cpu_millis: 400,
      mem_bytes: 3000,
      mem_limit: 64_000,
      net_rx_bytes: 10,
      net_tx_bytes: 20,
      pids: 2,
      at: '2026-11-24T12:00:10.500Z',
    },
  ]);
  one.leave();
  t.equal(live.count(), 0);
});

t.test('without the kernel’s files the engine is asked, and its sandbox for the network', async (t) => {
  const { counts, watch } = stage({ hasFiles: false });
  const one = watch();
  await until('a sample', () => one.seen.length === 1);
  one.leave();
  t.match(one.seen, [{ mem_bytes: 3000, mem_limit: 64_000, net_rx_bytes: 10, net_tx_bytes: 20, pids: 2 }]);
  t.same(counts.asked, ['d1', 'box', 'd1', 'box']);
});

t.test('many watchers share a reader, which ends with the last', async (t) => {
  const { counts, live, watch } = stage();
  const watchers = Array.from({ length: 5 }, watch);
  await until('all have a sample', () => watchers.every(({ seen }) => seen.length > 0));
  t.equal(counts.inspected, 2);
  t.equal(live.count(), 1);
  for (const { leave } of watchers.slice(1)) leave();
  t.equal(live.count(), 1);
  watchers[0]?.leave();
  t.equal(live.count(), 0);
  watchers[0]?.leave();
  t.same(
    watchers.map(({ ends }) => ends.count),
    Array(5).fill(0),
    'who leaves hears no end',
  );
});

t.test('a run that begins again is compared with nothing before it', async (t) => {
  const { now, counts, watch } = stage();
  const one = watch();
  await until('it has looked once', () => counts.inspected === 1);
  now.inspection = inspectionOf({ StartedAt: '2026-11-24T12:00:05Z' });
  now.cpuMs = 3;
  await until('a sample', () => one.seen.length === 1);
  t.equal(counts.inspected, 3);
  t.match(one.seen, [{ cpu_millis: 0 }]);
  one.leave();
});

t.test('the engine away: no samples, and no end', async (t) => {
  const { now, counts, watch } = stage();
  now.isEngineUp = false;
  const one = watch();
  await until('it looks on', () => counts.inspected >= 2);
  t.same([one.seen.length, one.ends.count], [0, 0]);
  now.isEngineUp = true;
  await until('a sample', () => one.seen.length === 1);
  one.leave();
});

for (const [what, inspection] of [
  ['stopped', inspectionOf({ Status: 'exited' })],
  ['never started', inspectionOf({ Status: 'created', StartedAt: '0001-01-01T00:00:00Z' })],
  ['gone', undefined],
] as const) {
  t.test(`a container that is ${what} ends its watchers, and a later one is another`, async (t) => {
    const { now, live, watch } = stage();
    now.inspection = inspection;
    const [one, two] = [watch(), watch()];
    await until('both have ended', () => one.ends.count === 1 && two.ends.count === 1);
    t.equal(live.count(), 0);
    now.inspection = inspectionOf();
    const three = watch();
    await until('a sample', () => three.seen.length === 1);
    t.same([one.seen, two.seen], [[], []]);
    three.leave();
  });
}
