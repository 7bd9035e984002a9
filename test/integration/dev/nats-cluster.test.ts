/** A cluster of three NATS servers: TLS on every connection, three replicas, one may be away. */
import { readFileSync } from 'node:fs';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { startNatsCluster, type NatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

const control = (cluster: NatsCluster, servers: readonly string[] = cluster.urls): Promise<NatsConnection> =>
  connect({
    servers: [...servers],
    authenticator: credsAuthenticator(readFileSync(cluster.credsFile)),
    tls: { caFile: cluster.caFile, handshakeFirst: true },
  });

t.test('a cluster of three servers', { timeout: 600_000 }, async (t) => {
  const cluster = await startNatsCluster({ dir: temporaryFolder(t) });
  t.teardown(() => cluster.stop());
  const nc = await control(cluster);
  t.teardown(() => nc.close());
  const manager = await jetstreamManager(nc, { timeout: 5_000 });

  await t.test('keeps three replicas of a stream', async (t) => {
    const { cluster: group } = await manager.streams.add({ name: 'S', subjects: ['s.>'], num_replicas: 3 });
    t.same([group?.leader, ...(group?.replicas ?? []).map(({ name }) => name)].sort(), ['n1', 'n2', 'n3']);
  });

  await t.test('accepts only TLS', async (t) => {
    for (const url of cluster.urls) {
      const authenticator = credsAuthenticator(readFileSync(cluster.credsFile));
      const plain = { servers: url.replace('tls:', 'nats:'), authenticator, reconnect: false, timeout: 1_000 };
      await t.rejects(connect(plain), 'without TLS');
      await t.rejects(
        connect({ ...plain, tls: { handshakeFirst: true } }),
        /certificate/,
        'without the certificate authority',
      );
    }
  });

  await t.test('accepts writes while any one server is away', async (t) => {
    for (const [index, node] of cluster.nodes.entries()) {
      await node.kill9();
      await until('a write', () => jetstream(nc).publish(`s.${index}`, node.name, { timeout: 2_000 }));
      await node.start();
      const state = await until('three replicas again', async () => {
        const info = await manager.streams.info('S');
        const replicas = info.cluster?.replicas ?? [];
        const healed = replicas.length === 2 && replicas.every(({ current, offline }) => current && offline !== true);
        return healed ? info.state : undefined;
      });
      t.ok(state.messages > index, `without ${node.name}`);
    }
  });
});
