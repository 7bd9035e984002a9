/** Loads in slices, loads that fail, and which process takes a partition that one cannot load. */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { headers, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { Registry } from 'prom-client';
import t from 'tap';
import { observePartitionManager } from '../../../../actors/metrics.ts';
import { memberFor } from '../../../../actors/membership/rendezvous.ts';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { createJetStreamStore } from '../../../../actors/runtime/store/jetstream-store.ts';
import type { StoredValue } from '../../../../actors/runtime/store/store.ts';
import { recordKey } from '../../../../actors/domain/records.ts';
import { sweep } from '../../../../actors/domain/sweep.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { createSlices } from '../../../../lib/time/slices.ts';
import { bucketPrefix, buckets, keys } from '../../../../schemas/records/buckets.ts';
import type { ContainerId, TenantId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { recordingLog } from '../../../gateway/support.ts';
import { until } from '../../../support/until.ts';
import { containerId, operation, specOf, tenantId } from '../../../actors/support.ts';
import { controlPlane, createAsker, ownerOn, startCluster, type Ground } from '../support.ts';
import { storeWith } from '../../../actors/support/memory-store.ts';
import { createPartition, quietObserver } from '../../../actors/support/partition.ts';
import { acme, container, contextOf, fleetOf, noLedger, stateOf, unplaced } from '../../../actors/support/records.ts';
import { memberSettledMs } from '../../../../actors/membership/membership.ts';

const deadlineMs = 90_000;
const bucket = buckets.state.bucket(0);

const storeOf = ({ nc }: Ground) => createJetStreamStore(nc, bucket, randomUUID);

async function isAnswered(nc: NatsConnection, tenant: TenantId): Promise<boolean> {
  try {
    const { code } = await createAsker(nc, 1)({ type: 'container.list', tenant, limit: 1, before: null });
    return code === 'ok';
  } catch {
    return false;
  }
}

t.test(
  'a load of 100,000 containers and the turns that waited for it run in slices',
  { timeout: 600_000 },
  async (t) => {
    const count = 100_000;
    const record = container({ placement: unplaced });
    const values = Array.from({ length: count }, (_, index): StoredValue => {
      const one = {
        ...record,
        id: containerId(),
        spec: { ...record.spec, name: `c${index}` },
        insertedAtMs: index % 977,
      };
      return { key: recordKey(one), value: Buffer.from(encodeValue(one)), revision: index + 1 };
    });
    // Each look at the clock takes a tenth of a millisecond, which gives the number of steps in a
    // slice.
    let [looks, looksOfTurn, most] = [0, 0, 0];
    const slices = createSlices({
      monotonicMs: () => {
        most = Math.max(most, ++looksOfTurn);
        return ++looks / 10;
      },
    });
    let longest = 0;
    const partition = createPartition({
      slices,
      store: storeWith(values),
      events: { publish: async () => Promise.resolve() },
      observer: { ...quietObserver, worked: (_, seconds) => (longest = Math.max(longest, seconds)) },
    });
    const codes: string[] = [];
    const ask = { type: 'container.get', tenant: acme, id: containerId(), rid: 'r', budgetMs: deadlineMs } as const;
    for (let index = 0; index < 1000; index++) partition.read(ask, (code) => codes.push(code));
    let isDone = false;
    const loaded = partition.start().then(() => (isDone = true));
    while (!isDone) {
      await nextTurn();
      looksOfTurn = 0;
    }
    await loaded;
    t.ok(partition.isServing);
    t.equal(partition.view.tenant(acme).containers.size, count);
    t.ok(most <= 2 * (limits.sliceMs * 10 + 2), `${most} steps in one turn`);
    t.ok(looks > 2 * count, 'every record is a step, when it is decoded and when it is taken in');
    await until('answered', () => codes.length === 1000);
    t.ok(codes.every((code) => code === 'not_found'));
    t.comment(`longest turn: ${Math.round(longest * 1000)} ms`);
  },
);

t.test('a sweep of 100,000 kinds of containers without a host runs in slices', (t) => {
  const count = 100_000;
  const record = container({ placement: unplaced });
  const state = stateOf(
    ...Array.from({ length: count }, (_, index) => ({
      ...record,
      id: containerId(),
      spec: { ...record.spec, name: `c${index}`, mem_limit: `${16 + index}m` },
    })),
  );
  const context = {
    ...contextOf(fleetOf()),
    silentMs: () => 0,
    regionIsSilent: () => false,
    hostLostMs: 1,
    onFault: () => t.fail(),
  };
  const steps = [...sweep(state, context)].length;
  t.ok(steps >= count / 100, `${steps} steps`);
  t.end();
});

/** A partition with containers, checkpointed. */
async function filled(ground: Ground, names: readonly string[]): Promise<{ tenant: TenantId; ids: ContainerId[] }> {
  const owner = ownerOn(ground, ground.nc);
  await owner.start();
  const ask = createAsker(ground.nc, 1);
  const tenant = tenantId('acme');
  const ids: ContainerId[] = [];
  for (const name of names) {
    const id = containerId();
    ids.push(id);
    const create = {
      type: 'container.create',
      tenant,
      id,
      op: operation(),
      spec: specOf(name),
      idempotency: null,
    } as const;
    const { code } = await ask(create);
    if (code !== 'created') throw new Error(`${name}: ${code}`);
  }
  const [partition] = [...owner.manager.serving()];
  await partition?.checkpointed();
  await owner.stop();
  return { tenant, ids };
}

/**
 * Simulates a replica that has lost a message: the message is missing, and nothing shows that it
 * existed.
 */
function withoutMessage(nc: NatsConnection, subject: string): NatsConnection {
  const subscribe: NatsConnection['subscribe'] = (pattern, options = {}) => {
    let before: string | undefined;
    const { callback } = options;
    return nc.subscribe(pattern, {
      ...options,
      ...(callback === undefined
        ? {}
        : {
            callback: (error: Error | null, message: Msg) => {
              const head = message.headers;
              if (head?.get('Nats-Subject') === subject) {
                before = head.get('Nats-Last-Sequence');
                return;
              }
              if (before === undefined) return void callback(error, message);
              head?.set('Nats-Last-Sequence', before);
              before = undefined;
              // Without its bytes, so that the changed head counts (lib/nats/message-head.ts).
              void callback(error, Object.assign(Object.create(message) as Msg, { size: () => 0 }));
            },
          }),
    });
  };
  return new Proxy(nc, {
    get: (target, name) => {
      if (name === 'subscribe') return subscribe;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

t.test('a process that cannot load a partition releases it to one that can', { timeout: 600_000 }, async (t) => {
  const ground = await startCluster(t, 1);
  const { tenant, ids } = await filled(ground, ['a', 'b', 'c']);
  const lost = `${bucketPrefix(bucket)}${keys.container(tenant, ids[1] ?? containerId())}`;
  const log = recordingLog();
  const ncs = await Promise.all([controlPlane(ground.nats), controlPlane(ground.nats)]);
  const [first, second] = ncs;
  t.teardown(async () => Promise.all(ncs.map(async (nc) => nc.close())));
  // The process to which the partition is assigned is the one that cannot load it.
  const [low, high] = ['m-0', 'm-1'];
  const preferred = memberFor(0, [low, high] as never);
  const named = (id: string) => {
    let tokens = 0;
    return () => (tokens++ === 0 ? id : randomUUID());
  };
  const bad = ownerOn(ground, withoutMessage(first, lost), { log, newToken: named(String(preferred)) });
  const good = ownerOn(ground, second, { newToken: named(preferred === low ? high : low) });
  t.teardown(async () => Promise.all([bad.stop(), good.stop()]));
  const starting = bad.start();
  await until('given up', () => log.events.some(({ event }) => event === 'load_given_up'));
  const why = String(log.events.find(({ event }) => event === 'load_given_up')?.fields['why']);
  t.match(why, /3 records .* and 2 records .* were read.*Partition that refuses to load/);
  t.match(bad.manager.fault(), /this process can't load partition 0: records are missing/);
  await Promise.all([starting, good.start()]);
  await until('served', () => good.serving() === 1);
  t.ok(await isAnswered(ground.nc, tenant));
  const { revision } = await storeOf(ground).readEpoch();
  // Longer than the first pause: by now the partition would have been handed back.
  await sleep(limits.loadRestMinMs + 4 * memberSettledMs);
  t.equal((await storeOf(ground).readEpoch()).revision, revision, 'it is not handed to and fro');
  t.equal(good.serving(), 1);
  t.equal(bad.manager.fault(), undefined, 'every partition has an owner');
});

t.test(
  'a partition that lost records on every replica is refused until an operator overrides',
  { timeout: 600_000 },
  async (t) => {
    const ground = await startCluster(t, 1);
    const { tenant, ids } = await filled(ground, ['a', 'b']);
    const lost = `${bucketPrefix(bucket)}${keys.container(tenant, ids[0] ?? containerId())}`;
    const log = recordingLog();
    const owner = ownerOn(ground, withoutMessage(ground.nc, lost), { log });
    t.teardown(() => owner.stop());
    void owner.start();
    await until('given up', () => log.events.some(({ event }) => event === 'load_given_up'));
    t.equal(owner.serving(), 0);
    const registry = new Registry();
    observePartitionManager(registry, owner.manager);
    const unserved = async () =>
      (await registry.getSingleMetric('longshore_actors_partitions_unserved')?.get())?.values;
    t.match(await unserved(), [{ value: 1 }], 'an alert rests on this');
    t.match(owner.manager.fault(), /1 of 1 partitions have no owner; this process can't load partition 0: records/);
    // docs/runbook.md: `kv del`.
    const deletion = headers();
    deletion.set('KV-Operation', 'DEL');
    await ground.nc.request(`${bucketPrefix(bucket)}${keys.digest}`, '', { headers: deletion, timeout: 5000 });
    await until('served', () => owner.serving() === 1);
    t.match(log.events.find(({ event }) => event === 'records_unverified')?.fields, { partition: 0 });
    t.match(await unserved(), [{ value: 0 }]);
  },
);

t.test('a record that the state rejects harms no other', async (t) => {
  const [good, bad] = [
    container({}, 'good'),
    container({ placement: { ...container().placement, host: 'bad' } as never }, 'bad'),
  ];
  const values = [good, bad].map((record, index) => ({
    key: recordKey(record),
    value: Buffer.from(encodeValue(record)),
    revision: index + 1,
  }));
  const partition = createPartition({
    store: storeWith(values),
    events: { publish: async () => Promise.resolve() },
    ledger: {
      ...noLedger,
      add: (host) => {
        if (host === 'bad') throw new Error('a bug of ours');
      },
    },
    clock: systemClock,
  });
  await partition.start();
  t.ok(partition.isServing);
  t.same([...partition.view.damagedContainers()], [bad.id]);
  t.same([...partition.view.tenant(acme).containers.keys()], [good.id]);
});
