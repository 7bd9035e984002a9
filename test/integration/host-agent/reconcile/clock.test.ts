/** The wall clock of the machine is set while a container crashes. */
import t from 'tap';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';
import { startLocalAgent } from '../../../host-agent/support/in-process.ts';

const hourMs = 3_600_000;

t.test('setting the clock back does not remove the back-off', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-clock-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  let setMs = 0;
  const clock = { nowMs: () => Date.now() + setMs, monotonicMs: () => performance.now() };
  // The engine is on the same machine, with the same clock.
  const engine = await simulatedEngine(t, clock.nowMs);
  const agent = await startLocalAgent(t, {
    dockerHost: engine.host,
    stateDir: join(dir, 'agent'),
    controlPlane,
    clock,
    env: { RESTART_BACKOFF_MIN: `${hourMs}ms`, RESTART_BACKOFF_MAX: `${hourMs}ms` },
  });
  const { id } = controlPlane.desire({ registry: 'registry.example', repository: 'web' });
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');

  setMs = -hourMs;
  const [container] = engine.model.ofTenants();
  if (container === undefined) throw new Error('no container');
  // It ends as soon as it has begun, by the new clock.
  engine.model.exit(container, 1, new Date(clock.nowMs()).toISOString());
  const { observation } = await controlPlane.reported(id, ({ observation: { status } }) => status === 'backoff');
  t.match(observation, { reason: 'exited' });
  const shownMs = Date.parse(observation.next_retry_at ?? '') - clock.nowMs();
  t.ok(shownMs > 0 && shownMs <= hourMs + 1000, 'the report names the next attempt by the wall clock');
  t.equal(
    engine.calls().filter(({ path }) => path.endsWith(`${container.id}/start`)).length,
    1,
    'it was not started again',
  );
  await agent.stop();
});
