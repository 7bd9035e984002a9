/** The actors program: owner of partitions, writer of all state. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../lib/clock.ts';
import { readSettingFile, readSettings } from '../lib/config.ts';
import { runProgram } from '../lib/lifecycle.ts';
import { createLog, logLevelOf } from '../lib/log.ts';
import { createRegistry, serveMetrics } from '../lib/metrics.ts';
import { connectNats, credentialsFile } from '../lib/nats.ts';
import { version } from '../lib/version.ts';
import { checkServer, joinCluster } from './cluster.ts';
import { createObserver, observeFleet, observePartitions } from './metrics.ts';
import { createOwner } from './owner.ts';
import { settings } from './settings.ts';

const log = createLog('actors', logLevelOf(process.env));

await runProgram(log, async (life) => {
  const config = readSettings(settings, process.env);
  const nc = await connectNats(
    {
      servers: config.NATS_URLS,
      name: 'longshore actors',
      ...(config.NATS_CREDS_FILE === undefined ? {} : { authenticator: credentialsFile(config.NATS_CREDS_FILE) }),
      ...(config.NATS_CA_FILE === undefined ? {} : { tlsCaFile: config.NATS_CA_FILE }),
    },
    log,
  );
  life.onStop({ name: 'NATS connection', deadlineMs: 5000, stop: () => nc.close() });

  await checkServer(nc);
  const cluster = await joinCluster(nc, {
    partitions: config.PARTITIONS,
    replicas: config.REPLICAS,
    newId: randomUUID,
  });

  const registry = createRegistry('actors', version);
  const owner = createOwner({
    nc,
    cluster: cluster.id,
    partitions: cluster.partitions,
    name: randomUUID(),
    hostsAccount: {
      publicKey: config.HOSTS_ACCOUNT,
      signingSeed: readSettingFile('HOSTS_SIGNING_SEED_FILE', config.HOSTS_SIGNING_SEED_FILE),
    },
    hostsNatsUrls: config.HOSTS_NATS_URLS.length > 0 ? config.HOSTS_NATS_URLS : config.NATS_URLS,
    hostCredentialsTtlMs: config.HOST_CREDENTIALS_TTL_MS,
    hostUnknownMs: config.HOST_UNKNOWN_MS,
    hostLostMs: config.HOST_LOST_MS,
    clock: systemClock,
    log,
    observer: createObserver(registry),
    newToken: randomUUID,
    onLost: (partition) => life.fail('partition_lost', new Error(`another process has taken partition ${partition}`)),
  });
  observeFleet(registry, owner.fleet);
  observePartitions(registry, () => owner.serving());

  const metrics = await serveMetrics(registry, { host: config.METRICS_HOST, port: config.METRICS_PORT }, () =>
    owner.serving() === cluster.partitions ? undefined : `${owner.serving()} of ${cluster.partitions} partitions serve`,
  );
  life.onStop(metrics);
  log.info('listening', { metrics: metrics.url });

  life.onStop({ name: 'partitions', deadlineMs: 15_000, stop: () => owner.stop() });
  await owner.start();
  log.info('serving', { cluster: cluster.id, partitions: owner.serving() });
});
