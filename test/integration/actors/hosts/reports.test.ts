/**
 * An agent's own reporter reports to an actors process on a real nats-server: which reports are
 * committed, and which are too old.
 */
import t, { type Test } from 'tap';
import { Fleet } from '../../../../actors/endpoints/fleet.ts';
import { serveAsks, sourceOf } from '../../../../actors/endpoints/asks.ts';
import { serveHosts } from '../../../../actors/endpoints/hosts/serve.ts';
import { serveReads } from '../../../../actors/endpoints/reads.ts';
import { noChanges } from '../../../../actors/domain/turn.ts';
import { PeersSeen } from '../../../../actors/usage/peers-seen.ts';
import { createUsageStore } from '../../../../actors/usage/store.ts';
import { startNats } from '../../../../dev/servers/nats.ts';
import { createReporter, type Reporter } from '../../../../host-agent/link/reporter.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import type { Fields } from '../../../../lib/log.ts';
import { createSlices } from '../../../../lib/time/slices.ts';
import { rateLimitedLog } from '../../../../lib/rate-limited-log.ts';
import type { Owner } from '../../../../actors/owner.ts';
import type { ContainerStatusView, Observation } from '../../../../schemas/api/container.ts';
import type { ContainerId, HostKey } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { HelloAnswer, Report, ReportAnswer } from '../../../../schemas/wire/host.ts';
import { partitionOf, subjects } from '../../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { agentOf, containerId, hostKey, operation, quietLog, specOf, tenantId } from '../../../actors/support.ts';
import { type Ground, controlPlane, createAsker, enrolHost, ownerOn, startCluster } from '../support.ts';
import { createMemorySink, createMemoryStore, MemoryBucket } from '../../../actors/support/memory-store.ts';
import { createPartition } from '../../../actors/support/partition.ts';
import { hostRecord, observation, roomy } from '../../../actors/support/records.ts';
import { until } from '../../../support/until.ts';
import { reportItemsPerTurn } from '../../../../actors/endpoints/hosts/report.ts';

const partitions = 4;
const containers = 200;
const tenant = tenantId('acme');
const host = hostKey('h1');

async function startOwner(t: Test, ground: Ground): Promise<Owner> {
  const nc = await controlPlane(ground.nats);
  t.teardown(() => nc.close());
  const owner = ownerOn(ground, nc);
  await owner.start();
  t.teardown(() => owner.stop());
  return owner;
}

/** Counts the journal entries of all partitions. */
const commitsOf = (owner: Owner): number => [...owner.manager.serving()].reduce((sum, { last }) => sum + last, 0);

async function greet({ nc }: Ground, key: HostKey): Promise<number> {
  const hello = JSON.stringify({
    v: 1,
    ...protocolFields,
    agent_version: '0',
    capacity: { ...roomy, containers: 1000 },
  });
  const answer = (await nc.request(subjects.hostHello(agentOf(key)), hello, { timeout: 3000 })).json<HelloAnswer>();
  if (!answer.ok) throw new Error(answer.error);
  return answer.session;
}

/** A host with containers of one tenant that it runs. */
async function withContainers(ground: Ground, count: number) {
  const ask = createAsker(ground.nc, partitions);
  await enrolHost(ask, host);
  const session = await greet(ground, host);
  const settings = { caps: { containers: null, cpu_millis: null, mem_bytes: null } };
  await ask({ type: 'tenant.put', tenant, settings, op: operation() });
  const ids = Array.from({ length: count }, containerId);
  await Promise.all(
    ids.map(async (id, index) => {
      const spec = specOf(`c${index}`, { host_key: host });
      const { code } = await ask({ type: 'container.create', tenant, id, op: operation(), spec, idempotency: null });
      if (code !== 'created') throw new Error(code);
    }),
  );
  const statusOf = async (id: ContainerId) =>
    ((await ask({ type: 'container.status', tenant, id })).json as { data: ContainerStatusView }).data;
  return { ask, ids, session, statusOf };
}

t.test('an agent that reconnects or restarts causes no repeated writes', async (t) => {
  const ground = await startCluster(t, partitions);
  const owner = await startOwner(t, ground);
  const { ids, session, statusOf } = await withContainers(ground, containers);
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  let acknowledged = 0;
  const reporter: Reporter = createReporter({
    sender: agentOf(host),
    request: async (subject, payload, timeoutMs) =>
      (await ground.nc.request(subject, payload, { timeout: timeoutMs })).data,
    backoff: { minMs: 10, maxMs: 100 },
    metrics: { report: (outcome, items = 1) => void (acknowledged += outcome === 'acknowledged' ? items : 0) },
    log: quietLog,
    signal: ending.signal,
    onContact: () => {},
  });
  reporter.events.on('stale', () => t.fail('the session is the newest'));
  const allSaid = async (times: number): Promise<void> => {
    await until(
      () => `${times} times ${containers} acknowledged: ${acknowledged}`,
      () => acknowledged === times * containers || undefined,
    );
  };
  for (const id of ids) {
    reporter.set({ tenant, id, generation: 2, description: { gone: false, observation: observation('running') } });
  }
  reporter.restart({ session, partitions });
  await allSaid(1);
  const written = commitsOf(owner);

  reporter.repeat();
  await allSaid(2);
  t.equal(commitsOf(owner), written, 'a connection that was lost and is back');

  const newer = await greet(ground, host);
  const greeted = commitsOf(owner);
  reporter.restart({ session: newer, partitions });
  await allSaid(3);
  t.equal(commitsOf(owner), greeted, 'a new session');

  const [first] = ids as [ContainerId];
  const crashed: Observation = observation('backoff', { reason: 'exited', restart_count: 1 });
  reporter.set({ tenant, id: first, generation: 2, description: { gone: false, observation: crashed } });
  await until('what is new is taken', async () => (await statusOf(first)).status === 'backoff' || undefined);
});

t.test('the progress of a pull is shown, costs no commit, and is told again to the next owner', async (t) => {
  const ground = await startCluster(t, partitions);
  const nc = await controlPlane(ground.nats);
  t.teardown(() => nc.close());
  const before = ownerOn(ground, nc);
  await before.start();
  const { ids, session, statusOf } = await withContainers(ground, reportItemsPerTurn + 1);
  const [id] = ids as [ContainerId];
  const last = ids.at(-1) as ContainerId;
  const partition = partitionOf(tenant, partitions);
  const send = async (value: Pick<Report, 'items' | 'pulls'>): Promise<ReportAnswer> => {
    const report = JSON.stringify({ v: 1, ...protocolFields, partition, session, ...value });
    return (await ground.nc.request(subjects.hostReport(agentOf(host)), report, { timeout: 3000 })).json();
  };
  const pulls = (bytes: number) =>
    ids.map((each) => ({ tenant, id: each, generation: 2, layers: 3, bytes, total: 40 }));
  const items = ids.map((each, index) => ({
    ...{ tenant, id: each, generation: 2, seq: index + 1 },
    gone: false,
    observation: observation('pulling'),
  }));
  t.same(await send({ items }), { ...protocolFields, ok: true });
  const written = commitsOf(before);
  t.notOk('pull' in (await statusOf(id)));
  t.same(await send({ items: [], pulls: pulls(10) }), { ...protocolFields, ok: true });
  for (const each of [id, last]) t.match(await statusOf(each), { pull: { layers: 3, bytes: 10, total: 40 } });
  t.same(await send({ items, pulls: pulls(20) }), { ...protocolFields, ok: true }, 'beside a report that is repeated');
  t.match(await statusOf(id), { pull: { bytes: 20 } });
  t.equal(commitsOf(before), written);
  t.match(await send({ items: [], pulls: pulls(-1) }), { ok: false, error: 'invalid' });

  await before.stop();
  await startOwner(t, ground);
  t.same(await send({ items: [] }), { ...protocolFields, ok: true });
  t.match(await statusOf(id), { status: 'pulling' });
  t.notOk('pull' in (await statusOf(id)), 'memory alone had it');
  t.same(await send({ items: [], pulls: pulls(30) }), { ...protocolFields, ok: true });
  t.match(await statusOf(id), { pull: { bytes: 30 } });
});

t.test('a report of an older session never replaces one of a newer session, even at another owner', async (t) => {
  const ground = await startCluster(t, partitions);
  const nc = await controlPlane(ground.nats);
  t.teardown(() => nc.close());
  const before = ownerOn(ground, nc);
  await before.start();
  const { ids, session: old, statusOf } = await withContainers(ground, 1);
  const [id] = ids as [ContainerId];
  const home = partitionOf(tenant, partitions);
  const report = async (session: number, seq: number, seen: Observation, partition = home): Promise<ReportAnswer> => {
    const items = [{ tenant, id, generation: 2, seq, gone: false, observation: seen }];
    const value: Report = { v: 1, ...protocolFields, partition, session, items };
    const message = await ground.nc.request(subjects.hostReport(agentOf(host)), JSON.stringify(value), {
      timeout: 3000,
    });
    return message.json<ReportAnswer>();
  };
  const running = observation('running');
  const failed = observation('failed', { reason: 'crash_loop' });
  t.same(await report(old, 1, running), { ...protocolFields, ok: true });
  const session = await greet(ground, host);
  t.same(await report(session, 1, running), { ...protocolFields, ok: true }, 'nothing new, in a new session');
  t.same(
    await report(old, 2, failed),
    { ...protocolFields, ok: false, error: 'stale_session' },
    'the agent is to ask for a session',
  );
  t.equal((await statusOf(id)).status, 'running');

  await before.stop();
  await startOwner(t, ground);
  t.same(
    await report(old, 2, failed),
    { ...protocolFields, ok: false, error: 'stale_session' },
    'what memory knew, the session says',
  );
  t.equal((await statusOf(id)).status, 'running');

  const elsewhere = (home + 1) % partitions;
  t.same(await report(session, 2, failed, elsewhere), { ...protocolFields, ok: true });
  t.equal((await statusOf(id)).status, 'running', 'a container of another partition is not there');

  t.same(await report(session, 3, running), { ...protocolFields, ok: true });
  t.same(await report(session, 2, failed), { ...protocolFields, ok: true }, 'in one session, an earlier number');
  t.equal((await statusOf(id)).status, 'running');
});

/** A partition in memory, and a real server between it and its hosts. */
async function startPartition(t: Test) {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());
  const partition = createPartition({
    store: createMemoryStore(new MemoryBucket()),
    events: createMemorySink([]),
  });
  await partition.start();
  return { nc, partition };
}

t.test('a hello renews credentials only for the key that is enrolled when it is committed', async (t) => {
  const { nc, partition } = await startPartition(t);
  const [old, next] = ['A', 'B'].map((letter) => `U${letter.repeat(55)}`) as [string, string];
  const enrol = async (publicKey: string): Promise<void> => {
    const records = [hostRecord(host, { publicKey })];
    await new Promise<void>((resolve) => {
      partition.change('hello', () => [{ ...noChanges, records }], resolve);
    });
  };
  await enrol(old);
  let isRaced = true;
  serveHosts({
    nc,
    usage: createUsageStore(nc),
    peersSeen: new PeersSeen(() => 'memory'),
    clock: systemClock,
    cluster: { id: 'c', partitions: 1, format: 1 },
    owned: () => [partition],
    fleet: new Fleet({ clock: systemClock, partitions: 1, hostUnknownMs: 1000 }),
    slices: createSlices(systemClock),
    log: quietLog,
    refusals: quietLog,
    onRefused: () => {},
    signJwt: async (_, key) => {
      if (isRaced) await enrol(next);
      return `for ${key}`;
    },
  });
  const hello = async (user: string, renewKey = user): Promise<HelloAnswer> => {
    const ask = { v: 1, ...protocolFields, agent_version: '0', capacity: roomy, renew_key: renewKey };
    return (
      await nc.request(subjects.hostHello({ host, user }), JSON.stringify(ask), { timeout: 10_000 })
    ).json<HelloAnswer>();
  };
  t.notOk('jwt' in (await hello(old)), 'enrolled again while the old key was signed → nothing for the old one');
  isRaced = false;
  t.notOk('jwt' in (await hello(old)), 'a key of before → nothing');
  t.notOk('jwt' in (await hello(next, old)), 'for a key of before → nothing');
  t.match(await hello(next), { ok: true, jwt: `for ${next}` });
});

t.test('refused messages are not logged one by one', async (t) => {
  const { nc, partition } = await startPartition(t);
  const lines: (readonly [string, unknown])[] = [];
  const note = (event: string, fields?: Fields) => void lines.push([event, fields?.['left_out']]);
  let nowMs = 0;
  const refusals = rateLimitedLog({ warn: note, error: note }, limits.refusalLogMs, { monotonicMs: () => nowMs });
  const slices = createSlices(systemClock);
  serveReads(nc, refusals);
  serveAsks(sourceOf(partition), {
    nc,
    clock: systemClock,
    log: quietLog,
    refusals,
    slices,
    watched: { asked: () => {}, followed: () => {} },
    prepare: () => undefined,
  });
  serveHosts({
    nc,
    usage: createUsageStore(nc),
    peersSeen: new PeersSeen(() => 'memory'),
    clock: systemClock,
    cluster: { id: 'c', partitions: 1, format: 1 },
    owned: () => [partition],
    fleet: new Fleet({ clock: systemClock, partitions: 1, hostUnknownMs: 1000 }),
    slices,
    log: quietLog,
    refusals,
    onRefused: () => {},
    signJwt: async () => Promise.resolve(''),
  });
  const send = async (count: number): Promise<void> => {
    for (let index = 0; index < count; index++) {
      nc.publish(subjects.read('logs'), 'x', { reply: `$JS.API.STREAM.DELETE.${index}` });
      nc.publish(subjects.partition(0), 'x', { reply: `$KV.state-0.${index}` });
      nc.publish(subjects.hostReport(agentOf(host)), 'no report', { reply: `_INBOX.x.${index}` });
    }
    // Messages of one connection arrive in order, so when this is answered, all before it were
    // handled.
    await nc.request(subjects.hostReport(agentOf(host)), 'nor this', { timeout: 10_000 });
  };
  await send(200);
  const events = ['read_refused', 'reply_refused', 'host_message_refused'];
  t.same(
    lines,
    events.map((event) => [event, undefined]),
  );
  nowMs += limits.refusalLogMs;
  await send(1);
  t.same(lines.slice(3), [
    ['read_refused', 199],
    ['reply_refused', 199],
    ['host_message_refused', 200],
  ]);
});
