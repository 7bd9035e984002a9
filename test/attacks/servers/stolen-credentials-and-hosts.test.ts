/**
 * A thief has the NATS credentials of actors, of the machine that backs up, or of a gateway, and
 * neither a key of a host nor of the vault. The thief asks for secrets and registry logins in the
 * name of a host that may have them, and for sessions, directly and by way of JetStream.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { createAccount, createCurve, createUser, type KeyPair } from '@nats-io/nkeys';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import { Vault } from '../../../gateway/vault/vault.ts';
import { userOf } from '../../../lib/nats/inbox.ts';
import { connectNats } from '../../../lib/nats/connection.ts';
import { createProver } from '../../../lib/nats/host-proof.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { anySender, subjects } from '../../../schemas/wire/subjects.ts';
import type { HostProof, UnsealAnswer, UnprovedAsk } from '../../../schemas/wire/unseal.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { containerId, quietLog, tenantId } from '../../actors/support.ts';
import { memoryOwner, okData, recordingLog, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { hostOn } from '../../integration/sessions/support.ts';
import { credentialsOfCp, mintHostUserJwt } from '../../support/host-user.ts';
import { until } from '../../support/until.ts';

t.setTimeout(300_000);
const value = 'the-crown-jewels';
const acme = tenantId('acme');
const key = Buffer.alloc(32, 1);
const vault = new Vault([{ id: 'k1', key }]);

const ground = await startGround(t);
const { nats } = ground;
// An owner that always says yes: nothing but the gateway stands in the way.
const otherwise = memoryOwner();
const sealed = vault.seal({ of: 'secret', tenant: acme, name: 'db', version: 1 }, Buffer.from(value));
serveOwner(ground.nc, (ask) => (ask.type === 'secret.unseal' ? okData({ version: 1, sealed }) : otherwise(ask)));
const log = recordingLog();
const gateway = await runGateway(t, ground, { log, env: { VAULT_KEYS: `k1:${key.toString('base64')}` } });
const victim = await hostOn(t, nats, 'h1');

const askFor = (): UnprovedAsk => ({
  v: 1,
  ...protocolFields,
  tenant: acme,
  id: containerId(),
  key: createCurve().getPublicKey(),
  secret: { name: 'db', version: 1 },
});
const subject = subjects.hostUnseal(victim.agent);
const send = async (nc: NatsConnection, ask: UnprovedAsk, proof?: HostProof): Promise<UnsealAnswer> =>
  (await nc.request(subject, JSON.stringify({ ...ask, proof }), { timeout: 20_000 })).json();

/** Connects with stolen credentials; `said` has what the server refuses. */
async function thiefWith(t: Test, credsFile: string) {
  const nc = await connectNats({ servers: [nats.url], name: 'thief', credsFile }, quietLog);
  t.teardown(() => nc.close());
  const said: string[] = [];
  void (async () => {
    for await (const status of nc.status()) if (status.type === 'error') said.push(status.error.message);
  })();
  return { nc, said };
}

t.test('the host itself gets the value', async (t) => {
  const ask = askFor();
  const served = async () => (await send(victim.nc, ask, victim.prove(ask))).ok;
  t.ok(await until('the gateway serves', served));
});

const session = 'A'.repeat(22);
const token = userOf(gateway.nc) ?? '';
const spokenThere = [
  subject,
  subjects.hostSession(victim.agent),
  subjects.tunnel(token, victim.agent, session),
  subjects.session(victim.agent, session),
];
const heardThere = [
  subjects.hostUnseal(anySender),
  subjects.hostSession(anySender),
  'session.*.*.*',
  'tunnel.*.*.*.*',
  subjects.session(victim.agent, session),
];

t.test('the server refuses to speak or listen between hosts and gateways', async (t) => {
  const stolen = { actors: nats.actorsCredsFile, backup: nats.credsFile };
  for (const [name, credsFile] of Object.entries(stolen)) {
    const { nc, said } = await thiefWith(t, credsFile);
    for (const each of spokenThere) nc.publish(each, JSON.stringify({ ...askFor(), session }));
    for (const each of heardThere) nc.subscribe(each, { callback: () => {} });
    await until(`${name}: all are refused`, () => said.length === spokenThere.length + heardThere.length);
  }
  const { nc, said } = await thiefWith(t, nats.gatewayCredsFile);
  // It rings hosts and hears them, as a gateway does.
  const [unseal, ask, tunnel] = spokenThere;
  for (const each of [unseal, ask, tunnel]) nc.publish(each ?? '', JSON.stringify(askFor()));
  await until('a gateway speaks for no host', () => said.length === 3);
});

t.test('a wide subscription of the backup’s user hears none of it', async (t) => {
  const { nc } = await thiefWith(t, nats.credsFile);
  const heard: string[] = [];
  nc.subscribe('>', { callback: (_, message) => void heard.push(message.subject) });
  await nc.flush();
  const ask = askFor();
  t.ok((await send(victim.nc, ask, victim.prove(ask))).ok);
  await nc.flush();
  t.ok(
    heard.some((each) => each.startsWith('part.') || each.startsWith('owner.')),
    'it hears the rest',
  );
  t.same(
    heard.filter((each) => /^(agent\..*\.(unseal|session)|session|tunnel)\b/.test(each)),
    [],
  );
});

/** Asks can still be published there by way of JetStream, or with earlier credentials. */
t.test('asks that arrive all the same open nothing without the key of the host', async (t) => {
  const nc = await connect({
    servers: nats.url,
    authenticator: credsAuthenticator(await credentialsOfCp(nats.credsFile)),
  });
  t.teardown(() => nc.close());
  const own = createUser();
  const proofBy = (signer: KeyPair, jwt: string, ask: UnprovedAsk) =>
    createProver({ sender: victim.agent, seed: signer.getSeed(), jwt: () => jwt, nowMs: Date.now })(ask);
  const genuine = victim.prove(askFor());
  const hostsSigningSeed = readFileSync(nats.hostsSigningSeedFile, 'utf8');
  const minted = (more: object) =>
    mintHostUserJwt({
      hostKey: 'h1',
      publicKey: victim.agent.user,
      hostsAccount: nats.hostsAccount,
      hostsSigningSeed,
      ...more,
    });
  const foreignSeed = new TextDecoder().decode(createAccount().getSeed());
  const cpSeed = readFileSync(join(nats.credsFile, '..', 'cp.seed'), 'utf8');
  const attempts: Readonly<Record<string, (ask: UnprovedAsk) => HostProof | undefined>> = {
    'no proof': () => undefined,
    'the proof of another ask that the thief has seen': () => genuine,
    'the host’s credentials, signed by another key': (ask) => proofBy(own, genuine.jwt, ask),
  };
  for (const [name, jwt] of Object.entries({
    'credentials by a key of the thief': await minted({ hostsSigningSeed: foreignSeed, publicKey: own.getPublicKey() }),
    'credentials by the account CP': await minted({ hostsSigningSeed: cpSeed, publicKey: own.getPublicKey() }),
    'credentials of another host': await minted({ hostKey: 'h2', publicKey: own.getPublicKey() }),
    'credentials of this host for another key': await minted({ publicKey: own.getPublicKey() }),
  })) {
    await t.test(name, async (t) => {
      const ask = askFor();
      t.match(await send(nc, ask, proofBy(own, jwt, ask)), { ok: false, error: 'refused' });
    });
  }
  for (const [name, proof] of Object.entries(attempts)) {
    await t.test(name, async (t) => {
      const ask = askFor();
      t.match(await send(nc, ask, proof(ask)), { ok: false, box: undefined });
    });
  }
  const failures = log.events.filter(({ event }) => event === 'unseal_failed');
  const reasons = new Set(failures.map(({ fields }) => fields?.['reason']));
  t.ok(reasons.has('forged'), 'the log says so');
  t.ok(reasons.has('invalid'));
  const metrics = await gateway.registry.metrics();
  t.match(metrics, /unseals_total\{result="forged"\} 6/);
  t.match(metrics, /unseals_total\{result="invalid"\} 1/);
});

t.test('JetStream republishes an ask in the thief’s place, and it opens nothing', async (t) => {
  const { nc } = await thiefWith(t, nats.actorsCredsFile);
  const manager = await jetstreamManager(nc);
  await manager.streams.add({ name: 'TRICK', subjects: ['trick'], republish: { src: 'trick', dest: subject } });
  const before = await invalid();
  nc.publish('trick', JSON.stringify(askFor()));
  t.ok(await until('it arrives', async () => (await invalid()) > before));
  t.notOk(JSON.stringify(log.events).includes(value));
});
async function invalid(): Promise<number> {
  const found = /unseals_total\{result="invalid"\} (\d+)/.exec(await gateway.registry.metrics());
  return Number(found?.[1] ?? 0);
}

t.test('of all that, the host that has the key is not disturbed', async (t) => {
  const ask = askFor();
  t.match(await send(victim.nc, ask, victim.prove(ask)), { ok: true });
  t.equal(victim.agent.host, 'h1' as HostKey);
});
