/**
 * Lists every metric of the three programs and of the VPN area, from the registries that they fill
 * themselves.
 */
import type { Registry } from 'prom-client';
import {
  countScrubs,
  countTrims,
  createObserver,
  observeFleet,
  observePartitionManager,
  observeScrub,
} from '../../actors/metrics.ts';
import { createForageMeters } from '../../gateway/vpn/metrics.ts';
import { createMeters, registerGauges as registerGatewayGauges } from '../../gateway/metrics.ts';
import { createMetrics, registerGauges as registerAgentGauges } from '../../host-agent/metrics.ts';
import { containerMetrics } from '../../host-agent/usage/container-metrics.ts';
import { createRegistry } from '../../lib/metrics.ts';
import { countMoves } from '../../lib/nats/connection.ts';
import { countSpans } from '../../lib/trace/exporter.ts';

export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
}

/** prom-client's description of a metric, which its types leave out. */
interface Registered {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

/** Metrics are only described here and never collected, so no gauge's callback runs. */
const neverRead = (): never => {
  throw new Error('a metric is described, not collected');
};

function fillGateway(registry: Registry): void {
  createMeters(registry);
  registerGatewayGauges(registry, {
    queued: neverRead,
    tokenCacheEntries: neverRead,
    revocations: neverRead,
    tenantsRefused: neverRead,
    inFlight: neverRead,
    tunnels: neverRead,
    ready: neverRead,
  });
}

function fillActors(registry: Registry): void {
  createObserver(registry);
  observeFleet(registry, { hosts: neverRead } as unknown as Parameters<typeof observeFleet>[1]);
  observePartitionManager(registry, {} as Parameters<typeof observePartitionManager>[1]);
  observeScrub(registry, {} as Parameters<typeof observeScrub>[1]);
  countScrubs(registry);
  countTrims(registry);
}

function fillAgent(registry: Registry): void {
  createMetrics(registry);
  containerMetrics(registry);
  registerAgentGauges(
    registry,
    {
      containers: neverRead,
      engineUp: neverRead,
      sessionHeld: neverRead,
      lastInventoryMs: neverRead,
      lastSyncMs: neverRead,
      diskUsedPercent: neverRead,
      diskUseUnknown: neverRead,
      orphansHeld: neverRead,
      volumesLeft: neverRead,
      tunnels: neverRead,
      faults: neverRead,
      firewall: neverRead,
      pulls: neverRead,
      portsFree: neverRead,
      sandboxes: neverRead,
      usageHoursKept: neverRead,
      credentialsExpiryMs: neverRead,
    },
    neverRead,
  );
}

const describe = (registry: Registry): MetricDescription[] =>
  (registry.getMetricsAsArray() as unknown as Registered[])
    .map(({ name, type, help, labelNames }) => ({ name, type, help, labels: [...labelNames] }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));

export interface ProgramMetrics {
  /** Metrics that every program has. */
  readonly common: readonly MetricDescription[];
  readonly gateway: readonly MetricDescription[];
  readonly actors: readonly MetricDescription[];
  readonly 'host-agent': readonly MetricDescription[];
  /** Metrics of the gateway's `/metrics/forage`. */
  readonly forage: readonly MetricDescription[];
}

/** The metrics that every program registers. */
function commonRegistry(): Registry {
  const registry = createRegistry('docs', '');
  countMoves(registry);
  countSpans(registry);
  return registry;
}

export function programMetrics(): ProgramMetrics {
  const common = describe(commonRegistry());
  const own = (fill: (registry: Registry) => void): MetricDescription[] => {
    const registry = createRegistry('docs', '');
    fill(registry);
    return describe(registry).filter(({ name }) => !common.some((shared) => shared.name === name));
  };
  return {
    common,
    gateway: own(fillGateway),
    actors: own(fillActors),
    'host-agent': own(fillAgent),
    forage: describe(createForageMeters('', neverRead).registry),
  };
}
