import t from 'tap';
import { type Registry } from 'prom-client';
import { createMetrics, registerGauges } from '../../../host-agent/metrics.ts';
import { createRegistry } from '../../../lib/metrics.ts';
import { version } from '../../../lib/version.ts';
import { promtoolFindings } from '../../support/prometheus/promtool.ts';

function everything(): Registry {
  const registry = createRegistry('host-agent', version);
  const metrics = createMetrics(registry);
  metrics.engineCall('container create', 'ok', 0.1);
  metrics.step('create', 'done');
  metrics.pull('pulled');
  metrics.restart();
  metrics.sync('complete');
  metrics.report('acknowledged', 3);
  metrics.logLines(1);
  metrics.logBlocks('retried');
  metrics.logDropped(1);
  metrics.logGaps('rate', 1);
  metrics.logHeldUp('tenant');
  metrics.logAbandoned();
  metrics.diskEviction();
  metrics.imageRemoved();
  metrics.tunnelOpened('exec');
  metrics.tunnelEnded('exec', 'done');
  metrics.sandbox('ready');
  metrics.firewallRepaired();
  metrics.firewallDenied('host', 2);
  registerGauges(registry, {
    containers: () => new Map([['running', 2]]),
    engineUp: () => true,
    sessionHeld: () => true,
    lastInventoryMs: () => 1000,
    lastSyncMs: () => 1000,
    usageRecordsPending: () => 0,
    diskUseUnknown: () => 0,
    diskUsedPercent: () => 50,
    orphansHeld: () => 0,
    volumesLeft: () => 0,
    tunnels: () => 1,
    faults: () => ['state_unwritable'],
    firewall: () => 'enforced',
    pulls: () => ({ waiting: 1, running: 2, aside: 0, queued: 0 }),
    portsFree: () => null,
    sandboxes: () => ({ ready: 4, used: 2 }),
    credentialsExpiryMs: () => null,
  });
  return registry;
}

t.test('promtool accepts the metrics', async (t) => {
  t.equal(await promtoolFindings(await everything().metrics()), '');
});

t.test('every metric has the agent’s prefix, and gauges are read at the scrape', async (t) => {
  const registry = everything();
  const names = registry.getMetricsAsArray().map(({ name }) => name);
  t.same(
    names.filter((name) => !/^(longshore_(agent|build|event_loop)|process)_/.test(name)),
    [],
  );
  const text = await registry.metrics();
  t.match(text, 'longshore_agent_containers{status="running"} 2');
  t.match(text, 'longshore_agent_fault{kind="state_unwritable"} 1');
  t.match(text, 'longshore_agent_fault{kind="cloned_state"} 0');
  t.match(text, 'longshore_agent_sync_timestamp_seconds 1');
  t.match(text, /^process_cpu_seconds_total [\d.]+$/m, 'under the standard name');
  for (const unknown of ['ports_free', 'credentials_expiry_timestamp_seconds'])
    t.notMatch(text, `\nlongshore_agent_${unknown} `, `${unknown} has no sample where it is unknown`);
  t.match(text, 'longshore_agent_reported_items_total{result="acknowledged"} 3');
});
