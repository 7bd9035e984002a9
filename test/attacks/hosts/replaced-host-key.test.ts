/**
 * An attacker holds credentials of a host from before the host enrolled again or was removed. The
 * attacker tries to read what the host runs, to take over its session, to attract all placements,
 * and to hear the answers to its agent. None of it works.
 */
import { readFileSync } from 'node:fs';
import { connect, jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { createUser, type KeyPair } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import { createAccounts } from '../../../lib/nats/accounts/servers.ts';
import { mintHostUserJwt } from '../../support/host-user.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { connectNats, credentialsFile } from '../../../lib/nats/connection.ts';
import type { HostView } from '../../../schemas/api/host.ts';
import type { HelloAnswer, ReportAnswer, SyncAnswer } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { containerId, hostKey, operation, quietLog, specOf, tenantId } from '../../actors/support.ts';
import { controlPlane, createAsker, ownerOn, startCluster, type Ground } from '../../integration/actors/support.ts';
import { none, region, roomy } from '../../actors/support/records.ts';
import { refusal } from '../../support/refusal.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

const partitions = 4;
const h1 = hostKey('h1');
const acme = tenantId('acme');
const secret = 'postgres://acme:hunter2@db';
const greedy = { cpu_millis: 9e15, mem_bytes: 9e15, containers: 9e15 };
const deadlineMs = 60_000;
/** Time to wait for an answer that must not come. */
const silenceMs = 1000;

t.setTimeout(300_000);

type Asker = ReturnType<typeof createAsker>;

/** A connection with credentials of a host, and the messages that it can send. */
interface Agent {
  readonly nc: NatsConnection;
  readonly sender: Sender;
  hello(capacity: typeof roomy, more?: object): Promise<HelloAnswer>;
  /**
   * The answers, until every partition has answered; `maxWait`: for when not all are expected to.
   */
  sync(maxWait?: number): Promise<SyncAnswer[]>;
  report(session: number): Promise<ReportAnswer>;
  beat(session: number): void;
  /** The stream's acknowledgement of a log line, or why it was refused. */
  log(): Promise<string>;
}

async function agentWith(t: Test, { nats }: Ground, user: KeyPair, jwt: string): Promise<Agent> {
  const sender: Sender = { host: h1, user: user.getPublicKey() };
  const nc = await connect({
    servers: nats.url,
    authenticator: jwtAuthenticator(jwt, user.getSeed()),
    inboxPrefix: subjects.hostInbox(sender),
    reconnect: false,
  });
  t.teardown(() => nc.close());
  const ask = async <T>(subject: string, value: object): Promise<T> =>
    (await nc.request(subject, JSON.stringify({ v: 1, ...protocolFields, ...value }), { timeout: 10_000 })).json<T>();
  return {
    nc,
    sender,
    hello: (capacity, more = {}) => ask(subjects.hostHello(sender), { agent_version: '0', capacity, ...more }),
    report: (session) =>
      ask(subjects.hostReport(sender), { partition: partitionOf(h1, partitions), session, items: [] }),
    sync: async (maxWait = deadlineMs) => {
      const answers: SyncAnswer[] = [];
      const bounds = { strategy: 'count', maxMessages: partitions, maxWait } as const;
      const message = JSON.stringify({ v: 1, ...protocolFields, held: {} });
      for await (const answer of await nc.requestMany(subjects.hostSync(sender), message, bounds)) {
        answers.push(answer.json<SyncAnswer>());
      }
      return answers;
    },
    beat: (session) =>
      nc.publish(
        subjects.hostBeat(sender),
        JSON.stringify({
          v: 1,
          ...protocolFields,
          session,
          used: none,
          engine: 'hostile',
          orphans_held: 0,
          volumes_left: 0,
          faults: [],
          room: {},
        }),
      ),
    log: async () =>
      nc.request(`host.${h1}.log.acme.c`, 'line', { timeout: 10_000 }).then(
        (message) => message.string(),
        (error: unknown) => String(error),
      ),
  };
}

const mint = ({ nats }: Ground, user: KeyPair): Promise<string> =>
  mintHostUserJwt({
    hostKey: h1,
    publicKey: user.getPublicKey(),
    hostsAccount: nats.hostsAccount,
    hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
  });

async function enrol(ask: Asker, user: KeyPair): Promise<string> {
  const enrolment = { type: 'host.enrol', host: h1, joinTokenHash: 'x', publicKey: user.getPublicKey() } as const;
  const answer = await ask({ ...enrolment, op: operation() });
  return (answer.json as { data: { jwt: string } }).data.jwt;
}

/** A host whose first agent works, and a container with a secret on it. */
async function attacked(t: Test, ground: Ground) {
  const ask = createAsker(ground.nc, partitions);
  const made = { type: 'host.create', host: h1, region: region('default'), joinTokenHash: 'x' } as const;
  await ask({ ...made, op: operation() });
  const user = createUser();
  const first = await agentWith(t, ground, user, await enrol(ask, user));
  t.match(await first.hello(roomy), { ok: true });
  const spec = specOf('web', { env: { DATABASE_URL: secret }, host_key: h1 });
  const created = { type: 'container.create', tenant: acme, id: containerId(), spec, idempotency: null } as const;
  t.equal((await ask({ ...created, op: operation() })).code, 'created');
  t.match(JSON.stringify(await first.sync()), secret, 'the enrolled agent gets its desired state');

  const enrolAgain = async () => {
    await ask({ type: 'host.join_token', host: h1, joinTokenHash: 'x', op: operation() });
    const next = createUser();
    const second = await agentWith(t, ground, next, await enrol(ask, next));
    const greeted = await second.hello(roomy);
    if (!greeted.ok) throw new Error(greeted.error);
    return { user: next, second, session: greeted.session };
  };
  const view = async (): Promise<HostView> =>
    ((await ask({ type: 'host.get', host: h1 })).json as { data: HostView }).data;
  return { ask, first, enrolAgain, view };
}

async function startOwner(t: Test, ground: Ground, more: Parameters<typeof ownerOn>[2] = {}): Promise<void> {
  const nc = await controlPlane(ground.nats);
  const owner = ownerOn(ground, nc, more);
  t.teardown(async () => {
    await owner.stop();
    await nc.close();
  });
  await owner.start();
}

t.test('without revocation at the servers, actors accept only the enrolled key', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const { ask, first, enrolAgain, view } = await attacked(t, ground);
  const { user, second, session } = await enrolAgain();
  const before = await view();

  await t.test('credentials of a replaced key are refused', async (t) => {
    t.same(await first.sync(silenceMs), [], 'no answer says what the host runs');
    t.match(await first.hello(greedy), { ok: false, error: /unknown_host|superseded/ });
    t.match(await first.hello(greedy, { renew_key: first.sender.user }), { ok: false });
    t.match(await first.report(session), { ok: false });
    // When a hello is answered, messages sent before it on the same connection have arrived.
    first.beat(session + 1_000_000);
    await first.hello(greedy);
    t.match(await second.report(session), { ok: true }, 'the session is still that of the enrolled agent');
    t.match(await view(), { capacity: before.capacity, engine: before.engine });
    t.match(JSON.stringify(await second.sync()), secret);
  });

  await t.test('they cannot publish as another key, nor read its answers', async (t) => {
    const { nc } = first;
    for (const verb of ['sync', 'hello', 'report', 'beat']) {
      const forged = `agent.${h1}.${user.getPublicKey()}.${verb}`;
      t.match(await refusal(nc, () => nc.publish(forged, '{}')), /permissions violation/i, forged);
      t.match(await refusal(nc, () => nc.publish(`host.${h1}.${verb}`, '{}')), /permissions violation/i);
    }
    const listen = (): void => void nc.subscribe(`${subjects.hostInbox(second.sender)}.>`, { callback: () => {} });
    t.match(await refusal(nc, listen), /permissions violation/i);
  });

  await t.test('capacity that an agent reports counts up to the ceiling', async (t) => {
    t.match(await second.hello(greedy), { ok: true });
    const { capacity, faults } = await view();
    t.same(capacity, { cpu_millis: 1_024_000, mem_bytes: 64 * 1024 ** 4, containers: 10_000 });
    t.match(faults, [{ kind: 'over_ceiling' }]);
    const update = { max_cpu_millis: 8000, max_mem_bytes: 16 * 1024 ** 3, max_containers: 50 };
    await ask({ type: 'host.update', host: h1, update, op: operation() });
    t.match(await view(), {
      capacity: { cpu_millis: 8000, mem_bytes: 16 * 1024 ** 3, containers: 50 },
      max_cpu_millis: 8000,
      faults: [],
    });
  });

  await t.test('a removed host learns that it is removed, and nothing else', async (t) => {
    const { code } = await ask({ type: 'host.remove', host: h1, force: true, dead: true, op: operation() });
    t.equal(code, 'accepted');
    for (const agent of [first, second]) {
      const answers = await agent.sync(silenceMs);
      t.notMatch(JSON.stringify(answers), secret);
      for (const answer of answers) t.match(answer, { fenced: true, containers: [], hold: [] });
      t.match(await agent.hello(greedy), { ok: false, error: 'unknown_host' });
      t.match(await agent.report(session), { ok: false });
    }
    await ask({ type: 'host.create', host: h1, region: region('default'), joinTokenHash: 'y', op: operation() });
    t.match(await second.hello(greedy), { ok: false, error: 'unknown_host' }, 'also after the host is made again');
    t.match(await view(), { status: 'joining', capacity: null });
  });
});

t.test('a host that a restore forgot does not count as removed', async (t) => {
  const ground = await startCluster(t, partitions);
  await startOwner(t, ground);
  const user = createUser();
  const agent = await agentWith(t, ground, user, await mint(ground, user));
  t.match(await agent.hello(roomy), { ok: false, error: 'unknown_host' }, 'the owner of its partition answers');
  t.same(await agent.sync(silenceMs), [], 'no answer makes it stop its containers');
});

t.test('the servers cut off a replaced key and drop its log lines', async (t) => {
  const ground = await startCluster(t, partitions);
  const { nats } = ground;
  const link = { servers: [nats.url], name: 'test', authenticator: credentialsFile(nats.sysCredsFile) };
  const system = await connectNats(link, quietLog);
  t.teardown(() => system.close());
  const accounts = createAccounts(Promise.resolve(system), readFileSync(nats.operatorSigningSeedFile, 'utf8').trim());
  await startOwner(t, ground, { accounts });
  const { first, enrolAgain } = await attacked(t, ground);
  t.match(await first.log(), /"stream":"LOGS"/);
  const { second } = await enrolAgain();
  const endMs = performance.now() + deadlineMs;
  while (!first.nc.isClosed() && performance.now() < endMs) await sleep(100);
  t.ok(first.nc.isClosed(), 'its connection is closed');
  t.match(await first.log(), /closed/i);
  t.match(await second.log(), /"stream":"LOGS"/, 'the enrolled agent still publishes');
});
