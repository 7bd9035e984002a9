/**
 * The partition runtime over a store that loses acknowledgements, delivers late or never, and loses the process: every
 * acknowledged write is there at the end, and every operation was done once. A failing run prints its seed;
 * `SEEDS=17 node dist/test/actors/seeded.test.js` runs it alone. What the network does follows from the seed; how timers
 * fall among it is the machine's.
 */
import t from 'tap';
import type { Partition } from '../../actors/runtime/partition.ts';
import { sleep } from '../../lib/backoff.ts';
import { systemClock, type Clock } from '../../lib/clock.ts';
import type { ContainerStatusView } from '../../schemas/container.ts';
import type { Event } from '../../schemas/event.ts';
import { containerId, operation, specOf, tenantId } from './support.ts';
import { MemoryBucket, calm, createMemorySink, createMemoryStore, stormy, type Told } from './support/memory-store.ts';
import { createPartition, readOf, writeOf, type Answered, type LooseWrite } from './support/partition.ts';
import { createRandom, type Random } from './support/random.ts';

const seeds =
  process.env['SEEDS'] === undefined
    ? Array.from({ length: 200 }, (_, index) => index + 1)
    : process.env['SEEDS'].split(',').map(Number);

/** As long as a gateway waits for an attempt before it sends the same operation again. */
const attemptMs = 60;

/** Steps back now and then, as a wall clock may. */
const unsteady = (random: Random): Clock => ({
  nowMs: () => systemClock.nowMs() - random.below(50),
  monotonicMs: () => systemClock.monotonicMs(),
});

interface World {
  readonly random: Random;
  readonly bucket: MemoryBucket;
  readonly told: Told[];
  owner: Partition;
  crashes: number;
}

/** Another process takes the partition; of the one before, either nothing is heard any more, or it does not know yet. */
function takeOver(world: World, isStormy = true): Partition {
  const { random, bucket, told } = world;
  let isGone = false;
  const network = isStormy ? stormy(random, () => isGone) : calm;
  const partition = createPartition(
    {
      store: createMemoryStore(bucket, network),
      events: createMemorySink(told, network),
      // A process that loses a partition ends, and is started again.
      onLost: (lost) => {
        if (lost === world.owner) takeOver(world, isStormy);
      },
    },
    unsteady(random),
  );
  crash.set(partition, () => (isGone = true));
  world.owner = partition;
  void partition.start();
  return partition;
}
const crash = new WeakMap<Partition, () => void>();

/** Asked until there is an answer, under one operation id, of whoever owns the partition by then. */
async function insist(world: World, ask: LooseWrite): Promise<Answered> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const answer = await writeOf(world.owner, ask, attemptMs).catch(() => undefined);
    if (answer !== undefined && answer.code !== 'unavailable') return answer;
  }
  throw new Error(`${ask.type}: never answered`);
}

interface Known {
  readonly tenant: ReturnType<typeof tenantId>;
  readonly id: ReturnType<typeof containerId>;
  readonly name: string;
  /** Undefined: deleted. */
  desired: 'running' | 'stopped' | undefined;
  generation: number;
  changes: number;
}

/** One client with one container: one request at a time, so that what it was told fixes what must be. */
async function live(world: World, name: string): Promise<Known> {
  const { random } = world;
  const known: Known = {
    tenant: tenantId(`t${random.below(3)}`),
    id: containerId(),
    name,
    desired: 'running',
    generation: 1,
    changes: 1,
  };
  const { tenant, id } = known;
  const fail = (what: string, { code, body }: Answered): never => {
    throw new Error(`${what} ${name}: ${code} ${body}`);
  };
  const created = await insist(world, {
    type: 'container.create',
    tenant,
    id,
    op: operation(),
    spec: specOf(name),
    idempotency: null,
  });
  if (created.code !== 'created') fail('create', created);
  for (let step = 0; step < 6; step++) {
    const verb = random.pick(['start', 'stop', 'stop', 'start', 'delete']);
    const answer = await insist(world, { type: `container.${verb}`, tenant, id, op: operation() } as LooseWrite);
    if (answer.code !== (verb === 'delete' ? 'accepted' : 'ok')) fail(verb, answer);
    const wanted = verb === 'delete' ? undefined : verb === 'start' ? 'running' : 'stopped';
    if (wanted !== known.desired) {
      known.generation++;
      known.changes += verb === 'delete' ? 2 : 1;
    }
    known.desired = wanted;
    if (wanted === undefined) break;
  }
  return known;
}

async function trouble(world: World, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && world.crashes < 4) {
    await sleep(world.random.below(30), signal);
    if (signal.aborted) return;
    const former = world.owner;
    // One that serves may live on without knowing, and is fenced. One that is starting would take the partition back: who
    // may start is a matter of leases.
    if (!former.isServing || world.random.once(2)) crash.get(former)?.();
    world.crashes++;
    takeOver(world);
  }
}

async function run(seed: number): Promise<string[]> {
  const random = createRandom(seed);
  const world: World = { random, bucket: new MemoryBucket(), told: [], crashes: 0 } as unknown as World;
  takeOver(world);
  const ending = new AbortController();
  const troubled = trouble(world, ending.signal);
  const all = await Promise.all(Array.from({ length: 8 }, async (_, index) => live(world, `c${index}`)));
  ending.abort();
  await troubled;
  crash.get(world.owner)?.();
  takeOver(world, false);
  while (!world.owner.isServing) await sleep(1);
  const last = world.owner;
  await last.checkpointed();

  const faults: string[] = [];
  const events = new Map<string, Event>();
  for (const { payload } of world.told) {
    for (const event of JSON.parse(payload) as Event[]) {
      const before = events.get(event.id);
      if (before !== undefined && JSON.stringify(before) !== JSON.stringify(event)) faults.push(`${event.id} differs`);
      events.set(event.id, event);
    }
  }
  for (const known of all) {
    const { code, body } = await readOf(last, { type: 'container.status', tenant: known.tenant, id: known.id });
    const actual = code === 'ok' ? (JSON.parse(body) as { data: ContainerStatusView }).data : undefined;
    if (actual?.desired !== known.desired) faults.push(`${known.name}: ${actual?.desired}, not ${known.desired}`);
    if (actual !== undefined && actual.generation !== known.generation) {
      faults.push(`${known.name}: generation ${actual.generation}, not ${known.generation}`);
    }
    const told = [...events.values()].filter((event) => event.container_id === known.id).length;
    if (told !== known.changes) faults.push(`${known.name}: ${told} events of ${known.changes} changes`);
  }
  const kept = all.filter(({ desired }) => desired !== undefined).length;
  const listed = [...last.view.tenants()].reduce((sum, { containers }) => sum + containers.size, 0);
  if (listed !== kept) faults.push(`${listed} containers, not ${kept}`);
  await last.stop();
  return faults.map((fault) => `seed ${seed}: ${fault}`);
}

t.test(`${seeds.length} runs under lost acknowledgements, late puts and crashes`, { timeout: 60_000 }, async (t) => {
  // A few at a time: they wait more than they work.
  const waiting = [...seeds];
  const faults: string[] = [];
  const lane = async (): Promise<void> => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
      const failed = seed;
      faults.push(...(await run(seed).catch((error: unknown) => [`seed ${failed}: ${String(error)}`])));
    }
  };
  await Promise.all(Array.from({ length: 12 }, lane));
  t.same(faults, []);
});
