/**
 * Credentials of removed hosts at real NATS servers: each server refuses them, and accepts those of
 * other hosts.
 */
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { connect, credsAuthenticator, jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { createUser, type KeyPair } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import { joinCluster } from '../../../../actors/cluster.ts';
import { createAccounts } from '../../../../lib/nats/accounts/servers.ts';
import { startNats, type Nats } from '../../../../dev/servers/nats.ts';
import { startNatsCluster } from '../../../../dev/servers/nats-cluster.ts';
import { within } from '../../../../lib/time/backoff.ts';
import { connectNats, credentialsFile } from '../../../../lib/nats/connection.ts';
import type { HostKey, Region } from '../../../../schemas/ids.ts';
import { subjects } from '../../../../schemas/wire/subjects.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { hostKey, operation, quietLog } from '../../../actors/support.ts';
import { createAsker, ownerOn, type Ground } from '../support.ts';
import { until } from '../../../support/until.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';

const deadlineMs = 60_000;

interface Enrolled {
  readonly key: HostKey;
  readonly user: KeyPair;
  readonly jwt: string;
}

/**
 * Actors processes inside this one, each with a connection of the system account to one of the
 * servers.
 */
async function control(t: Test, ground: Ground, urls: readonly string[], caFile?: string): Promise<void> {
  for (const url of urls) {
    const tls = caFile === undefined ? {} : { tlsCaFile: caFile };
    const link = { servers: [url], name: 'test', ...tls };
    const [nc, system] = await Promise.all([
      connectNats({ ...link, authenticator: credentialsFile(ground.nats.credsFile) }, quietLog),
      connectNats({ ...link, authenticator: credentialsFile(ground.nats.sysCredsFile) }, quietLog),
    ]);
    const seed = readFileSync(ground.nats.operatorSigningSeedFile, 'utf8').trim();
    const owner = ownerOn(ground, nc, { accounts: createAccounts(Promise.resolve(system), seed) });
    t.teardown(async () => {
      await owner.stop();
      await Promise.all([nc.close(), system.close()]);
    });
    await owner.start();
  }
}

const asker = (ground: Ground) => createAsker(ground.nc, ground.cluster.partitions);

async function enrol(ground: Ground, key: HostKey, user = createUser()): Promise<Enrolled> {
  const ask = asker(ground);
  const region = 'default' as Region;
  const create = { type: 'host.create', host: key, region, joinTokenHash: 'x', op: operation() } as const;
  // No owner answers while the partition is handed over; a repeated operation is done once.
  await until('a host', async () => (await ask(create)).code === 'created');
  const asked = { type: 'host.enrol', host: key, publicKey: user.getPublicKey(), joinTokenHash: 'x' } as const;
  let jwt: string | undefined;
  await until('an enrolment', async () => {
    const answer = await ask({ ...asked, op: operation() });
    jwt = answer.code === 'created' ? (answer.json as { data: { jwt: string } }).data.jwt : undefined;
    return jwt !== undefined;
  });
  // Nothing can run on a host that never said hello, so it would not be fenced.
  const capacity = { cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 };
  const hello = { v: 1, ...protocolFields, agent_version: 'test', capacity };
  const subject = subjects.hostHello({ host: key, user: user.getPublicKey() });
  await until('an answer to hello', () => ground.nc.request(subject, JSON.stringify(hello), { timeout: 5000 }));
  return { key, user, jwt: jwt! };
}

const connectAs = ({ user, jwt }: Enrolled, url: string, caFile?: string): Promise<NatsConnection> =>
  connect({
    servers: url,
    authenticator: jwtAuthenticator(jwt, user.getSeed()),
    inboxPrefix: `_INBOX_${user.getPublicKey()}`,
    ignoreClusterUpdates: true,
    reconnect: false,
    ...(caFile === undefined ? {} : { tls: { caFile, handshakeFirst: true } }),
  });

/** Tries again: servers that have just started have no leader of the stream, so none answers. */
const publishLog = (nc: NatsConnection, { key }: Enrolled): Promise<unknown> =>
  until('an acknowledgement', async () => (await nc.request(`host.${key}.log.t.c`, 'line', { timeout: 5000 })).json());

/** Asks again while the partition is handed over. */
const remove = (ground: Ground, host: HostKey, more: { force?: true; dead?: true } = {}): Promise<unknown> =>
  until('a removal', async () =>
    asker(ground)({ type: 'host.remove', host, ...more, op: operation() }).then(
      ({ code }) => code === 'accepted' || code === 'not_found',
      () => false,
    ),
  );

const groundOn = async (t: Test, nats: Nats, partitions: number): Promise<Ground> => {
  const nc = await connect({ servers: nats.url, authenticator: credsAuthenticator(readFileSync(nats.credsFile)) });
  t.teardown(() => nc.close());
  return { nats, nc, cluster: await joinCluster(nc, { partitions, replicas: 1, newId: randomUUID }) };
};

t.setTimeout(600_000);

t.test('one server: a removed host is disconnected for good, and can enrol again', { timeout: 300_000 }, async (t) => {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const ground = await groundOn(t, nats, 2);
  await control(t, ground, [nats.url]);
  const h1 = await enrol(ground, hostKey('h1'));
  const h2 = await enrol(ground, hostKey('h2'));
  const [one, other] = await Promise.all([connectAs(h1, nats.url), connectAs(h2, nats.url)]);
  t.teardown(() => Promise.all([one.close(), other.close()]));
  t.match(await publishLog(one, h1), { stream: 'LOGS' });

  await remove(ground, h1.key, { force: true });
  await within(one.closed(), deadlineMs, 'the connection of the removed host to be closed');
  await t.rejects(connectAs(h1, nats.url), /authorization|authentication/i);
  t.match(await publishLog(other, h2), { stream: 'LOGS' }, 'another host is as it was');

  await nats.restart();
  await t.rejects(connectAs(h1, nats.url), /authorization|authentication/i, 'a restart does not undo it');

  await remove(ground, h1.key, { force: true, dead: true });
  const again = await enrol(ground, h1.key, h1.user);
  const back = await connectAs(again, nats.url);
  t.teardown(() => back.close());
  t.match(await publishLog(back, again), { stream: 'LOGS' }, 'enrolled again with the same key');
  await t.rejects(connectAs(h1, nats.url), /authorization|authentication/i, 'what was signed before is refused');
});

t.test(
  'three servers, two processes that push at once: every server closes every connection',
  { timeout: 300_000 },
  async (t) => {
    const servers = await startNatsCluster({ dir: temporaryFolder(t) });
    t.teardown(() => servers.stop());
    const { caFile, urls } = servers;
    const nc = await connectNats(
      { servers: urls, name: 'test', authenticator: credentialsFile(servers.credsFile), tlsCaFile: caFile },
      quietLog,
    );
    t.teardown(() => nc.close());
    const cluster = await joinCluster(nc, { partitions: 8, replicas: 3, newId: randomUUID });
    const ground = { nats: { ...servers, url: urls[0]! } as unknown as Nats, nc, cluster };
    await control(t, ground, urls.slice(0, 2), caFile);

    const removed: Enrolled[] = [];
    for (let count = 0; count < 6; count++) removed.push(await enrol(ground, hostKey(`h${count}`)));
    const kept = await enrol(ground, hostKey('kept'));
    const toAll = (host: Enrolled): Promise<NatsConnection[]> =>
      Promise.all(urls.map((url) => connectAs(host, url, caFile)));
    const cut = (await Promise.all(removed.map(toAll))).flat();
    const others = await toAll(kept);
    t.teardown(() => Promise.all([...cut, ...others].map((link) => link.close())));

    await Promise.all(removed.map(({ key }) => remove(ground, key, { force: true })));
    await within(Promise.all(cut.map((link) => link.closed())), deadlineMs, 'all connections to be closed');
    for (const host of removed) {
      for (const url of urls) await t.rejects(connectAs(host, url, caFile), /authorization|authentication/i);
    }
    for (const link of others) t.match(await publishLog(link, kept), { stream: 'LOGS' });
  },
);
