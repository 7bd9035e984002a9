import t from 'tap';
import { startRig, steady } from './support/rig.ts';

t.test('a desired container runs, is reported, and goes', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  const image = await script('steady', steady);
  const process = agent();
  const { id } = controlPlane.desire({ ...image, ports: [8080], env: { GREETING: 'ahoy' }, cpu_millis: 250 });
  const item = await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  t.match(item.observation.addresses, [{ port: '8080/tcp', address: /^127\.0\.0\.1:\d+$/ }]);
  const container = await engine.only(id);
  t.match(container.HostConfig, { NanoCpus: 250_000_000, Memory: 64 * 1024 * 1024, MemorySwap: 64 * 1024 * 1024 });
  controlPlane.desire({ id, desired: 'removed' });
  await controlPlane.reported(id, ({ gone }) => gone);
  t.same(await engine.containers(id), []);
  t.same(controlPlane.faults(), []);
  t.equal(await process.stop(), 0);
});
