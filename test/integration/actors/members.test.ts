/**
 * Several actors processes on one nats-server: which one has which partition, and what happens when
 * one leaves.
 */
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import type { Owner } from '../../../actors/owner.ts';
import { createJetStreamMemberStore } from '../../../actors/membership/jetstream-member-store.ts';
import type { MemberStore } from '../../../actors/membership/member-store.ts';
import { Membership } from '../../../actors/membership/membership.ts';
import { memberFor } from '../../../actors/membership/rendezvous.ts';
import { decodeValue } from '../../../actors/runtime/journal/codec.ts';
import { epochShape, type EpochRecord } from '../../../actors/runtime/store/epoch.ts';
import { createJetStreamStore } from '../../../actors/runtime/store/jetstream-store.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock, type Clock } from '../../../lib/time/clock.ts';
import { buckets } from '../../../schemas/records/buckets.ts';
import type { Container } from '../../../schemas/api/container.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { defaultCaps, limits } from '../../../schemas/limits.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import { decodeAnswers, encodeAsks } from '../../../schemas/wire/codec.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { containerId, operation, quietLog, specOf, tenantId } from '../../actors/support.ts';
import { controlPlane, ownerOn, startCluster, type Ground } from './support.ts';
import { until } from '../../support/until.ts';

const partitions = 8;

interface Process {
  readonly owner: Owner;
  readonly nc: NatsConnection;
}

async function startProcess(t: Test, ground: Ground, more: Parameters<typeof ownerOn>[2] = {}): Promise<Process> {
  const nc = await controlPlane(ground.nats);
  const owner = ownerOn(ground, nc, more);
  await owner.start();
  t.teardown(async () => {
    if (!nc.isClosed()) await owner.stop();
    await nc.close();
  });
  return { owner, nc };
}

const numbersOf = ({ owner }: Process): number[] => [...owner.manager.serving()].map(({ number }) => number);

/** Generous, because other tests run on the machine at the same time. */
const insistMs = 60_000;

/** Asks as a gateway does: repeatedly, under the same operation id, until an owner answers. */
async function insist(
  nc: NatsConnection,
  ask: Record<string, unknown> & { tenant: string },
): Promise<{ code: string; body: string }> {
  const subject = subjects.partition(partitionOf(ask.tenant, partitions));
  const payload = encodeAsks([JSON.stringify({ rid: randomUUID(), budgetMs: insistMs, ...ask })]);
  const endMs = performance.now() + insistMs;
  while (performance.now() < endMs) {
    const message = await nc.request(subject, payload, { timeout: 2000 }).catch(() => undefined);
    const [answer] = message === undefined ? [] : decodeAnswers(message.string());
    if (answer !== undefined && answer.code !== 'not_owner') return answer;
    await sleep(10);
  }
  throw new Error(`${String(ask['type'])}: never answered`);
}

const create = (tenant: string, name: string) => ({
  type: 'container.create',
  tenant,
  id: containerId(),
  op: operation(),
  spec: specOf(name),
  idempotency: null,
});

t.test('a second and a third process get their shares, and the others take over what one leaves', async (t) => {
  const ground = await startCluster(t, partitions);
  const first = await startProcess(t, ground);
  t.equal(first.owner.serving(), partitions, 'alone, it has all');
  const second = await startProcess(t, ground);
  const third = await startProcess(t, ground);
  const all = [first, second, third];
  const isSpread = (): boolean => {
    const members = all.map(({ owner }) => owner.manager.membership.id);
    return all.every(({ owner }) =>
      Array.from({ length: partitions }, (_, number) => number).every(
        (number) =>
          (memberFor(number, members) === owner.manager.membership.id) ===
          numbersOf({ owner } as Process).includes(number),
      ),
    );
  };
  await until('each has what is its own', isSpread);
  await second.owner.stop();
  await second.nc.close();
  const startMs = performance.now();
  await until('all is served', () => numbersOf(first).length + numbersOf(third).length === partitions);
  t.comment(`within ${Math.round(performance.now() - startMs)} ms of a clean stop`);
  t.same(
    [...numbersOf(first), ...numbersOf(third)].sort((a, b) => a - b),
    [...Array(partitions).keys()],
  );
});

t.test('processes come and go under load: no request fails, and none is executed twice', async (t) => {
  const ground = await startCluster(t, partitions);
  let current = await startProcess(t, ground);
  const ending = new AbortController();
  const names = new Map<string, string>();
  const worstMs: number[] = [];
  const client = async (tenant: string): Promise<void> => {
    let last = performance.now();
    for (let index = 0; !ending.signal.aborted; index++) {
      const ask = create(tenant, `c${index}`);
      const answer = await insist(ground.nc, ask);
      // The tenant has the default caps, so a create above them is refused, which is an answer too.
      t.match(answer.code, /^(created|over_quota)$/);
      if (answer.code === 'created') names.set(`${tenant}/${ask.id}`, `c${index}`);
      const read = await insist(ground.nc, { type: 'container.list', tenant, limit: 100, before: null });
      const listed = (JSON.parse(read.body) as { data: Container[] }).data.map(({ id }) => `${tenant}/${id}`);
      const known = [...names.keys()].filter((key) => key.startsWith(`${tenant}/`));
      if (known.some((key) => !listed.includes(key))) t.fail(`${tenant}: a list lacks what was created`);
      if (listed.length > known.length) t.fail(`${tenant}: a list has what was not created`);
      worstMs.push(performance.now() - last);
      last = performance.now();
      await sleep(5);
    }
  };
  const tenants = Array.from({ length: 6 }, (_, index) => `t${index}`);
  const working = Promise.all(tenants.map(client));
  for (let round = 0; round < 2; round++) {
    const next = await startProcess(t, ground);
    const enough = worstMs.length + 10 * tenants.length;
    await until('both serve under load', () => worstMs.length >= enough && next.owner.serving() > 0);
    await current.owner.stop();
    await current.nc.close();
    current = next;
  }
  const capped = tenants.length * defaultCaps.containers;
  await until('every tenant has reached its cap', () => names.size >= capped);
  ending.abort();
  await working;
  t.comment(`slowest of ${worstMs.length} rounds: ${Math.round(Math.max(...worstMs))} ms`);
  t.equal(names.size, capped);
});

t.test('others take over from a silent process, which answers nothing old when it is back', async (t) => {
  const ground = await startCluster(t, partitions);
  // A frozen process: its messages do not leave, and its clock runs on.
  const frozen = await startProcess(t, ground);
  const other = await startProcess(t, ground);
  await until(
    'both have some',
    () =>
      numbersOf(frozen).length > 0 &&
      numbersOf(other).length > 0 &&
      numbersOf(frozen).length + numbersOf(other).length === partitions,
  );
  const [number] = numbersOf(frozen);
  const [partition] = [...frozen.owner.manager.serving()];
  if (partition === undefined || number === undefined) return t.fail();
  const tenant =
    Array.from({ length: 100 }, (_, index) => `t${index}`).find((name) => partitionOf(name, partitions) === number) ??
    '';
  const publish = frozen.nc.publish.bind(frozen.nc);
  const request = frozen.nc.request.bind(frozen.nc);
  frozen.nc.publish = () => {};
  frozen.nc.request = async () => Promise.reject(new Error('frozen'));
  const before = other.owner.serving();
  let isEarly = false;
  await until('the other has all', () => {
    // The last renewal may be well before the freeze, so only the lease itself tells when it is
    // over.
    if (other.owner.serving() > before && frozen.owner.manager.membership.lease().isValid()) isEarly = true;
    return other.owner.serving() === partitions;
  });
  t.notOk(isEarly, 'not before its lease was over');
  t.equal((await insist(ground.nc, create(tenant, 'new'))).code, 'created');

  const answers: string[] = [];
  partition.read(
    { type: 'container.list', tenant: tenantId(tenant), limit: 10, before: null, rid: 'r', budgetMs: 60_000 },
    (code) => answers.push(code),
  );
  await sleep(300);
  t.same(answers, [], 'a lapsed lease answers no read');
  frozen.nc.publish = publish;
  frozen.nc.request = request;
  await until('it has found out', () => answers.length > 0);
  t.same(answers, ['not_owner']);
  await until('it comes back, as another member', () => frozen.owner.serving() > 0);
});

t.test('asks that waited for a lapsed lease are answered after its renewal', async (t) => {
  const ground = await startCluster(t, partitions);
  const { owner, nc } = await startProcess(t, ground);
  const [partition] = [...owner.manager.serving()];
  if (partition === undefined) return t.fail();
  const { epoch } = partition;
  const request = nc.request.bind(nc);
  nc.request = async () => Promise.reject(new Error('no leader'));
  await until('it lapses', () => !owner.manager.membership.lease().isValid());
  const answered: string[] = [];
  partition.read(
    { type: 'host.list', partition: partition.number, limit: 1, after: '', rid: 'r', budgetMs: 60_000 },
    (code) => answered.push(code),
  );
  await sleep(2 * limits.leaseUnchangedMs);
  t.same(answered, []);
  nc.request = request;
  await until('answered', () => answered.length > 0);
  t.same(answered, ['ok']);
  t.equal(partition.epoch, epoch, 'nothing had to be loaded again');
});

/** Members over one store, each with its own clock that a test can stop. */
function member(store: MemberStore, clock: Clock = systemClock) {
  const events: string[] = [];
  const membership = new Membership({
    store,
    clock,
    log: quietLog,
    newId: () => randomUUID() as MemberId,
    serving: () => [],
    refused: () => [],
    onRenewed: () => events.push('renewed'),
    onRevoked: () => events.push('revoked'),
    onWentBack: () => events.push('went back'),
    onLooked: () => {},
    announce: () => {},
  });
  return { membership, events };
}

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

/** Delays journal entries from now until they are released. */
function holdCommits(nc: NatsConnection): () => void {
  const request = nc.request.bind(nc);
  const commits = gate();
  nc.request = async (subject, ...more) => {
    if (subject.includes('.entry.')) await commits.opened;
    return request(subject, ...more);
  };
  return commits.open;
}

async function epochsOf({ nc }: Ground): Promise<EpochRecord[]> {
  const records: EpochRecord[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    const { bucket } = buckets.state;
    const { value } = await createJetStreamStore(nc, bucket(partition), randomUUID).readEpoch();
    const decoded = decodeValue(value ?? '', epochShape);
    if (decoded.ok) records.push(decoded.value);
  }
  return records;
}

t.test('a process that stops during a hand-over answers the asks it had accepted', async (t) => {
  const ground = await startCluster(t, partitions);
  const { owner, nc } = await startProcess(t, ground);
  const letGo = holdCommits(nc);
  const answers: string[] = [];
  for (const partition of owner.manager.serving()) {
    const ask = { ...create('acme', 'one'), rid: 'r', budgetMs: 8000 } as WriteAsk;
    partition.write(ask, undefined, (code) => answers.push(code));
  }
  // It takes no partition, so all that are released stay so.
  const other = member(createJetStreamMemberStore(ground.nc)).membership;
  await other.start();
  t.teardown(() => other.stop());
  await until('one is being given away', () => owner.serving() < partitions);
  const stopping = owner.stop();
  await until('all are', () => owner.serving() === 0);
  t.same(answers, [], 'nobody is refused');
  letGo();
  await stopping;
  t.same(answers, Array(partitions).fill('created'));
  t.same(
    (await epochsOf(ground)).map(({ released }) => released),
    Array(partitions).fill(true),
  );
});

t.test('a process whose cluster was replaced hands over nothing and answers nothing', async (t) => {
  const ground = await startCluster(t, partitions);
  const { owner, nc } = await startProcess(t, ground);
  const before = await epochsOf(ground);
  const [partition] = [...owner.manager.serving()];
  owner.drop();
  t.equal(owner.serving(), 0);
  const answered: string[] = [];
  partition?.read({ type: 'host.list', partition: 0, limit: 1, after: '', rid: 'r', budgetMs: 60_000 }, (code) =>
    answered.push(code),
  );
  t.same(answered, ['not_owner']);
  await owner.stop();
  await nc.close();
  t.same(await epochsOf(ground), before);
});

t.test('members are read by key: those that are asked for, and none where none is', async (t) => {
  const ground = await startCluster(t, partitions);
  const store = createJetStreamMemberStore(ground.nc);
  const [one, two, unknown] = ['one', 'two', 'three'] as MemberId[] as [MemberId, MemberId, MemberId];
  for (const id of [one, two]) await store.replace(id, id, 0);
  const idsOf = async (...ids: MemberId[]) => (await store.readSome(ids)).map(({ id }) => id).sort();
  t.same(await idsOf(one, two, unknown), [one, two]);
  t.same(await idsOf(two), [two]);
  t.same(await idsOf(), []);
  t.same(await idsOf(unknown), []);
});
