/** The settings of an actors process. docs/configuration.md is generated from this table. */
import {
  checkedText,
  choice,
  duration,
  integer,
  natsServers,
  offOr,
  optionalText,
  renamed,
  text,
} from '../lib/config.ts';
import { logLevels } from '../lib/log.ts';
import { isHostsAccount } from '../lib/nats/host-credentials.ts';
import { traceSettings } from '../lib/trace/settings.ts';
import { defaultHostCeiling, limits } from '../schemas/limits.ts';
import { ipv4RangeIn } from '../schemas/tenant-network.ts';

export const settings = {
  NATS_URLS: natsServers('NATS servers.', ['nats://127.0.0.1:4222']),
  NATS_CREDS_FILE: optionalText('Credentials file of the actors user in the NATS account CP.'),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers. If set, TLS is required.'),
  LONGSHORE_PARTITIONS: renamed(
    integer('Number of partitions of a new cluster. It can never change, and is the same for every actors process.', {
      min: 1,
      max: 256,
      fallback: limits.partitions,
    }),
    'PARTITIONS',
  ),
  LONGSHORE_CLUSTER_ID: renamed(
    optionalText(
      'Id of the cluster to serve. If the servers hold another one, or none, the program ends. Absent: it serves any cluster, and makes one where there is none.',
    ),
    'CLUSTER_ID',
  ),
  LONGSHORE_REPLICAS: renamed(
    integer('Copies of state, logs and events in a new cluster: 1 on one NATS server, 3 on three.', {
      min: 1,
      max: 5,
      fallback: 1,
    }),
    'REPLICAS',
  ),
  TENANT_IPV4: offOr(
    'Range in which containers get IPv4 addresses in the networks of their tenants. Once given, the cluster keeps it, and every actors process has it. No host may use addresses of it otherwise.',
    'a network of /8 to /16, such as 10.193.0.0/16',
    (value) => ipv4RangeIn(value) !== undefined,
  ),
  HOSTS_ACCOUNT: checkedText(
    'Public key of the NATS account HOSTS.',
    'the public key that nats-keys prints as HOSTS_ACCOUNT',
    isHostsAccount,
  ),
  HOSTS_SIGNING_SEED_FILE: text('File with the seed of a signing key of the NATS account HOSTS.'),
  NATS_SYSTEM_CREDS_FILE: optionalText(
    'Credentials file of a user in the NATS system account; actors use it to revoke the credentials of removed hosts. Absent: these stay valid until they expire.',
  ),
  OPERATOR_SIGNING_SEED_FILE: optionalText(
    'File with the seed of a signing key of the NATS operator; required with NATS_SYSTEM_CREDS_FILE.',
  ),
  NATS_HOST_URLS: renamed(
    natsServers('NATS servers at the addresses that hosts use. Absent: NATS_URLS.', []),
    'HOSTS_NATS_URLS',
  ),
  HOST_CREDENTIALS_TTL: duration('How long the NATS credentials of a host are valid; its agent renews them in time.', {
    min: 5000,
    max: 366 * 86_400_000,
    fallback: limits.hostCredentialsTtlMs,
  }),
  HOST_UNKNOWN: duration('A host that is silent for this long is `silent`, and its containers are `unknown`.', {
    min: 100,
    max: 3_600_000,
    fallback: limits.hostUnknownMs,
  }),
  HOST_LOST: duration('A host that is silent for this long is `lost`, and its containers move to other hosts.', {
    min: 1000,
    max: 86_400_000,
    fallback: limits.hostLostMs,
  }),
  HOST_MAX_CPU_MILLIS: integer(
    'Most CPU that one host may offer, in thousandths of a core; what it claims above this is ignored. `max_cpu_millis` overrides it for a host (PATCH /hosts/:key).',
    { min: 1, max: Number.MAX_SAFE_INTEGER, fallback: defaultHostCeiling.cpu_millis },
  ),
  HOST_MAX_MEM_BYTES: integer(
    'Most memory that one host may offer, in bytes. `max_mem_bytes` overrides it for a host.',
    {
      min: 1,
      max: Number.MAX_SAFE_INTEGER,
      fallback: defaultHostCeiling.mem_bytes,
    },
  ),
  HOST_MAX_CONTAINERS: integer(
    'Most containers that one host may offer to run. `max_containers` overrides it for a host.',
    {
      min: 1,
      max: Number.MAX_SAFE_INTEGER,
      fallback: defaultHostCeiling.containers,
    },
  ),
  DRAIN_AT_ONCE: integer(
    'How many containers leave a drained host at once; each actors process moves at least one. `drain_at_once` overrides it for a host.',
    { min: 1, max: limits.drainAtOnceMax, fallback: limits.drainAtOnce },
  ),
  SCRUB_INTERVAL: duration('Time between comparisons of the replicas of each stream; `off`: never.', {
    orOff: true,
    min: 1,
    max: 7 * 86_400_000,
    fallback: limits.scrubIntervalMs,
  }),
  METRICS_HOST: text('Address that /metrics listens on.', { fallback: '127.0.0.1' }),
  METRICS_PORT: integer('Port that /metrics listens on; 0 takes a free one.', { min: 0, max: 65535, fallback: 9102 }),
  METRICS_TOKEN_FILE: optionalText(
    'File with the bearer tokens that open /metrics, one a line. Absent: it is open to all who reach it.',
  ),
  ...traceSettings,
  LOG_LEVEL: choice('Lowest level of events that are logged.', logLevels, 'info'),
} as const;
