/** Use of containers, as metrics of the agent. */
import { Registry } from 'prom-client';
import t from 'tap';
import type { KnownContainer } from '../../../host-agent/docker/cached-engine.ts';
import { observeContainers } from '../../../host-agent/usage/container-metrics.ts';
import type { Use } from '../../../host-agent/usage/use.ts';
import { containerId } from '../../actors/support.ts';

const use: Use = { cpuMs: 1500, memBytes: 3000, memLimit: 64_000, pids: 2, net: { rxBytes: 10, txBytes: 20 } };
const [web, job] = [containerId(), containerId()];
const of = (dockerId: string, id = web): KnownContainer => ({ dockerId, id, tenant: 'acme', state: 'running' });

async function stage() {
  const registry = new Registry();
  const board = observeContainers(registry);
  const series = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return { board, series };
}

t.test('six series for each container, with its tenant', async (t) => {
  const { board, series } = await stage();
  t.same(await series(), []);
  board.put(of('d1'), use);
  const labels = `{tenant="acme",container="${web}"}`;
  const expected = [
    `longshore_agent_container_cpu_seconds_total${labels} 1.5`,
    `longshore_agent_container_network_receive_bytes_total${labels} 10`,
    `longshore_agent_container_network_transmit_bytes_total${labels} 20`,
    `longshore_agent_container_memory_bytes${labels} 3000`,
    `longshore_agent_container_memory_limit_bytes${labels} 64000`,
    `longshore_agent_container_pids${labels} 2`,
  ];
  t.same(await series(), expected);
  t.same(await series(), expected, 'a second scrape counts nothing again');
});

t.test('an unknown figure has no series', async (t) => {
  const { board, series } = await stage();
  board.put(of('d1'), { ...use, memLimit: null, pids: null, net: null });
  t.same(
    (await series()).map((line) => /^[a-z_]+/.exec(line)?.[0]),
    ['longshore_agent_container_cpu_seconds_total', 'longshore_agent_container_memory_bytes'],
  );
});

t.test('two copies of a container are one; a container that ends takes its series along', async (t) => {
  const { board, series } = await stage();
  board.put(of('d1'), use);
  board.put(of('d2'), use);
  board.put(of('d3', job), use);
  const memory = async (): Promise<string[]> => (await series()).filter((line) => line.includes('memory_bytes'));
  t.match(await memory(), [/ 6000$/, / 3000$/]);
  board.keepOnly(new Set(['d1', 'd3']));
  t.match(await memory(), [/ 3000$/, / 3000$/]);
  board.keepOnly(new Set(['d3']));
  t.match(await memory(), [new RegExp(job)]);
  board.keepOnly(new Set());
  t.same(await series(), []);
});
