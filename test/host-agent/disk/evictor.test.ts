/** Slow measurements and a disk that fills meanwhile, on a simulated engine and clock. */
import { tmpdir } from 'node:os';
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createEvictor } from '../../../host-agent/disk/evictor.ts';
import type { DiskUse } from '../../../host-agent/disk/plan.ts';
import { createDiskWatch } from '../../../host-agent/disk/watch.ts';
import { createCachedEngine } from '../../../host-agent/docker/cached-engine.ts';
import { createEngine } from '../../../host-agent/docker/engine.ts';
import {
  createTransport,
  parseEngineAddress,
  type EngineAddress,
  type Transport,
} from '../../../host-agent/docker/transport.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { createLog } from '../../../lib/log.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { until } from '../../support/until.ts';
import type { EngineCall } from '../../support/engine/api.ts';
import type { ContainerState, SimulatedContainer } from '../../support/engine/model.ts';
import { writeAnswer } from '../../support/engine/server.ts';
import { simulatedEngine } from '../support/simulated-engine.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';

const owner = { cluster: 'c1', host: 'h1' as HostKey };
const intervalMs = 30_000;
const limitBytes = 100;

const sizeOf = (bytes: number) => ({ status: 200, body: { SizeRw: bytes, Mounts: [] } });

const isMeasurement = ({ path, query }: EngineCall): boolean => path.endsWith('/json') && query.get('size') === '1';

/** A measurement's result: bytes, or nothing until the test answers, or until its deadline. */
type Size = number | 'held' | 'late';

const lateMs = 200;

async function start(t: Test) {
  const simulated = await simulatedEngine(t);
  const { model } = simulated;
  const sizes = new Map<string, Size>();
  const held = new Map<string, ServerResponse>();
  const measured: string[] = [];
  simulated.intercept((call, response) => {
    const { container } = call;
    if (container === undefined || !isMeasurement(call)) return undefined;
    measured.push(container.name);
    const size = sizes.get(container.name) ?? 0;
    if (typeof size === 'number') return sizeOf(size);
    if (size === 'held') held.set(container.name, response);
    return 'hang';
  });
  const add = (
    name: string,
    tenant: string,
    size: Size,
    state: ContainerState = { status: 'running', startedAt: '' },
  ): string => {
    const id = `0190a000-0000-7000-8000-${String(model.containers.size).padStart(12, '0')}`;
    const marks = { [labels.cluster]: owner.cluster, [labels.host]: owner.host };
    const made = { ...marks, [labels.tenant]: tenant, [labels.container]: id };
    model.add({ id: name, name, labels: made, network: null, state });
    sizes.set(name, size);
    return id;
  };

  const tcp = createTransport(parseEngineAddress(simulated.host) as EngineAddress, () => undefined);
  let underWay = 0;
  let lists = 0;
  const transport: Transport = {
    ...tcp,
    call: (call) => {
      if (call.name === 'container list') lists += 1;
      if (call.name !== 'container size') return tcp.call(call);
      underWay += 1;
      const isLate = [...sizes].some(([name, size]) => size === 'late' && call.path.includes(`/${name}/`));
      return tcp.call(isLate ? { ...call, deadlineMs: lateMs } : call).finally(() => (underWay -= 1));
    },
  };
  const engine = createCachedEngine(createEngine(transport), owner, () => clock.nowMs);
  const clock = { nowMs: 1_000_000 };
  const pressure = { isPressed: false, atMs: 0 };
  const limit = { bytes: limitBytes };
  const evicted: DiskUse[] = [];
  const relieved = new Set<string>();
  const log = createLog('test', 'silent');
  const faults = createFaults(log);
  const keeper = createEvictor({
    engine,
    isEngineUp: () => true,
    pressure: () => pressure,
    limitOf: () => ({ bytes: limit.bytes, isEnforced: true }),
    evict: (use) => {
      if (evicted.some(({ dockerId }) => dockerId === use.dockerId)) return false;
      evicted.push(use);
      return true;
    },
    relieve: ({ dockerId }) => relieved.add(dockerId),
    settings: { DISK_INTERVAL: intervalMs },
    faults,
    metrics: { diskEviction: () => undefined },
    steadyMs: () => clock.nowMs,
    log,
  });
  const ending = new AbortController();
  t.teardown(() => {
    ending.abort();
    engine.close();
  });
  return {
    simulated,
    model,
    engine,
    lists: () => lists,
    clock,
    pressure,
    limit,
    keeper,
    measured,
    add,
    look: () => keeper.look(ending.signal),
    until: (isSo: () => boolean, what: string) =>
      until(
        () => what,
        () => isSo() || undefined,
      ),
    /** Waits until so many measurements are under way and all others have ended. */
    underWay: async (count: number) => {
      await until(
        () => `${count} measurements`,
        () => underWay === count || undefined,
      );
      await setImmediate();
    },
    answer: (name: string, bytes: number) => writeAnswer(held.get(name) as ServerResponse, sizeOf(bytes)),
    isHeld: (name: string) => held.has(name),
    relieved: () => [...relieved].toSorted(),
    evicted: () => evicted.map(({ dockerId }) => dockerId),
    fault: () => faults.list().find(({ kind }) => kind === 'disk_unmeasured')?.message,
  };
}

t.test('a tenant whose containers are slow to measure delays only its own', async (t) => {
  const { add, look, until, evicted, relieved, measured, simulated } = await start(t);
  for (const name of ['slow-1', 'slow-2', 'slow-3']) add(name, 'slow', 'held');
  add('small', 'acme', limitBytes);
  add('large', 'acme', limitBytes + 1);
  add('other', 'globex', limitBytes + 1);
  await look();
  await until(() => evicted().length === 2, 'evictions while others are being measured');
  t.same(evicted().toSorted(), ['large', 'other'], 'a container over its limit stops at once');
  t.same(relieved(), ['small'], 'one within its limit may run');
  t.equal(simulated.hanging().length, 1, 'one measurement of a tenant at a time');
  t.ok(measured.includes('small'));
});

t.test('a container that is slow to measure is measured less often, the others as before', async (t) => {
  const { add, look, until, underWay, measured, answer, isHeld, clock } = await start(t);
  const counts = () => ['slow', 'quick'].map((name) => measured.filter((each) => each === name).length);
  add('slow', 'slow', 'held');
  add('quick', 'acme', 0);
  await look();
  await until(() => isHeld('slow') && measured.includes('quick'), 'both measurements');
  await underWay(1);
  clock.nowMs += 10_000;
  answer('slow', 0);
  await underWay(0);
  const rounds: number[][] = [];
  for (const [begun, stillUnderWay] of [
    [3, 0],
    [4, 0],
    [6, 1],
  ] as const) {
    clock.nowMs += intervalMs;
    await look();
    await until(() => measured.length >= begun, `${begun} measurements in all`);
    await underWay(stillUnderWay);
    rounds.push(counts());
  }
  // It took ten seconds, so it rests for ninety.
  t.same(rounds, [
    [1, 2],
    [1, 3],
    [2, 4],
  ]);
});

t.test('exited containers are measured too', async (t) => {
  const { add, look, until, evicted } = await start(t);
  add('exited', 'acme', limitBytes + 1, { status: 'exited', startedAt: '', finishedAt: '', exitCode: 0 });
  add('running', 'acme', limitBytes + 1);
  await look();
  await until(() => evicted().includes('running'), 'the eviction of the last');
  t.same(evicted(), ['exited', 'running']);
});

t.test(
  'a container that cannot be measured is a fault at once; under pressure such containers go one by one',
  async (t) => {
    const { add, look, until, evicted, fault, keeper, pressure, clock, model } = await start(t);
    const ids = [add('late-1', 'acme', 'late'), add('late-2', 'globex', 'late')];
    add('small', 'acme', limitBytes);
    await look();
    await until(() => keeper.unknown() === 2, 'both late');
    for (const id of ids) t.match(fault(), id, 'named');
    t.same(evicted(), [], 'no pressure, no eviction');
    Object.assign(pressure, { isPressed: true, atMs: clock.nowMs });
    await look();
    t.equal(evicted().length, 1);
    await look();
    t.equal(evicted().length, 1, 'the stop of the first is awaited');
    model.stop(model.find(String(evicted()[0])) as SimulatedContainer);
    clock.nowMs += 1;
    await look();
    t.equal(evicted().length, 1, 'and what it frees');
    pressure.atMs = clock.nowMs + 1;
    await look();
    t.same(evicted().toSorted(), ['late-1', 'late-2'], 'the next one, because the disk is still full');
    model.drop('late-1');
    model.drop('late-2');
    await look();
    t.equal(fault(), undefined);
    t.notOk(evicted().includes('small'), 'a container within its limit stays');
  },
);

t.test('a limit that falls counts within an interval, and at once under pressure', async (t) => {
  for (const isPressed of [false, true]) {
    const { add, look, until, underWay, isHeld, answer, evicted, limit, pressure, clock } = await start(t);
    add('slow', 'acme', 'held');
    await look();
    await until(() => isHeld('slow'), 'its measurement');
    // It took so long that it is not measured again soon.
    clock.nowMs += 10_000;
    answer('slow', limitBytes);
    await underWay(0);
    limit.bytes = limitBytes - 1;
    clock.nowMs += isPressed ? 1 : intervalMs;
    pressure.isPressed = isPressed;
    await look();
    t.same(evicted(), ['slow'], isPressed ? 'under pressure' : 'without pressure');
  }
});

t.test('while events are read, no look asks the engine for its containers', async (t) => {
  const { add, look, until, evicted, engine, lists, clock, model } = await start(t);
  add('first', 'acme', limitBytes + 1);
  engine.setWatched(true);
  await engine.listAll();
  const listed = lists();
  await look();
  await until(() => evicted().length === 1, 'the eviction');
  add('second', 'acme', limitBytes + 1);
  clock.nowMs += intervalMs;
  await look();
  t.equal(lists(), listed);
  await engine.listAll();
  await look();
  await until(() => evicted().length === 2, 'a container that no event named is measured after the next list');
  t.equal(lists(), listed + 1);
  engine.setWatched(false);
  model.drop('second');
  await look();
  t.equal(lists(), listed + 2, 'without events, it asks');
});

t.test('a hanging collection of images does not stop looks at the disk', async (t) => {
  const log = createLog('test', 'silent');
  const faults = createFaults(log);
  let collections = 0;
  const watch = createDiskWatch({
    isEngineUp: () => true,
    rootDir: tmpdir,
    images: {
      collectUnused: () => Promise.resolve(),
      collect: () => {
        collections += 1;
        return new Promise(() => undefined);
      },
    },
    settings: {
      DISK_INTERVAL: intervalMs,
      DISK_PRESSURE_PERCENT: 0,
      IMAGES_HIGH_PERCENT: 0,
      IMAGES_LOW_PERCENT: 0,
      IMAGES_UNUSED: 0,
    },
    faults,
    steadyMs: () => 5,
    log,
  });
  t.equal(watch.usedPercent(), null);
  for (let looks = 0; looks < 3; looks += 1) await watch.look();
  t.same(watch.pressure(), { isPressed: true, atMs: 5 });
  t.ok(Number(watch.usedPercent()) >= 0);
  t.match(faults.list(), [{ kind: 'disk_pressure' }]);
  t.equal(collections, 1, 'one collection at a time');
  t.ok(limits.diskLookMs <= intervalMs);
});

t.test('a look leaves nothing in memory', async (t) => {
  const failures: WeakRef<Error>[] = [];
  const away = (): Promise<never> => {
    const failure = new Error('away');
    failures.push(new WeakRef(failure));
    return Promise.reject(failure);
  };
  const log = createLog('test', 'silent');
  const keeper = createEvictor({
    engine: { containers: away, written: away, volumeBytes: away },
    isEngineUp: () => true,
    pressure: () => ({ isPressed: false, atMs: 0 }),
    limitOf: () => ({ bytes: limitBytes, isEnforced: true }),
    evict: () => false,
    relieve: () => undefined,
    settings: { DISK_INTERVAL: 1 },
    faults: createFaults(log),
    metrics: { diskEviction: () => undefined },
    steadyMs: () => 0,
    log,
  });
  const ending = new AbortController();
  const running = keeper.run(ending.signal);
  await until('looks', () => failures.length > 20);
  await collectGarbage();
  t.equal(failures.slice(0, 10).filter((failure) => failure.deref() !== undefined).length, 0);
  ending.abort();
  await running;
});
