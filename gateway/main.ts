/** The gateway's process. */
import type { NatsConnection } from '@nats-io/transport-node';
import { Answers } from '../lib/nats/answers.ts';
import { readSettings } from '../lib/config.ts';
import { systemClock } from '../lib/time/clock.ts';
import { runProgram } from '../lib/lifecycle.ts';
import { createLog, logLevelOf } from '../lib/log.ts';
import { createRegistry, metricsListenerOf, serveMetrics } from '../lib/metrics.ts';
import { connectNats, countFailovers } from '../lib/nats/connection.ts';
import { configuredSampler, startTracing } from '../lib/trace/settings.ts';
import { version } from '../lib/version.ts';
import { startGateway, stopDeadlineMs } from './gateway.ts';
import { issuersOf } from './configuration/issuers.ts';
import { settings } from './configuration/settings.ts';
import { limits } from '../schemas/limits.ts';

const log = createLog('gateway', logLevelOf(process.env));

await runProgram(log, async (life) => {
  const configuration = readSettings(settings, process.env);
  const issuers = issuersOf(configuration);
  const registry = createRegistry('gateway', version);
  const metrics = await serveMetrics(registry, metricsListenerOf(configuration), log);
  life.onStop(metrics);
  log.info('metrics_listening', { url: metrics.url });

  const sampler = configuredSampler(configuration);
  const parts = { program: 'gateway', version, registry, sampler, clock: systemClock, log, life };
  const tracer = startTracing(configuration, parts);

  const { NATS_CREDS_FILE: credsFile, NATS_CA_FILE: tlsCaFile } = configuration;
  const answers = new Answers(systemClock);
  const nats = connectNats(
    {
      servers: configuration.NATS_URLS,
      name: 'gateway',
      isUrgent: true,
      answers,
      onMove: countFailovers(registry),
      ...(credsFile === undefined ? {} : { credsFile }),
      ...(tlsCaFile === undefined ? {} : { tlsCaFile }),
    },
    log,
  );
  let connected: NatsConnection | undefined;
  nats.then(
    (nc) => {
      connected = nc;
    },
    (error: unknown) => life.fail('nats_failed', error),
  );
  life.onStop({ name: 'nats', deadlineMs: limits.stopConnectionMs, stop: async () => connected?.close() });
  const gateway = await startGateway({
    configuration,
    issuers,
    nats,
    answers,
    registry,
    tracer,
    clock: systemClock,
    log,
    version,
    onOtherCluster: (error) => life.fail('wrong_cluster', error),
  });
  life.onStop({ name: 'http', deadlineMs: stopDeadlineMs(configuration), stop: () => gateway.stop() });
});
