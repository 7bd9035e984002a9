import t from 'tap';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPrivateEngine } from '../../../../dev/servers/engine.ts';
import { skipWithoutPrivateEngine } from '../../../support/servers.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.test('an engine that hangs, dies and comes back', { skip: skipWithoutPrivateEngine }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-engine-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const dockerd = await startPrivateEngine({ dir, firewall: false, throwaway: true });
  t.teardown(() => dockerd.stop());
  const { controlPlane, engine, agent, script } = await startRig(t, dockerd.host);
  const image = await script('steady', steady);
  const process = agent();
  const isRunning = ({ observation }: { observation: { status: string; reason: string | null } }) =>
    observation.status === 'running' && observation.reason === null;
  const { id } = controlPlane.desire(image);
  await controlPlane.reported(id, isRunning);
  const first = await engine.only(id);

  await t.test('while it hangs, reports say so, the last status stands, and nothing runs', async (t) => {
    dockerd.pause();
    const item = await controlPlane.reported(id, ({ observation }) => observation.reason === 'engine_unavailable');
    t.equal(item.observation.status, 'running');
    t.match(item.observation.message, /has not answered since/);
    await until('a beat that says so', () => controlPlane.beats().at(-1)?.engine === 'unavailable' || undefined);
    t.match(await process.metrics(), /longshore_agent_engine_up 0/);
  });

  await t.test('changes made meanwhile happen once, when it answers', async (t) => {
    const added = controlPlane.desire({ ...image, tenant: 'other' });
    await controlPlane.reported(added.id, ({ observation }) => observation.reason === 'engine_unavailable');
    dockerd.resume();
    await controlPlane.reported(added.id, isRunning);
    await controlPlane.reported(id, isRunning);
    t.equal((await engine.containers(added.id)).length, 1);
    t.same((await engine.only(id)).State, first.State, 'running containers kept running');
  });

  await t.test('when it hangs in the middle of calls, nothing runs twice', async (t) => {
    const added = controlPlane.desireAll(['x', 'y', 'z'].map((tenant) => ({ ...image, tenant })));
    await process.logged(
      'step_taken',
      ({ container, step }) => step === 'create' && added.some((each) => each.id === container),
    );
    dockerd.pause();
    await controlPlane.reported(id, ({ observation }) => observation.reason === 'engine_unavailable');
    dockerd.resume();
    for (const { id: each } of added) {
      await controlPlane.reported(each, isRunning);
      t.equal((await engine.containers(each)).length, 1);
    }
  });

  await t.test('after a kill and a restart, the agent finds its containers as they are', async (t) => {
    await dockerd.kill9();
    await controlPlane.reported(id, ({ observation }) => observation.reason === 'engine_unavailable');
    await dockerd.start();
    await controlPlane.reported(id, isRunning);
    const all = await engine.containers();
    t.equal(all.length, 5);
    await until(
      'all running',
      async () => (await engine.containers()).every(({ State }) => State.Running) || undefined,
    );
    t.equal(new Set(all.map(({ Name }) => Name)).size, 5);
  });

  await t.test('an agent that starts before its engine waits for it', async (t) => {
    await process.stop();
    await dockerd.kill9();
    const second = agent();
    await second.logged('engine_away');
    t.equal(second.exitCode(), undefined);
    await dockerd.start();
    await second.logged('engine_up');
    await controlPlane.reported(id, isRunning);
    t.same(controlPlane.faults(), []);
    await second.stop();
  });
});
