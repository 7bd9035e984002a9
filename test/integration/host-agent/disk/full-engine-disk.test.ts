/**
 * The disks of the engine and of the agent are full, both at once: the agent keeps its session and
 * its heartbeats, what runs goes on, and what cannot start says why.
 */
import t from 'tap';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { startPrivateEngine } from '../../../../dev/servers/engine.ts';
import { fill, mountSmall, skipWithoutMounts } from '../../../host-agent/support/disk.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';

t.test('full disks of engine and agent', { skip: skipWithoutMounts }, async (t) => {
  const dir = temporaryFolder(t);
  mountSmall(t, dir, 64);
  const server = await startPrivateEngine({ dir, firewall: true, throwaway: true });
  t.teardown(() => server.stop());
  const { controlPlane, engine, stateDir, agent, script } = await startRig(t, server.host);
  mountSmall(t, stateDir, 2);
  const env = { DISK_INTERVAL: '200ms', IMAGES_HIGH_PERCENT: 'off' };
  let process = agent(env);
  const kept = controlPlane.desire(await script('kept', steady));
  await controlPlane.reported(kept.id, ({ observation }) => observation.status === 'running');
  const before = await engine.only(kept.id);

  const ballast = [fill(join(dir, 'data')), fill(stateDir)];
  const faults = () => controlPlane.beats().at(-1)?.faults ?? [];
  const beatsWith = (...kinds: string[]) =>
    until(
      () => `beats with ${kinds.join(', ')}: ${JSON.stringify(faults())}`,
      () => kinds.every((wanted) => faults().some(({ kind }) => kind === wanted)),
    );
  const beatsGoOn = async (): Promise<void> => {
    const count = controlPlane.beats().length;
    await until('more beats', () => controlPlane.beats().length > count + 5);
  };

  await t.test('heartbeats name the fault, and what runs goes on', async (t) => {
    await beatsWith('disk_pressure');
    await beatsGoOn();
    t.equal(process.lines.filter(({ event }) => event === 'session_started').length, 1, 'in the same session');
    t.same((await engine.only(kept.id)).State, before.State);
  });

  const late = controlPlane.desire({ tenant: 'other', ...(await script('late', `${steady} # late`)) });
  await t.test('a container that cannot start there says why', async (t) => {
    const { observation } = await controlPlane.reported(late.id, (item) => item.observation.reason === 'host_fault');
    t.match(observation, { status: 'backoff', message: /the disk of this host is full/ });
    await beatsWith('disk_pressure', 'state_unwritable');
  });

  await t.test('an agent that is killed gets a session again', async (t) => {
    await process.kill9();
    const sessions = controlPlane.hellos().length;
    process = agent(env);
    await process.logged('session_started');
    t.equal(controlPlane.hellos().length, sessions + 1);
    await beatsGoOn();
    t.same((await engine.only(kept.id)).State, before.State);
  });

  await t.test('with room again, everything runs', async (t) => {
    for (const path of ballast) rmSync(path);
    await controlPlane.reported(late.id, ({ observation }) => observation.status === 'running');
    await until('beats without a fault', () => faults().length === 0);
    t.same((await engine.only(kept.id)).State, before.State);
    t.same(controlPlane.faults(), []);
  });
});
