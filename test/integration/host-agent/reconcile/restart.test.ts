import t from 'tap';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { joinToken } from '../../../host-agent/support/enrolment.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.test('a killed agent adopts running containers when it starts again', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const image = await script('steady', steady);
  const first = agent();
  const declared = controlPlane.desireAll(Array.from({ length: 4 }, (_, index) => ({ ...image, tenant: `t${index}` })));
  const ids = declared.map(({ id }) => id);
  const allRun = () =>
    Promise.all(ids.map((id) => controlPlane.reported(id, ({ observation }) => observation.status === 'running')));
  await allRun();
  const starts = async () => (await engine.containers()).map(({ Id, State }) => `${Id} ${State.StartedAt}`).sort();
  const before = await starts();

  await first.kill9();
  const second = agent();
  await second.logged('session_started', ({ session }) => session === 2);
  const sessions = controlPlane.hellos().length;
  await until('the inventory in the new session', () => controlPlane.reports().length > 4 || undefined);
  t.same(await starts(), before, 'the same containers, none was restarted');
  t.equal(sessions, 2);

  await t.test('a container that crashed meanwhile restarts once', async (t) => {
    await second.kill9();
    const [victim] = ids;
    if (victim === undefined) throw new Error('no container');
    const { Id } = await engine.only(victim);
    await engine.call('POST', `/containers/${Id}/kill`);
    const third = agent();
    await until('running again', async () => (await engine.only(victim)).State.Running || undefined);
    t.equal((await engine.only(victim)).Id, Id);
    await third.logged('session_started', ({ session }) => session === 3);
    await controlPlane.reported(
      victim,
      ({ observation }) => observation.status === 'running' && observation.restart_count === 1,
    );
    t.equal(await third.stop(), 0);
    t.equal((await engine.only(victim)).State.Running, true, 'SIGTERM to the agent stops no container');
  });

  await t.test('without a control plane, everything comes back from disk after a reboot', async (t) => {
    controlPlane.goAway();
    for (const { Id } of await engine.containers()) await engine.call('POST', `/containers/${Id}/kill`);
    agent({ LONGSHORE_JOIN_TOKEN: '' });
    await until(
      'all running',
      async () => (await engine.containers()).every(({ State }) => State.Running) || undefined,
    );
    t.equal((await engine.containers()).length, 4);
  });
});

t.test('an agent killed again and again starts every container once', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const image = await script('steady', steady);
  const declared = controlPlane.desireAll(Array.from({ length: 6 }, (_, index) => ({ ...image, tenant: `t${index}` })));
  const ids = declared.map(({ id }) => id);
  // Each kill comes at another point, from before the first call to the middle of the starts.
  for (const made of [0, 1, 3, 5, 6]) {
    const process = agent();
    await until(
      () => `${made} containers made`,
      async () => (await engine.containers()).length >= made || undefined,
    );
    await process.kill9();
  }
  agent();
  await Promise.all(ids.map((id) => controlPlane.reported(id, ({ observation }) => observation.status === 'running')));
  const containers = await engine.containers();
  t.equal(containers.length, 6);
  t.equal(new Set(containers.map(({ Name }) => Name)).size, 6);
  t.ok(containers.every(({ State }) => State.Running));
  controlPlane.desireAll(ids.map((id) => ({ id, desired: 'removed' })));
  await Promise.all(ids.map((id) => controlPlane.reported(id, ({ gone }) => gone)));
  t.same(await engine.containers(), []);
});

t.test('enrolment', async (t) => {
  const { controlPlane, agent, stateDir } = await startRig(t);

  await t.test('a refused token → one error line, exit code 1', async (t) => {
    const process = agent({ LONGSHORE_JOIN_TOKEN: joinToken.replace('xxx', 'yyy') });
    t.equal(await process.exited(), 1);
    const errors = process.lines.filter(({ level }) => level === 'error');
    t.match(errors, [{ event: 'configuration_invalid', fault: /refused the join token/ }]);
    t.equal(errors.length, 1);
    t.notMatch(JSON.stringify(process.lines), /yyy/, 'the token is not logged');
  });

  await t.test('no token → an error that names the missing setting', async (t) => {
    const process = agent({ LONGSHORE_JOIN_TOKEN: '' });
    t.equal(await process.exited(), 1);
    t.match(process.lines, [{}, { event: 'configuration_invalid', fault: /LONGSHORE_JOIN_TOKEN/ }]);
  });

  await t.test('a gateway that is away → the agent waits for it', async (t) => {
    const process = agent({ LONGSHORE_URL: 'http://127.0.0.1:1' });
    await process.logged('enrolment_delayed');
    await process.logged(
      'enrolment_delayed',
      (line) => line !== process.lines.find(({ event }) => event === line.event),
    );
    t.equal(process.exitCode(), undefined);
    t.equal(await process.stop(), 0);
  });

  await t.test('once enrolled, the agent needs no token, and its files are private', async (t) => {
    const process = agent();
    await process.logged('session_started');
    await process.stop();
    const again = agent({ LONGSHORE_JOIN_TOKEN: '', LONGSHORE_URL: 'http://127.0.0.1:1' });
    await again.logged('session_started', ({ session }) => session === 2);
    t.equal(statSync(stateDir).mode & 0o777, 0o700);
    for (const name of readdirSync(stateDir)) {
      const { mode } = statSync(join(stateDir, name));
      t.equal(mode & 0o077, 0, `${name} is private`);
    }

    const rival = agent();
    t.equal(await rival.exited(), 1, 'a second agent on the same folder refuses to run');
    t.match(rival.lines, [{ event: 'configuration_invalid', fault: /another agent runs/ }]);
    t.equal(again.exitCode(), undefined);
  });
  t.equal(controlPlane.hellos().length, 2);
});
