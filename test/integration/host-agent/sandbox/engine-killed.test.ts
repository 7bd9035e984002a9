/** An engine that is killed, beside an agent with sandboxes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startPrivateEngine } from '../../../../dev/servers/engine.ts';
import { startRig } from '../../../host-agent/support/rig.ts';
import { skipWithoutPrivateEngine } from '../../../support/servers.ts';
import { until } from '../../../support/until.ts';
import { isUp, sandboxes, sandboxOf, served, server, startServed } from './served.ts';

t.jobs = 1;
const skip = skipWithoutPrivateEngine;

async function startEngine(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-engine-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const dockerd = await startPrivateEngine({ dir, firewall: false, throwaway: true });
  t.teardown(() => dockerd.stop());
  return dockerd;
}

t.test('killed and started: the container and its port are the same', { skip }, async (t) => {
  const dockerd = await startEngine(t);
  const { rig, id, address } = await startServed(t, dockerd.host);
  const before = await rig.engine.only(id);
  await dockerd.kill9();
  await rig.controlPlane.reported(id, ({ observation }) => observation.reason === 'engine_unavailable');
  await dockerd.start();
  await rig.controlPlane.reported(id, (item) => isUp(item) && item.observation.reason === null);
  t.equal(await served(rig, id), address);
  t.equal((await rig.engine.only(id)).Id, before.Id, 'it is the same container');
});

t.test('killed with its agent, as at a reboot', { skip }, async (t) => {
  const dockerd = await startEngine(t);
  const { rig, image, process, id, address } = await startServed(t, dockerd.host);
  const { controlPlane, engine } = rig;
  const { id: stopped } = controlPlane.desire({ ...image, tenant: 'other', ports: [8080] });
  const stoppedAddress = await served(rig, stopped);
  controlPlane.desire({ id: stopped, desired: 'stopped' });
  await controlPlane.reported(stopped, ({ observation }) => observation.status === 'stopped');
  const before = [await engine.only(id), await engine.only(stopped)].map(({ Id }) => Id);
  await process.kill9();
  await dockerd.kill9();
  await dockerd.start();
  const next = rig.agent({ LONGSHORE_SANDBOX: 'on', LONGSHORE_SANDBOX_POOL: '2' });
  await next.logged('session_started', ({ session }) => session === 2);
  await until('a start', async () => (await engine.only(id)).State.Running);
  t.equal(await served(rig, id), address);

  await t.test('one that was stopped has its port, too', async (t) => {
    const { generation } = controlPlane.desire({ id: stopped, desired: 'running' });
    await controlPlane.reported(stopped, (item) => item.generation === generation && isUp(item));
    t.equal(await served(rig, stopped), stoppedAddress);
  });

  t.same([(await engine.only(id)).Id, (await engine.only(stopped)).Id], before, 'they are the same containers');
  await until('nothing of the killed agent is left', async () => {
    const all = await sandboxes(rig);
    return all.length === 4 && all.every(({ state }) => state === 'running');
  });
});

t.test('killed while a container starts in its new sandbox', { skip }, async (t) => {
  const dockerd = await startEngine(t);
  const rig = await startRig(t, dockerd.host);
  const { controlPlane, engine } = rig;
  const image = await rig.script('server', server);
  const agent = rig.agent({ LONGSHORE_SANDBOX: 'on', LONGSHORE_SANDBOX_POOL: '0' });
  await agent.logged('session_started');
  const { id } = controlPlane.desire({ ...image, ports: [8080] });
  await until('a sandbox that runs', async () => (await sandboxes(rig)).some(({ state }) => state === 'running'));
  await dockerd.kill9();
  await controlPlane.reported(id, ({ observation }) => observation.reason === 'engine_unavailable');
  await dockerd.start();
  await controlPlane.reported(id, (item) => isUp(item) && item.observation.reason === null);
  await served(rig, id);
  const sandbox = await sandboxOf(rig, id);
  await until('no other sandbox', async () => (await sandboxes(rig)).every((one) => one.id === sandbox));
  t.equal((await engine.containers()).length, 1);
});
