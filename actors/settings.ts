/**
 * What an actors process is told by its environment; docs/configuration.md describes the same
 * table.
 */
import { choice, integer, natsServers, optionalText, text } from '../lib/config.ts';
import { logLevels } from '../lib/log.ts';
import { defaultHostCeiling, limits } from '../schemas/limits.ts';

export const settings = {
  NATS_URLS: natsServers('NATS servers.', ['nats://127.0.0.1:4222']),
  NATS_CREDS_FILE: optionalText('Credentials of the actors’ user of the account CP.'),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers; TLS is then required.'),
  PARTITIONS: integer('Partitions of a new cluster; must be the same for all, and for ever.', {
    min: 1,
    max: 256,
    fallback: limits.partitions,
  }),
  CLUSTER_ID: optionalText(
    'The cluster that must be on these servers: any other is refused, and none is initialised. Absent: any, or a new one.',
  ),
  REPLICAS: integer('Copies of state, logs and events in a new cluster: 1, or 3 on three servers.', {
    min: 1,
    max: 5,
    fallback: 1,
  }),
  HOSTS_ACCOUNT: text('Public key of the account HOSTS.'),
  HOSTS_SIGNING_SEED_FILE: text('File with the seed of a signing key of the account HOSTS.'),
  NATS_SYSTEM_CREDS_FILE: optionalText(
    'Credentials of a user of the system account, to revoke those of removed hosts; absent: they are good until they expire.',
  ),
  OPERATOR_SIGNING_SEED_FILE: optionalText(
    'File with the seed of a signing key of the operator; goes with NATS_SYSTEM_CREDS_FILE.',
  ),
  HOSTS_NATS_URLS: natsServers('NATS servers as hosts reach them; absent: NATS_URLS.', []),
  HOST_CREDENTIALS_TTL_MS: integer('How long the credentials of a host are good; its agent renews them in time.', {
    min: 5000,
    max: 366 * 86_400_000,
    fallback: limits.hostCredentialsTtlMs,
  }),
  HOST_UNKNOWN_MS: integer('Silence after which what runs on a host is unknown.', {
    min: 100,
    max: 3_600_000,
    fallback: limits.hostUnknownMs,
  }),
  HOST_LOST_MS: integer('Silence after which a host is lost, and its containers are placed elsewhere.', {
    min: 1000,
    max: 86_400_000,
    fallback: limits.hostLostMs,
  }),
  HOST_MAX_CPU_MILLIS: integer(
    'The most CPU that any host is believed to offer, unless `max_cpu_millis` is set for it (PATCH /hosts/:key).',
    { min: 1, max: Number.MAX_SAFE_INTEGER, fallback: defaultHostCeiling.cpu_millis },
  ),
  HOST_MAX_MEM_BYTES: integer('The same for memory, unless `max_mem_bytes` is set.', {
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    fallback: defaultHostCeiling.mem_bytes,
  }),
  HOST_MAX_CONTAINERS: integer('The same for the number of containers, unless `max_containers` is set.', {
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    fallback: defaultHostCeiling.containers,
  }),
  SCRUB_INTERVAL_MS: integer('Between comparisons of what the replicas of a stream hold; 0: never.', {
    min: 0,
    max: 7 * 86_400_000,
    fallback: limits.scrubIntervalMs,
  }),
  METRICS_HOST: text('Address of the metrics listener.', { fallback: '127.0.0.1' }),
  METRICS_PORT: integer('Port of the metrics listener; 0: any free one.', { min: 0, max: 65535, fallback: 9102 }),
  METRICS_TOKEN_FILE: optionalText(
    'A file with the bearer tokens that open /metrics, one a line; absent: it is open to all who reach it.',
  ),
  LOG_LEVEL: choice('Least level that is logged.', logLevels, 'info'),
} as const;
