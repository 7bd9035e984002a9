/** Answers of owners to a sync: their partitions, and the number of messages. */
import t, { type Test } from 'tap';
import { isPeer } from '../../../../schemas/wire/members.ts';
import { directoryEntry } from '../../../../actors/domain/host/decide.ts';
import type { StateRecord } from '../../../../actors/domain/records.ts';
import { noChanges } from '../../../../actors/domain/turn.ts';
import { Fleet } from '../../../../actors/endpoints/fleet.ts';
import { answerSync } from '../../../../actors/endpoints/hosts/sync.ts';
import type { Partition } from '../../../../actors/partition.ts';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { messageDecoder } from '../../../../lib/decode.ts';
import { createSlices } from '../../../../lib/time/slices.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { SyncAnswer, type SyncAsk } from '../../../../schemas/wire/host.ts';
import type { DirectoryMessage } from '../../../../schemas/wire/directory.ts';
import { digestOfMembers } from '../../../../schemas/wire/members.ts';
import { basisOf, digestOf } from '../../../../schemas/wire/set-digest.ts';
import { partitionOf } from '../../../../schemas/wire/subjects.ts';
import { protocolVersion } from '../../../../schemas/wire/version.ts';
import { agentKey, agentOf, quietLog, tenantId } from '../../support.ts';
import { MemoryBucket, createMemorySink, createMemoryStore } from '../../support/memory-store.ts';
import { createPartition } from '../../support/partition.ts';
import { container, h1, h2, hostRecord, placedOn } from '../../support/records.ts';
import { home, peerRecord } from '../../support/vpn.ts';

const decodeAnswer = messageDecoder(SyncAnswer);
const host = hostRecord(h1, { publicKey: agentKey });

/**
 * All partitions of a cluster, owned by so many processes. Each has one container of this host, and
 * one that was moved away.
 */
async function cluster(t: Test, partitions: number, processes = 1) {
  const home = partitionOf(h1, partitions);
  const moved = new Map<number, ContainerRecord>();
  for (let index = 0; moved.size < partitions; index++) {
    const tenant = tenantId(`t${index}`);
    const number = partitionOf(tenant, partitions);
    const placement = placedOn(h2, 'platform', 5);
    if (!moved.has(number)) moved.set(number, container({ tenant, placement, history: [h1, h2] }, 'moved'));
  }
  const fleet = new Fleet({ clock: systemClock, partitions, hostUnknownMs: 60_000 });
  const directory: DirectoryMessage = {
    partition: home,
    epoch: 1,
    revision: 1,
    changes: 1,
    full: true,
    entries: [directoryEntry(host)],
    removed: [],
    unreadable: [],
  };
  fleet.learn(directory);
  const stores = new Map<number, ReturnType<typeof createMemoryStore>>();
  const take = async (number: number): Promise<Partition> => {
    const store = stores.get(number);
    if (store === undefined) throw new Error(`no store ${number}`);
    const partition = createPartition({ number, fleet, store, events: createMemorySink([]) });
    await partition.start();
    t.teardown(() => partition.release());
    return partition;
  };
  const owned = await Promise.all(
    [...moved].map(async ([number, away]): Promise<Partition> => {
      const bucket = new MemoryBucket();
      const here = container({ tenant: away.tenant });
      for (const record of [here, away]) bucket.set(keys.container(record.tenant, record.id), encodeValue(record));
      if (number === home) bucket.set(keys.host(h1), encodeValue(host));
      stores.set(number, createMemoryStore(bucket));
      return take(number);
    }),
  );
  /** Another process takes the partition. */
  const takeOver = async (number: number): Promise<void> => {
    const { partition } = of(number);
    await partition.release();
    owned.splice(owned.indexOf(partition), 1, await take(number));
  };
  const said: string[] = [];
  const ask = (more: Partial<SyncAsk> = {}): SyncAnswer[] => {
    said.length = 0;
    for (let process = 0; process < processes; process++) {
      const options = {
        cluster: { id: 'c', partitions, format: 1 as const },
        owned: () => owned.filter(({ number }) => number % processes === process),
        fleet,
        // Its time stands still: no answer is cut off, however slow the machine is.
        slices: createSlices({ monotonicMs: () => 0 }),
        log: quietLog,
        onRefused: (message: string) => void t.fail(message),
        newParts: { process: protocolVersion },
      };
      answerSync(options, agentOf(h1), { v: 1, held: {}, ...more }, (text) => void said.push(text));
    }
    return said.map((text) => decodeAnswer(Buffer.from(text)));
  };
  /** Puts these records, as a turn does. */
  const put = async (number: number, ...records: StateRecord[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const { partition } = of(number);
      const changes = records.map((record) => ({ ...noChanges, records: [record] }));
      if (!partition.change('test', () => changes, resolve)) reject(new Error('not taken'));
    });
  const of = (number: number): { readonly partition: Partition; readonly away: ContainerRecord } => {
    const partition = owned.find((each) => each.number === number);
    const away = moved.get(number);
    if (partition === undefined || away === undefined) throw new Error(`no partition ${number}`);
    return { partition, away };
  };
  const fence = (): void => {
    fleet.learn({ ...directory, revision: 2, entries: [{ ...directoryEntry(host), fenced: true }] });
  };
  return { home, of, ask, put, takeOver, fleet, fence, held: heldOf(ask()), said, directory };
}

const heldOf = (answers: readonly SyncAnswer[]): SyncAsk['held'] =>
  Object.fromEntries(answers.map(({ partition, epoch, revision }) => [String(partition), [epoch, revision]]));
/** All partitions that a message speaks for. */
const namedBy = ({ partition, also = [] }: SyncAnswer): number[] => [partition, ...also.map(([number]) => number)];
const sorted = (numbers: readonly number[]): number[] => [...numbers].sort((one, other) => one - other);
const all = (count: number): number[] => Array.from({ length: count }, (_, number) => number);

t.test('one message speaks for all partitions of an owner that are the same', async (t) => {
  const { ask, held, home } = await cluster(t, 8);
  const answers = ask({ held });
  t.equal(answers.length, 1);
  t.same(sorted(answers.flatMap(namedBy)), all(8));
  const [first] = answers;
  t.match(first, { partition: home, orphan_word: 0 }, 'the partition of the host has more to say');
  t.match(first, { same: true, part: 0, parts: 1, containers: [], hold: [] });
  const versions = Object.fromEntries((first?.also ?? []).map(([number, ...at]) => [String(number), at]));
  t.same({ ...heldOf(answers), ...versions }, held, 'each at its version');
  t.same(sorted(ask({ held, partitions: [1, 2, 3] }).flatMap(namedBy)), [1, 2, 3], 'of those that it asks for');
});

t.test('a partition that has more to say says it itself', async (t) => {
  const { ask, held, home, of, said } = await cluster(t, 8);
  const others = all(8).filter((number) => number !== home);
  const [changed = 0, gave = 0, busy = 0] = others;
  const { partition } = of(busy);
  const waiting: (() => void)[] = [];
  const project = partition.project.bind(partition);
  partition.project = ({ then, ...asked }) =>
    project({ ...asked, then: (value) => void waiting.push(() => then(value)) });
  const { [String(changed)]: _, ...rest } = held;
  const { away } = of(gave);
  const strangers = [{ tenant: away.tenant, id: away.id, placement: 2 }];
  const answers = ask({ held: rest, strangers });
  const answerOf = (number: number): SyncAnswer | undefined => answers.find((each) => each.partition === number);
  t.equal(answers.length, 3);
  t.match(answerOf(changed), { same: false, also: undefined }, 'the agent holds another version');
  t.equal(answerOf(changed)?.containers.length, 1);
  const gone = [{ id: away.id, placement: 2 }];
  t.match(answerOf(gave), { same: true, gone, also: undefined }, 'a verdict on strangers');
  t.notOk(answers.flatMap(namedBy).includes(busy), 'a commit under way holds up no other partition');
  t.same(
    sorted(answers.flatMap(namedBy)),
    all(8).filter((number) => number !== busy),
  );
  for (const then of waiting) then();
  t.match(JSON.parse(said.at(-1) ?? '{}'), { partition: busy, same: true }, 'it is answered when that is committed');
});

/**
 * The part of an ask that names the sets in these answers, as an agent that took them in sends it.
 */
const namedOf = (answers: readonly SyncAnswer[]): Pick<SyncAsk, 'held' | 'digests'> => ({
  held: heldOf(answers),
  digests: Object.fromEntries(answers.map(({ partition, digest = '' }) => [String(partition), digest])),
});

t.test('an agent gets what has changed since the version that it names', async (t) => {
  const { ask, of, put } = await cluster(t, 2);
  const { tenant } = of(1).away;
  const whole = ask({ digests: {}, partitions: [1] });
  const [before] = whole;
  t.match(before, { same: false, since: undefined, containers: [{ tenant }] });
  const first = namedOf(whole);
  const kept = container({ tenant }, 'kept');
  const left = container({ tenant }, 'left');
  await put(1, kept, left);
  await put(1, { ...left, generation: 2, placement: placedOn(h2, 'platform', 2) });

  const [changes, ...others] = ask({ ...first, partitions: [1] });
  t.equal(others.length, 0);
  t.match(changes, {
    same: false,
    since: first.held['1'],
    containers: [{ id: kept.id }],
    removed: [left.id],
    hold: [],
  });
  t.equal(changes?.containers.length, 1);
  const mine = [...(before?.containers ?? []), ...(changes?.containers ?? [])];
  t.equal(changes?.digest, digestOf(basisOf(0), mine, []), 'they lead to the set that the owner has');

  const [same] = ask({ ...namedOf(changes === undefined ? [] : [changes]), partitions: [1] });
  t.match(same, { same: true, containers: [], removed: undefined });
});

t.test('an agent that has lost a change gets the whole set', async (t) => {
  const { ask, of, put } = await cluster(t, 2);
  const named = namedOf(ask({ digests: {}, partitions: [1] }));
  const digests = { 1: digestOf(basisOf(0), [], []) };
  t.match(ask({ ...named, digests, partitions: [1] }), [{ same: false, since: undefined, containers: [{}] }]);
  t.match(ask({ held: named.held, digests: {}, partitions: [1] }), [{ same: true }], 'where the agent can compare');
  // So many changes that the first is forgotten.
  for (let changes = 0; changes <= limits.syncChanges;) {
    const records = Array.from({ length: 512 }, (_, n) => container({ tenant: of(1).away.tenant }, `c${changes + n}`));
    await put(1, ...records);
    changes += records.length;
  }
  const answers = ask({ ...named, partitions: [1] });
  t.ok(answers.every(({ same, since }) => !same && since === undefined));
  t.equal(answers.flatMap(({ containers }) => containers).length, 1 + 9 * 512);
});

t.test('after a takeover an unchanged set is the same, and a changed one is sent whole', async (t) => {
  const { ask, of, put, takeOver } = await cluster(t, 2);
  const named = namedOf(ask({ digests: {} }));
  for (const number of [0, 1]) await takeOver(number);
  await put(1, container({ tenant: of(1).away.tenant }, 'new'));
  const answers = ask({ ...named });
  t.match(
    [0, 1].map((number) => answers.find(({ partition }) => partition === number)),
    [{ same: true }, { same: false, since: undefined, containers: [{}, {}] }],
  );
  const [epoch] = named.held['0'] ?? [];
  t.ok((answers.find(({ partition }) => partition === 0)?.epoch ?? 0) > (epoch ?? 0), 'under the new epoch');
});

t.test('a removed host learns nothing of other partitions', async (t) => {
  const { ask, held, fence } = await cluster(t, 8);
  fence();
  const answers = ask({ held });
  t.equal(answers.length, 8);
  t.ok(answers.every(({ fenced, also }) => fenced === true && also === undefined));
});

t.test('messages of one sync, and their bytes', async (t) => {
  for (const [partitions, processes] of [
    [16, 3],
    [256, 100],
  ] as const) {
    const { ask, held, said } = await cluster(t, partitions, processes);
    const bytes = (): number => said.reduce((sum, { length }) => sum + length, 0);
    const answers = ask({ held });
    t.same(sorted(answers.flatMap(namedBy)), all(partitions));
    t.comment(`${partitions} partitions, ${processes} processes: ${said.length} messages of ${bytes()} bytes`);
    t.ok(said.length <= processes);
    t.ok(answers.every(({ also = [] }) => also.length <= limits.syncSame));
  }
});

t.test('an agent that does not know a part of a container leaves the container as it is', async (t) => {
  const { ask, put, of } = await cluster(t, 1);
  const { tenant } = of(0).away;
  const { spec } = container({ tenant });
  const worker = container({ tenant, spec: { ...spec, name: 'worker', process: { user: '7' } } }, 'worker');
  await put(0, worker);
  const heldAndSent = (protocol: number) => {
    const [answer] = ask({ protocol });
    return [answer?.hold, answer?.containers.filter(({ id }) => id === worker.id).map(({ process }) => process)];
  };
  t.same(heldAndSent(protocolVersion - 1), [[worker.id], []]);
  t.same(heldAndSent(protocolVersion), [[], [{ user: '7' }]]);
});

t.test('members of the tenants that a host has containers of', async (t) => {
  const { ask, of, put, takeOver, fleet } = await cluster(t, 1);
  const { tenant, id: away } = of(0).away;
  const used = { cpu_millis: 0, mem_bytes: 0, containers: 0 };
  const quiet = { orphans_held: 0, volumes_left: 0, faults: [], room: {} };
  const heartbeat = { v: 1 as const, session: 1, used, engine: 'test', ...quiet };
  const whole = ask({ digests: {}, members: {} });
  const [first] = whole;
  t.match(first, { tenants: [{ tenant, since: undefined }] });
  const namesOf = (answer: SyncAnswer | undefined): string[] =>
    (answer?.members ?? []).map((each) => (isPeer(each) ? each.id : `${each.name} ${each.host ?? ''}`)).sort();
  t.same(namesOf(first), [`moved ${h2}`, `web ${h1}`], 'those on other hosts too');
  const namedIn = (answer: SyncAnswer | undefined): NonNullable<SyncAsk['members']> =>
    Object.fromEntries(
      (answer?.tenants ?? []).map((each) => [each.tenant, [answer?.epoch ?? 0, each.revision, each.digest, each.mesh]]),
    );
  const held = namedOf(whole);
  const known = namedIn(first);
  t.match(ask({ ...held, members: known }), [{ same: true, tenants: undefined }], 'an agent that has them');

  const store = container({ tenant, placement: placedOn(h2) }, 'store');
  const aliased = { ...store, spec: { ...store.spec, project: 'shop', aliases: ['db'] } };
  await put(0, store);
  await put(0, aliased);
  await put(0, { ...aliased, observedAtMs: 901_000 });
  const [changes] = ask({ ...held, members: known });
  t.match(changes, {
    same: false,
    containers: [],
    removed: [],
    tenants: [{ tenant, since: first?.tenants?.[0]?.revision }],
    members: [{ id: store.id, name: 'store', project: 'shop', aliases: ['db'], host: h2 }],
    members_gone: [],
  });
  t.equal(changes?.members?.length, 1);
  const all = [...(first?.members ?? []), ...(changes?.members ?? [])];
  t.equal(changes?.tenants?.[0]?.digest, digestOfMembers(basisOf(0), all), 'they lead to the list of the owner');

  await put(0, { ...aliased, desired: 'removed', generation: 3 });
  const [gone] = ask({ ...held, members: namedIn(changes) });
  t.match(gone, { members: [], members_gone: [{ tenant, id: store.id }] });

  await takeOver(0);
  const [after] = ask({ ...held, members: namedIn(gone) });
  t.same(after?.tenants ?? [], [], 'another owner finds by the digest that they are the same');
  const [stale] = ask({ ...held, members: known });
  t.same(stale?.tenants ?? [], [], 'and that these are, too');
  t.match(ask({ ...held, members: { [tenant]: [1, 1, '1.0.0.0', ''] } }), [{ tenants: [{ since: undefined }] }]);
  t.match(ask(held), [{ tenants: undefined }], 'a host without the network asks for none');

  const end = { key: `${'A'.repeat(43)}=`, address: '192.0.2.7', port: 51_820 };
  fleet.takeHeartbeat(h1, { ...heartbeat, mesh: end });
  const [ends] = ask({ ...held, members: namedIn(gone) });
  t.match(ends, { mesh: [{ host: h1, end }] }, 'another owner sends all, and the ends of their hosts');
  t.match(ask({ ...held, members: namedIn(ends) }), [{ same: true, mesh: undefined }]);
  fleet.takeHeartbeat(h1, { ...heartbeat, mesh: { ...end, port: 51_821 } });
  const [moved] = ask({ ...held, members: namedIn(ends) });
  t.match(
    moved,
    { members: [], mesh: [{ host: h1, end: { ...end, port: 51_821 } }] },
    'an end that moves, and no member',
  );
  t.match(moved?.tenants, [{ tenant, since: ends?.tenants?.[0]?.revision }]);
  t.ok(away);
});

t.test('peers of tenants in a VPN network that the host serves', async (t) => {
  const { ask, put, fleet, directory } = await cluster(t, 1);
  const key = `${'A'.repeat(43)}=`;
  const wireguard = { ...peerRecord().wireguard, publicKey: key };
  // Of a tenant that has no container here.
  const phone = peerRecord({ tenant: tenantId('mobile'), wireguard, expiresAtMs: 5000 });
  await put(0, phone);
  const whole = ask({ digests: {}, members: {} });
  const held = namedOf(whole);
  const named = (answers: readonly SyncAnswer[]): NonNullable<SyncAsk['members']> =>
    Object.fromEntries(
      answers.flatMap(({ epoch, tenants = [] }) =>
        tenants.map(({ tenant, revision, digest, mesh }) => [tenant, [epoch, revision, digest, mesh]]),
      ),
    );
  t.notOk(
    whole.some(({ tenants = [] }) => tenants.some(({ tenant }) => tenant === phone.tenant)),
    'no business of it',
  );

  const served = { key, port: 7, mtu: null, ipv4_pool: '10.86.0.0/24', ipv6_pool: null };
  const server = { ...served, tenants: null, certificate: '1a' };
  const serve = (changes: number, ...hosts: readonly HostKey[]): boolean =>
    fleet.learn({ ...directory, changes, servers: hosts.map((host) => ({ network: home, host, ...server })) });
  t.ok(serve(2, h1));
  const known = named(whole);
  const [given] = ask({ ...held, members: known });
  t.match(given, {
    tenants: [{ tenant: phone.tenant }],
    members: [{ id: phone.id, network: home, ipv4: phone.ipv4, ipv6: null, key, expires_at_ms: 5000 }],
    servers: [{ network: home, server: { host: h1, ...server } }],
    tenants_gone: [],
  });
  const all = { ...known, ...named([given as SyncAnswer]) };
  t.match(ask({ ...held, members: all }), [{ same: true }], 'an agent that has it');

  await put(0, { ...phone, enabled: false, generation: 2 });
  const [disabled] = ask({ ...held, members: all });
  t.match(disabled, { members: [], members_gone: [{ tenant: phone.tenant, id: phone.id }] });
  await put(0, { ...phone, generation: 3 });

  t.ok(serve(3, h2));
  const [moved] = ask({ ...held, members: all });
  t.match(moved, { tenants: [], members: [], tenants_gone: [phone.tenant] }, 'another host serves it');
});

t.test('an owner that has not heard of all networks takes no tenant from a host', async (t) => {
  const { ask, fleet, directory } = await cluster(t, 2);
  const stranger = tenantId('stranger');
  const gone = (): string[] =>
    ask({ digests: {}, members: { [stranger]: [1, 1, '1.0.0.0', ''] } }).flatMap(({ tenants_gone: left = [] }) => left);
  t.same(gone(), []);
  t.ok(fleet.learn({ ...directory, partition: 1 - directory.partition, entries: [], servers: [] }));
  t.same(gone(), [stranger]);
});
