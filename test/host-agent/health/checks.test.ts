/** The schedule of health checks, and what a look at a container shows of them. */
import t from 'tap';
import { createHealthChecks } from '../../../host-agent/health/checks.ts';
import type { Endpoint, Probe } from '../../../host-agent/health/probe.ts';
import { healthDefaults } from '../../../schemas/api/policy.ts';
import { until } from '../../support/until.ts';
import { id, nowMs, up } from '../support/decisions.ts';

const check = { ...healthDefaults, interval: 1, retries: 2, start_period: 0, tcp: { port: 80 } };
const running = { ...up, ip: '10.0.0.2', startedAtMs: nowMs };

function started({ isLocal = true }: { isLocal?: boolean } = {}) {
  const asked: Endpoint[] = [];
  const world = { fault: undefined as string | undefined, changes: 0 };
  const signals: AbortSignal[] = [];
  const probe: Probe = (_, endpoint, signal) => {
    asked.push(endpoint);
    signals.push(signal);
    return Promise.resolve(world.fault);
  };
  const parts = { probe, isLocal, steadyMs: () => nowMs + 1, metrics: { healthCheck: () => {} } };
  const checks = createHealthChecks(parts);
  checks.events.on('changed', () => void world.changes++);
  t.teardown(checks.stop);
  return { checks, asked, signals, world };
}

t.test('the first look begins the checks and knows their first result', async (t) => {
  const { checks, asked, world } = started();
  t.match(await checks.seen(id, running, check), { health: 'healthy', startedAtMs: nowMs });
  t.same(asked, [{ host: '10.0.0.2', port: 80 }]);
  world.fault = 'port 80: nothing listens there';
  await until(
    'two checks more have failed',
    () => checks.seen(id, running, check),
    ({ health }) => health === 'unhealthy',
  );
  t.match(await checks.seen(id, running, check), { healthFault: world.fault });
  t.ok(world.changes >= 2, 'a look follows each change');
});

t.test('another run, or another check, is checked from the beginning', async (t) => {
  const { checks, asked, signals } = started();
  await checks.seen(id, running, check);
  await checks.seen(id, running, check);
  t.equal(asked.length, 1);
  await checks.seen(id, { ...running, run: 'd1:2' }, check);
  t.equal(asked.length, 2);
  t.ok(signals[0]?.aborted);
  await checks.seen(id, { ...running, run: 'd1:2' }, { ...check, retries: 3 });
  t.equal(asked.length, 3);
  checks.end(id);
  t.ok(signals[2]?.aborted);
});

t.test('an engine on another machine: by the published port', async (t) => {
  const { checks, asked } = started({ isLocal: false });
  const published = { ...running, addresses: [{ port: '80/tcp', address: '192.0.2.7:32768' }] };
  await checks.seen(id, published, check);
  t.same(asked, [{ host: '192.0.2.7', port: 32768 }]);
  const ofIpv6 = { ...running, run: 'd1:2', addresses: [{ port: '80/tcp', address: '[2001:db8::1]:2' }] };
  await checks.seen(id, ofIpv6, check);
  t.same(asked[1], { host: '2001:db8::1', port: 2 });
  t.match(await checks.seen(id, { ...running, run: 'd1:3' }, check), { healthFault: /is not published/ });
  t.equal(asked.length, 2);
});
