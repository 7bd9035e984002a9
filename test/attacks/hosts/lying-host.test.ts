/**
 * An enrolled host lies: it names sessions that no hello gave, so that the agent that is enrolled
 * after it is not heard; it speaks of containers of other hosts; it reports usage that no machine
 * has, numbers that no counter reaches, and texts with control characters; and it floods the owners
 * with reports that take long to read.
 */
import { createUser } from '@nats-io/nkeys';
import t from 'tap';
import { sessionAheadMs } from '../../../actors/domain/host/sender.ts';
import type { ContainerStatusView } from '../../../schemas/api/container.ts';
import type { HostView } from '../../../schemas/api/host.ts';
import type { ContainerId, HostKey } from '../../../schemas/ids.ts';
import { hourOf, type StoredAmounts } from '../../../schemas/records/usage.ts';
import type { HelloAnswer, Report, ReportAnswer, UsageAnswer } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { agentOf, containerId, hostKey, operation, specOf, tenantId } from '../../actors/support.ts';
import { none, observation, roomy } from '../../actors/support/records.ts';
import { controlPlane, createAsker, enrolHost, ownerOn, startCluster } from '../../integration/actors/support.ts';
import { until } from '../../support/until.ts';

t.setTimeout(180_000);

const partitions = 2;
const acme = tenantId('acme');
const [liar, honest] = [hostKey('liar'), hostKey('honest')];
const timeout = 20_000;
/** The largest number that the form of a session's messages allows. */
const farAhead = Number.MAX_SAFE_INTEGER;
const escapes = 'vol\u001b]52;c;cm0=\u0007ume\u202e';

const ground = await startCluster(t, partitions);
const { nc } = ground;
const connection = await controlPlane(ground.nats);
t.teardown(() => connection.close());
const owner = ownerOn(ground, connection);
await owner.start();
t.teardown(() => owner.stop());
const ask = createAsker(nc, partitions);

const send = async <T>(subject: string, value: object): Promise<T> =>
  (await nc.request(subject, JSON.stringify({ v: 1, ...protocolFields, ...value }), { timeout })).json<T>();
async function greet(sender: Sender): Promise<number> {
  const answer = await send<HelloAnswer>(subjects.hostHello(sender), { agent_version: '0', capacity: roomy });
  if (!answer.ok) throw new Error(answer.error);
  return answer.session;
}
const report = (sender: Sender, session: number, items: readonly object[] = []): Promise<ReportAnswer> =>
  send(subjects.hostReport(sender), { partition: partitionOf(acme, partitions), session, items });
const beat = (sender: Sender, session: number): void =>
  nc.publish(
    subjects.hostBeat(sender),
    JSON.stringify({
      v: 1,
      ...protocolFields,
      session,
      used: none,
      engine: 'e',
      orphans_held: 0,
      volumes_left: 0,
      faults: [],
      room: {},
    }),
  );
const itemOf = (id: ContainerId, more: object): Report['items'][number] => ({
  tenant: acme,
  id,
  generation: 1,
  seq: 1,
  gone: false,
  observation: observation('running'),
  ...more,
});
const statusOf = async (id: ContainerId) =>
  ((await ask({ type: 'container.status', tenant: acme, id })).json as { data: ContainerStatusView }).data;
const generationOf = async (id: ContainerId): Promise<number> => (await statusOf(id)).generation;
async function placed(host: HostKey, name: string): Promise<ContainerId> {
  const id = containerId();
  const spec = specOf(name, { host_key: host });
  const { code } = await ask({
    type: 'container.create',
    tenant: acme,
    id,
    op: operation(),
    spec,
    idempotency: null,
  });
  if (code !== 'created') throw new Error(code);
  return id;
}
const viewOf = async (host: HostKey): Promise<HostView> =>
  ((await ask({ type: 'host.get', host })).json as { data: HostView }).data;

await enrolHost(ask, liar);
await enrolHost(ask, honest);
const sessions = { liar: await greet(agentOf(liar)), honest: await greet(agentOf(honest)) };
const mine = await placed(liar, 'mine');
const theirs = await placed(honest, 'theirs');
await until('the hosts are known', async () => {
  const answers = [await report(agentOf(liar), sessions.liar), await report(agentOf(honest), sessions.honest)];
  return answers.every(({ ok }) => ok) || undefined;
});

t.test('a host speaks of its own containers alone', async (t) => {
  const generation = await generationOf(theirs);
  const before = await statusOf(theirs);
  const crashed = observation('failed', { reason: 'exited' });
  t.match(
    await report(agentOf(liar), sessions.liar, [
      itemOf(theirs, { generation, observation: crashed }),
      itemOf(theirs, { generation, seq: 2, gone: true, observation: { ...crashed, reason: 'rejected' } }),
    ]),
    { ok: true },
  );
  t.match(await statusOf(theirs), { status: before.status, reason: before.reason });
});

t.test('numbers and texts of a report are bounded', async (t) => {
  const generation = await generationOf(mine);
  const told = observation('backoff', { reason: 'exited', restart_count: 1e300, volumes: [escapes] });
  t.match(await report(agentOf(liar), sessions.liar, [itemOf(mine, { generation, observation: told })]), { ok: true });
  const { restart_count: restarts } = await statusOf(mine);
  t.ok(Number.isSafeInteger(restarts), `${restarts}`);
  const whole = JSON.stringify(await statusOf(mine));
  t.notMatch(whole, /\\u001b|\\u0007|\u202e/);
  t.match(whole, /vol.*ume/);
});

t.test('usage that no machine has in an hour is refused', async (t) => {
  const source = 'a'.repeat(32);
  const tell = (used: StoredAmounts): Promise<UsageAnswer> =>
    send(subjects.hostUsage(agentOf(liar)), {
      partition: partitionOf(acme, partitions),
      source,
      items: [{ tenant: acme, id: mine, hour: hourOf(Date.now()), part: 0, used }],
    });
  const hourMs = 3_600_000;
  t.match(await tell([hourMs, hourMs, String(hourMs * 2 ** 30)]), { ok: true, refused: undefined });
  const wrong: StoredAmounts[] = [
    [3 * hourMs, 1, '1'],
    [farAhead, 1, '1'],
    [1, farAhead, '1'],
    [1, 1, '9'.repeat(30)],
  ];
  for (const used of wrong) t.match(await tell(used), { ok: true, refused: [0] }, JSON.stringify(used));
});

t.test('a flood of long reports leaves room for other hosts and for tenants', async (t) => {
  const items = Array.from({ length: 100 }, (_, seq) => itemOf(containerId(), { seq }));
  const flood = JSON.stringify({
    v: 1,
    ...protocolFields,
    partition: partitionOf(acme, partitions),
    session: sessions.liar,
    items,
  });
  const generation = await generationOf(theirs);
  for (let round = 0; round < 10; round++) {
    for (let n = 0; n < 100; n++) nc.publish(subjects.hostReport(agentOf(liar)), flood);
    const startMs = performance.now();
    const item = itemOf(theirs, { generation, seq: 100 + round });
    // An agent repeats what was not taken.
    await until('it is taken', async () => (await report(agentOf(honest), sessions.honest, [item])).ok);
    t.equal((await ask({ type: 'container.status', tenant: acme, id: theirs })).code, 'ok');
    t.ok(performance.now() - startMs < timeout, 'in time');
  }
  t.equal((await statusOf(theirs)).status, 'running');
});

t.test('a host’s claims about its session end with its key', async (t) => {
  const generation = await generationOf(mine);
  beat(agentOf(liar), farAhead);
  const lie = itemOf(mine, { generation, seq: 7, observation: observation('running') });
  await report(agentOf(liar), farAhead, [lie]);
  // The most that is believed: hellos may have given sessions up to there.
  await report(agentOf(liar), Date.now() + sessionAheadMs - 10, [{ ...lie, seq: 8 }]);
  t.match(await statusOf(mine), { status: 'running' }, 'of its own containers it may lie');

  await ask({ type: 'host.join_token', host: liar, joinTokenHash: 'y', op: operation() });
  const next: Sender = { host: liar, user: createUser().getPublicKey() };
  const enrolment = { type: 'host.enrol', host: liar, joinTokenHash: 'y', publicKey: next.user } as const;
  await until('enrolled', async () => (await ask({ ...enrolment, op: operation() })).code === 'created' || undefined);
  const session = await greet(next);
  beat(next, session);
  await until('its heartbeat counts', async () => (await viewOf(liar)).engine === 'e' || undefined);
  const crashed = observation('backoff', { reason: 'exited', exit_code: 3 });
  const answered = await until('its report is taken', async () => {
    const answer = await report(next, session, [itemOf(mine, { generation, observation: crashed })]);
    return answer.ok || answer.error === 'stale_session' ? answer : undefined;
  });
  t.match(answered, { ok: true });
  t.match(await statusOf(mine), { status: 'backoff', reason: 'exited', exit_code: 3 });
});
