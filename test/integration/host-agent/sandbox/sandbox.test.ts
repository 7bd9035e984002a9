/** Containers in sandboxes, on a real engine. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startPrivateEngine } from '../../../../dev/servers/engine.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { startRig, type Rig } from '../../../host-agent/support/rig.ts';
import { skipWithoutPrivateEngine } from '../../../support/servers.ts';
import { until } from '../../../support/until.ts';

/** Answers on port 8080 until SIGTERM. */
const server = `mkdir -p /tmp/www; echo here > /tmp/www/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp/www & wait $!`;

const sandboxOf = async ({ engine }: Rig, id: ContainerId): Promise<string> =>
  String((await engine.only(id)).HostConfig['NetworkMode']).replace(/^container:/, '');

const isUp = ({ observation }: { observation: { status: string } }) => observation.status === 'running';

/** Waits until the container runs and answers. @returns the address that is reported */
async function served({ controlPlane }: Rig, id: ContainerId, check: (restarts: number) => boolean = () => true) {
  const item = await controlPlane.reported(
    id,
    (item) => isUp(item) && item.observation.addresses.length === 1 && check(item.observation.restart_count),
  );
  const address = item.observation.addresses[0]?.address ?? '';
  await until('an answer', async () => (await (await fetch(`http://${address}/`)).text()) === 'here\n');
  return address;
}

/** The sandboxes that the engine has. */
const sandboxes = async ({ engine, controlPlane }: Rig) => {
  const label = [`longshore.cluster=${controlPlane.cluster}`, 'longshore.sandbox'];
  const filters = encodeURIComponent(JSON.stringify({ label }));
  const { text } = await engine.call('GET', `/containers/json?all=1&filters=${filters}`);
  return (JSON.parse(text) as { Id: string; State: string }[]).map(({ Id, State }) => ({ id: Id, state: State }));
};

async function start(t: Test, dockerHost?: string) {
  const rig = await startRig(t, dockerHost);
  const image = await rig.script('server', server);
  const process = rig.agent({ SANDBOX: 'on', SANDBOX_POOL: '2' });
  const { id } = rig.controlPlane.desire({ ...image, ports: [8080] });
  return { rig, image, process, id, address: await served(rig, id) };
}

t.test('published ports stay while the container is on the host', async (t) => {
  const { rig, process, id, address } = await start(t);
  const { controlPlane, engine } = rig;
  const sandbox = await sandboxOf(rig, id);

  await t.test('over a crash', async (t) => {
    await engine.call('POST', `/containers/${(await engine.only(id)).Id}/kill`);
    t.equal(await served(rig, id, (restarts) => restarts === 1), address);
    t.equal(await sandboxOf(rig, id), sandbox);
  });

  await t.test('over a stop and a start', async (t) => {
    controlPlane.desire({ id, desired: 'stopped' });
    await controlPlane.reported(id, ({ observation }) => observation.status === 'stopped');
    const { generation } = controlPlane.desire({ id, desired: 'running' });
    await controlPlane.reported(id, (item) => item.generation === generation && isUp(item));
    t.equal(await served(rig, id), address);
  });

  await t.test('over a change that makes the container again', async (t) => {
    const before = (await engine.only(id)).Id;
    const { generation } = controlPlane.desire({ id, env: { A: '1' } });
    await controlPlane.reported(id, (item) => item.generation === generation && isUp(item));
    t.not((await engine.only(id)).Id, before);
    t.equal(await served(rig, id), address);
  });

  await t.test('over a kill of the agent', async (t) => {
    await process.kill9();
    const next = rig.agent({ SANDBOX: 'on', SANDBOX_POOL: '2' });
    await next.logged('session', ({ session }) => session === 2);
    t.equal(await sandboxOf(rig, id), sandbox);
    t.equal(await served(rig, id), address);
    await until('what the killed agent had ready is gone, and its own is there', async () => {
      const all = await sandboxes(rig);
      return all.length === 3 && all.every(({ state }) => state === 'running');
    });
  });

  await t.test('and its sandbox goes with it', async (t) => {
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    controlPlane.drop(id);
    await until('its removal', async () => (await sandboxes(rig)).every((one) => one.id !== sandbox));
    t.same(await engine.containers(), []);
  });
});

t.test('a sandbox in trouble', async (t) => {
  const { rig, id, address } = await start(t);
  const { engine, controlPlane } = rig;

  await t.test('killed: both start again, with the same port', async (t) => {
    const before = await engine.only(id);
    await engine.call('POST', `/containers/${await sandboxOf(rig, id)}/kill`);
    await until('a start', async () => {
      const { State } = await engine.only(id);
      return State.Running && State.StartedAt !== before.State.StartedAt;
    });
    t.equal(await served(rig, id), address);
    t.equal((await engine.only(id)).Id, before.Id, 'it keeps what it wrote');
  });

  await t.test('removed by hand: both are made again', async () => {
    const sandbox = await sandboxOf(rig, id);
    await engine.call('DELETE', `/containers/${sandbox}?force=1`);
    await until('another sandbox', async () => (await sandboxOf(rig, id)) !== sandbox);
    await served(rig, id);
  });

  await t.test('a prune of networks takes nothing away', async (t) => {
    const filters = encodeURIComponent(JSON.stringify({ label: [`longshore.cluster=${controlPlane.cluster}`] }));
    const { text } = await engine.call('POST', `/networks/prune?filters=${filters}`);
    t.notMatch(text, 'longshore-');
    await served(rig, id);
  });
});

t.test('many starts at once, with an empty pool', async (t) => {
  const { rig, image } = await start(t);
  const { controlPlane, engine } = rig;
  const declared = controlPlane.desireAll(
    Array.from({ length: 20 }, (_, index) => ({
      ...image,
      tenant: `t${index}`,
      ports: index % 2 === 0 ? [8080] : [],
      cpu_millis: 50,
    })),
  );
  for (const { id } of declared) await controlPlane.reported(id, isUp);
  const all = await engine.containers();
  t.equal(new Set(all.map(({ HostConfig }) => HostConfig['NetworkMode'])).size, 21, 'each has a sandbox of its own');
  const addresses = await Promise.all(declared.filter((_, index) => index % 2 === 0).map(({ id }) => served(rig, id)));
  t.equal(new Set(addresses).size, 10);
});

t.test('without sandboxes, containers of both kinds are served', async (t) => {
  const { rig, image, process, id, address } = await start(t);
  await process.stop();
  const next = rig.agent({ SANDBOX: 'off' });
  await next.logged('session', ({ session }) => session === 2);
  t.equal(await served(rig, id), address, 'it stays in its sandbox');
  const { id: second } = rig.controlPlane.desire({ ...image, tenant: 'other', ports: [8080] });
  await served(rig, second);
  t.match(await rig.engine.only(second), { HostConfig: { NetworkMode: /^longshore-/ } });
});

t.test('an engine that is killed and started', { skip: skipWithoutPrivateEngine }, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-engine-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const dockerd = await startPrivateEngine({ dir, firewall: false, throwaway: true });
  t.teardown(() => dockerd.stop());
  const { rig, id, address } = await start(t, dockerd.host);
  const before = await rig.engine.only(id);
  await dockerd.kill9();
  await rig.controlPlane.reported(id, ({ observation }) => observation.reason === 'engine_unavailable');
  await dockerd.start();
  await rig.controlPlane.reported(id, (item) => isUp(item) && item.observation.reason === null);
  t.equal(await served(rig, id), address);
  t.equal((await rig.engine.only(id)).Id, before.Id, 'it is the same container');
});
