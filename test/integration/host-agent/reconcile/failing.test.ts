import t from 'tap';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startRig, steady } from '../../../host-agent/support/rig.ts';

t.test('a container that cannot run says why', async (t) => {
  const { controlPlane, engine, agent, script, registry } = await startRig(t);
  const crashing = await script('crashing', 'echo about to crash; exit 3');
  const hungry = await script('hungry', 'head -c 200000000 /dev/zero | tail');
  const healthy = await script('steady', steady);
  const process = agent({ CAPACITY_MEM_BYTES: String(1024 * 1024 * 1024) });

  t.test('crash → restarted with back-off, then a crash loop with its exit code', async (t) => {
    const { id } = controlPlane.desire(crashing);
    const item = await controlPlane.reported(id, ({ observation }) => observation.reason === 'crash_loop');
    t.match(item.observation, { status: 'backoff', exit_code: 3, message: /exited with code 3, \d+ times in a row/ });
    t.match(item.observation.next_retry_at, /Z$/);
    t.ok(item.observation.restart_count >= 2);
    t.ok(controlPlane.reports(id).some(({ observation }) => observation.reason === 'exited'));
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
  });

  t.test('more memory than its limit → oom_killed', async (t) => {
    const { id } = controlPlane.desire({ ...hungry, mem_bytes: 16 * 1024 * 1024 });
    // At its first end: the engine itself may hear of the exit before it hears why.
    const item = await controlPlane.reported(id, ({ observation }) => observation.exit_code === 137);
    t.equal(item.observation.reason, 'oom_killed');
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
  });

  for (const [name, changes, expected] of [
    [
      'no such tag',
      { registry, repository: 'longshore/demo', tag: 'nosuch' },
      { status: 'failed', reason: 'image_not_found' },
    ],
    [
      'no such repository',
      { registry, repository: 'no/such', tag: '1' },
      { status: 'failed', reason: 'image_not_found' },
    ],
    ['no repository', { repository: null }, { status: 'failed', reason: 'image_missing' }],
    [
      'an invalid digest',
      { registry, repository: 'longshore/demo', digest: 'sha256:1' },
      { status: 'failed', reason: 'image_invalid' },
    ],
    [
      'never pulled, and not on this host',
      { registry, repository: 'no/where', pull_policy: 'never' },
      { status: 'backoff', reason: 'image_not_found' },
    ],
    [
      'a registry that does not answer',
      { registry: '127.0.0.1:1', repository: 'a/b' },
      { status: 'backoff', reason: 'image_pull', message: /cannot be reached/ },
    ],
    [
      'a secret that is not on this host',
      { ...healthy, secret_refs: [{ env: 'A', secret: 'nosuch' }] },
      { status: 'backoff', reason: 'secret_missing', message: /nosuch/ },
    ],
    [
      'a registry on no list',
      { registry: '10.255.255.1:5000', repository: 'a/b' },
      { status: 'failed', reason: 'registry_not_allowed' },
    ],
    ['no room on this host', { ...healthy, mem_bytes: 2 * 1024 ** 3 }, { status: 'failed', reason: 'rejected' }],
    [
      'a config file where there is none to be',
      { ...healthy, config_files: [{ path: '/bin/busybox/x', content: '' }] },
      { status: 'backoff', reason: 'start_failed' },
    ],
  ] as const) {
    t.test(`${name} → ${expected.status}, ${expected.reason}`, async (t) => {
      const { id } = controlPlane.desire(changes as Parameters<typeof controlPlane.desire>[0]);
      const item = await controlPlane.reported(id, ({ observation }) => observation.status === expected.status);
      t.match(item.observation, expected);
      t.equal(item.gone, expected.reason === 'rejected');
      if (expected.status === 'failed')
        t.equal((await engine.containers(id)).filter(({ State }) => State.Running).length, 0);
      controlPlane.desire({ id, desired: 'removed' });
      await controlPlane.reported(id, ({ gone, generation }) => gone && generation > 1);
    });
  }

  t.test('a registry that refuses → failed, image_auth; a start tries again at once', async (t) => {
    let asked = 0;
    const refusing = createServer((request, response) => {
      if (request.url?.includes('/manifests/') === true) asked += 1;
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}');
    });
    await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve));
    t.teardown(() => refusing.close());
    const { port } = refusing.address() as AddressInfo;
    const { id } = controlPlane.desire({ registry: `127.0.0.1:${port}`, repository: 'a/b', tag: '1' });
    const item = await controlPlane.reported(id, ({ observation }) => observation.status === 'failed');
    t.match(item.observation, { reason: 'image_auth', message: 'the registry refuses access to this image' });
    const { generation } = controlPlane.desire({ id, ...healthy });
    await controlPlane.reported(id, (each) => each.generation === generation && each.observation.status === 'running');
    t.comment(`${asked} manifests asked for`);
  });

  t.test('a refused start → start_failed', async (t) => {
    const { id } = controlPlane.desire(await script('nothing', steady));
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
    const { generation } = controlPlane.desire({ id, config_files: [{ path: '/bin/sh', content: 'no program' }] });
    const check = (each: { generation: number; observation: { status: string } }) =>
      each.generation === generation && each.observation.status === 'backoff';
    t.match((await controlPlane.reported(id, check)).observation, { reason: /start_failed|exited/ });
  });

  t.test('ignores SIGTERM → killed after the grace', async (t) => {
    const { id } = controlPlane.desire(await script('deaf', `trap '' TERM; while :; do sleep 1; done`));
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
    controlPlane.desire({ id, desired: 'stopped' });
    const item = await controlPlane.reported(id, ({ observation }) => observation.status === 'stopped');
    t.equal(item.observation.exit_code, 137);
    t.ok(controlPlane.statuses(id).includes('stopping'));
  });

  t.test('deleted while pulling → the pull ends', async (t) => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const { id } = controlPlane.desire({ registry: `127.0.0.1:${port}`, repository: 'a/b', tag: '1' });
    await controlPlane.reported(id, ({ observation }) => observation.status === 'pulling');
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
  });

  t.test('the agent followed the protocol', async (t) => {
    t.same(controlPlane.faults(), []);
    t.equal(await process.stop(), 0);
  });
});
