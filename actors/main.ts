/** The actors program: owner of partitions, writer of all state. */
import { randomUUID } from 'node:crypto';
import { Answers } from '../lib/nats/answers.ts';
import { systemClock } from '../lib/time/clock.ts';
import { watchCluster } from '../lib/nats/cluster-record.ts';
import { ConfigurationError, readSettings } from '../lib/config.ts';
import { runProgram } from '../lib/lifecycle.ts';
import { createLog, logLevelOf } from '../lib/log.ts';
import { createRegistry, metricsListenerOf, serveMetrics } from '../lib/metrics.ts';
import { connectNats, countFailovers, credentialsFile } from '../lib/nats/connection.ts';
import { readSeedFile } from '../lib/nats/key-files.ts';
import { createSlices } from '../lib/time/slices.ts';
import { startTracing } from '../lib/trace/settings.ts';
import { version } from '../lib/version.ts';
import { createBudgets } from './retention/budgets.ts';
import { createJournalRetention } from './retention/journals.ts';
import { joinWhenReady, watchPayload } from './cluster.ts';
import { createMetrics, observeFleet, observePartitionManager, observeScrub } from './metrics.ts';
import { createOwner } from './owner.ts';
import { checkSigningSeed } from './endpoints/credentials.ts';
import { createAccounts } from '../lib/nats/accounts/servers.ts';
import { createScrub } from './scrub/scrub.ts';
import { settings } from './settings.ts';
import { limits } from '../schemas/limits.ts';

/**
 * The deadline of a scrub or a look at budgets, which finish a request, and of a connection that
 * drains.
 */
const stopWorkMs = 5000;
/** The deadline for handing the partitions over (`leaveMs`), with the commits before. */
const stopPartitionsMs = 15_000;

const log = createLog('actors', logLevelOf(process.env));

await runProgram(log, async (life) => {
  const config = readSettings(settings, process.env);
  const registry = createRegistry('actors', version);
  const { observer, scrubbed, trimmed } = createMetrics(registry);
  const tracer = startTracing(config, {
    program: 'actors',
    version,
    registry,
    clock: systemClock,
    log,
    life,
  });
  const answers = new Answers(systemClock);
  const nc = await connectNats(
    {
      servers: config.NATS_URLS,
      name: 'longshore actors',
      isUrgent: true,
      answers,
      onMove: countFailovers(registry),
      ...(config.NATS_CREDS_FILE === undefined ? {} : { credsFile: config.NATS_CREDS_FILE }),
      ...(config.NATS_CA_FILE === undefined ? {} : { tlsCaFile: config.NATS_CA_FILE }),
    },
    log,
  );
  life.onStop({ name: 'NATS connection', deadlineMs: stopWorkMs, stop: () => nc.close() });

  const cluster = await joinWhenReady(
    nc,
    {
      partitions: config.LONGSHORE_PARTITIONS,
      replicas: config.LONGSHORE_REPLICAS,
      tenantIpv4: config.TENANT_IPV4 ?? undefined,
      newId: randomUUID,
      expectedId: config.LONGSHORE_CLUSTER_ID,
      answers,
    },
    log,
  );
  const { NATS_SYSTEM_CREDS_FILE: systemCreds, OPERATOR_SIGNING_SEED_FILE: operatorSeedFile } = config;
  if ((systemCreds === undefined) !== (operatorSeedFile === undefined)) {
    throw new ConfigurationError([
      'NATS_SYSTEM_CREDS_FILE and OPERATOR_SIGNING_SEED_FILE go together: set both, or neither',
    ]);
  }
  const hostsAccount = {
    publicKey: config.HOSTS_ACCOUNT,
    signingSeed: readSeedFile('HOSTS_SIGNING_SEED_FILE', config.HOSTS_SIGNING_SEED_FILE, 'SA'),
  };
  /** A connection to the system account, in which credentials of removed hosts are revoked. */
  const systemOf = (creds: string) => {
    const system = connectNats(
      {
        servers: config.NATS_URLS,
        name: 'longshore actors (system account)',
        authenticator: credentialsFile(creds),
        ...(config.NATS_CA_FILE === undefined ? {} : { tlsCaFile: config.NATS_CA_FILE }),
      },
      log,
    );
    system.catch((error: unknown) => log.error('system_connection_failed', { error }));
    return system;
  };
  const system = systemCreds === undefined ? undefined : systemOf(systemCreds);
  if (system !== undefined) await checkSigningSeed(system, hostsAccount, log);
  if (systemCreds === undefined) {
    const consequence =
      'the credentials of a removed host stay valid at NATS until they expire: docs/deploy.md, Keys and accounts';
    log.warn('host_revocation_off', { missing: 'NATS_SYSTEM_CREDS_FILE, OPERATOR_SIGNING_SEED_FILE', consequence });
  }
  const slices = createSlices({ monotonicMs: () => systemClock.monotonicMs(), onSlice: observer.worked });
  const owner = createOwner({
    nc,
    answers,
    cluster,
    hostsAccount,
    ...(system === undefined || operatorSeedFile === undefined
      ? {}
      : { accounts: createAccounts(system, readSeedFile('OPERATOR_SIGNING_SEED_FILE', operatorSeedFile, 'SO')) }),
    hostsNatsUrls: config.NATS_HOST_URLS.length > 0 ? config.NATS_HOST_URLS : config.NATS_URLS,
    hostCredentialsTtlMs: config.HOST_CREDENTIALS_TTL,
    hostUnknownMs: config.HOST_UNKNOWN,
    hostLostMs: config.HOST_LOST,
    hostCeiling: {
      cpu_millis: config.HOST_MAX_CPU_MILLIS,
      mem_bytes: config.HOST_MAX_MEM_BYTES,
      containers: config.HOST_MAX_CONTAINERS,
    },
    drainAtOnce: config.DRAIN_AT_ONCE,
    clock: systemClock,
    slices,
    log,
    tracer,
    observer,
    newToken: randomUUID,
  });
  const watching = new AbortController();
  life.onStop({
    name: 'cluster watch',
    deadlineMs: limits.stopPartMs,
    stop: async () => Promise.resolve(watching.abort()),
  });
  const onOtherCluster = (error: Error): void => {
    // A clean stop would commit what is under way, into what was restored.
    owner.drop();
    life.fail('wrong_cluster', error);
  };
  void watchCluster(nc, cluster, onOtherCluster, watching.signal);
  void watchPayload(nc, (error) => life.fail('payload_too_small', error), watching.signal);
  observeFleet(registry, owner.fleet);
  observePartitionManager(registry, owner.manager);
  const scrub = createScrub({
    nc,
    owned: () => [...owner.manager.serving()].map(({ number }) => number),
    intervalMs: config.SCRUB_INTERVAL,
    clock: systemClock,
    log,
    onScrubbed: scrubbed,
  });
  observeScrub(registry, scrub);
  const budgets = createBudgets({
    nc,
    owned: () => [...owner.manager.serving()].map(({ number }) => number),
    slices,
    log,
    onTrimmed: trimmed,
    random: Math.random,
  });

  const journals = createJournalRetention({
    nc,
    partitions: cluster.partitions,
    isDead: (member) => owner.manager.membership.isDead(member),
    newToken: randomUUID,
    clock: systemClock,
    log,
  });

  const metrics = await serveMetrics(registry, metricsListenerOf(config), log, () => owner.manager.fault());
  life.onStop(metrics);
  log.info('metrics_listening', { url: metrics.url });

  life.onStop({ name: 'partitions', deadlineMs: stopPartitionsMs, stop: () => owner.stop() });
  const again = { name: 'storing partitions again', deadlineMs: limits.storeAgainStopMs };
  life.onStop({ ...again, stop: () => owner.storedAgain() });
  // Before the partitions: a partition without an owner holds up `owner.start`, and may be what the
  // scrub has to find.
  scrub.start();
  life.onStop({ name: 'scrub', deadlineMs: stopWorkMs, stop: () => scrub.stop() });
  budgets.start();
  life.onStop({ name: 'budgets', deadlineMs: stopWorkMs, stop: () => budgets.stop() });
  journals.start();
  life.onStop({ name: 'journals', deadlineMs: stopWorkMs, stop: () => journals.stop() });
  await owner.start();
  log.info('serving', { cluster: cluster.id, member: owner.manager.membership.id, partitions: owner.serving() });
});
