/**
 * Credentials that name the agent's key in their subjects (ADR 22): how an agent gets them, and
 * that they allow all that it does.
 */
import t, { type Test } from 'tap';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeUser } from '@nats-io/jwt';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { fromSeed } from '@nats-io/nkeys';
import { mintHostUserJwt } from '../../../support/host-user.ts';
import {
  keyFrom,
  loadSeed,
  newest,
  permitsSessions,
  senderOf,
  type StoredIdentity,
} from '../../../../host-agent/control-plane/identity/identity.ts';
import { startAgent, type AgentProcess } from '../../../host-agent/support/agent.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { host } from '../../../host-agent/support/control-plane-state.ts';
import { until } from '../../../support/until.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';

async function startGround(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-bound-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = await simulatedEngine(t);
  const stateDir = join(dir, 'agent');
  const identityFile = join(stateDir, 'identity.json');
  const start = (env = {}) => startAgent(t, { dockerHost: engine.host, stateDir, controlPlane, env });
  const stored = (): StoredIdentity => JSON.parse(readFileSync(identityFile, 'utf8')) as StoredIdentity;
  /** The folder of an agent from before 0.1.0. */
  const enrolledBefore = async (): Promise<string> => {
    const publicKey = keyFrom(await loadSeed(stateDir)).getPublicKey();
    const { nats, cluster } = controlPlane;
    const jwt = await mintHostUserJwt({
      hostKey: host,
      publicKey,
      hostsAccount: nats.hostsAccount,
      hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
      isUnbound: true,
    });
    writeFileSync(identityFile, JSON.stringify({ host, region: 'default', cluster, natsUrls: [nats.url], jwt }));
    return publicKey;
  };
  /** The folder of an agent of 0.1.0, whose credentials do not permit sessions. */
  const enrolledWithoutSessions = async (): Promise<string> => {
    const publicKey = keyFrom(await loadSeed(stateDir)).getPublicKey();
    const { nats, cluster } = controlPlane;
    const claims = {
      pub: { allow: [`agent.${host}.${publicKey}.*`, `host.${host}.log.*.*`], deny: [] },
      sub: { allow: [`desired.${host}.*`, `_INBOX_${publicKey}.>`], deny: [] },
    };
    const seed = readFileSync(nats.hostsSigningSeedFile, 'utf8').trim();
    const jwt = await encodeUser(`host ${host}`, publicKey, nats.hostsAccount, claims, {
      signer: fromSeed(new TextEncoder().encode(seed)),
    });
    writeFileSync(identityFile, JSON.stringify({ host, region: 'default', cluster, natsUrls: [nats.url], jwt }));
    return publicKey;
  };
  const beatOf = async (user: string | undefined): Promise<void> => {
    await until(
      () => `a heartbeat of ${user}: ${JSON.stringify(controlPlane.senders().at(-1))}`,
      () => controlPlane.senders().at(-1)?.user === user && controlPlane.senders().length > 0,
    );
  };
  const metric = async (agent: AgentProcess): Promise<number> =>
    Number(/^longshore_agent_credentials_bound(?:{.*})? (\d)$/m.exec(await agent.metrics())?.[1]);
  return { controlPlane, stateDir, start, stored, enrolledBefore, enrolledWithoutSessions, beatOf, metric };
}

const image = { registry: 'registry.example', repository: 'web', tag: '1', cpu_millis: 10, mem_bytes: 8 * 1024 ** 2 };

t.test('an agent that enrolled before 0.1.0 trades its credentials at its first start', async (t) => {
  const { controlPlane, start, stored, enrolledBefore, beatOf } = await startGround(t);
  const key = await enrolledBefore();
  const first = start();
  await beatOf(key);
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  await until('they are on its disk', () => senderOf(newest(stored())).user === key);
  t.same(
    controlPlane.hellos().map(({ wants_bound: wants = false }) => wants),
    [true, false],
    'it asks for them, and for nothing else, before it asks for a session',
  );
  await first.kill9();

  start();
  const asked = controlPlane.hellos().length;
  await until('it starts again', () => controlPlane.hellos().length > asked);
  t.equal(controlPlane.hellos().at(-1)?.wants_bound, undefined, 'and has them');
});

t.test('an agent whose credentials do not permit sessions renews them, and connects again to serve', async (t) => {
  const { controlPlane, start, stored, enrolledWithoutSessions, beatOf } = await startGround(t);
  const key = await enrolledWithoutSessions();
  start();
  await beatOf(key);
  await until('they are on its disk', () => permitsSessions(stored().jwt));
  const { url, credsFile } = controlPlane.nats;
  const nc = await connect({ servers: url, authenticator: credsAuthenticator(readFileSync(credsFile)) });
  t.teardown(() => nc.close());
  const asked: string[] = [];
  nc.subscribe(`agent.${host}.${key}.session`, {
    callback: (_, { data }) => void asked.push(Buffer.from(data).toString()),
  });
  const session = 'A'.repeat(22);
  await until('it hears a ring', () => {
    nc.publish(`session.${host}.${key}.${session}`);
    return asked.length > 0;
  });
  t.match(JSON.parse(asked[0] ?? ''), { session }, 'and asks what it is about');
  t.same(
    controlPlane.hellos().map(({ renew_key: renewed }) => renewed),
    [key, undefined],
    'once',
  );
});

t.test('with a control plane from before 0.1.0, an agent keeps its credentials and asks again', async (t) => {
  const { controlPlane, start, enrolledBefore, beatOf, metric } = await startGround(t);
  controlPlane.playRelease('last');
  const key = await enrolledBefore();
  const agent = start();
  await beatOf(undefined);
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  t.equal(await metric(agent), 0);

  controlPlane.playRelease('this');
  await beatOf(key);
  t.equal(await metric(agent), 1, 'once the control plane is newer, without a restart');
});

t.test('an agent whose new credentials get no answer returns to the earlier ones', async (t) => {
  const { controlPlane, start, stored, enrolledBefore, beatOf } = await startGround(t);
  controlPlane.hearBound(false);
  const key = await enrolledBefore();
  const first = start();
  await first.logged('bound_credentials_unanswered');
  await beatOf(undefined);
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  t.equal(senderOf(stored()).user, undefined, 'they are on its disk');
  await first.kill9();

  const second = start();
  await second.logged('bound_credentials_unanswered');
  await beatOf(undefined);
  const again = controlPlane.desire(image);
  await controlPlane.reported(again.id, ({ observation }) => observation.status === 'running');

  controlPlane.hearBound(true);
  await beatOf(key);
  await until('new ones are kept once they were answered', () => senderOf(newest(stored())).user === key);
});

t.test('a control plane rolled back to before 0.1.0 loses no host', async (t) => {
  const { controlPlane, start, stored, enrolledBefore, beatOf } = await startGround(t);
  const key = await enrolledBefore();
  const first = start();
  await beatOf(key);
  controlPlane.playRelease('last');
  await beatOf(undefined);
  await until('it has a session there', () => controlPlane.hellos().length > 2);
  controlPlane.playRelease('this');
  await beatOf(key);
  await until('they are on its disk', () => senderOf(newest(stored())).user === key);
  await first.kill9();

  controlPlane.playRelease('last');
  start();
  await beatOf(undefined);
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  t.equal(senderOf(stored()).user, undefined, 'an agent from before 0.1.0 could use them');
});

t.test('a refusal of bound credentials is no contact: a forgotten host stops its containers', async (t) => {
  const { controlPlane, start, enrolledBefore, beatOf } = await startGround(t);
  controlPlane.playRelease('last');
  await enrolledBefore();
  const agent = start({ SYNC_INTERVAL_MS: '1000', STOP_ON_DISCONNECT_MS: '4000' });
  await beatOf(undefined);
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  controlPlane.forget();
  await agent.logged('bound_credentials_refused');
  await agent.logged('isolated');
});

t.test('credentials allow all messages of an agent with hundreds of containers', async (t) => {
  const { controlPlane, start } = await startGround(t);
  const agent = start();
  const made = controlPlane.desireAll(Array.from({ length: 250 }, (_, index) => ({ ...image, tag: `${index}` })));
  for (const { id } of made) {
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running', 240_000);
  }
  t.equal(agent.exitCode(), undefined);
  const refused = agent.lines.filter(({ event }) => event === 'nats_error' || event === 'nats_disconnect');
  t.same(refused, [], 'the server refused nothing');
});
