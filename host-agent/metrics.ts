/** The metrics of an agent. */
import type { Registry } from 'prom-client';
import {
  counter,
  histogram,
  label,
  reading,
  readAtScrapes,
  record,
  upDownCounter,
  type Recorders,
} from '../lib/metric-table.ts';
import type { ContainerStatus } from '../schemas/api/container.ts';
import { containerStatuses } from '../schemas/words.ts';
import { faultKinds } from './faults.ts';
import type { SessionEnd } from '../schemas/wire/session.ts';

/** The source of a log: the engine's files, or its API. */
export type LogReadFrom = 'files' | 'engine';

/**
 * The cause of missing log lines. `rate`: the container wrote more than its host may send. `late`:
 * the agent did not capture lines while the engine had them.
 */
export type LossCause = 'rate' | 'late';

/** The bound that a container has reached that writes too many log lines. */
export type RateScope = 'container' | 'tenant' | 'host';

/** The source of a sample of a container. */
export type SampledFrom = 'files' | 'engine' | 'nowhere';

/** The origin of a container's sandbox. */
export type SandboxSource = 'ready' | 'made' | 'kept';

export interface SandboxCounts {
  readonly ready: number;
  readonly used: number;
}

/** `queued`: the pull has a place, and waits for other pulls of the engine. */
export const pullStates = ['waiting', 'running', 'aside', 'queued'] as const;
export type PullState = (typeof pullStates)[number];

/**
 * - `off`: by the operator.
 * - `waiting`: there is no bridge yet.
 * - `unchecked`: the rules are in place, and no probe from inside a container has shown that they
 *   hold.
 * - `enforced`: a probe has.
 * - `open`: they are not in place, or do not hold.
 */
export const firewallStates = ['off', 'waiting', 'unchecked', 'enforced', 'open'] as const;
export type FirewallState = (typeof firewallStates)[number];

/** Refused packets, by their destination. */
export const deniedCounters = ['network', 'host', 'container', 'inbound'] as const;
export type DeniedCounter = (typeof deniedCounters)[number];

export const agentPrefix = 'longshore_agent_';

export const agentMetrics = {
  engineCall: histogram('engine_call_duration_seconds', {
    help: 'Calls to the container engine, until the answer or, for streams and pulls, its headers.',
    watch: '`outcome="failed"` are outages and deadlines: see the runbook, “Hanging engine”.',
    labels: [label('call'), label('outcome', 'ok', 'refused', 'failed')],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30],
  }),
  step: counter('steps_total', {
    help: 'Steps that the agent took to bring containers to their desired state.',
    watch: '`retry` and `failed` by step: which step fails on the host. `outage`: the engine did not answer.',
    labels: [label('step'), label('result')],
  }),
  pull: counter('pulls_total', {
    help: 'Requests for an image, by result.',
    watch: 'A rising share of `failed`: a registry is hard to reach.',
    labels: [label('result', 'present', 'pulled', 'failed')],
  }),
  unseal: counter('unseals_total', {
    help: 'Asks to the control plane for secrets and registry logins, by result; damaged: values that could not be opened, and were asked for again.',
    watch:
      '`unavailable` for long: containers with secrets cannot be made, see the gateways and their vault. `refused`: a host asks for what its containers do not use. `damaged`: the state disk, or another `seal.nk`.',
    labels: [label('result', 'answered', 'refused', 'unavailable', 'damaged')],
  }),
  restart: counter('restarts_total', {
    help: 'Restarts of containers that ended by themselves.',
    watch: 'A rate well above its usual value: many containers crash at once, usually because of the host.',
  }),
  healthCheck: counter('health_checks_total', {
    help: 'Health checks over the network, by result.',
    watch: 'A jump of `failed` on one host: see that containers can be reached on its bridge.',
    labels: [label('result', 'passed', 'failed')],
  }),
  tunnelOpened: counter('tunnels_opened_total', {
    help: 'Sessions that gateways opened with this host, such as an exec, by kind.',
    watch: 'How much tenants use them.',
    labels: [label('kind')],
  }),
  tunnelEnded: counter('tunnels_ended_total', {
    help: 'Sessions with gateways that ended or were refused, by kind and reason.',
    watch:
      'A rate of `lost`: connections between gateways, NATS and this host break. `failed`: the agent’s log says why.',
    labels: [label('kind'), label<SessionEnd['reason']>('reason')],
  }),
  sync: counter('syncs_total', {
    help: 'Syncs of the desired set with the control plane, by result.',
    watch: '`refused`: another cluster answers, or another number of partitions.',
    labels: [label('result')],
  }),
  report: counter('reported_items_total', {
    help: 'Observations sent to the control plane.',
    watch: '`failed` for long: statuses are outdated. `refused`: the session is stale, or a bug.',
    labels: [label('result', 'acknowledged', 'refused', 'failed')],
  }),
  logLines: counter('log_lines_total', {
    help: 'Log lines that the control plane has acknowledged.',
    watch: 'A rate of 0 while containers run and write: capture is stuck.',
  }),
  logBlocks: counter('log_blocks_total', {
    help: 'Attempts to send a block of log lines.',
    watch: 'Mostly `retried`: NATS or the stream LOGS does not accept them.',
    labels: [label('result', 'acknowledged', 'retried')],
  }),
  logDropped: counter('log_lines_dropped_total', {
    help: 'Log lines of removed containers that were dropped because their part of the spool, or its disk, was full.',
    watch: 'Any: lines of removed containers are lost: they logged too much, or the host was cut off for long.',
  }),
  logGaps: counter('log_gaps_total', {
    help: 'Times that the engine rotated a log before the agent captured it: lines are missing there.',
    watch:
      'By `cause`. `rate`: a container logs more than its host sends. `late`: the host was cut off, or its agent away.',
    labels: [label<LossCause>('cause', 'rate', 'late')],
  }),
  logHeldUp: counter('log_blocks_throttled_total', {
    help: 'Blocks of log lines that waited for the rate of their container, their tenant or the host.',
    watch:
      'By `scope`. `container`, `tenant`: one container or tenant logs more than the host sends. `host`: all together do; raise `LOG_RATE_HOST_BYTES`, or move containers.',
    labels: [label<RateScope>('scope', 'container', 'tenant', 'host')],
  }),
  usageSampled: counter('usage_samples_total', {
    help: 'Samples of what a container uses, by where the agent read them.',
    watch:
      '`engine` on a machine with a local engine: the agent cannot read the cgroup files; each sample costs the engine a call.',
    labels: [label<SampledFrom>('source', 'files', 'engine', 'nowhere')],
  }),
  usageReported: counter('usage_reports_total', {
    help: 'Attempts to report to an owner what containers have used.',
    watch: '`failed` all the time: NATS accounts without the subject `agent.*.*.usage`.',
    labels: [label('result', 'acknowledged', 'failed')],
  }),
  usageRefused: counter('usage_records_refused_total', {
    help: 'Hours of a container that its owner refused to take from this host.',
    watch: 'Any: the owner does not know that the container was ever placed on this host, as after a restore.',
  }),
  usageDropped: counter('usage_records_dropped_total', {
    help: 'Hours of usage that were dropped before their owners had taken them.',
    watch:
      'Any: usage is missing from a bill. The control plane was away for 35 days, or the state folder’s disk was full.',
  }),
  logAbandoned: counter('logs_abandoned_total', {
    help: 'Containers whose removal lost log lines, because the agent could not read or keep them.',
    watch: 'Any: event `log_abandoned` names the container, and why.',
  }),
  logDamaged: counter('log_records_damaged_total', {
    help: 'Records in log files of the engine that cannot be read, as after a crash of the engine or the machine.',
    watch:
      'A rise at a crash of the engine or its machine is normal. Otherwise: the disk, or a program that writes there.',
  }),
  logFollowers: upDownCounter('log_followers', {
    help: 'Logs that the agent follows: in the engine’s files, or through the engine where it cannot read them.',
    watch: '`engine` above 0: event `log_files_unreadable` says why. It costs dockerd three times as much a line.',
    labels: [label<LogReadFrom>('source', 'files', 'engine')],
  }),
  diskEviction: counter('disk_limit_stops_total', {
    help: 'Containers that were stopped because they had written more than their disk limit.',
    watch: 'Rising: a tenant’s container keeps filling the disk; its status says `disk_limit`.',
  }),
  sandbox: counter('sandbox_claims_total', {
    help: 'Sandboxes that containers got: ready ones, ones made on demand, and ones that they had before.',
    watch: 'Many with `source="made"`: containers wait for their sandbox. Raise LONGSHORE_SANDBOX_POOL.',
    labels: [label<SandboxSource>('source', 'ready', 'made', 'kept')],
  }),
  imageRemoved: counter('images_removed_total', {
    help: 'Names of images that the agent removed: to free disk space, or because one image had very many.',
    watch: 'Rising fast: the disk is too small for the images in use.',
  }),
  firewallRepaired: counter('firewall_repairs_total', {
    help: 'Times that the firewall rules for containers were gone or changed, and the agent set them again.',
    watch: 'Any: something on the host removes rules; see the runbook, “Host faults”.',
  }),
  firewallDenied: counter('firewall_denied_packets_total', {
    help: 'Packets that the firewall for containers refused: to the host, to private networks, to other containers, and from outside to unpublished ports (inbound).',
    watch:
      'By `destination`: `host`, `network`, `container`, `inbound`. A rate on one host: a container there probes the network, or lacks an allowance (`CONTAINER_EGRESS_ALLOW`).',
    labels: [label('destination', ...deniedCounters)],
  }),
};

export type Metrics = Recorders<typeof agentMetrics>;

export const createMetrics = (registry: Registry): Metrics => record(registry, agentPrefix, agentMetrics);

/** Values that each scrape reads. */
export interface Gauges {
  /** Open sessions with gateways. */
  tunnels(): number;
  containers(): ReadonlyMap<ContainerStatus, number>;
  engineUp(): boolean;
  sessionHeld(): boolean;
  /** The last time at which the engine listed all containers; `null` before the first. */
  lastInventoryMs(): number | null;
  /** Milliseconds since 1970; `null` before the first sync. */
  lastSyncMs(): number | null;
  orphansHeld(): number;
  /** Containers that have left volumes here. */
  volumesLeft(): number;
  /** Use of the engine's disk; `null` if it is unknown. */
  diskUsedPercent(): number | null;
  /** Containers that cannot be measured. */
  diskUseUnknown(): number;
  /** The kinds of the current faults. */
  faults(): readonly string[];
  firewall(): FirewallState;
  pulls(): Readonly<Record<PullState, number>>;
  /** `null` if it is unknown. */
  portsFree(): number | null;
  sandboxes(): SandboxCounts;
  /** Hours of usage that wait for their owners, on the disk. */
  usageRecordsPending(): number;
  credentialsExpiryMs(): number | null;
}

const read = reading<Gauges>();
const seconds = (ms: number | null): number => (ms ?? 0) / 1000;

export const agentGauges = {
  containers: read('gauge', 'containers', {
    help: 'Containers of this host by observed status.',
    watch:
      'A few `failed` and `backoff` are usually faults of the images; many at once on one host are a fault of the host.',
    labels: [label('status', ...containerStatuses)],
    read: (gauges) => {
      const counts = gauges.containers();
      return containerStatuses.map((status) => [status, counts.get(status) ?? 0] as const);
    },
  }),
  fault: read('gauge', 'fault', {
    help: '1 while this host has a fault of this kind.',
    watch: '1: see the runbook, “Host faults”.',
    labels: [label('kind', ...faultKinds)],
    read: (gauges) => {
      const raised = gauges.faults();
      return faultKinds.map((kind) => [kind, Number(raised.includes(kind))] as const);
    },
  }),
  firewall: read('gauge', 'container_firewall', {
    help: 'State of the firewall for containers: 1 at the current state, 0 at the others.',
    watch:
      '`state="open"` is 1: see the runbook, “Host faults”. `unchecked` for long: event `container_firewall_unchecked` says why.',
    labels: [label('state', ...firewallStates)],
    read: (gauges) => {
      const now = gauges.firewall();
      return firewallStates.map((state) => [state, Number(state === now)] as const);
    },
  }),
  pulls: read('gauge', 'pulls', {
    help: 'Pulls of images: those that wait for a place, run, run aside because they take long, and wait for other pulls of the engine (queued: counted among the two before, too).',
    watch:
      '`queued` over 0: the engine fetches too few layers at a time; see max-concurrent-downloads in docs/deploy.md. `waiting` for long with `aside` at 16: slow registries.',
    labels: [label('state', ...pullStates)],
    read: (gauges) => {
      const counts = gauges.pulls();
      return pullStates.map((state) => [state, counts[state]] as const);
    },
  }),
  sandboxes: read('gauge', 'sandboxes', {
    help: 'Sandboxes on this host: ready for the next containers, and used by one.',
    watch: 'ready stays 0: the engine makes none; see its log.',
    labels: [label('state', 'ready', 'used')],
    read: (gauges) => {
      const { ready, used } = gauges.sandboxes();
      return [
        ['ready', ready],
        ['used', used],
      ] as const;
    },
  }),
  engineUp: read('gauge', 'engine_up', {
    help: '1 while the container engine answers.',
    watch: '0 for a minute: see the runbook, “Hanging engine”.',
    read: (gauges) => Number(gauges.engineUp()),
  }),
  inventory: read('gauge', 'inventory_timestamp_seconds', {
    help: 'When the engine last listed its containers, seconds since 1970; without that list the agent decides nothing. 0: no list yet.',
    watch:
      'More than two minutes ago, while the engine is up: the agent reconciles nothing on that host; see the runbook, “Host faults”.',
    read: (gauges) => seconds(gauges.lastInventoryMs()),
  }),
  sessionHeld: read('gauge', 'session_held', {
    help: '1 once the control plane has granted a session since the start.',
    watch: '0 for a minute after a start: see the runbook, “Silent or lost host”.',
    read: (gauges) => Number(gauges.sessionHeld()),
  }),
  sync: read('gauge', 'sync_timestamp_seconds', {
    help: 'When the last complete sync with the control plane was, seconds since 1970; 0: none yet.',
    watch: 'More than two minutes ago: the host works from an old desired set.',
    read: (gauges) => seconds(gauges.lastSyncMs()),
  }),
  diskUsed: read('gauge', 'disk_used_ratio', {
    help: 'How full the engine’s disk is, in bytes or in inodes, whichever is scarcer; absent if unknown.',
    watch: 'Over 0.85: the agent removes unused images; over 0.9: the fault `disk_pressure`.',
    read: (gauges) => {
      const percent = gauges.diskUsedPercent();
      return percent === null ? undefined : percent / 100;
    },
  }),
  diskUseUnknown: read('gauge', 'disk_unmeasured_containers', {
    help: 'Containers whose writes the engine cannot measure, so that their disk limit is not enforced.',
    watch:
      'Over 0: the fault `disk_unmeasured`; these containers can fill the disk. The agent’s log names them (`disk_measure_failed`).',
    read: (gauges) => gauges.diskUseUnknown(),
  }),
  portsFree: read('gauge', 'ports_free', {
    help: 'Ports of PUBLISH_PORTS that no container has; absent if unknown, and with LONGSHORE_SANDBOX=off.',
    watch: 'Near 0: containers with ports go to other hosts. Widen PUBLISH_PORTS, or add hosts.',
    read: (gauges) => gauges.portsFree() ?? undefined,
  }),
  tunnels: read('gauge', 'tunnels', {
    help: 'Open sessions with gateways, such as an exec.',
    watch: 'At 256, without those of stats, the host refuses more.',
    read: (gauges) => gauges.tunnels(),
  }),
  usageRecordsPending: read('gauge', 'usage_records_pending', {
    help: 'Closed hours of usage that wait on the disk until their owners have taken them; more than 35 days of them are dropped.',
    watch: 'Over 2 for long: owners do not take them. See `longshore_agent_usage_reports_total`.',
    read: (gauges) => gauges.usageRecordsPending(),
  }),
  orphansHeld: read('gauge', 'orphans_held', {
    help: 'Orphans that wait for the approval of an operator.',
    watch: 'Over 0: see the runbook, “Held orphans”.',
    read: (gauges) => gauges.orphansHeld(),
  }),
  volumesLeft: read('gauge', 'volumes_left', {
    help: 'Containers that are not on this host, while volumes of them are.',
    watch:
      'Over 0: the volumes wait for their container to come back, and are removed after 7 days (`volumes_left` in the agent’s log names them).',
    read: (gauges) => gauges.volumesLeft(),
  }),
  credentialsExpiry: read('gauge', 'credentials_expiry_timestamp_seconds', {
    help: 'When the NATS credentials expire, seconds since 1970; absent if they do not.',
    watch:
      'Less than a week away: the agent could not renew them, which it tries from ten days before the end. See the runbook, “Lost host identity”.',
    read: (gauges) => {
      const expiryMs = gauges.credentialsExpiryMs();
      return expiryMs === null ? undefined : expiryMs / 1000;
    },
  }),
};

export const registerGauges = (registry: Registry, gauges: Gauges): void =>
  readAtScrapes(registry, agentPrefix, agentGauges, gauges);
