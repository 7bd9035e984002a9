/** Containers in sandboxes, on a real engine. */
import t from 'tap';
import { until } from '../../../support/until.ts';
import { answer, isUp, sandboxes, sandboxOf, served, startServed } from './served.ts';

t.test('published ports stay while the container is on the host', async (t) => {
  const { rig, process, id, address } = await startServed(t);
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
    const next = rig.agent({ LONGSHORE_SANDBOX: 'on', LONGSHORE_SANDBOX_POOL: '2' });
    await next.logged('session_started', ({ session }) => session === 2);
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
  const { rig, id, address } = await startServed(t);
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

t.test('held, a container keeps its sandbox', async (t) => {
  const { rig, process, id, address } = await startServed(t);
  const { controlPlane } = rig;
  const sandbox = await sandboxOf(rig, id);
  controlPlane.lose(id);
  await until('one held', () => controlPlane.beats().at(-1)?.orphans_held === 1);

  await t.test('while the engine is listed again and again', async (t) => {
    const beats = controlPlane.beats().length;
    // Each two seconds, every seventh beat.
    await until('five lists', () => controlPlane.beats().length > beats + 35);
    t.equal(await answer(address), 'here\n');
  });

  await t.test('also under the next agent', async (t) => {
    await process.kill9();
    rig.agent({ LONGSHORE_SANDBOX: 'on', LONGSHORE_SANDBOX_POOL: '2' });
    await until(
      'it holds',
      () => controlPlane.hellos().length === 2 && controlPlane.beats().at(-1)?.orphans_held === 1,
    );
    await until('what the killed agent had ready is gone, and its own is there', async () => {
      const all = await sandboxes(rig);
      return all.length === 3 && all.every(({ state }) => state === 'running');
    });
    t.equal(await sandboxOf(rig, id), sandbox);
    t.equal(await answer(address), 'here\n');
  });

  await t.test('until an operator approves of its removal', async () => {
    controlPlane.setOrphanApprovals(1);
    await until('its removal', async () => (await sandboxes(rig)).every((one) => one.id !== sandbox));
  });
});

t.test('many starts at once, with an empty pool', async (t) => {
  const { rig, image } = await startServed(t);
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
  const { rig, image, process, id, address } = await startServed(t);
  await process.stop();
  const next = rig.agent({ LONGSHORE_SANDBOX: 'off' });
  await next.logged('session_started', ({ session }) => session === 2);
  t.equal(await served(rig, id), address, 'it stays in its sandbox');
  const { id: second } = rig.controlPlane.desire({ ...image, tenant: 'other', ports: [8080] });
  await served(rig, second);
  t.match(await rig.engine.only(second), { HostConfig: { NetworkMode: /^longshore-/ } });
});
