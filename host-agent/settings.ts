/**
 * Settings of the host-agent, from its environment. docs/configuration.md is checked against this
 * table.
 */
import {
  choice,
  ConfigurationError,
  httpUrl,
  integer,
  items,
  list,
  natsServers,
  number,
  optionalText,
  readSettingFile,
  text,
  type Configuration,
  type Setting,
} from '../lib/config.ts';
import { logLevels } from '../lib/log.ts';
import { limits } from '../schemas/limits.ts';
import { isRegistryRule } from '../schemas/api/registry.ts';
import { defaultCapabilities, grantableCapabilities, parseCapabilities, type Capability } from './spec/confinement.ts';
import { egressForm, parseEgressRules } from './network/egress.ts';
import { parseEngineAddress, type EngineAddress } from './docker/transport.ts';
import type { LogRates } from './logs/rates.ts';
import { imagePolicies } from './images/collector.ts';

const engineAddress: Setting<EngineAddress> = {
  form: 'unix:///path/to/docker.sock or tcp://host:port',
  doc: 'The container engine.',
  parse: parseEngineAddress,
  fallback: { value: { kind: 'unix', socketPath: '/var/run/docker.sock' } },
};

const capabilities: Setting<readonly Capability[]> = {
  form: `none, or a list of ${grantableCapabilities.join(', ')}`,
  doc: 'Linux capabilities of containers, in place of the default set. Those that run keep what they were made with.',
  parse: parseCapabilities,
  fallback: { value: defaultCapabilities },
};

const ms = (doc: string, fallback: number, min = 1) =>
  integer(`${doc} In milliseconds.`, { min, max: 86_400_000, fallback });
const firewallModes = ['on', 'required', 'off'] as const;
const most = Number.MAX_SAFE_INTEGER;
const bytesPerSecond = (whose: string, fallback: number) =>
  integer(
    `Bytes of log blocks a second that are sent ${whose}; what is more waits in the engine's files. 0: no limit.`,
    {
      min: 0,
      max: most,
      fallback,
    },
  );
const percent = (doc: string, fallback: number) => integer(doc, { min: 0, max: 100, fallback });

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
  LONGSHORE_URL: httpUrl('Base URL of a gateway, where this host enrols.', { fallback: 'http://127.0.0.1:8080' }),
  LONGSHORE_JOIN_TOKEN: optionalText('One-time join token, for the first start.'),
  LONGSHORE_JOIN_TOKEN_FILE: optionalText('A file that holds the join token.'),
  STATE_DIR: text('Folder of the agent: identity, desired set, log positions.', {
    fallback: '/var/lib/longshore-agent',
  }),
  DOCKER_HOST: engineAddress,
  PUBLISH_ADDRESS: text("Address of this host on which containers' ports are published.", { fallback: '127.0.0.1' }),
  CONTAINER_CAPABILITIES: capabilities,
  CONTAINER_DISK_BYTES: integer(
    'What a container may write on this host: its own layer and the volumes of its image. Where less is declared, that.',
    { min: limits.memBytesMin, max: most, fallback: limits.containerDiskBytes },
  ),
  DISK_INTERVAL_MS: ms(
    'Between measurements of what a container has written. One that takes long is repeated less often.',
    limits.diskIntervalMs,
  ),
  DISK_PRESSURE_PERCENT: percent(
    'When the engine’s disk is this full, the host has the fault disk_pressure. Then containers are evicted, too, whose ' +
      'writes cannot be measured, or that are over their limit and were declared before there were limits. 100: never.',
    limits.diskPressurePercent,
  ),
  IMAGES_COLLECTED: choice(
    'Which unused images may be removed to make room: those that this agent pulled, all of the engine’s, or none.',
    imagePolicies,
    'pulled',
  ),
  IMAGES_HIGH_PERCENT: percent(
    'When the engine’s disk is this full, unused images are removed; 100: never.',
    limits.imagesHighPercent,
  ),
  IMAGES_LOW_PERCENT: percent(
    'The removal of unused images ends when the engine’s disk is no fuller than this. Must not exceed IMAGES_HIGH_PERCENT.',
    limits.imagesLowPercent,
  ),
  NATS_URLS: natsServers('NATS servers, in place of those that the gateway names.', []),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers; TLS is then required.'),
  CAPACITY_CPU_MILLIS: integer(
    "CPU that containers' limits may add up to, in thousandths of a core; 0: cores × CPU_OVERCOMMIT.",
    {
      min: 0,
      max: most,
      fallback: 0,
    },
  ),
  CAPACITY_MEM_BYTES: integer(
    "Memory that containers' limits may add up to, in bytes; 0: nine tenths of what there is.",
    {
      min: 0,
      max: most,
      fallback: 0,
    },
  ),
  CAPACITY_CONTAINERS: integer('How many containers this host takes.', {
    min: 0,
    max: limits.bridgePorts,
    fallback: limits.containersPerHost,
  }),
  CPU_OVERCOMMIT: number('A cpu_limit is a limit, not a reservation: so many times the cores are given out.', {
    min: 0.1,
    max: 100,
    fallback: 4,
  }),
  REGISTRIES_ALLOWED: registryRules(
    'Registries that images may be pulled from: `host`, `host:port`, `host:*` (every port), `*.suffix`, and `public`: ' +
      'every DNS name all of whose addresses are public. The addresses of what is named otherwise are not looked at.',
    ['public'],
  ),
  CONTAINER_FIREWALL: choice(
    'Rules that keep containers from this host, private networks and one another. on: what cannot be enforced is a fault ' +
      'of the host; required: nothing is started then; off: the agent sets no rules.',
    firewallModes,
    'on',
  ),
  CONTAINER_EGRESS_ALLOW: list(
    'What containers may reach of private networks and of this host, published ports included. ' +
      `Each entry: ${egressForm}. The host's name servers are always allowed (port 53).`,
    { fallback: [] },
  ),
  CONTAINER_EGRESS_DENY: list('Public addresses that containers may not reach, in the same form.', { fallback: [] }),
  SECRETS_DIR: optionalText('Folder with a file for each secret that containers may refer to.'),
  STOP_ON_DISCONNECT_MS: ms('Stops the containers after this long without the control plane; 0: never.', 0, 0),
  METRICS_HOST: text('Address of the metrics listener.', { fallback: '127.0.0.1' }),
  METRICS_PORT: integer('Port of the metrics listener; 0: any free one.', { min: 0, max: 65_535, fallback: 9103 }),
  METRICS_TOKEN_FILE: optionalText(
    'A file with the bearer tokens that open /metrics, one a line; absent: it is open to all who reach it.',
  ),
  LOG_LEVEL: choice('Least severe level that is logged.', logLevels, 'info'),
  BEAT_INTERVAL_MS: ms(
    'Between heartbeats, and between questions to the engine whether it is there.',
    limits.beatIntervalMs,
  ),
  SYNC_INTERVAL_MS: ms('Between full syncs of the desired set, without a doorbell.', limits.syncIntervalMs),
  STOP_GRACE_MS: ms('From the stop signal to the kill.', limits.stopGraceMs, 0),
  RESTART_BACKOFF_MIN_MS: ms('First pause before a restart.', limits.restartBackoffMinMs),
  RESTART_BACKOFF_MAX_MS: ms('Longest pause before a restart.', limits.restartBackoffMaxMs),
  LOG_RATE_CONTAINER_BYTES: bytesPerSecond('of one container', limits.logRateContainerBytes),
  LOG_RATE_TENANT_BYTES: bytesPerSecond('of one tenant’s containers on this host together', limits.logRateTenantBytes),
  LOG_RATE_HOST_BYTES: bytesPerSecond('of all containers of this host together', limits.logRateHostBytes),
  LOG_RATE_BURST_MS: ms('A log rate that was not used for this long is given at once.', limits.logRateBurstMs),
  RETRY_MIN_MS: ms('First pause before the control plane or the engine is asked again.', limits.retryMinMs),
  RETRY_MAX_MS: ms('Longest pause before the control plane or the engine is asked again.', limits.retryMaxMs),
} as const;

export type AgentSettings = Configuration<typeof settings>;

export const logRatesOf = (given: AgentSettings): LogRates => ({
  containerBytes: given.LOG_RATE_CONTAINER_BYTES,
  tenantBytes: given.LOG_RATE_TENANT_BYTES,
  hostBytes: given.LOG_RATE_HOST_BYTES,
  burstMs: given.LOG_RATE_BURST_MS,
});

/** @throws ConfigurationError where its file can't be read. */
export const joinTokenOf = (given: AgentSettings): string | undefined =>
  given.LONGSHORE_JOIN_TOKEN ??
  (given.LONGSHORE_JOIN_TOKEN_FILE === undefined
    ? undefined
    : readSettingFile('LONGSHORE_JOIN_TOKEN_FILE', given.LONGSHORE_JOIN_TOKEN_FILE));

/** @throws ConfigurationError for settings that contradict one another. */
export function checkSettings(given: AgentSettings): AgentSettings {
  const faults: string[] = [];
  if (given.RESTART_BACKOFF_MIN_MS > given.RESTART_BACKOFF_MAX_MS) {
    faults.push('RESTART_BACKOFF_MIN_MS must not exceed RESTART_BACKOFF_MAX_MS');
  }
  if (given.RETRY_MIN_MS > given.RETRY_MAX_MS) faults.push('RETRY_MIN_MS must not exceed RETRY_MAX_MS');
  if (given.STOP_ON_DISCONNECT_MS > 0 && given.STOP_ON_DISCONNECT_MS <= 2 * given.SYNC_INTERVAL_MS) {
    faults.push(
      'STOP_ON_DISCONNECT_MS must be more than twice SYNC_INTERVAL_MS, or a quiet control plane looks absent',
    );
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
