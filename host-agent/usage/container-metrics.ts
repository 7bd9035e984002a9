/**
 * What each running container uses, as metrics of the agent; off by default, because each container
 * makes six series. A container's series end with it.
 */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { KnownContainer } from '../docker/cached-engine.ts';
import type { UseBoard } from './sampler.ts';
import type { Use } from './use.ts';

const labelNames = ['tenant', 'container'] as const;

interface Shown {
  readonly name: string;
  readonly help: string;
  /** Null: it is unknown. */
  readonly of: (use: Use) => number | null;
}

const counters: readonly Shown[] = [
  {
    name: 'longshore_agent_container_cpu_seconds_total',
    help: 'CPU time of a running container since its start.',
    of: ({ cpuMs }) => cpuMs / 1000,
  },
  {
    name: 'longshore_agent_container_network_receive_bytes_total',
    help: 'Bytes that a running container received, over all networks.',
    of: ({ net }) => net?.rxBytes ?? null,
  },
  {
    name: 'longshore_agent_container_network_transmit_bytes_total',
    help: 'Bytes that a running container sent, over all networks.',
    of: ({ net }) => net?.txBytes ?? null,
  },
];

const gauges: readonly Shown[] = [
  {
    name: 'longshore_agent_container_memory_bytes',
    help: 'Memory in use, without file pages that the kernel can drop at once.',
    of: ({ memBytes }) => memBytes,
  },
  {
    name: 'longshore_agent_container_memory_limit_bytes',
    help: 'Memory limit of a running container.',
    of: ({ memLimit }) => memLimit,
  },
  {
    name: 'longshore_agent_container_pids',
    help: 'Processes and threads of a running container.',
    of: ({ pids }) => pids,
  },
];

/** Registers the metrics; the sampler puts what they show on the board. */
export function containerMetrics(registry: Registry): UseBoard {
  const seen = new Map<string, { readonly container: KnownContainer; readonly use: Use }>();
  /** A container of which the host has two copies, as in an update, is shown once, with both. */
  const sums = (of: Shown['of']) => {
    const values = new Map<string, { readonly tenant: string; readonly container: string; value: number }>();
    for (const { container, use } of seen.values()) {
      const value = of(use);
      if (value === null) continue;
      const { tenant, id } = container;
      const sum = values.get(id);
      if (sum === undefined) values.set(id, { tenant, container: id, value });
      else sum.value += value;
    }
    return values.values();
  };
  for (const { name, help, of } of counters) {
    new Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        for (const { value, ...labels } of sums(of)) this.inc(labels, value);
      },
    });
  }
  for (const { name, help, of } of gauges) {
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        for (const { value, ...labels } of sums(of)) this.set(labels, value);
      },
    });
  }
  return {
    put: (container, use) => void seen.set(container.dockerId, { container, use }),
    keepOnly: (dockerIds) => {
      for (const dockerId of seen.keys()) if (!dockerIds.has(dockerId)) seen.delete(dockerId);
    },
  };
}
