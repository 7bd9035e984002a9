/**
 * The VPN's records in the partition runtime, and messages between partitions, in the end on a real
 * nats-server.
 */
import t, { type Test } from 'tap';
import {
  byPartition,
  createOutbox,
  outboxOf,
  outcomeOf,
  questionOf,
  reservationTtlMs,
  outboxItemsPerSweep,
  type OutboxOptions,
} from '../../../actors/outbox/outbox.ts';
import type { Outcome, Question } from '../../../lib/rpc/partition-client.ts';
import type { Partition, PartitionOptions } from '../../../actors/partition.ts';
import type { WriteOutcome } from '../../../actors/runtime/store/store.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock, type Clock } from '../../../lib/time/clock.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { NetworkName, TenantId } from '../../../schemas/ids.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { limits } from '../../../schemas/limits.ts';
import type { LeaseRecord, NetworkView, Reservation, RevocationEntry } from '../../../schemas/api/network.ts';
import type { PeerRecord, PeerTombstoneRecord, PeerView } from '../../../schemas/api/peer.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { operation, quietLog, tenantId } from '../../actors/support.ts';
import { controlPlane, createAsker, ownerOn, startCluster, type Ground } from './support.ts';
import { MemoryBucket, createMemorySink, createMemoryStore } from '../../actors/support/memory-store.ts';
import { memoryJournals, successiveMembers } from '../../actors/support/journals.ts';
import { createPartition, readOf, writeOf, type Answered, type LooseWrite } from '../../actors/support/partition.ts';
import { acme, stateOf } from '../../actors/support/records.ts';
import {
  heldOf,
  home,
  keysOf,
  newSecrets,
  leaseOf,
  madeNetwork,
  madePeer,
  networkRecord,
  peerId,
  peerRecord,
  token,
} from '../../actors/support/vpn.ts';
import { until } from '../../support/until.ts';

const dataOf = <T>({ body }: { readonly body: string }): T => (JSON.parse(body) as { data: T }).data;

// One partition, in memory

const nextMember = successiveMembers();

async function serving(t: Test, bucket: MemoryBucket, more: Partial<PartitionOptions> = {}): Promise<Partition> {
  const parts = { store: createMemoryStore(bucket), events: createMemorySink([]), ...nextMember() };
  const partition = createPartition({ ...parts, ...more });
  await partition.start();
  t.teardown(() => partition.release());
  return partition;
}

const reserve = async (partition: Partition, peer = peerId()): Promise<Answered> =>
  writeOf(partition, { type: 'network.reserve', network: home, by: { tenant: acme, peer }, op: operation() });

const createNetwork = async (partition: Partition, pool = '10.86.0.0/24'): Promise<void> => {
  const made = madeNetwork({ ipv4_pool: pool });
  await writeOf(partition, { type: 'network.create', network: home, made, op: operation() });
};

/** All VPN records of a partition, by name. */
function dump({ view }: Partition) {
  const network = view.vpn.network(home);
  const { peers } = view.tenant(acme);
  return {
    network: network.record,
    allocated: network.allocated,
    leases: [...network.leases(0)],
    reservations: [...network.reservations()].map(({ index }) => index).sort(),
    refused: [...network.refusable().serials],
    peers: [...peers.records.values()],
    names: [...peers.names.keys()].sort(),
    tombstones: [...peers.tombstones.values()],
    untold: [...view.vpn.untold()].map(({ id }) => id).sort(),
    usage: view.tenant(acme).usage('*'),
    byToken: view.vpn.peerOfToken('hash')?.id,
  };
}

async function fill(partition: Partition): Promise<void> {
  await createNetwork(partition);
  for (const name of ['stays', 'goes', 'changes']) {
    const peer = peerId();
    const of = { tenant: acme, peer };
    const { index } = dataOf<Reservation>(await reserve(partition, peer));
    const tokens = name === 'stays' ? [token('hash')] : [];
    await writeOf(partition, { type: 'peer.create', ...of, made: madePeer(name, index, { tokens }), op: operation() });
    const record = partition.view.tenant(acme).peers.records.get(peer);
    if (record === undefined) throw new Error(name);
    const { serial } = record.certificate;
    if (name === 'goes') await writeOf(partition, { type: 'peer.remove', ...of, op: operation() });
    if (name === 'changes') {
      await writeOf(partition, { type: 'peer.rotate', ...of, replaces: serial, ...newSecrets(), op: operation() });
    }
    const [untold] = [...partition.view.vpn.untold()].filter(({ id }) => id === peer);
    for (const item of outboxOf(partition.view, 0)) {
      if (item.kind !== 'tell' || item.record !== untold || name === 'stays') continue;
      const answer = await writeOf(partition, questionOf(item) as LooseWrite);
      const outcome = outcomeOf(item, answer);
      if (outcome !== undefined) partition.change('outbox', (state, context) => [outcome(state, context)]);
    }
  }
  await reserve(partition);
  await writeOf(partition, { type: 'peer.forgo', tenant: acme, peer: peerId(), op: operation() });
}

t.test('a load restores all VPN records, from the journal and from the keys', async (t) => {
  const bucket = new MemoryBucket();
  const first = await serving(t, bucket);
  await fill(first);
  const before = dump(first);
  t.equal(before.allocated, 3);
  t.equal(before.peers.length, 2);
  t.equal(before.tombstones.length, 2);
  t.equal(before.refused.length, 2);
  t.equal(before.untold.length, 1);
  t.equal(before.usage.vpn_peers, 2);
  t.ok(before.byToken);
  t.same(dump(await serving(t, bucket)), before, 'with entries above the mark');

  const third = await serving(t, bucket);
  await third.checkpointed();
  for (const key of [keys.checkpoint, keys.digest]) bucket.set(key, null);
  t.same(dump(await serving(t, bucket)), before, 'from the keys alone');
});

t.test('a damaged record harms no other, and its place stays taken', async (t) => {
  const damage = async (key: (of: ReturnType<typeof dump>) => string): Promise<Partition> => {
    const bucket = new MemoryBucket();
    const whole = await serving(t, bucket);
    await fill(whole);
    await whole.checkpointed();
    const found = key(dump(whole));
    t.ok(bucket.get(found), found);
    for (const name of [keys.checkpoint, keys.digest]) bucket.set(name, null);
    bucket.set(found, 'rot');
    return serving(t, bucket);
  };
  const peer = await damage(({ peers }) => keys.peer(acme, (peers[0] as PeerRecord).id));
  const state = dump(peer);
  t.equal(state.usage.vpn_peers, 2);
  t.equal(state.peers.length, 1);
  const [damaged] = peer.view.tenant(acme).peers.damaged;
  t.equal((await readOf(peer, { type: 'peer.get', tenant: acme, peer: damaged ?? peerId() })).code, 'internal');

  const lease = await damage(() => keys.lease(home, 2));
  t.equal(lease.view.vpn.network(home).allocated, 3);
  t.equal(lease.view.vpn.network(home).lease(2), undefined);
  t.not(dataOf<Reservation>(await reserve(lease)).index, 2);

  const revoked = await damage(({ refused }) => keys.revoked(home, refused[0] ?? ''));
  const listed = await readOf(revoked, { type: 'network.revocations', network: home, after: '' });
  t.equal(dataOf<RevocationEntry[]>(listed).length, 2);

  const network = await damage(() => keys.network(home));
  t.equal((await readOf(network, { type: 'network.material', network: home })).code, 'internal');
  t.equal((await reserve(network)).code, 'internal');
});

t.test('two hundred reservations at once get two hundred addresses', async (t) => {
  const partition = await serving(t, new MemoryBucket());
  await createNetwork(partition);
  const answers = await Promise.all(Array.from({ length: 260 }, async () => reserve(partition)));
  const allocated = answers.filter(({ code }) => code === 'ok').map((answer) => dataOf<Reservation>(answer).index);
  t.equal(allocated.length, 253);
  t.equal(new Set(allocated).size, 253);
  t.ok(answers.every(({ code }) => code === 'ok' || code === 'conflict'));
});

/** Journals whose puts wait while the gate is shut. */
function gated() {
  const store = createMemoryStore(new MemoryBucket());
  let opened: Promise<WriteOutcome | undefined> = Promise.resolve(undefined);
  let open = (): void => {};
  return {
    journals: memoryJournals(undefined, {
      storeOf: () => ({ ...store, put: async (write, epoch) => (await opened) ?? store.put(write, epoch) }),
    }),
    shut: () => void (opened = new Promise((resolve) => (open = () => resolve(undefined)))),
    open: () => {
      opened = Promise.resolve(undefined);
      open();
    },
  };
}

const isPending = async (answer: Promise<Answered>): Promise<boolean> =>
  Promise.race([answer.then(() => false), sleep(20).then(() => true)]);

t.test('uncommitted changes are neither answered nor sent', async (t) => {
  const gate = gated();
  const partition = await serving(t, new MemoryBucket(), gate);
  await createNetwork(partition);
  const other = 'other' as NetworkName;
  await writeOf(partition, { type: 'network.create', network: other, made: madeNetwork(), op: operation() });
  const asked: Question[] = [];
  const client: OutboxOptions['client'] = {
    ask: async (_, question) => {
      asked.push(question);
      return { code: 'unavailable', body: '' };
    },
    stop: () => {},
  };
  const outbox = createOutbox({
    client,
    partitions: 1,
    clock: systemClock,
    slices: createSlices(systemClock),
    log: quietLog,
  });
  gate.shut();
  const peer = peerId();
  const waiting = {
    'a reservation': reserve(partition, peer),
    'the same again': reserve(partition, peer),
    'the network, which counts it': readOf(partition, { type: 'network.get', network: home }),
    'a peer': writeOf(partition, { type: 'peer.create', tenant: acme, peer, made: madePeer('a', 2), op: operation() }),
    'the list with it': readOf(partition, { type: 'peer.list', tenant: acme, limit: 9, before: null }),
    'its name': readOf(partition, { type: 'peer.check', tenant: acme, name: 'a' }),
  };
  outbox.look(partition);
  for (const [what, answer] of Object.entries(waiting)) t.ok(await isPending(answer), what);
  t.same(asked, [], 'its network');
  t.equal((await readOf(partition, { type: 'network.get', network: other })).code, 'ok', 'another network');
  gate.open();
  for (const answer of Object.values(waiting)) await answer;
  t.match(asked, [{ type: 'network.learn', by: { peer }, told: { there: true, generation: 1 } }]);
});

t.test('the outbox sends one item of a peer at a time, within a bound, and repeats failed ones', async (t) => {
  let ms = 1_000_000;
  const clock: Clock = { nowMs: () => ms, monotonicMs: () => ms };
  const partition = createPartition(
    { store: createMemoryStore(new MemoryBucket()), events: createMemorySink([]) },
    clock,
  );
  await partition.start();
  t.teardown(() => partition.release());
  const count = outboxItemsPerSweep + 20;
  await writeOf(partition, {
    type: 'tenant.put',
    tenant: acme,
    settings: { caps: { vpn_peers: null } },
    op: operation(),
  });
  for (let index = 0; index < count; index++) {
    const made = madePeer(`p${index}`, index + 2);
    await writeOf(partition, { type: 'peer.create', tenant: acme, peer: peerId(), made, op: operation() });
  }
  /** Asks that have no answer yet. */
  let asked: ((outcome: Outcome) => void)[] = [];
  const answerAll = (code: 'ok' | 'conflict' | 'timeout'): void => {
    for (const resolve of asked.splice(0)) resolve({ code, body: '{"data":null}' });
  };
  const client: OutboxOptions['client'] = {
    ask: async () => new Promise((resolve) => asked.push(resolve)),
    stop: () => (asked = []),
  };
  const outbox = createOutbox({ client, partitions: 1, clock, slices: createSlices(systemClock), log: quietLog });
  const untold = (): number => [...partition.view.vpn.untold()].length;
  const settled = async (): Promise<void> => sleep(20);
  const next = async (): Promise<void> => void (await until('asks', () => asked.length > 0));

  outbox.look(partition);
  outbox.look(partition);
  await next();
  t.equal(asked.length, outboxItemsPerSweep, 'each is under way once');
  answerAll('ok');
  await next();
  t.equal(untold(), 20);
  t.equal(asked.length, 20, 'the others follow');
  answerAll('timeout');
  await settled();
  outbox.look(partition);
  await settled();
  t.same(asked, [], 'nobody answered: not at once again');
  ms += limits.retryMinMs + 1;
  outbox.look(partition);
  await next();
  t.equal(asked.length, 20);
  answerAll('conflict');
  await settled();
  ms += limits.retryMinMs + 1;
  outbox.look(partition);
  await settled();
  t.same(asked, [], 'and later each time');
  ms += limits.retryMaxMs;
  outbox.look(partition);
  await next();
  answerAll('ok');
  await until('all is told', () => untold() === 0);
  outbox.look(partition);
  t.same(asked, []);
});

t.test('each outbox item has its question, and each answer its change', (t) => {
  const [peer, told] = [peerRecord({ told: 0 }), peerRecord()];
  const gone: PeerTombstoneRecord = {
    kind: 'peer_tombstone',
    id: peerId(),
    tenant: acme,
    network: home,
    generation: 4,
    told: false,
    revoked: [],
    goneAtMs: 1,
  };
  const old = leaseOf(5, acme, peerId(), { phase: 'reserved', atMs: 1000 });
  const young = leaseOf(6, acme, peerId(), { phase: 'reserved', atMs: 1001 });
  const state = stateOf(networkRecord(), peer, told, gone, old, young, heldOf(told));
  const found = [...outboxOf(state, 1000 + reservationTtlMs)];
  t.match(found, [
    { kind: 'tell', record: { id: peer.id } },
    { kind: 'tell', record: { id: gone.id } },
    { kind: 'release', lease: { index: 5 } },
  ]);
  t.equal(found.length, 3);
  t.not(partitionOf(home, 16), partitionOf(acme, 16));
  const asks = byPartition(found, 16).map((group) => group.map(({ question }) => question));
  t.match(asks, [
    [
      { type: 'network.learn', network: home, op: `tell-${peer.id}-1` },
      { type: 'network.learn', network: home, op: `tell-${gone.id}-4` },
    ],
    [{ type: 'peer.forgo', tenant: acme, op: `forgo-${old.peer}-home` }],
  ]);
  const [tellOfPeer, tellOfGone, release] = found as [(typeof found)[0], (typeof found)[0], (typeof found)[0]];
  const cases = [
    ['told', tellOfPeer, { code: 'ok', body: '{"data":null}' }, [{ told: 1 }], []],
    ['told, for a deleted peer', tellOfGone, { code: 'ok', body: '{"data":{"problem":null}}' }, [{ told: true }], []],
    ['the network is gone', tellOfPeer, { code: 'not_found', body: '' }, [{ told: 0, problem: 'network' }], []],
    ['gone as its network', tellOfGone, { code: 'not_found', body: '' }, [{ told: true }], []],
    ['its address', tellOfPeer, { code: 'ok', body: '{"data":{"problem":"address"}}' }, [{ problem: 'address' }], []],
    ['refused', tellOfPeer, { code: 'conflict', body: '' }, undefined, []],
    ['damaged', tellOfGone, { code: 'internal', body: '' }, undefined, []],
    ['not there', release, { code: 'ok', body: '{"data":{"there":false}}' }, [], [keys.lease(home, 5)]],
    ['there', release, { code: 'ok', body: '{"data":{"there":true}}' }, undefined, []],
    ['unknown', release, { code: 'internal', body: '{"error":"internal"}' }, undefined, []],
  ] as const;
  for (const [what, item, answer, records, deletes] of cases) {
    const changes = outcomeOf(item, answer)?.(state, { nowMs: 1 });
    if (records === undefined) t.equal(changes, undefined, what);
    else {
      t.match(changes?.records, records, what);
      t.same(changes?.deletes, deletes, what);
    }
  }
  t.end();
});

// Two partitions, an owner, a nats-server

const partitions = 4;
/** A tenant in another partition than the network. */
const tenant: TenantId = tenantId(
  ['a', 'b', 'c', 'd', 'e'].find((name) => partitionOf(name, partitions) !== partitionOf(home, partitions)) ?? 'a',
);

async function startOwner(t: Test, ground: Ground, clock: Clock) {
  const nc = await controlPlane(ground.nats);
  t.teardown(() => nc.close());
  const owner = ownerOn(ground, nc, { clock });
  await owner.start();
  return owner;
}

t.test('a peer and its network in two partitions agree, even after a crash between the steps', async (t) => {
  const ground = await startCluster(t, partitions);
  let aheadMs = 0;
  const clock: Clock = { nowMs: () => Date.now() + aheadMs, monotonicMs: () => systemClock.monotonicMs() };
  const owner = await startOwner(t, ground, clock);
  t.not(partitionOf(tenant, partitions), partitionOf(home, partitions));
  const ask = createAsker(ground.nc, partitions);
  const created = await ask({ type: 'network.create', network: home, made: madeNetwork(), op: operation() });
  t.equal(created.code, 'created');
  const leases = async () => dataOf<LeaseRecord[]>(await ask({ type: 'network.leases', network: home, after: 0 }));
  const refused = async () =>
    dataOf<RevocationEntry[]>(await ask({ type: 'network.revocations', network: home, after: '' }));
  const allocated = async () =>
    dataOf<NetworkView>(await ask({ type: 'network.get', network: home })).addresses.allocated;

  const peer = peerId();
  const of = { tenant, peer };
  const reserved = await ask({ type: 'network.reserve', network: home, by: of, op: operation() });
  const { index } = dataOf<Reservation>(reserved);
  t.same(await leases(), []);
  const made = madePeer('phone', index);
  t.equal((await ask({ type: 'peer.create', ...of, made, op: operation() })).code, 'created');
  const [held] = await until('a lease', leases, (all) => all.length > 0);
  t.match(held, { peer, tenant, index, state: { phase: 'held', generation: 1, enabled: true } });

  const { serial } = made.certificate;
  await ask({ type: 'peer.update', ...of, update: { enabled: false }, op: operation() });
  const [hold] = await until('the revocation of the disabled peer', refused, (all) => all.length > 0);
  t.match(hold, { serial, reason: 'certificateHold' });
  await ask({ type: 'peer.update', ...of, update: { enabled: true }, op: operation() });
  await until('no revocation', refused, (all) => all.length === 0);

  const next = keysOf();
  await ask({ type: 'peer.rotate', ...of, replaces: serial, ...newSecrets(next), op: operation() });
  t.match(await until('the revocation of the old key', refused, (all) => all.length > 0), [
    { serial, reason: 'superseded' },
  ]);
  const [rotated] = await until(
    'the rotated lease',
    leases,
    ([lease]) => lease?.state.phase === 'held' && lease.state.generation === 4,
  );
  t.match(rotated?.state, { certificates: [{ serial: next.certificate.serial }] });

  t.equal((await ask({ type: 'peer.remove', ...of, op: operation() })).code, 'no_content');
  t.equal((await ask({ type: 'peer.get', ...of })).code, 'not_found');
  await until('no address allocated', allocated, (count) => count === 0);
  t.same(
    (await refused()).map((entry) => [entry.serial, entry.reason]),
    [
      [serial, 'superseded'],
      [next.certificate.serial, 'cessationOfOperation'],
    ].sort(([one = ''], [other = '']) => (one < other ? -1 : 1)),
  );

  const crashed = { tenant, peer: peerId() };
  await ask({ type: 'network.reserve', network: home, by: crashed, op: operation() });
  const given = { tenant, peer: peerId() };
  await ask({ type: 'network.reserve', network: home, by: given, op: operation() });
  t.equal((await ask({ type: 'network.release', network: home, by: given, op: operation() })).code, 'ok');
  await until('one address allocated', allocated, (count) => count === 1);
  await owner.stop();

  aheadMs = reservationTtlMs;
  const second = await startOwner(t, ground, clock);
  t.teardown(() => second.stop());
  await until('no address allocated', allocated, (count) => count === 0);
  const late = await ask({ type: 'peer.create', ...crashed, made: madePeer('late', 3), op: operation() });
  t.equal(late.code, 'conflict', 'its create comes late');
  t.same(dataOf<PeerView[]>(await ask({ type: 'peer.list', tenant, limit: 9, before: null })), []);
});

t.test('two hundred peers of many tenants at once get two hundred leases', async (t) => {
  const ground = await startCluster(t, partitions);
  const owner = await startOwner(t, ground, systemClock);
  t.teardown(() => owner.stop());
  const ask = createAsker(ground.nc, partitions);
  await ask({ type: 'network.create', network: home, made: madeNetwork(), op: operation() });
  const indexes = await Promise.all(
    Array.from({ length: 200 }, async (_, number) => {
      const of = { tenant: tenantId(`t${number % 25}`), peer: peerId() };
      const reserved = await ask({ type: 'network.reserve', network: home, by: of, op: operation() });
      const { index } = dataOf<Reservation>(reserved);
      const created = await ask({ type: 'peer.create', ...of, made: madePeer(`p${number}`, index), op: operation() });
      t.equal(created.code, 'created');
      return index;
    }),
  );
  t.equal(new Set(indexes).size, 200);
  const held = await until(
    'the leases of all peers',
    async () => dataOf<LeaseRecord[]>(await ask({ type: 'network.leases', network: home, after: 0 })),
    (all) => all.length === 200,
  );
  t.same(
    held.map(({ index }) => index),
    [...indexes].sort((one, other) => one - other),
  );
});
