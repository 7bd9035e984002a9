/**
 * An attacker has the credentials of a real host, or those of a host from before it enrolled again,
 * and asks for secrets and logins that are not its containers'. A reader of NATS' disk, of the log
 * and of all answers looks for the value.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { connect, jwtAuthenticator, RequestError, type NatsConnection } from '@nats-io/transport-node';
import { createCurve, createUser, type KeyPair } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import type { HostKey } from '../../../schemas/ids.ts';
import { createProver } from '../../../lib/nats/host-proof.ts';
import { subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { senderKeyBytes, type UnsealAnswer, type UnsealAsk } from '../../../schemas/wire/unseal.ts';
import { controlPlane, createAsker, ownerOn, startCluster } from '../../integration/actors/support.ts';
import { runGateway } from '../../integration/gateway/support.ts';
import { region, roomy } from '../../actors/support/records.ts';
import { hostKey, operation } from '../../actors/support.ts';
import { recordingLog } from '../../gateway/support.ts';
import { createIssuer } from '../../gateway/tokens.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

t.setTimeout(300_000);
const partitions = 4;
const value = 'v4lue-that-nobody-else-may-see';
const password = 'p4ssword-that-nobody-else-may-see';
const [h1, h2] = [hostKey('h1'), hostKey('h2')];

const ground = await startCluster(t, partitions);
const { nats, nc } = ground;
const owned = await controlPlane(nats);
const owner = ownerOn(ground, owned);
t.teardown(async () => {
  await owner.stop();
  await owned.close();
});
await owner.start();
const issuer = await createIssuer(join(temporaryFolder(t), 'issuer'));
const log = recordingLog();
const gateway = await runGateway(
  t,
  { nats, nc, issuer, partitions },
  { log, env: { VAULT_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}` } },
);
const ask = createAsker(nc, partitions);

/** Everything that the API has answered. */
const answered: string[] = [];
async function call(method: string, path: string, body?: object, tenant = 'acme') {
  const response = await fetch(`${gateway.url}/api/v2/compute${path}`, {
    method,
    headers: {
      authorization: `Bearer ${await issuer.mint({ tenant_id: tenant })}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  answered.push(text);
  const parsed = text === '' ? {} : (JSON.parse(text) as { data?: { id?: string } });
  return { status: response.status, id: parsed.data?.id ?? '', text };
}

interface Agent {
  readonly nc: NatsConnection;
  readonly sender: Sender;
  unseal(wanted: object, as?: Sender): Promise<UnsealAnswer | 'no answer'>;
  /** Content of a box sealed for this agent. */
  open(answer: UnsealAnswer | 'no answer'): unknown;
}

async function agentWith(t: Test, host: HostKey, user: KeyPair, jwt: string): Promise<Agent> {
  const sender: Sender = { host, user: user.getPublicKey() };
  const nc = await connect({
    servers: nats.url,
    authenticator: jwtAuthenticator(jwt, user.getSeed()),
    inboxPrefix: subjects.hostInbox(sender),
    reconnect: false,
  });
  t.teardown(() => nc.close());
  const curve = createCurve();
  const prove = createProver({ sender, seed: user.getSeed(), jwt: () => jwt, nowMs: Date.now });
  return {
    nc,
    sender,
    unseal: async (wanted, as = sender) => {
      const ask = { v: 1, ...protocolFields, key: curve.getPublicKey(), ...wanted } as UnsealAsk;
      const body = JSON.stringify({ ...ask, proof: prove(ask) });
      try {
        return (await nc.request(subjects.hostUnseal(as), body, { timeout: 5000 })).json<UnsealAnswer>();
      } catch (error) {
        if (error instanceof RequestError || (error as Error).name === 'TimeoutError') return 'no answer';
        throw error;
      }
    },
    open: (answer) => {
      if (answer === 'no answer' || !answer.ok || answer.box === null) throw new Error(JSON.stringify(answer));
      const bytes = Buffer.from(answer.box, 'base64url');
      const opened = curve.open(bytes.subarray(senderKeyBytes), bytes.toString('latin1', 0, senderKeyBytes));
      return opened === null ? null : JSON.parse(Buffer.from(opened).toString());
    },
  };
}

async function enrolled(t: Test, host: HostKey, isNew = true): Promise<Agent> {
  const joinTokenHash = 'x';
  const made = isNew
    ? ({ type: 'host.create', host, region: region('default'), joinTokenHash } as const)
    : ({ type: 'host.join_token', host, joinTokenHash } as const);
  await ask({ ...made, op: operation() });
  const user = createUser();
  const enrolment = { type: 'host.enrol', host, joinTokenHash, publicKey: user.getPublicKey() } as const;
  const { json } = await ask({ ...enrolment, op: operation() });
  const agent = await agentWith(t, host, user, (json as { data: { jwt: string } }).data.jwt);
  const hello = JSON.stringify({ v: 1, ...protocolFields, agent_version: '0', capacity: roomy });
  await agent.nc.request(subjects.hostHello(agent.sender), hello, { timeout: 30_000 });
  return agent;
}

/** The owner of the tenant may not have heard of the host's key yet. */
const settled = (agent: Agent, wanted: object): Promise<UnsealAnswer | 'no answer'> =>
  until('an answer that is final', () => agent.unseal(wanted), isFinal);
const isFinal = (answer: UnsealAnswer | 'no answer'): boolean =>
  answer !== 'no answer' && (answer.ok || answer.error !== 'unavailable');

t.test('a host gets what its own containers use, and nothing else', async (t) => {
  const [one, two] = [await enrolled(t, h1), await enrolled(t, h2)];
  const registry = 'registry.example.com';
  t.equal((await call('PUT', '/secrets/db', { value })).status, 201);
  t.equal((await call('PUT', '/secrets/other', { value })).status, 201);
  t.equal((await call('PUT', `/registries/${registry}`, { username: 'ci', password })).status, 201);
  t.equal((await call('PUT', '/secrets/db', { value }, 'rival')).status, 201);
  const image = { registry, repository: 'web', cpu_limit: '0.1', mem_limit: '16m' };
  const { id } = await call('POST', '?start=false', { name: 'web', host_key: h1, ...image });
  const foreign = await call('POST', '', { name: 'web', host_key: h2, repository: 'web' }, 'rival');
  t.equal((await call('PUT', `/${id}/secrets`, { files: { '/run/db': { secret: 'db' } } })).status, 200);

  const secret = { tenant: 'acme', id, secret: { name: 'db', version: 1 } };
  const login = { tenant: 'acme', id, registry };
  await t.test('the host that has the container', async (t) => {
    const answer = await settled(one, secret);
    t.same(one.open(answer), { value: Buffer.from(value).toString('base64') });
    t.equal(two.open(answer), null, 'another agent cannot open the box');
    t.same(one.open(await settled(one, login)), { username: 'ci', password, version: 1 });
  });

  await t.test('another host is refused, whatever it names', async (t) => {
    const refused = { ok: false, error: 'refused' };
    t.match(await settled(two, secret), refused, 'a container that it does not run');
    t.match(await settled(two, login), refused);
    t.match(await settled(two, { ...secret, id: foreign.id }), refused, 'a container of another tenant that it runs');
    t.match(
      await settled(two, { ...secret, tenant: 'rival', id: foreign.id }),
      refused,
      'a secret that it does not use',
    );
    t.match(await settled(one, { ...secret, secret: { name: 'db', version: 2 } }), refused, 'another version');
    t.match(await settled(one, { ...secret, secret: { name: 'other', version: 1 } }), refused, 'another secret');
    t.match(await settled(one, { ...login, registry: 'docker.io' }), refused, 'another registry');
    t.match(await settled(one, { ...secret, tenant: 'rival' }), refused, 'another tenant');
  });

  await t.test('no host asks in the name of another', async (t) => {
    t.equal(await two.unseal(secret, one.sender), 'no answer', 'the server refuses the subject');
    t.equal(await two.unseal(secret, { host: h1, user: two.sender.user }), 'no answer');
  });

  await t.test('a message that is no ask is refused with a reason', async (t) => {
    const invalid = { ok: false, error: 'invalid' };
    t.match(await one.unseal({}), invalid);
    t.match(await one.unseal({ ...secret, registry }), invalid, 'both');
    t.match(await one.unseal({ ...secret, key: createUser().getPublicKey() }), invalid, 'a key of another kind');
    const mistyped = `X${'A'.repeat(55)}`;
    t.match(await one.unseal({ ...secret, key: mistyped }), { ...invalid, message: /key/ }, 'a wrong checksum');
    t.match(await one.unseal({ ...secret, protocol: 99 }), invalid);
  });

  await t.test('a key that was replaced is refused', async (t) => {
    const next = await enrolled(t, h1, false);
    const again = await until(
      'the new key',
      () => next.unseal(secret),
      (answer) => answer !== 'no answer' && answer.ok,
    );
    t.same(next.open(again), { value: Buffer.from(value).toString('base64') });
    t.match(await one.unseal(secret), { ok: false, error: 'refused', message: /not enrolled/ });
  });
});

/** Every file below a folder. */
function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

t.test('neither NATS’ disk nor a log nor an answer has a value in clear text', async (t) => {
  await owner.stop();
  const texts = [value, password].flatMap((text) => [
    text,
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
    Buffer.from(text).toString('hex'),
  ]);
  const found = (bytes: Buffer | string): string[] => texts.filter((text) => bytes.includes(text));
  const files = filesBelow(join(nats.credsFile, '../../jetstream'));
  t.ok(
    files.some((path) => readFileSync(path).includes('secret.acme.db.1')),
    'the record is on this disk',
  );
  for (const path of files) t.same(found(readFileSync(path)), [], path);
  t.same(found(JSON.stringify(log.events)), [], 'the gateway’s log');
  t.same(found(answered.join('\n')), [], 'answers of the API');
});
