/**
 * Three NATS servers and two of each program of the control plane. Each server is killed in turn
 * under load; every acknowledged write survives.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager, type StreamInfo } from '@nats-io/jetstream';
import { connect, credsAuthenticator, jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { createUser } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import { mintHostUserJwt } from '../../support/host-user.ts';
import { startNatsCluster, type NatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { startRedis } from '../../../dev/servers/redis.ts';
import { demoImage } from '../../../dev/servers/registry.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { refusal } from '../../support/refusal.ts';
import { sharedEngine, sharedRegistry } from '../../support/servers.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { checkAcknowledged, work } from '../support/acknowledged.ts';
import { clientFor } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey, prepareHosts } from '../support/hosts.ts';
import { connectTo, startPrograms } from '../support/programs.ts';

/** A stream elects a new leader within seconds; the rest allows for a slow machine. */
const servesAgainMs = 60_000;

async function startWhole(t: Test) {
  const folder = temporaryFolder(t, 'longshore-cluster-');
  const dockerHost = await sharedEngine(t);
  const registry = await sharedRegistry(t);
  const redis = await startRedis({ folder: join(folder, 'redis') });
  t.teardown(() => redis.stop());
  const nats = await startNatsCluster({ dir: join(folder, 'nats') });
  t.teardown(() => nats.stop());
  const settings = { actors: { LONGSHORE_REPLICAS: '3' }, gateway: redis.settings };
  const { issuer, gateways } = await startPrograms(t, folder, nats, settings, { actors: 2, gateways: 2 });
  const baseUrls = gateways.map(({ baseUrl }) => baseUrl);
  const hosts = await prepareHosts(t, folder, { baseUrl: baseUrls[0]!, issuer, nats, dockerHost, settings: {} });
  await hosts.startAgent(hostKey);
  const clientOf = async (index: number, tenant: string, scope?: string) =>
    clientFor(baseUrls[index % baseUrls.length]!, issuer, tenant, scope);
  return { nats, engine: hosts.engine, image: { registry, ...demoImage }, clientOf };
}

async function streamsOf(nc: NatsConnection): Promise<StreamInfo[]> {
  const manager = await jetstreamManager(nc, { timeout: 5_000, checkAPI: false });
  const all: StreamInfo[] = [];
  for await (const info of manager.streams.list()) all.push(info);
  return all;
}

const hasThree = ({ config, cluster }: StreamInfo): boolean =>
  config.num_replicas === 3 && [cluster?.leader, ...(cluster?.replicas ?? []).map(({ name }) => name)].length === 3;

const isHealed = (info: StreamInfo): boolean =>
  hasThree(info) && (info.cluster?.replicas ?? []).every(({ current, offline }) => current && offline !== true);

async function host(nats: NatsCluster, url: string): Promise<NatsConnection> {
  const user = createUser();
  const jwt = await mintHostUserJwt({
    hostKey: 'h9',
    publicKey: user.getPublicKey(),
    hostsAccount: nats.hostsAccount,
    hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
  });
  return connect({
    servers: url,
    authenticator: jwtAuthenticator(jwt, user.getSeed()),
    inboxPrefix: `_INBOX_${user.getPublicKey()}`,
    ignoreClusterUpdates: true,
    tls: { caFile: nats.caFile, handshakeFirst: true },
  });
}

t.test('a cluster of three NATS servers survives the loss of any one', { timeout: 600_000 }, async (t) => {
  const { nats, engine, image, clientOf } = await startWhole(t);
  const nc = await connectTo(nats);
  t.teardown(() => nc.close());

  await t.test('each stream has three replicas', async (t) => {
    const streams = await streamsOf(nc);
    const names = streams.map(({ config }) => config.name);
    for (const name of ['KV_cluster', 'KV_members', 'KV_state-0', 'KV_state-15', 'LOGS', 'EVENTS'])
      t.ok(names.includes(name), name);
    t.same(
      streams.filter((info) => !hasThree(info)).map(({ config }) => config.name),
      [],
    );
  });

  await t.test('no server lets a host reach JetStream, or a client connect without TLS', async (t) => {
    for (const url of nats.urls) {
      const h9 = await host(nats, url);
      for (const subject of ['$JS.API.INFO', '$JS.API.DIRECT.GET.KV_state-0', '$KV.state-0.epoch', 'part.0']) {
        t.match(await refusal(h9, () => h9.publish(subject, 'x')), /permissions violation/i, subject);
      }
      await h9.close();
      const authenticator = credsAuthenticator(readFileSync(nats.credsFile));
      const plain = { servers: url.replace('tls:', 'nats:'), authenticator, reconnect: false, timeout: 1_000 };
      await t.rejects(connect(plain), 'without TLS');
    }
  });

  await t.test('killing each server in turn loses no acknowledged write', async (t) => {
    const operator = await clientOf(0, 'ops', 'operator');
    const tenants = ['cluster-a', 'cluster-b', 'cluster-c'];
    const caps = { containers: 60, cpu_millis: null, mem_bytes: null };
    for (const tenant of tenants)
      t.equal((await operator.call('PUT', `/api/v2/operator/tenants/${tenant}`, { caps })).status, 200);
    const clients = await Promise.all(tenants.map(async (tenant, index) => clientOf(index, tenant)));
    const ending = new AbortController();
    const load = { image, containers: 12, pauseMs: 1_000, signal: ending.signal };
    const working = Promise.all(clients.map(async (client, index) => work(client, { ...load, name: `w${index}` })));

    for (const node of nats.nodes) {
      await sleep(1_500);
      await node.kill9();
      const killedMs = performance.now();
      for (const [index, client] of clients.entries()) {
        const body = { name: `without-${node.name}`, ...image, cpu_limit: '0.1', mem_limit: '16m' };
        const headers = { 'idempotency-key': body.name };
        const serves = `tenant ${index} is served without ${node.name}`;
        const create = async () => client.create(body, headers);
        const created = await eventually(serves, create, ({ status }) => status === 201, servesAgainMs);
        const removed = async () => client.remove(created.body.data);
        await eventually(`${serves}: delete`, removed, ({ status }) => status < 300 || status === 404, servesAgainMs);
      }
      t.comment(`served again ${Math.round(performance.now() - killedMs)} ms after ${node.name} was killed`);
      await node.start();
      const heals = `${node.name} has caught up`;
      await eventually(
        heals,
        async () => streamsOf(nc),
        (streams) => streams.every(isHealed),
        servesAgainMs,
      );
    }
    ending.abort();
    const acknowledged = await working;
    await checkAcknowledged(
      t,
      engine,
      clients.map((client, index) => ({ client, acknowledged: acknowledged[index] ?? [] })),
    );
  });
});
