/** Policies on a real engine (ADR 36): ends, stops and health checks. */
import t from 'tap';
import { defaultPolicy, healthDefaults, type HealthCheck, type Policy } from '../../../../schemas/api/policy.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { startRig, steady, type Rig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.setTimeout(240_000);

const policyOf = (changes: Partial<Policy>): { policy: Policy } => ({ policy: { ...defaultPolicy, ...changes } });
const quickCheck = (changes: Partial<HealthCheck>): HealthCheck => ({
  ...healthDefaults,
  interval: 1,
  timeout: 2,
  retries: 2,
  start_period: 0,
  ...changes,
});
const quickly = { RESTART_BACKOFF_MIN: '200ms', RESTART_BACKOFF_MAX: '400ms', UPDATE_VERIFY: '1500ms' };

const statusOf = ({ controlPlane }: Rig, id: ContainerId, status: string, reason?: string) =>
  controlPlane.reported(
    id,
    ({ observation }) => observation.status === status && (reason === undefined || observation.reason === reason),
  );

t.test('a run that ends', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script } = rig;
  let process = agent(quickly);

  const job = controlPlane.desire({ ...(await script('job', 'echo done')), ...policyOf({ restart: 'on_failure' }) });
  t.match(await statusOf(rig, job.id, 'stopped', 'completed'), { ended: true, observation: { exit_code: 0 } });

  const failing = await script('failing', 'sleep 0.2; exit 7');
  const once = controlPlane.desire({ ...failing, ...policyOf({ restart: 'never' }) });
  t.match(await statusOf(rig, once.id, 'failed', 'exited'), {
    ended: true,
    observation: { exit_code: 7, restart_count: 0 },
  });
  const again = controlPlane.desire({ ...failing, ...policyOf({ restart: 'on_failure' }) });
  await controlPlane.reported(again.id, ({ observation }) => observation.restart_count >= 2);

  await t.test('a restart of the agent runs nothing again', async (t) => {
    const startsOf = async (id: ContainerId) => (await engine.only(id)).State.StartedAt;
    const before = [await startsOf(job.id), await startsOf(once.id)];
    await process.kill9();
    process = agent(quickly);
    const fresh = controlPlane.reports(job.id).length;
    const told = await controlPlane.reported(
      job.id,
      (item) => controlPlane.reports(job.id).length > fresh && item.observation.reason === 'completed',
    );
    t.equal(told.ended, true);
    t.same([await startsOf(job.id), await startsOf(once.id)], before);
  });

  await t.test('at rest it says how it ended; a start runs it again', async (t) => {
    const rest = controlPlane.desire({ id: job.id, desired: 'stopped' });
    const told = await controlPlane.reported(job.id, ({ generation }) => generation === rest.generation);
    t.match(told, { observation: { status: 'stopped', reason: 'completed', exit_code: 0 } });
    const { StartedAt } = (await engine.only(job.id)).State;
    const { generation } = controlPlane.desire({ id: job.id, desired: 'running' });
    await controlPlane.reported(job.id, (item) => item.generation === generation && item.ended === true);
    t.not((await engine.only(job.id)).State.StartedAt, StartedAt);
  });
  await process.stop();
});

t.test('a stop: its signal and its grace', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script } = rig;
  const process = agent({ STOP_GRACE: '1m' });
  const signalled = await script(
    'signalled',
    `trap 'exit 3' TERM; trap 'exit 9' QUIT; while :; do sleep 1 & wait $!; done`,
  );
  const deaf = await script('deaf', `trap '' TERM QUIT; while :; do sleep 1; done`);
  for (const [what, image, policy, exitCode] of [
    ['the default', signalled, {}, 3],
    ['another signal', signalled, { stop_signal: 'SIGQUIT' }, 9],
    ['a grace', deaf, { stop_grace_seconds: 1 }, 137],
    ['another signal, and a grace', deaf, { stop_grace_seconds: 1, stop_signal: 'SIGQUIT' }, 137],
    ['none', signalled, { stop_grace_seconds: 0, stop_signal: 'SIGKILL' }, 137],
  ] as const) {
    const { id } = controlPlane.desire({ ...image, ...policyOf(policy) });
    await statusOf(rig, id, 'running');
    // A shell that has just started has no traps yet.
    await new Promise((resolve) => setTimeout(resolve, 500));
    controlPlane.desire({ id, desired: 'stopped' });
    await statusOf(rig, id, 'stopped');
    t.equal((await engine.only(id)).State.ExitCode, exitCode, what);
  }
  await process.stop();
});

t.test('health checks', async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script } = rig;
  let process = agent(quickly);
  // Healthy while /tmp/w/up is there.
  const serving = await script('serving', `mkdir -p /tmp/w; echo ok > /tmp/w/up; httpd -p 8080 -h /tmp/w; ${steady}`);
  const breaking = (id: ContainerId) => engine.exec(id, ['rm', '/tmp/w/up']);
  const mending = (id: ContainerId) => engine.exec(id, ['sh', '-c', 'echo ok > /tmp/w/up']);

  const checks: [string, Partial<HealthCheck>, RegExp][] = [
    ['http', { http: { port: 8080, path: '/up' } }, /GET \/up on port 8080 answered 404/],
    ['command', { command: ['cat', '/tmp/w/up'] }, /No such file/],
  ];
  for (const [kind, check, fault] of checks) {
    await t.test(`${kind}: healthy, unhealthy, healthy`, async (t) => {
      const { id } = controlPlane.desire({ ...serving, ...policyOf({ health: quickCheck(check) }) });
      const first = await statusOf(rig, id, 'running');
      t.equal(first.observation.reason, null);
      await breaking(id);
      const { observation } = await statusOf(rig, id, 'running', 'unhealthy');
      t.match(observation.message, fault);
      await mending(id);
      const seen = controlPlane.reports(id).length;
      await controlPlane.reported(id, () =>
        controlPlane
          .reports(id)
          .slice(seen)
          .some(({ observation: { reason } }) => reason === null),
      );
      t.equal((await engine.only(id)).State.ExitCode, 0);
      controlPlane.desire({ id, desired: 'removed' });
    });
  }

  await t.test('tcp: it is up when its port opens', async (t) => {
    const late = await script('late', `mkdir -p /tmp/w; sleep 2; httpd -p 8080 -h /tmp/w; ${steady}`);
    const health = quickCheck({ tcp: { port: 8080 }, start_period: 60 });
    const { id } = controlPlane.desire({ ...late, ...policyOf({ health }) });
    await statusOf(rig, id, 'running');
    const statuses = controlPlane.reports(id).map(({ observation }) => observation.status);
    t.equal(statuses.filter((status) => status === 'running').length, 1);
    t.ok(statuses.includes('starting'), 'it does not count as up before');
    controlPlane.desire({ id, desired: 'removed' });
  });

  await t.test('restart_unhealthy: it is started again, with its reason', async (t) => {
    const health = quickCheck({ http: { port: 8080, path: '/up' }, restart_unhealthy: true });
    const { id } = controlPlane.desire({ ...serving, ...policyOf({ health }) });
    await statusOf(rig, id, 'running');
    await breaking(id);
    const { observation } = await controlPlane.reported(
      id,
      (item) => item.observation.status === 'running' && item.observation.restart_count === 1,
    );
    t.equal(observation.reason, null);
    t.ok(controlPlane.reports(id).some((item) => item.observation.reason === 'unhealthy'));
    controlPlane.desire({ id, desired: 'removed' });
  });

  await t.test('a command that hangs makes it unhealthy, and leaves no process', async (t) => {
    const health = quickCheck({ command: ['sleep', '1000'], timeout: 1 });
    const { id } = controlPlane.desire({ ...serving, ...policyOf({ health }) });
    t.match((await statusOf(rig, id, 'running', 'unhealthy')).observation.message, /exceeded timeout/);
    await until(
      'no more than two checks of it are there',
      async () => (await engine.exec(id, ['sh', '-c', 'ps | grep -c "[s]leep 1000" || true'])).trim(),
      (count) => Number(count) <= 2,
    );
    controlPlane.desire({ id, desired: 'removed' });
  });

  await t.test('an agent that starts again does not show it as starting', async (t) => {
    const health = quickCheck({ http: { port: 8080, path: '/up' } });
    const { id } = controlPlane.desire({ ...serving, ...policyOf({ health }) });
    await statusOf(rig, id, 'running');
    const before = controlPlane.reports(id).length;
    await process.kill9();
    process = agent(quickly);
    await until(
      'it is reported as running',
      () => controlPlane.reports(id).slice(before),
      (items) => items.some(({ observation }) => observation.status === 'running'),
    );
    const statuses = controlPlane.reports(id).map(({ observation }) => observation.status);
    t.notOk(statuses.slice(before).includes('starting'));
    controlPlane.desire({ id, desired: 'removed' });
  });

  await t.test('another check needs no other container; another command does', async (t) => {
    const http = policyOf({ health: quickCheck({ http: { port: 8080, path: '/up' } }) });
    const { id } = controlPlane.desire({ ...serving, ...http });
    await statusOf(rig, id, 'running');
    const { Id } = await engine.only(id);
    const { generation } = controlPlane.desire({ id, ...policyOf({ health: quickCheck({ tcp: { port: 8080 } }) }) });
    await controlPlane.reported(id, (item) => item.generation === generation && item.observation.status === 'running');
    t.equal((await engine.only(id)).Id, Id);
    const next = controlPlane.update(id, policyOf({ health: quickCheck({ command: ['true'] }) }));
    await controlPlane.reported(id, (item) => item.generation === next.generation && item.update?.phase === 'done');
    controlPlane.settle(id);
    await until(
      'only the new one is left',
      () => engine.containers(id),
      (all) => all.length === 1 && all[0]?.Id !== Id,
    );
    controlPlane.desire({ id, desired: 'removed' });
  });

  await t.test('an update waits for health, and is rolled back without', async (t) => {
    const health = quickCheck({ http: { port: 8080, path: '/up' } });
    const { id } = controlPlane.desire({ ...serving, ...policyOf({ health }) });
    await statusOf(rig, id, 'running');
    const { Id } = await engine.only(id);
    const ill = await script('ill', `mkdir -p /tmp/w; httpd -p 8080 -h /tmp/w; ${steady}`);
    const { generation } = controlPlane.update(id, ill);
    const { update } = await controlPlane.reported(
      id,
      (item) =>
        item.generation === generation && item.update?.phase === 'rolled_back' && item.observation.status === 'running',
    );
    t.match(update, { reason: 'unhealthy', message: /answered 404/ });
    controlPlane.settle(id);
    await until(
      'the old one is left',
      () => engine.containers(id),
      (all) => all.length === 1 && all[0]?.Id === Id,
    );
    controlPlane.desire({ id, desired: 'removed' });
  });
  await process.stop();
});
