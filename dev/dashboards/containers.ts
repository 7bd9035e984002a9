/** The dashboard of single containers. Agents export these metrics with CONTAINER_METRICS=on. */
import type { Board } from './grafana.ts';
import { count, graph } from './queries.ts';

const chosen = 'tenant=~"$tenant", container=~"$container"';
const legend = '{{tenant}} {{container}}';
/** A container that moves is on two hosts for a moment. */
const each = 'sum by (tenant, container)';

const gauge = (metric: string) => ({ expr: `${each} (${metric}{${chosen}})`, legend });
const rate = (metric: string) => ({ expr: `${each} (rate(${metric}{${chosen}}[$__rate_interval]))`, legend });

const memory = 'longshore_agent_container_memory_bytes';
const memoryLimit = 'longshore_agent_container_memory_limit_bytes';

export const containers: Board = {
  file: 'containers',
  title: 'Longshore: containers',
  what: 'What running containers use. Empty unless agents run with CONTAINER_METRICS=on.',
  variables: [
    { name: 'tenant', metric: memory },
    { name: 'container', metric: memory },
  ],
  panels: [
    count('Containers', 'Running ones of the choice.', `count(${memory}{${chosen}}) or vector(0)`),
    count(
      'Most of a memory limit',
      'The share that the container nearest to its limit uses.',
      `max(${memory}{${chosen}} / ${memoryLimit}{${chosen}})`,
    ),
    graph('CPU', 'In cores.', 'short', rate('longshore_agent_container_cpu_seconds_total')),
    graph('Memory', 'In use, without file pages that the kernel can drop at once.', 'bytes', gauge(memory)),
    graph('Share of the memory limit', 'Near 1 the kernel ends processes.', 'percentunit', {
      expr: `${each} (${memory}{${chosen}}) / ${each} (${memoryLimit}{${chosen}})`,
      legend,
    }),
    graph('Processes and threads', 'At 1,024 no more can start.', 'short', gauge('longshore_agent_container_pids')),
    graph('Received', 'Over all networks.', 'Bps', rate('longshore_agent_container_network_receive_bytes_total')),
    graph('Sent', 'Over all networks.', 'Bps', rate('longshore_agent_container_network_transmit_bytes_total')),
  ],
};
