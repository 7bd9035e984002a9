/**
 * Rotation and revocation of NATS keys at real servers, as an operator types them: the table "What
 * leaked" of docs/security.md.
 */
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { connect, type ConnectionOptions, type NatsConnection } from '@nats-io/transport-node';
import { createAccount, createUser, type KeyPair } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import { startNats } from '../../../dev/servers/nats.ts';
import { startNatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { nextClaims, signingKeysOf } from '../../../lib/nats/accounts/claims.ts';
import { createAccounts } from '../../../lib/nats/accounts/servers.ts';
import { jwtAuthenticator } from '../../../lib/nats/quick-pair.ts';
import { signHostJwt } from '../../../lib/nats/host-credentials.ts';
import { sleep, within } from '../../../lib/time/backoff.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { keysNamed, runKeys } from './keys-command.ts';

// Servers compare their accounts once a minute: the tests wait for that side by side.
t.jobs = 3;
const refused = /authorization|authentication/i;
const deadlineMs = 60_000;

interface Server {
  readonly url: string;
  readonly caFile?: string;
}

const linkTo = ({ url, caFile }: Server) => ({
  servers: url,
  reconnect: false,
  ignoreClusterUpdates: true,
  timeout: 20_000,
  ...(caFile === undefined ? {} : { tls: { caFile, handshakeFirst: true } }),
});

/** A server ends a connection that takes two seconds to sign: a busy machine tries again. */
async function connected(
  t: Test,
  server: Server,
  credentials: { readonly jwt: string; readonly seed: Uint8Array },
  more: ConnectionOptions = {},
): Promise<NatsConnection> {
  for (let attempt = 1; ; attempt++) {
    try {
      const authenticator = jwtAuthenticator(() => credentials.jwt, credentials.seed);
      const nc = await connect({ ...linkTo(server), ...more, authenticator });
      t.teardown(() => nc.close());
      return nc;
    } catch (error) {
      if (refused.test(String(error)) || attempt === 10) throw error;
    }
  }
}

/** A connection by a `.creds` file. */
async function by(t: Test, server: Server, creds: Uint8Array): Promise<NatsConnection> {
  const [, jwt = ''] = /-----BEGIN NATS USER JWT-----\s*(\S+)/.exec(Buffer.from(creds).toString()) ?? [];
  const [, seed = ''] = /-----BEGIN USER NKEY SEED-----\s*(\S+)/.exec(Buffer.from(creds).toString()) ?? [];
  return connected(t, server, { jwt, seed: Buffer.from(seed) });
}

interface Host {
  readonly user: KeyPair;
  readonly jwt: string;
}

/** A host as actors with the seed in the folder enrol it. */
async function enrolled(
  folder: string,
  account: string,
  host: string,
  signingSeed = readFileSync(join(folder, 'hosts-signing.seed'), 'utf8').trim(),
): Promise<Host> {
  const user = createUser();
  const expiresAtS = Math.ceil(Date.now() / 1000) + 3600;
  const signed = { host: host as HostKey, publicKey: user.getPublicKey(), expiresAtS };
  return { user, jwt: await signHostJwt({ publicKey: account, signingSeed }, signed) };
}

const as = (t: Test, server: Server, { user, jwt }: Host): Promise<NatsConnection> =>
  connected(t, server, { jwt, seed: user.getSeed() }, { inboxPrefix: `_INBOX_${user.getPublicKey()}` });

const credsIn = (folder: string, name: string): Buffer => readFileSync(join(folder, `${name}.creds`));

t.test('three servers, one away: it refuses what was revoked meanwhile once it is back', async (t) => {
  const cluster = await startNatsCluster({ dir: temporaryFolder(t) });
  t.teardown(() => cluster.stop());
  const folder = dirname(cluster.hostsAccountFile);
  const env = { NATS_URLS: cluster.urls.slice(0, 2).join(','), NATS_CA_FILE: cluster.caFile };
  const stolen = credsIn(folder, 'actors');
  const n3 = { url: cluster.urls[2]!, caFile: cluster.caFile };
  await cluster.nodes[2]!.stop();
  t.match(await runKeys(['rotate', folder, 'actors'], env), { code: 0 });
  t.match(await runKeys(['revoke', folder, 'actors'], env), { code: 0, out: /refuse it: n1, n2\./ });
  await cluster.nodes[2]!.start();
  await t.rejects(async () => {
    for (let tries = 0; tries < 100; tries++) {
      await (await by(t, n3, stolen)).close();
      await sleep(1000);
    }
  }, refused);
  await by(t, n3, credsIn(folder, 'actors'));
});

t.test('one server: each credential of the control plane', async (t) => {
  const dir = temporaryFolder(t);
  const folder = join(dir, 'keys');
  let nats = await startNats({ dir });
  t.teardown(() => nats.stop());
  t.match(await runKeys([folder, 'g1']), { code: 0 });
  const env = { NATS_URLS: nats.url };
  const names = ['cp', 'gateway', 'gateway-g1', 'actors', 'sys'];
  const stolen = new Map(names.map((name) => [name, credsIn(folder, name)]));
  const thieves = await Promise.all([...stolen.values()].map((creds) => by(t, nats, creds)));

  for (const name of names) {
    t.match(await runKeys(['rotate', folder, name, '--days', '90'], env), { code: 0, out: /has the new key U/ }, name);
    t.equal(keysNamed(folder, name).length, 2);
  }
  const owners = await Promise.all(names.map((name) => by(t, nats, credsIn(folder, name))));
  await Promise.all([...stolen.values()].map((creds) => by(t, nats, creds).then((nc) => nc.close())));
  const listed = await runKeys(['list', folder], env);
  t.match(listed, { code: 0, out: /^NAME +KEY +ISSUED +EXPIRES +STATE +CONNECTED\n/ });
  t.match(listed.out, /^gateway-g1 +U\S+ +20\S+ +never +earlier +1\n/m);
  t.match(listed.out, /^gateway-g1 +U\S+ +20\S+ +20\S+ +current +1\n/m);

  for (const name of names) {
    const ran = await runKeys(['revoke', folder, name], env);
    t.match(ran, { code: 0, out: `Revoked: ${name} ${keysNamed(folder, name)[0]}\n` }, name);
  }
  await within(Promise.all(thieves.map((nc) => nc.closed())), deadlineMs, 'the connections of the thief to be closed');
  const areRefused = async (what: string): Promise<void> => {
    for (const [name, creds] of stolen) await t.rejects(by(t, nats, creds), refused, `${name}, ${what}`);
  };
  await areRefused('revoked');
  for (const nc of owners) t.notOk(nc.isClosed(), 'what replaced it is connected');
  t.match((await runKeys(['list', folder], env)).out, /^actors +U\S+ +20\S+ +never +revoked 20\S+ +0\n/m);

  t.match(await runKeys([folder, 'g1']), { code: 0 }, 'the folder is made again');
  await nats.stop();
  rmSync(join(dir, 'accounts'), { recursive: true });
  nats = await startNats({ dir, port: nats.port });
  await areRefused('at a server that has lost its accounts and reads its configuration');
  await by(t, nats, credsIn(folder, 'actors'));
});

t.test('missing keys are named', async (t) => {
  const folder = join(temporaryFolder(t), 'keys');
  t.match(await runKeys(['list', folder]), { code: 1, out: /has no keys of a cluster/ });
  t.notOk(existsSync(folder), 'a wrong path becomes no cluster');
  t.match(await runKeys([folder]), { code: 0 });
  t.match(await runKeys(['list', folder]), { code: 0, out: /^actors +U\S+ +20\S+ +never +current\n/m });
  t.match(await runKeys(['rotate', folder, 'nobody']), { code: 2, out: /nobody is no name .*actors, sys, hosts-sign/ });
  t.match(await runKeys(['rotate', folder, 'actors', '--days', '0']), {
    code: 2,
    out: /--days .*It must be a whole number/,
  });
  t.match(await runKeys(['revoke', folder, 'actors']), { code: 1, out: /has no earlier key. Rotate it first/ });
  t.match(await runKeys(['rotate', folder, 'hosts-signing']), { code: 1, out: /NATS_URLS is missing/ });
  t.match(await runKeys(['rotate', folder, 'actors']), { code: 0 });
  t.match(await runKeys(['revoke', folder, 'actors']), { code: 1, out: /NATS_URLS is missing/ });
});

t.test('a gateway that is gone for good', async (t) => {
  const dir = temporaryFolder(t);
  const folder = join(dir, 'keys');
  const nats = await startNats({ dir });
  t.teardown(() => nats.stop());
  await runKeys([folder, 'g1']);
  const creds = credsIn(folder, 'gateway-g1');
  const [key] = keysNamed(folder, 'gateway-g1');
  t.match(await runKeys(['revoke', folder, key!], { NATS_URLS: nats.url }), { code: 0 });
  await t.rejects(by(t, nats, creds), refused);
  t.notOk(existsSync(join(folder, 'gateway-g1.creds')), 'and are not signed again');
  t.match(await runKeys([folder, 'g1']), { code: 0 });
  await by(t, nats, credsIn(folder, 'gateway-g1'));
  await t.rejects(by(t, nats, creds), refused, 'a gateway of the same name has another key');
});

t.test('the signing key of the operator', async (t) => {
  const dir = temporaryFolder(t);
  const folder = join(dir, 'keys');
  let nats = await startNats({ dir });
  t.teardown(() => nats.stop());
  const env = { NATS_URLS: nats.url };
  const restart = async (): Promise<void> => {
    await nats.stop();
    nats = await startNats({ dir, port: nats.port });
  };
  const seed = (): string => readFileSync(nats.operatorSigningSeedFile, 'utf8').trim();
  const host = await enrolled(folder, nats.hostsAccount, 'h1');
  /** A thief adds a signing key of his own to the account HOSTS, and signs a host by it. */
  const plant = async (operatorSeed: string): Promise<Host> => {
    const system = await by(t, nats, credsIn(folder, 'sys'));
    const accounts = createAccounts(Promise.resolve(system), operatorSeed);
    const [claims] = await accounts.stored(nats.hostsAccount);
    const own = createAccount();
    const nowS = Math.floor(Date.now() / 1000);
    await accounts.push({
      ...claims!,
      iat: Math.max(nowS, claims!.iat + 1),
      nats: { ...claims!.nats, signing_keys: [...signingKeysOf(claims!), own.getPublicKey()] },
    });
    return enrolled(folder, nats.hostsAccount, 'h1', new TextDecoder().decode(own.getSeed()));
  };
  const isFine = async (): Promise<void> => (await as(t, nats, host)).close();
  const leaked = seed();
  const planted = await plant(leaked);
  await (await as(t, nats, planted)).close();
  await isFine();
  t.match(await runKeys(['rotate', folder, 'operator-signing'], env), { code: 0, out: /accounts.conf to every NATS/ });
  t.not(seed(), leaked);
  await restart();
  await isFine();

  const revoke = ['revoke', folder, 'operator-signing'];
  t.match(await runKeys(revoke, env), { code: 0, out: /restart one after the other/ });
  await restart();
  await isFine();
  await t.rejects(as(t, nats, planted), refused, 'what the thief has planted is gone');
  await t.rejects(as(t, nats, await plant(leaked)), refused, 'and he can plant no other');
  await isFine();
  t.match(await runKeys(revoke, env), { code: 0 }, 'what a server has stored of it is replaced');
  await restart();
  await isFine();

  const system = credsIn(folder, 'sys');
  t.match(await runKeys(['rotate', folder, 'sys'], env), { code: 0 });
  t.match(await runKeys(['revoke', folder, 'sys'], env), { code: 0 });
  await t.rejects(by(t, nats, system), refused, 'the credentials by which he has planted it');
  await (await by(t, nats, credsIn(folder, 'sys'))).close();
  await restart();
  await t.rejects(by(t, nats, system), refused, 'after a restart, too');
  await isFine();
});

t.test('three servers: the signing key of hosts, with a kill in each rotation and revocation', async (t) => {
  const dir = temporaryFolder(t);
  const cluster = await startNatsCluster({ dir });
  t.teardown(() => cluster.stop());
  const folder = dirname(cluster.hostsAccountFile);
  const servers = cluster.urls.map((url) => ({ url, caFile: cluster.caFile }));
  const env = { NATS_URLS: cluster.urls.join(','), NATS_CA_FILE: cluster.caFile };
  const everywhere = (host: Host): Promise<NatsConnection[]> => Promise.all(servers.map((each) => as(t, each, host)));
  const accepted = async (host: Host, what: string): Promise<void> => {
    const links = await everywhere(host);
    t.equal(links.length, servers.length, what);
    await Promise.all(links.map((nc) => nc.close()));
  };
  const old = await enrolled(folder, cluster.hostsAccount, 'h1');
  const links = await everywhere(old);
  const [oldKey] = keysNamed(folder, 'hosts-signing');

  // Revoked by actors: no rotation may undo it.
  const removed = await enrolled(folder, cluster.hostsAccount, 'h2');
  const system = await by(t, servers[0]!, credsIn(folder, 'sys'));
  const operatorSeed = readFileSync(cluster.operatorSigningSeedFile, 'utf8').trim();
  const accounts = createAccounts(Promise.resolve(system), operatorSeed);
  const nowS = Math.floor(Date.now() / 1000);
  const wanted = new Map([[removed.user.getPublicKey(), nowS + 1]]);
  const held = (await accounts.held(cluster.hostsAccount)).claims;
  await accounts.push(nextClaims(held, { wanted, nowS, keptForS: 3600, most: 10 })!);

  const textOf = (file: string): string => readFileSync(join(folder, file), 'utf8');
  /** A check that the file has changed since now. */
  const changed = (file: string): (() => boolean) => {
    const before = textOf(file);
    return () => textOf(file) !== before;
  };
  const isUnhurt = async (when: string): Promise<void> => {
    await accepted(old, `the enrolled host, after a kill ${when}`);
    t.ok(links.every((nc) => !nc.isClosed()));
    t.match(await runKeys(['list', folder]), { code: 0 }, when);
  };
  const rotate = ['rotate', folder, 'hosts-signing'];
  for (const file of ['issued.json', 'hosts-signing.seed', 'hosts.jwt']) {
    t.match(await runKeys(rotate, env, changed(file)), { code: null }, `killed once ${file} is new`);
    await isUnhurt(`once ${file} is new`);
    t.match(await runKeys(rotate, env), { code: 0, out: /accept it: n1, n2, n3\./ });
  }
  const renewed = await enrolled(folder, cluster.hostsAccount, 'h1');
  await accepted(renewed, 'signed by the new key');
  await accepted(old, 'signed by the old key');
  await t.rejects(everywhere(removed), refused, 'the revocations of actors are kept');

  const revoke = ['revoke', folder, 'hosts-signing'];
  const stopped = await runKeys(revoke, env);
  t.match(stopped, { code: 1, out: /3 hosts are connected by it: .*Nothing was changed/ });
  await isUnhurt('none');
  t.match(await runKeys([...revoke, '--now'], env, changed('issued.json')), { code: null }, 'killed');
  const ran = await runKeys([...revoke, '--now'], env);
  t.match(ran, { code: 0, out: `Revoked: hosts-signing ${oldKey}\n` });
  t.match(ran.out, /refuse it: n1, n2, n3\./);
  await within(Promise.all(links.map((nc) => nc.closed())), deadlineMs, 'the connections by the old key to be closed');
  for (const server of servers) await t.rejects(as(t, server, old), refused);
  await accepted(renewed, 'hosts that have renewed');

  // A copy of the folder works as the folder does.
  const copy = join(dir, 'copy');
  cpSync(folder, copy, { recursive: true });
  t.match(await runKeys(['list', copy], env), { code: 0, out: new RegExp(`^hosts-signing +${oldKey} .*revoked`, 'm') });
});
