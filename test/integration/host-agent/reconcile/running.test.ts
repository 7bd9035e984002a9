import t from 'tap';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.test('a container runs as declared, is reported, stops, starts again and goes', async (t) => {
  const { controlPlane, engine, agent, script, stateDir } = await startRig(t);
  const secretsDir = join(stateDir, '../secrets');
  mkdirSync(secretsDir);
  writeFileSync(join(secretsDir, 'db'), 'hunter2\n');
  const process = agent({ SECRETS_DIR: secretsDir });
  const { id } = controlPlane.desire({
    ...(await script('serving', `httpd -p 8080 -h /etc/app; ${steady}`)),
    ports: [8080, '9090/udp'],
    env: { GREETING: 'ahoy' },
    cpu_millis: 250,
    secret_refs: [{ env: 'PASSWORD', secret: 'db' }],
    config_files: [{ path: '/etc/app/page.html', content: 'from a config file', mode: 0o644 }],
  });

  const up = await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  const container = await engine.only(id);

  t.test('it has its limits, its environment and no restart policy', (t) => {
    t.match(container.HostConfig, {
      NanoCpus: 250_000_000,
      Memory: 64 * 1024 * 1024,
      MemorySwap: 64 * 1024 * 1024,
      RestartPolicy: { Name: 'no' },
      SecurityOpt: ['no-new-privileges'],
    });
    t.ok(container.Config.Env.includes('GREETING=ahoy'));
    t.ok(container.Config.Env.includes('PASSWORD=hunter2'));
    t.equal(container.Name, `/longshore-h1-${id}`);
    t.end();
  });

  t.test('it listens on the configured address and serves its config file', async (t) => {
    t.match(up.observation.addresses, [
      { port: '8080/tcp', address: /^127\.0\.0\.1:\d+$/ },
      { port: '9090/udp', address: /^127\.0\.0\.1:\d+$/ },
    ]);
    const page = await fetch(`http://${up.observation.addresses[0]?.address}/page.html`);
    t.equal(await page.text(), 'from a config file');
  });

  t.test('its statuses were reported in order', (t) => {
    const statuses = controlPlane.statuses(id);
    const order = ['pending', 'pulling', 'starting', 'running'];
    t.same(
      statuses,
      order.filter((status) => statuses.includes(status)),
    );
    t.end();
  });

  await t.test('a stop sends the signal and keeps the container', async (t) => {
    controlPlane.desire({ id, desired: 'stopped' });
    const item = await controlPlane.reported(id, ({ observation }) => observation.status === 'stopped');
    t.match(item.observation, { exit_code: 0, addresses: [], started_at: null });
    t.equal((await engine.only(id)).Id, container.Id);
  });

  await t.test('a start runs the same container again', async (t) => {
    const { generation } = controlPlane.desire({ id, desired: 'running' });
    const again = (item: { generation: number; observation: { status: string } }) =>
      item.generation === generation && item.observation.status === 'running';
    const item = await controlPlane.reported(id, again);
    t.equal(item.observation.restart_count, 0, 'by request, not after a crash');
    t.equal((await engine.only(id)).Id, container.Id);
  });

  await t.test('another placement on this host makes another container', async () => {
    const { generation } = controlPlane.desire({ id, placement: 2 });
    await controlPlane.reported(id, (item) => item.generation === generation && item.observation.status === 'running');
    await until('another container', async () => (await engine.only(id)).Id !== container.Id || undefined);
  });

  await t.test('a removal is reported when the container is gone', async (t) => {
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    t.same(await engine.containers(id), []);
  });

  t.match(controlPlane.hellos(), [{ capacity: { containers: 500 } }]);
  await until('a beat', () => controlPlane.beats().find(({ engine }) => engine.startsWith('docker ')));
  t.notMatch(JSON.stringify(process.lines), 'hunter2', 'no secret is logged');
  t.ok(process.lines.some(({ event, requestId }) => event === 'doorbell_received' && requestId === 'test-request'));
  t.same(controlPlane.faults(), []);
  t.equal(await process.stop(), 0);
});

t.test('containers of two tenants on one host do not reach each other', async (t) => {
  const { controlPlane, engine, agent, script } = await startRig(t);
  agent();
  const server = controlPlane.desire({ ...(await script('serving', `httpd -p 8080 -h /etc/app; ${steady}`)) });
  await controlPlane.reported(server.id, ({ observation }) => observation.status === 'running');
  const { NetworkSettings } = await engine.networked(server.id);
  const address = Object.values(NetworkSettings.Networks)[0]?.IPAddress ?? '';
  t.match(address, /^\d+\./);
  const reach = 'nc -w 3 "$TARGET" 8080 </dev/null && exit 7; exit 8';
  const client = controlPlane.desire({
    ...(await script('reaching', reach)),
    tenant: 'other',
    env: { TARGET: address },
  });
  const item = await controlPlane.reported(client.id, ({ observation }) => observation.exit_code !== null);
  t.equal(item.observation.exit_code, 8);
});

t.test('a steady state is quiet', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  agent();
  const { id } = controlPlane.desire(await script('steady', steady));
  await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
  const before = controlPlane.reports().length;
  const beats = controlPlane.beats().length;
  await until('many beats', () => controlPlane.beats().length > beats + 15 || undefined);
  t.equal(controlPlane.reports().length, before, 'unchanged observations are not sent again');
});
