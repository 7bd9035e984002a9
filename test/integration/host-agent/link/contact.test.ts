/** Whole agents that lose the control plane, restart, and stop their containers in time. */
import t, { type Test } from 'tap';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../../lib/time/clock.ts';
import { loadRestartStore } from '../../../../host-agent/reconcile/restart/restart-store.ts';
import { defaultPolicy, type Policy } from '../../../../schemas/api/policy.ts';
import { limits } from '../../../../schemas/limits.ts';
import { quietLog } from '../../../actors/support.ts';
import { quietDisk } from '../../../host-agent/support/disk.ts';
import { lastContactMs, machine } from '../../../host-agent/support/machine.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';
import { startControlPlane } from '../../../host-agent/support/control-plane.ts';
import { simulatedEngine, statusesOn } from '../../../host-agent/support/simulated-engine.ts';
import { startLocalAgent } from '../../../host-agent/support/in-process.ts';
const minute = 60_000;
const allowedMs = 10 * minute;

/** An agent that runs one container, on a machine whose time the test sets. */
async function startGround(t: Test, policy: Policy = defaultPolicy) {
  const dir = temporaryFolder(t);
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = await simulatedEngine(t);
  const stateDir = join(dir, 'agent');
  const time = machine();
  const start = (machineTime = time) =>
    startLocalAgent(t, {
      dockerHost: engine.host,
      stateDir,
      controlPlane,
      clock: systemClock,
      machineTime,
      env: { STOP_ON_DISCONNECT: `${allowedMs}ms` },
    });
  const first = await start();
  const { id } = controlPlane.desire({ registry: 'registry.example', repository: 'web', policy });
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  const status = () => statusesOn(engine).join();
  const isStart = (path: string) =>
    engine.model.ofTenants().some(({ id: dockerId }) => path.endsWith(`/${dockerId}/start`));
  const starts = () => engine.calls().filter(({ path }) => isStart(path)).length;
  const becomes = (wanted: string) =>
    until(
      () => `${wanted}, not ${status()}`,
      () => status() === wanted,
    );
  return { controlPlane, engine, stateDir, time, start, first, id, status, starts, becomes };
}
type Local = Awaited<ReturnType<typeof startLocalAgent>>;
const logged = (agent: Local, event: string) =>
  until(
    () => `event ${event}`,
    () => agent.entries.find((entry) => entry.event === event),
  );

t.test('an agent that restarts while it is cut off stops its containers by the original deadline', async (t) => {
  const { controlPlane, stateDir, time, start, first, starts, status, becomes } = await startGround(t);
  time.pass(0.7 * allowedMs);
  controlPlane.goAway();
  await first.stop();
  // An answer that was under way when the control plane went away counts.
  const deadlineMs = lastContactMs(stateDir) + allowedMs;
  time.pass(deadlineMs - limits.firstContactMs - time.nowMs());
  const second = await start();
  t.equal(status(), 'running', 'an agent that ends and starts again stops nothing');
  time.pass(limits.firstContactMs + 1);
  await becomes('exited');
  t.match(await logged(second, 'host_isolated'), { level: 'warn' });

  await second.stop();
  const third = await start();
  await logged(third, 'control_plane_awaited');
  time.pass(limits.firstContactMs);
  await logged(third, 'host_isolated');
  t.same([status(), starts()], ['exited', 1], 'an agent that starts after the deadline starts nothing');
  await controlPlane.comeBack();
  await becomes('running');
  await third.stop();
});

t.test(
  'killed before, in or after the stop of a host that is cut off, it knows that the stop was its own',
  async (t) => {
    for (const restart of ['on_failure', 'never'] as const) {
      const { controlPlane, engine, id, stateDir, time, first, becomes } = await startGround(t, {
        ...defaultPolicy,
        restart,
      });
      const waits = { wallMs: Date.now, steadyMs: () => 0, maxWaitMs: minute };
      const onDisk = async () => (await loadRestartStore(stateDir, waits, quietDisk(), quietLog)).of(id).stopped;
      const atStop: (readonly string[])[] = [];
      engine.intercept(async ({ path }) => {
        if (path.endsWith('/stop')) atStop.push(await onDisk());
        return undefined;
      });
      controlPlane.goAway();
      time.pass(allowedMs + minute);
      await becomes('exited');
      const [{ id: dockerId = '' } = {}] = engine.model.ofTenants();
      t.match(atStop, [[new RegExp(`^${dockerId}:`)]], restart);
      await first.stop();
    }
  },
);

t.test('an agent that was away for long and reaches the control plane stops nothing', async (t) => {
  const { engine, time, start, first, status } = await startGround(t);
  await first.stop();
  time.pass(100 * allowedMs);
  const second = await start();
  await logged(second, 'isolation_ended');
  t.equal(status(), 'running');
  t.equal(engine.calls().filter(({ path }) => path.endsWith('/stop')).length, 0);
  await second.stop();
});

t.test('an agent that starts cut off, for an unknown time, stops its containers', async (t) => {
  const { controlPlane, stateDir, time, start, first, becomes } = await startGround(t);
  controlPlane.goAway();
  await first.stop();
  writeFileSync(join(stateDir, 'contact.json'), 'damaged');
  const second = await start();
  await logged(second, 'control_plane_awaited');
  time.pass(limits.firstContactMs);
  await becomes('exited');
  await second.stop();
});

t.test('after a boot, nothing starts before the control plane has answered', async (t) => {
  const { controlPlane, engine, start, first, starts, status, becomes } = await startGround(t);
  controlPlane.goAway();
  await first.stop();
  for (const container of engine.model.ofTenants()) engine.model.exit(container, 0);
  const time = machine('boot 2', 1000);
  const second = await start(time);
  await logged(second, 'control_plane_awaited');
  time.pass(limits.firstContactMs);
  await logged(second, 'host_isolated');
  t.same([status(), starts()], ['exited', 1]);
  await controlPlane.comeBack();
  await becomes('running');
  await second.stop();
});

t.test('an agent that stops announces that its containers keep running', async (t) => {
  const { controlPlane, first, status } = await startGround(t);
  t.ok(controlPlane.hellos().every(({ stops_after_ms: told }) => (told ?? 0) > allowedMs));
  await first.stop();
  t.equal(controlPlane.hellos().at(-1)?.stops_after_ms, null);
  t.equal(status(), 'running');
});

t.test('Node takes the waits of a whole agent for no leak', async (t) => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): void => {
    if (message.includes('AbortSignal')) warnings.push(message);
  };
  process.on('warning', onWarning);
  t.teardown(() => process.off('warning', onWarning));
  await startGround(t);
  t.same(warnings, []);
});
