/** The metrics of an agent; a test checks docs/metrics.md against these names. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ContainerStatus } from '../schemas/api/container.ts';
import { containerStatuses } from '../schemas/words.ts';
import { faultKinds } from './faults.ts';
import { pullStates, type PullState } from './images/pull-slots.ts';
import type { LossCause } from './logs/loss.ts';
import type { RateScope } from './logs/rates.ts';
import { deniedCounters, type DeniedCounter } from './network/firewall-rules.ts';
import type { SandboxCounts, SandboxSource } from './sandbox/counts.ts';
import type { TunnelMetrics } from './sessions/tunnel-metrics.ts';
import type { SampledFrom } from './usage/sampler.ts';
import { firewallStates, type FirewallState } from './network/firewall-state.ts';

/** Where a log is read: in the engine's files, or through the engine. */
export type LogReadFrom = 'files' | 'engine';

export interface Metrics extends TunnelMetrics {
  engineCall(call: string, outcome: 'ok' | 'refused' | 'failed', seconds: number): void;
  step(step: string, result: string): void;
  pull(result: 'present' | 'pulled' | 'failed'): void;
  /** An ask for a sealed value; `damaged`: a value could not be opened. */
  unseal(result: 'answered' | 'refused' | 'unavailable' | 'damaged'): void;
  restart(): void;
  healthCheck(hasPassed: boolean): void;
  sync(result: string): void;
  report(result: 'acknowledged' | 'refused' | 'failed', items: number): void;
  logLines(count: number): void;
  logBlocks(result: 'acknowledged' | 'retried'): void;
  logDropped(lines: number): void;
  logGaps(cause: LossCause, count: number): void;
  logHeldUp(scope: RateScope): void;
  logAbandoned(): void;
  logDamaged(records: number): void;
  logFollowers(from: LogReadFrom, change: 1 | -1): void;
  diskEviction(): void;
  /** A container got its sandbox: one that was ready, made now, or kept from before. */
  sandbox(from: SandboxSource): void;
  imageRemoved(): void;
  /** A sample of a container, for the bill. */
  usageSampled(from: SampledFrom): void;
  usageReported(result: 'acknowledged' | 'failed'): void;
  /** Sums that an owner refuses for good. */
  usageRefused(items: number): void;
  /** Hours that were kept for their owners, and had to go. */
  usageDropped(hours: number): void;
  firewallRepaired(): void;
  firewallDenied(to: DeniedCounter, packets: number): void;
}

/** Values that each scrape reads. */
export interface Gauges {
  /** Open sessions with gateways. */
  tunnels(): number;
  containers(): ReadonlyMap<ContainerStatus, number>;
  engineUp(): boolean;
  sessionHeld(): boolean;
  /** When the engine last listed all containers; null before the first time. */
  lastInventoryMs(): number | null;
  /** Null before the first. */
  lastSyncMs(): number | null;
  orphansHeld(): number;
  /** Containers that have left volumes here. */
  volumesLeft(): number;
  /** Of the engine's disk; null where it is unknown. */
  diskUsedPercent(): number | null;
  /** Containers that cannot be measured. */
  diskUseUnknown(): number;
  /** The kinds of the current faults. */
  faults(): readonly string[];
  firewall(): FirewallState;
  pulls(): Readonly<Record<PullState, number>>;
  /** Null where it is unknown. */
  portsFree(): number | null;
  sandboxes(): SandboxCounts;
  /** Hours of usage that wait for their owners, on the disk. */
  usageHoursKept(): number;
  credentialsExpiryMs(): number | null;
}

export function createMetrics(registry: Registry): Metrics {
  const registers = [registry];
  const engineCalls = new Histogram({
    name: 'longshore_agent_engine_call_duration_seconds',
    help: 'Calls to the container engine, until the answer or, for streams and pulls, its headers.',
    labelNames: ['call', 'outcome'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30],
    registers,
  });
  const steps = new Counter({
    name: 'longshore_agent_steps_total',
    help: 'Steps that the agent took to bring containers to their desired state.',
    labelNames: ['step', 'result'],
    registers,
  });
  const pulls = new Counter({
    name: 'longshore_agent_pulls_total',
    help: 'Requests for an image, by result.',
    labelNames: ['result'],
    registers,
  });
  const unseals = new Counter({
    name: 'longshore_agent_unseals_total',
    help: 'Asks to the control plane for secrets and registry logins, by result; damaged: values that could not be opened, and were asked for again.',
    labelNames: ['result'],
    registers,
  });
  const restarts = new Counter({
    name: 'longshore_agent_restarts_total',
    help: 'Restarts of containers that ended by themselves.',
    registers,
  });
  const healthChecks = new Counter({
    name: 'longshore_agent_health_checks_total',
    help: 'Health checks over the network, by result.',
    labelNames: ['result'],
    registers,
  });
  const tunnelsOpened = new Counter({
    name: 'longshore_agent_tunnels_opened_total',
    help: 'Sessions that gateways opened with this host, such as an exec, by kind.',
    labelNames: ['kind'],
    registers,
  });
  const tunnelsEnded = new Counter({
    name: 'longshore_agent_tunnels_ended_total',
    help: 'Sessions with gateways that ended or were refused, by kind and reason.',
    labelNames: ['kind', 'reason'],
    registers,
  });
  const syncs = new Counter({
    name: 'longshore_agent_syncs_total',
    help: 'Syncs of the desired set with the control plane, by result.',
    labelNames: ['result'],
    registers,
  });
  const reports = new Counter({
    name: 'longshore_agent_reported_items_total',
    help: 'Observations sent to the control plane.',
    labelNames: ['result'],
    registers,
  });
  const logLines = new Counter({
    name: 'longshore_agent_log_lines_total',
    help: 'Log lines that the control plane has acknowledged.',
    registers,
  });
  const logBlocks = new Counter({
    name: 'longshore_agent_log_blocks_total',
    help: 'Attempts to send a block of log lines.',
    labelNames: ['result'],
    registers,
  });
  const logDropped = new Counter({
    name: 'longshore_agent_log_dropped_lines_total',
    help: 'Log lines of removed containers that were dropped because their part of the spool, or its disk, was full.',
    registers,
  });
  const logGaps = new Counter({
    name: 'longshore_agent_log_gaps_total',
    help: 'Times that the engine rotated a log before the agent captured it: lines are missing there.',
    labelNames: ['cause'],
    registers,
  });
  const logHeldUp = new Counter({
    name: 'longshore_agent_log_blocks_held_up_total',
    help: 'Blocks of log lines that waited for the rate of their container, their tenant or the host.',
    labelNames: ['scope'],
    registers,
  });
  const usageSamples = new Counter({
    name: 'longshore_agent_usage_samples_total',
    help: 'Samples of what a container uses, by where the agent read them.',
    labelNames: ['from'],
    registers,
  });
  const usageReports = new Counter({
    name: 'longshore_agent_usage_reports_total',
    help: 'Attempts to report to an owner what containers have used.',
    labelNames: ['result'],
    registers,
  });
  const usageRefused = new Counter({
    name: 'longshore_agent_usage_refused_total',
    help: 'Hours of a container that its owner refused to take from this host.',
    registers,
  });
  const usageDropped = new Counter({
    name: 'longshore_agent_usage_dropped_total',
    help: 'Hours of usage that were dropped before their owners had taken them.',
    registers,
  });
  const logAbandoned = new Counter({
    name: 'longshore_agent_logs_abandoned_total',
    help: 'Containers whose removal lost log lines, because the agent could not read or keep them.',
    registers,
  });
  const logDamaged = new Counter({
    name: 'longshore_agent_log_damaged_records_total',
    help: 'Records in log files of the engine that cannot be read, as after a crash of the engine or the machine.',
    registers,
  });
  const logFollowers = new Gauge({
    name: 'longshore_agent_log_followers',
    help: 'Logs that the agent follows: in the engine’s files, or through the engine where it cannot read them.',
    labelNames: ['from'],
    registers,
  });
  logFollowers.labels('files').set(0);
  logFollowers.labels('engine').set(0);
  const diskEvictions = new Counter({
    name: 'longshore_agent_disk_evictions_total',
    help: 'Containers that were stopped because they had written more than their disk limit.',
    registers,
  });
  const sandboxes = new Counter({
    name: 'longshore_agent_sandbox_claims_total',
    help: 'Sandboxes that containers got: ready ones, ones made on demand, and ones that they had before.',
    labelNames: ['from'],
    registers,
  });
  const imagesRemoved = new Counter({
    name: 'longshore_agent_images_removed_total',
    help: 'Names of unused images that the agent removed to free disk space.',
    registers,
  });
  const firewallRepairs = new Counter({
    name: 'longshore_agent_firewall_repairs_total',
    help: 'Times that the firewall rules for containers were gone or changed, and the agent set them again.',
    registers,
  });
  const firewallDenied = new Counter({
    name: 'longshore_agent_firewall_denied_packets_total',
    help: 'Packets that the firewall for containers refused: to the host, to private networks, to other containers, and from outside to unpublished ports (inbound).',
    labelNames: ['to'],
    registers,
  });
  for (const counter of deniedCounters) firewallDenied.labels(counter);
  return {
    engineCall: (call, outcome, seconds) => engineCalls.labels(call, outcome).observe(seconds),
    step: (step, result) => steps.labels(step, result).inc(),
    pull: (result) => pulls.labels(result).inc(),
    unseal: (result) => unseals.labels(result).inc(),
    restart: () => restarts.inc(),
    healthCheck: (hasPassed) => healthChecks.labels(hasPassed ? 'passed' : 'failed').inc(),
    tunnelOpened: (kind) => tunnelsOpened.labels(kind).inc(),
    tunnelEnded: (kind, reason) => tunnelsEnded.labels(kind, reason).inc(),
    sync: (result) => syncs.labels(result).inc(),
    report: (result, items) => reports.labels(result).inc(items),
    logLines: (count) => logLines.inc(count),
    logBlocks: (result) => logBlocks.labels(result).inc(),
    logDropped: (lines) => logDropped.inc(lines),
    logGaps: (cause, count) => logGaps.labels(cause).inc(count),
    logHeldUp: (scope) => logHeldUp.labels(scope).inc(),
    usageSampled: (from) => usageSamples.labels(from).inc(),
    usageReported: (result) => usageReports.labels(result).inc(),
    usageRefused: (items) => usageRefused.inc(items),
    usageDropped: (hours) => usageDropped.inc(hours),
    logAbandoned: () => logAbandoned.inc(),
    logDamaged: (records) => logDamaged.inc(records),
    logFollowers: (from, change) => logFollowers.labels(from).inc(change),
    diskEviction: () => diskEvictions.inc(),
    imageRemoved: () => imagesRemoved.inc(),
    sandbox: (from) => sandboxes.labels(from).inc(),
    firewallRepaired: () => firewallRepairs.inc(),
    firewallDenied: (to, packets) => firewallDenied.labels(to).inc(packets),
  };
}

export function registerGauges(registry: Registry, gauges: Gauges, nowMs: () => number): void {
  const registers = [registry];
  new Gauge({
    name: 'longshore_agent_containers',
    help: 'Containers of this host by observed status.',
    labelNames: ['status'],
    registers,
    collect() {
      const counts = gauges.containers();
      for (const status of containerStatuses) this.labels(status).set(counts.get(status) ?? 0);
    },
  });
  new Gauge({
    name: 'longshore_agent_fault',
    help: '1 while this host has a fault of this kind.',
    labelNames: ['kind'],
    registers,
    collect() {
      const raised = gauges.faults();
      for (const kind of faultKinds) this.labels(kind).set(Number(raised.includes(kind)));
    },
  });
  new Gauge({
    name: 'longshore_agent_container_firewall',
    help: 'State of the firewall for containers: 1 at the current state, 0 at the others.',
    labelNames: ['state'],
    registers,
    collect() {
      const now = gauges.firewall();
      for (const state of firewallStates) this.labels(state).set(Number(state === now));
    },
  });
  new Gauge({
    name: 'longshore_agent_pulls',
    help: 'Pulls of images: those that wait for a place, run, run aside because they take long, and wait for other pulls of the engine (queued: counted among the two before, too).',
    labelNames: ['state'],
    registers,
    collect() {
      const counts = gauges.pulls();
      for (const state of pullStates) this.labels(state).set(counts[state]);
    },
  });
  new Gauge({
    name: 'longshore_agent_sandboxes',
    help: 'Sandboxes on this host: ready for the next containers, and used by one.',
    labelNames: ['state'],
    registers,
    collect() {
      const { ready, used } = gauges.sandboxes();
      this.labels('ready').set(ready);
      this.labels('used').set(used);
    },
  });
  const simple = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  simple('longshore_agent_engine_up', '1 while the container engine answers.', () => Number(gauges.engineUp()));
  simple(
    'longshore_agent_inventory_age_seconds',
    'Time since the engine last listed its containers; without that list the agent decides nothing. -1: no list yet.',
    () => {
      const ms = gauges.lastInventoryMs();
      return ms === null ? -1 : (nowMs() - ms) / 1000;
    },
  );
  simple('longshore_agent_session_held', '1 once the control plane has granted a session since the start.', () =>
    Number(gauges.sessionHeld()),
  );
  simple(
    'longshore_agent_sync_age_seconds',
    'Time since the last complete sync with the control plane; -1: none yet.',
    () => {
      const ms = gauges.lastSyncMs();
      return ms === null ? -1 : (nowMs() - ms) / 1000;
    },
  );
  simple(
    'longshore_agent_disk_used_ratio',
    'How full the engine’s disk is, in bytes or in inodes, whichever is scarcer; -1: unknown.',
    () => {
      const percent = gauges.diskUsedPercent();
      return percent === null ? -1 : percent / 100;
    },
  );
  simple(
    'longshore_agent_disk_use_unknown',
    'Containers whose writes the engine cannot measure, so that their disk limit is not enforced.',
    () => gauges.diskUseUnknown(),
  );
  simple(
    'longshore_agent_ports_free',
    'Ports of PUBLISH_PORTS that no container has; -1: unknown, or SANDBOX=off.',
    () => gauges.portsFree() ?? -1,
  );
  simple('longshore_agent_tunnels', 'Open sessions with gateways, such as an exec.', gauges.tunnels);
  simple(
    'longshore_agent_usage_kept',
    'Closed hours of usage that wait on the disk until their owners have taken them; more than 35 days of them are dropped.',
    () => gauges.usageHoursKept(),
  );
  simple('longshore_agent_orphans_held', 'Orphans that wait for the approval of an operator.', () =>
    gauges.orphansHeld(),
  );
  simple('longshore_agent_volumes_left', 'Containers that are not on this host, while volumes of them are.', () =>
    gauges.volumesLeft(),
  );
  simple('longshore_agent_credentials_expiry_timestamp_seconds', 'When the NATS credentials expire; 0: never.', () => {
    const ms = gauges.credentialsExpiryMs();
    return ms === null ? 0 : ms / 1000;
  });
}
