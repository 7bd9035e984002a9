/** The settings of the host-agent. docs/configuration.md is generated from this table. */
import {
  choice,
  type Configuration,
  ConfigurationError,
  duration,
  httpUrl,
  integer,
  items,
  list,
  natsServers,
  number,
  optionalEndpoint,
  optionalInteger,
  optionalText,
  readSettingFile,
  renamed,
  type Setting,
  text,
} from '../lib/config.ts';
import { logLevels } from '../lib/log.ts';
import { traceSettings } from '../lib/trace/settings.ts';
import { limits } from '../schemas/limits.ts';
import { hours, MiB, minutes, seconds } from '../schemas/limits/units.ts';
import { isRegistryRule } from '../schemas/api/registry.ts';
import { defaultCapabilities, grantableCapabilities, parseCapabilities, type Capability } from './spec/confinement.ts';
import { parsePortRange, type PortRange } from './sandbox/shape.ts';
import { egressForm, parseEgressRules } from './network/egress.ts';
import { parseEngineAddress, type EngineAddress } from './docker/transport.ts';
import type { LogRates } from './logs/rates.ts';
import { imagePolicies } from './images/collector.ts';

/** Two weeks. */
const imagesUnusedMs = 336 * hours;
/** Ports of one Linux bridge; all tenants' containers of a host are on one. */
const bridgePorts = 1023;
const containersPerHost = 500;
/**
 * Encoded bytes a second that a host sends by default: of a container, of a tenant's containers
 * there, of all.
 */
const logRateContainerBytes = 2 * MiB;
const logRateTenantBytes = 12 * MiB;
const logRateHostBytes = 24 * MiB;
/** Time of an unused rate that may be sent at once. */
const logRateBurstMs = 10 * seconds;
/** The time between two samples of all running containers. */
const usageIntervalMs = 15 * seconds;
/** The time between two reports of the hours that are still open. */
const usageReportMs = 5 * minutes;

const engineAddress: Setting<EngineAddress> = {
  form: 'unix:///path/to/docker.sock or tcp://host:port',
  doc: 'Address of the container engine.',
  parse: parseEngineAddress,
  fallback: { value: { kind: 'unix', socketPath: '/var/run/docker.sock' } },
};

const capabilities: Setting<readonly Capability[]> = {
  form: `none, or a list of ${grantableCapabilities.join(', ')}`,
  doc: 'Linux capabilities of new containers; existing ones keep theirs.',
  parse: parseCapabilities,
  fallback: { value: defaultCapabilities },
};

const publishPorts: Setting<string> = {
  form: 'first-last, such as 20000-31999',
  doc: 'Ports of this host that sandboxes publish the ports of containers at. Nothing else should listen there.',
  parse: (value) => (parsePortRange(value) === undefined ? undefined : value),
  fallback: { value: `${limits.publishPortFirst}-${limits.publishPortLast}` },
};

const time = (doc: string, fallback: number, min = 1) => duration(doc, { min, max: 86_400_000, fallback });
const firewallModes = ['on', 'required', 'off'] as const;
const most = Number.MAX_SAFE_INTEGER;
const bytesPerSecond = (whose: string, fallback: number) =>
  integer(
    `Log rate ${whose}, in bytes of blocks per second; lines above it wait in the engine’s files. \`off\`: no limit.`,
    {
      min: 1,
      max: most,
      fallback,
      off: 0,
    },
  );
/** A share that the disk may reach; no disk reaches that of `off`. */
const threshold = (doc: string, fallback: number) => integer(doc, { min: 0, max: 99, fallback, off: Infinity });

const registryRules = (doc: string, fallback: readonly string[]): Setting<readonly string[]> => ({
  form: `list, comma-separated, of up to ${limits.registryRules} registries`,
  doc,
  parse: (value) => {
    const rules = items(value);
    return rules.length <= limits.registryRules && rules.every(isRegistryRule) ? rules : undefined;
  },
  fallback: { value: fallback },
});

export const settings = {
  LONGSHORE_URL: httpUrl(
    'Base URL of the gateway at which this host enrols, and renews credentials that have expired.',
    { fallback: 'http://127.0.0.1:8080' },
  ),
  LONGSHORE_JOIN_TOKEN: optionalText('One-time join token, for the first start.'),
  LONGSHORE_JOIN_TOKEN_FILE: optionalText('File with the join token, in place of LONGSHORE_JOIN_TOKEN.'),
  STATE_DIR: text('Folder where the agent keeps its identity, its desired set and its positions in logs.', {
    fallback: '/var/lib/longshore-agent',
  }),
  DOCKER_HOST: engineAddress,
  PUBLISH_ADDRESS: text('Address of this host at which the ports of containers are published.', {
    fallback: '127.0.0.1',
  }),
  PUBLISH_PORTS: publishPorts,
  LONGSHORE_SANDBOX: renamed(
    choice(
      'on: a container runs in the network namespace of a sandbox, starts in about half of the time, and keeps its published ports while it is on this host. off: each container has a namespace of its own.',
      ['on', 'off'] as const,
      'on',
    ),
    'SANDBOX',
  ),
  LONGSHORE_SANDBOX_POOL: renamed(
    integer('Sandboxes that wait ready for the next containers.', {
      min: 0,
      max: limits.sandboxPoolMax,
      fallback: limits.sandboxPool,
    }),
    'SANDBOX_POOL',
  ),
  CONTAINER_CAPABILITIES: capabilities,
  CONTAINER_DISK_BYTES: integer(
    'Bytes that a container may write on this host: to its own layer and to the volumes of its image. If the container declares less, the lower limit applies.',
    { min: limits.memBytesMin, max: most, fallback: limits.containerDiskBytes },
  ),
  DISK_INTERVAL: time(
    'Time between measurements of what a container has written. Slow measurements run less often.',
    limits.diskIntervalMs,
  ),
  DISK_PRESSURE_PERCENT: threshold(
    'When the engine’s disk is this full, the host has the fault disk_pressure, and the agent also stops containers ' +
      'whose writes it cannot measure, and containers over their limit that were declared before there were limits; `off`: never.',
    limits.diskPressurePercent,
  ),
  IMAGES_COLLECTED: choice(
    'Unused images that the agent may remove to make room: those that it pulled, all of the engine’s, or none.',
    imagePolicies,
    'pulled',
  ),
  IMAGES_HIGH_PERCENT: threshold(
    'When the engine’s disk is this full, the agent removes unused images; `off`: never.',
    limits.imagesHighPercent,
  ),
  IMAGES_LOW_PERCENT: integer(
    'The agent stops removing images when the engine’s disk is no fuller than this. Must not exceed IMAGES_HIGH_PERCENT.',
    { min: 0, max: 100, fallback: limits.imagesLowPercent },
  ),
  IMAGES_UNUSED: duration(
    'Images that the agent pulled and that no container used for this long are removed, however much room there is; `off`: never.',
    { orOff: true, min: 3_600_000, max: 3650 * 86_400_000, fallback: imagesUnusedMs, replaces: '_HOURS' },
  ),
  NATS_URLS: natsServers('NATS servers to use in place of those that the gateway names.', []),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers. If set, TLS is required.'),
  CAPACITY_CPU_MILLIS: optionalInteger(
    'Most that the CPU limits of the containers may add up to, in thousandths of a core. Absent: cores × CPU_OVERCOMMIT.',
    { min: 1, max: most },
  ),
  CAPACITY_MEM_BYTES: optionalInteger(
    'Most that the memory limits of the containers may add up to, in bytes. Absent: nine tenths of the memory of the host.',
    { min: 1, max: most },
  ),
  CAPACITY_CONTAINERS: integer('Most containers that this host takes.', {
    min: 0,
    max: bridgePorts,
    fallback: containersPerHost,
  }),
  CPU_OVERCOMMIT: number(
    'How far CPU limits may add up beyond the cores of the host. A cpu_limit is a limit, not a reservation.',
    {
      min: 0.1,
      max: 100,
      fallback: 4,
    },
  ),
  REGISTRIES_ALLOWED: registryRules(
    'Registries that images may be pulled from: `host`, `host:port`, `host:*` (every port), `*.suffix`, and `public`: ' +
      'every DNS name with public addresses only. The addresses of the other entries are not checked.',
    ['public'],
  ),
  CONTAINER_FIREWALL: choice(
    'Firewall rules that keep containers from this host, private networks and one another. on: if the agent cannot ' +
      'enforce a rule, the host has a fault; required: it also starts nothing; off: the agent sets no rules.',
    firewallModes,
    'on',
  ),
  CONTAINER_EGRESS_ALLOW: list(
    'Addresses in private networks and of this host, published ports included, that containers may reach. ' +
      `Each entry: ${egressForm}. Port 53 of the host’s name servers is always allowed.`,
    { fallback: [] },
  ),
  CONTAINER_EGRESS_DENY: list('Public addresses that containers may not reach, in the same form.', { fallback: [] }),
  NET_SOCKET: optionalText(
    'Unix socket of longshore-net, which attaches containers to the networks of their tenants. Absent: this host has no tenant network.',
  ),
  MESH: choice(
    'on: containers of a tenant reach each other across hosts, if MESH_ADDRESS is set. off: on this host alone.',
    ['on', 'off'],
    'on',
  ),
  MESH_ADDRESS: optionalEndpoint(
    'Where other hosts reach WireGuard on this one, over UDP. Absent: containers of other hosts are not reached.',
  ),
  MESH_MTU: integer(
    'Bytes of the largest packet in the tenant network: those of the smallest link between hosts, less 80.',
    { min: 1280, max: 9000, fallback: 1420 },
  ),
  SECRETS_DIR: optionalText('Folder with one file for each secret that containers may refer to.'),
  SECRET_FILES_DIR: text(
    'Folder on a tmpfs of this host for the secrets of tenants that containers get as files. Elsewhere the agent refuses to write them.',
    { fallback: '/run/longshore-agent/secrets' },
  ),
  STOP_ON_DISCONNECT: duration(
    'The agent stops its containers after this long without the control plane; `off`: never.',
    { orOff: true, min: 1, max: 86_400_000, fallback: 0 },
  ),
  METRICS_HOST: text('Address that /metrics listens on.', { fallback: '127.0.0.1' }),
  METRICS_PORT: integer('Port that /metrics listens on; 0 takes a free one.', { min: 0, max: 65_535, fallback: 9103 }),
  METRICS_TOKEN_FILE: optionalText(
    'File with the bearer tokens that open /metrics, one a line. Absent: it is open to all who reach it.',
  ),
  CONTAINER_METRICS: choice(
    'on: /metrics also shows CPU, memory, network and processes of each running container, as of its last sample (USAGE_INTERVAL). That is six series for each container, with the labels `tenant` and `container`.',
    ['off', 'on'] as const,
    'off',
  ),
  ...traceSettings,
  LOG_LEVEL: choice('Lowest level of events that are logged.', logLevels, 'info'),
  HEARTBEAT_INTERVAL: renamed(
    time('Time between heartbeats, and between checks that the engine answers.', limits.beatIntervalMs),
    'BEAT_INTERVAL',
    'BEAT_INTERVAL_MS',
  ),
  SYNC_INTERVAL: time('Time between full syncs of the desired set when no doorbell rings.', limits.syncIntervalMs),
  STOP_GRACE: time('Time from the stop signal to the kill.', limits.stopGraceMs, 0),
  RESTART_BACKOFF_MIN: time('Shortest pause before a container is restarted.', limits.restartBackoffMinMs),
  RESTART_BACKOFF_MAX: time('Longest pause before a container is restarted.', limits.restartBackoffMaxMs),
  UPDATE_VERIFY: time(
    'How long the new version of an updated container must stay up without an end. Until then it is rolled back if it ends three times, or if its health check fails.',
    limits.updateVerifyMs,
  ),
  LOG_SOURCE: choice(
    'files: the agent reads logs from the engine’s files, and asks the engine only where it cannot read them, as on another machine; engine: it always asks.',
    ['files', 'engine'] as const,
    'files',
  ),
  LOG_RATE_CONTAINER_BYTES: bytesPerSecond('of one container', logRateContainerBytes),
  LOG_RATE_TENANT_BYTES: bytesPerSecond('of one tenant’s containers on this host together', logRateTenantBytes),
  LOG_RATE_HOST_BYTES: bytesPerSecond('of all containers of this host together', logRateHostBytes),
  LOG_RATE_BURST: time('Burst: a log rate that was unused for this long may be used at once.', logRateBurstMs),
  USAGE_INTERVAL: time(
    'Time between samples of what containers use. Where the agent cannot read their cgroups, it asks the engine in every fourth.',
    usageIntervalMs,
    100,
  ),
  USAGE_REPORT_INTERVAL: time('Time between reports of what containers have used.', usageReportMs, 100),
  RETRY_MIN: time('Shortest pause before the agent asks the control plane or the engine again.', limits.retryMinMs),
  RETRY_MAX: time('Longest pause before the agent asks the control plane or the engine again.', limits.retryMaxMs),
} as const;

export type AgentSettings = Configuration<typeof settings>;

const defaultPorts: PortRange = { first: limits.publishPortFirst, last: limits.publishPortLast };

export const publishPortsOf = (given: AgentSettings): PortRange => parsePortRange(given.PUBLISH_PORTS) ?? defaultPorts;

export const logRatesOf = (given: AgentSettings): LogRates => ({
  containerBytes: given.LOG_RATE_CONTAINER_BYTES,
  tenantBytes: given.LOG_RATE_TENANT_BYTES,
  hostBytes: given.LOG_RATE_HOST_BYTES,
  burstMs: given.LOG_RATE_BURST,
});

/** @throws ConfigurationError if the file of the token cannot be read. */
export const joinTokenOf = (given: AgentSettings): string | undefined =>
  given.LONGSHORE_JOIN_TOKEN ??
  (given.LONGSHORE_JOIN_TOKEN_FILE === undefined
    ? undefined
    : readSettingFile('LONGSHORE_JOIN_TOKEN_FILE', given.LONGSHORE_JOIN_TOKEN_FILE));

/** @throws ConfigurationError if settings contradict one another. */
export function checkSettings(given: AgentSettings): AgentSettings {
  const faults: string[] = [];
  if (given.RESTART_BACKOFF_MIN > given.RESTART_BACKOFF_MAX) {
    faults.push('RESTART_BACKOFF_MIN must not exceed RESTART_BACKOFF_MAX');
  }
  if (given.RETRY_MIN > given.RETRY_MAX) faults.push('RETRY_MIN must not exceed RETRY_MAX');
  if (given.STOP_ON_DISCONNECT > 0 && given.STOP_ON_DISCONNECT <= 2 * given.SYNC_INTERVAL) {
    faults.push('STOP_ON_DISCONNECT must be more than twice SYNC_INTERVAL, or a quiet control plane looks absent');
  }
  if (given.IMAGES_LOW_PERCENT > given.IMAGES_HIGH_PERCENT) {
    faults.push('IMAGES_LOW_PERCENT must not exceed IMAGES_HIGH_PERCENT');
  }
  for (const name of ['CONTAINER_EGRESS_ALLOW', 'CONTAINER_EGRESS_DENY'] as const) {
    faults.push(...parseEgressRules(given[name]).faults.map((fault) => `${name}: ${fault}`));
    if (given[name].length > limits.egressRules) faults.push(`${name} must have at most ${limits.egressRules} entries`);
  }
  if (faults.length > 0) throw new ConfigurationError(faults);
  return given;
}
