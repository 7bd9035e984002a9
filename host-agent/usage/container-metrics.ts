/**
 * The use of each running container, as metrics of the agent; off by default, because each
 * container makes six series. A container's series end with it.
 */
import type { Registry } from 'prom-client';
import { label, reading, readAtScrapes } from '../../lib/metric-table.ts';
import type { KnownContainer } from '../docker/cached-engine.ts';
import { agentPrefix } from '../metrics.ts';
import type { UseBoard } from './sampler.ts';
import type { Use } from './use.ts';

/** A container of which the host has two copies, as in an update, is shown once, with both. */
class Board implements UseBoard {
  readonly #seen = new Map<string, { readonly container: KnownContainer; readonly use: Use }>();

  put(container: KnownContainer, use: Use): void {
    this.#seen.set(container.dockerId, { container, use });
  }

  keepOnly(dockerIds: ReadonlySet<string>): void {
    for (const dockerId of this.#seen.keys()) if (!dockerIds.has(dockerId)) this.#seen.delete(dockerId);
  }

  /** @param of returns `null` if the value is unknown */
  sums(of: (use: Use) => number | null): readonly (readonly [tenant: string, container: string, value: number])[] {
    const sums = new Map<string, [tenant: string, container: string, value: number]>();
    for (const { container, use } of this.#seen.values()) {
      const value = of(use);
      if (value === null) continue;
      const sum = sums.get(container.id);
      if (sum === undefined) sums.set(container.id, [container.tenant, container.id, value]);
      else sum[2] += value;
    }
    return [...sums.values()];
  }
}

const read = reading<Board>();
const labels = [label('tenant'), label('container')] as const;

export const containerMetrics = {
  cpu: read('counter', 'container_cpu_seconds_total', {
    help: 'CPU time of a running container since its start.',
    watch: 'With CONTAINER_METRICS=on. Its rate: cores in use.',
    labels,
    read: (board) => board.sums(({ cpuMs }) => cpuMs / 1000),
  }),
  received: read('counter', 'container_network_receive_bytes_total', {
    help: 'Bytes that a running container received, over all networks.',
    watch: 'With CONTAINER_METRICS=on.',
    labels,
    read: (board) => board.sums(({ net }) => net?.rxBytes ?? null),
  }),
  transmitted: read('counter', 'container_network_transmit_bytes_total', {
    help: 'Bytes that a running container sent, over all networks.',
    watch: 'With CONTAINER_METRICS=on.',
    labels,
    read: (board) => board.sums(({ net }) => net?.txBytes ?? null),
  }),
  memory: read('gauge', 'container_memory_bytes', {
    help: 'Memory in use, without file pages that the kernel can drop at once.',
    watch: 'With CONTAINER_METRICS=on. Near its limit: the kernel kills it soon.',
    labels,
    read: (board) => board.sums(({ memBytes }) => memBytes),
  }),
  memoryLimit: read('gauge', 'container_memory_limit_bytes', {
    help: 'Memory limit of a running container.',
    watch: 'With CONTAINER_METRICS=on.',
    labels,
    read: (board) => board.sums(({ memLimit }) => memLimit),
  }),
  pids: read('gauge', 'container_pids', {
    help: 'Processes and threads of a running container.',
    watch: 'With CONTAINER_METRICS=on. Near 1,024: starts of processes fail.',
    labels,
    read: (board) => board.sums(({ pids }) => pids),
  }),
};

/** Registers the metrics; the sampler fills the board. */
export function observeContainers(registry: Registry): UseBoard {
  const board = new Board();
  readAtScrapes(registry, agentPrefix, containerMetrics, board);
  return board;
}
