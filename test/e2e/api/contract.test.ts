/** Every rule of the compute API, on real servers and programs. */
import fc from 'fast-check';
import t from 'tap';
import type { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import type { Event } from '../../../schemas/api/event.ts';
import type { LogEntry } from '../../../schemas/api/log.ts';
import { routes, type Route } from '../../../schemas/routes.ts';
import { pushLayers, slowRegistry } from '../../host-agent/support/layers.ts';
import { bodies } from '../../support/http/bodies.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { sharedStack } from '../support/stack.ts';

const containerFields = [
  'id',
  'tenant_id',
  'name',
  'host_key',
  'registry',
  'repository',
  'tag',
  'digest',
  'pull_policy',
  'ports',
  'env',
  'cpu_limit',
  'mem_limit',
  'status',
  'inserted_at',
  'updated_at',
];

interface FoundPage {
  readonly data: readonly { readonly container: Container }[];
  readonly next_cursor?: string;
}

const compute = '/api/v2/compute';
const absent = '01890000-0000-7000-8000-000000000000';
const takesBody = (route: Route): boolean => route.body !== undefined;

t.test('compute API', async (t) => {
  const rig = await sharedStack(t);
  const own = rig.tenant('acme');
  const acme = await rig.client(own);
  const operator = await rig.client('ops', 'operator');
  const small = { cpu_limit: '0.1', mem_limit: '16m' };

  t.test('a container that is declared without a start waits for it', async (t) => {
    const body = { name: 'later', ...rig.image, ...small };
    const declared = await acme.call<{ data: Container }>('POST', `${compute}?start=false`, body);
    t.match(declared, { status: 201, body: { data: { status: 'stopped', host_key: hostKey } } });
    const container = declared.body.data;
    t.match((await acme.status(container)).body.data, { desired: 'stopped', status: 'stopped', reason: null });
    t.same(await rig.engine.containers(container.id), []);
    t.equal((await acme.start(container)).status, 200);
    t.equal((await acme.wait(container, 'running')).status, 200);
    t.equal((await acme.remove(container)).status, 202);
    t.equal((await acme.call('POST', `${compute}?start=maybe`, body)).status, 422);
  });

  t.test('a container is created, read, stopped, started and deleted', async (t) => {
    const created = await acme.create({
      name: 'web',
      ...rig.image,
      ...small,
      env: { GREETING: 'hello' },
      ports: [8080],
      status: 'running',
      tenant_id: 'other',
      pull_policy: 'never',
    });
    t.equal(created.status, 201);
    const container = created.body.data;
    t.same(Object.keys(container), containerFields);
    t.match(container, {
      tenant_id: own,
      name: 'web',
      host_key: hostKey,
      ...rig.image,
      digest: null,
      pull_policy: 'if_not_present',
      ports: [8080],
      env: { GREETING: 'hello' },
      ...small,
      status: 'pending',
    });
    t.match(container.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    t.match(container.inserted_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

    const running = await acme.wait(container, 'running');
    t.equal(running.status, 200, running.text);
    t.match(running.body.data, { status: 'running', desired: 'running', restart_count: 0, reason: null });
    const [address] = running.body.data.addresses;
    t.equal(address?.port, '8080/tcp');
    t.match(address?.address, /^127\.0\.0\.1:\d+$/);
    await eventually(
      'the published port reaches the container',
      async () => fetch(`http://${address?.address}/`, { signal: AbortSignal.timeout(5000) }),
      (page) => page.status === 200,
    );

    t.equal((await acme.get(container)).body.data.status, 'running');
    const logs = await eventually(
      'three lines',
      async () => acme.call<{ data: LogEntry[] }>('GET', `${compute}/${container.id}/logs?limit=3`),
      ({ body }) => body.data.length === 3,
    );
    t.same(Object.keys(logs.body.data[0] ?? {}).sort(), ['line', 'seq', 'stream', 'ts']);
    const seqs = logs.body.data.map(({ seq }) => seq);
    t.same(
      seqs,
      [...seqs].sort((a, b) => a - b),
      'oldest first',
    );

    t.equal((await acme.stop(container)).status, 200);
    t.match((await acme.wait(container, 'stopped')).body.data, { status: 'stopped', desired: 'stopped' });
    t.equal((await acme.stop(container)).status, 200, 'stop is idempotent');
    const restarted = await acme.start(container);
    t.equal(restarted.body.data.status, 'pending');
    t.equal((await acme.wait(container, 'running')).status, 200);
    t.equal((await acme.start(container)).status, 200, 'start is idempotent');
    const only = await rig.engine.only(container.id);
    t.equal(only.HostConfig['Memory'], 16 * 1024 ** 2);
    t.equal(only.HostConfig['NanoCpus'], 100_000_000);

    const removing = await acme.remove(container);
    t.equal(removing.status, 202);
    t.equal(removing.body.data.status, 'removing');
    await eventually(
      'the container is deleted',
      async () => acme.get(container),
      ({ status }) => status === 404,
    );
    t.same(await rig.engine.containers(container.id), []);
    t.same((await acme.get(container)).body, { error: 'not_found' });
    const after = await acme.call<{ data: LogEntry[] }>('GET', `${compute}/${container.id}/logs`);
    t.equal(after.status, 200, 'the logs of a deleted container stay readable');
    t.ok(after.body.data.length > 0);
    const events = await eventually(
      'the last event',
      async () => acme.call<{ data: Event[] }>('GET', `${compute}/${container.id}/events`),
      ({ body }) => body.data.at(-1)?.type === 'removed',
    );
    const types = events.body.data.map(({ type }) => type);
    for (const type of ['created', 'placed', 'status', 'stop_requested', 'start_requested', 'delete_requested']) {
      t.ok(types.includes(type as Event['type']), type);
    }
    t.equal(new Set(events.body.data.map(({ id }) => id)).size, events.body.data.length);
    t.equal((await acme.create({ name: 'web', ...small })).status, 201, 'the name is free again');
  });

  t.test('the status shows how far a pull is, and only while it goes on', async (t) => {
    const image = { repository: 'longshore/large', tag: '1' };
    const cmd = ['sh', '-c', 'sleep 600'];
    const { layers } = await pushLayers(rig.image.registry, { ...image, sizes: [256 * 1024], cmd });
    const slow = await slowRegistry(t, rig.image.registry, () => ({ bytes: 16_384, everyMs: 100 }));
    const { body } = await acme.create({ name: 'large', registry: slow.address, ...image, ...small });
    const statusOf = async () => (await acme.status(body.data)).body.data;
    const total = layers.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const { pull, status } = await eventually('bytes of all layers', statusOf, (seen) => seen.pull?.total === total);
    t.equal(status, 'pulling');
    t.equal(pull?.layers, layers.length);
    await eventually('more bytes', statusOf, (seen) => (seen.pull?.bytes ?? 0) > (pull?.bytes ?? 0));
    const running = await acme.wait(body.data, 'running');
    t.equal(running.status, 200, running.text);
    t.notOk('pull' in (await statusOf()));
    t.equal((await acme.remove(body.data)).status, 202);
  });

  t.test('absent and null fields get their defaults', async (t) => {
    const { body } = await acme.create({ name: 'defaults', host_key: null, env: null, ports: null, tag: null });
    t.match(body.data, {
      registry: 'docker.io',
      repository: null,
      tag: 'latest',
      digest: null,
      pull_policy: 'always',
      ports: [],
      env: {},
      cpu_limit: '0.5',
      mem_limit: '256m',
    });
    const failed = await acme.wait(body.data, 'failed');
    t.match(failed.body.data, { status: 'failed', reason: 'image_missing' });
    const logs = await acme.call('GET', `${compute}/${body.data.id}/logs`);
    t.same([logs.status, logs.body], [200, { data: [] }], 'a container that never ran has no log lines');
    t.equal((await acme.stop(body.data)).status, 200);
    t.equal((await acme.wait(body.data, 'stopped')).status, 200, 'a failed container can be stopped');
  });

  t.test('a container whose image cannot be pulled has a reason in its status', async (t) => {
    const absent = await acme.create({ name: 'absent', ...small, ...rig.image, repository: 'longshore/absent' });
    t.match((await acme.wait(absent.body.data, 'failed')).body.data, { reason: 'image_not_found' });
    const nobody = await acme.create({ name: 'nobody', ...small, ...rig.image, registry: '127.0.0.1:1' });
    t.match((await acme.wait(nobody.body.data, 'backoff')).body.data, { reason: 'image_pull' });
    for (const { body } of [absent, nobody]) await acme.remove(body.data);
  });

  t.test('the list is sorted newest first, bounded and paged', async (t) => {
    const lister = await rig.client(rig.tenant('lister'));
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) t.equal((await lister.create({ name, ...small })).status, 201);
    const { body } = await lister.list();
    t.same(
      body.data.map(({ name }) => name),
      [...names].reverse(),
    );
    t.notOk('next_cursor' in body);
    const first = await lister.call<{ data: Container[]; next_cursor: string }>('GET', `${compute}/?limit=2`);
    t.same(
      first.body.data.map(({ name }) => name),
      ['e', 'd'],
    );
    const second = await lister.call<{ data: Container[] }>(
      'GET',
      `${compute}?limit=3&cursor=${first.body.next_cursor}`,
    );
    t.same(
      second.body.data.map(({ name }) => name),
      ['c', 'b', 'a'],
    );
    t.notOk('next_cursor' in second.body);
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'cursor=x']) {
      t.equal((await lister.call('GET', `${compute}?${query}`)).status, 422, query);
    }
  });

  t.test('the quota shows usage and caps by region; a create over a cap is refused', async (t) => {
    const quota = await rig.client(rig.tenant('quota'));
    const caps = { containers: 2, cpu_millis: 300, mem_bytes: null, deletes_per_hour: 7 };
    const put = await operator.call('PUT', `/api/v2/operator/tenants/${rig.tenant('quota')}`, {
      regions: ['default', 'north'],
      caps,
      region_caps: { default: { containers: 1 } },
    });
    t.equal(put.status, 200, put.text);
    t.equal((await quota.create({ name: 'one', cpu_limit: '0.2', mem_limit: '16m' })).status, 201);
    const all = await quota.call('GET', `${compute}/quota`);
    t.same(all.body, {
      data: {
        region: '*',
        usage: {
          containers: 1,
          cpu_millis: 200,
          mem_bytes: 16 * 1024 ** 2,
          vpn_peers: 0,
          ports: 0,
          disk_bytes: 10 * 1024 ** 3,
          deletes_per_hour: 0,
        },
        caps: { ...caps, vpn_peers: 10, ports: 100, disk_bytes: 20 * 1024 ** 3 },
      },
    });
    const regional = await quota.call('GET', `${compute}/quota?region=default`);
    t.match(regional.body, { data: { region: 'default', usage: { containers: 1 }, caps: { containers: 1 } } });
    const north = await quota.call('GET', `${compute}/quota?region=north`);
    t.match(north.body, { data: { region: 'north', usage: { containers: 0 }, caps: { containers: null } } });
    const south = await quota.call('GET', `${compute}/quota?region=south`);
    t.equal(south.status, 422);
    t.match(south.body, { error: 'invalid', details: { region: [/./] } });

    const pinned = await quota.create({ name: 'two', ...small, host_key: hostKey });
    t.equal(pinned.status, 403);
    t.same(pinned.body, { error: 'over_quota', detail: { dimension: 'containers', requested: 2, max: 1 } });
    const cpu = await quota.create({ name: 'two', cpu_limit: '0.2', mem_limit: '16m' });
    t.same(cpu.body, { error: 'over_quota', detail: { dimension: 'cpu_millis', requested: 400, max: 300 } });
    const elsewhere = await quota.create({ name: 'two', ...small });
    t.equal(elsewhere.status, 201);
    t.match(
      elsewhere.body.data,
      { host_key: null, status: 'pending' },
      'the container waits for a host in the other region',
    );
    const third = await quota.create({ name: 'three', ...small });
    t.same(third.body, { error: 'over_quota', detail: { dimension: 'containers', requested: 3, max: 2 } });
  });

  t.test('a response lists every fault of a body, each under its field', async (t) => {
    const { status, body } = await acme.create({
      name: '-bad',
      host_key: 'nowhere',
      repository: 'UPPER',
      ports: ['8080:80'],
      env: { '1': 'x' },
      cpu_limit: '1',
      mem_limit: '1x',
    });
    t.equal(status, 422);
    const { error, details } = body as unknown as { error: string; details: Record<string, string[]> };
    t.equal(error, 'invalid');
    t.same(Object.keys(details).sort(), ['cpu_limit', 'env', 'mem_limit', 'name', 'ports', 'repository']);
    t.same(details['ports'], ['host bindings are not allowed']);
    const host = await acme.create({ name: 'h', host_key: 'nowhere' });
    t.same(host.body, { error: 'invalid', details: { host_key: ['is not a host in an allocated region'] } });
    const taken = await acme.create({ name: 'web' });
    t.same(taken.body, { error: 'invalid', details: { name: ['has already been taken'] } });
    t.equal((await acme.call('POST', compute, '[]')).status, 422);
    t.equal((await acme.call('POST', compute, '{')).status, 400);
  });

  t.test('two creates with the same Idempotency-Key make one container', async (t) => {
    const key = { 'idempotency-key': 'k-1' };
    const [one, two] = await Promise.all([
      acme.create({ name: 'once', ...small }, key),
      acme.create({ name: 'once', ...small }, key),
    ]);
    t.equal(one.status, 201);
    t.equal(two.status, 201);
    t.equal(one.body.data.id, two.body.data.id);
    t.equal((await acme.create({ name: 'other', ...small }, key)).status, 422);
  });

  t.test('operator-only fields take effect and are never shown to the tenant', async (t) => {
    const { body } = await acme.create({ name: 'configured', ...rig.image, ...small });
    const path = `/api/v2/operator/tenants/${own}/containers/${body.data.id}`;
    t.equal((await acme.call('GET', path)).status, 403);
    const patched = await operator.call('PATCH', path, {
      config_files: [{ path: '/etc/app.conf', content: 'setting = 1\n' }],
    });
    t.equal(patched.status, 200, patched.text);
    const inspected = await operator.call<{ data: { config_files: unknown[]; status: ContainerStatusView } }>(
      'GET',
      path,
    );
    t.match(inspected.body.data.config_files, [{ path: '/etc/app.conf' }]);
    await eventually(
      'the container has the file',
      async () => {
        const [container] = await rig.engine.containers(body.data.id);
        return rig.engine.call('GET', `/containers/${container?.Id}/archive?path=/etc/app.conf`);
      },
      ({ status, text }) => status === 200 && text.includes('setting = 1'),
    );
    const seen = await acme.get(body.data);
    t.same(Object.keys(seen.body.data), containerFields);
    t.notMatch(seen.text, /app\.conf|secret_refs|config_files/);
  });

  t.test('a revoked token is refused', async (t) => {
    const leaver = await rig.client(rig.tenant('leaver'));
    t.equal((await leaver.list()).status, 200);
    const revoked = await operator.call('POST', `/api/v2/operator/tenants/${rig.tenant('leaver')}/revocations`, {});
    t.equal(revoked.status, 201, revoked.text);
    const refused = await eventually(
      'refused',
      async () => leaver.list(),
      ({ status }) => status === 401,
    );
    t.same(refused.body, { error: 'unauthenticated' });
  });

  t.test('an operator lists tenants, and containers of all of them', async (t) => {
    const lists = '/api/v2/operator';
    t.equal((await (await rig.client(rig.tenant('onlooker'))).list()).status, 200);
    const tenants = await operator.call<{ data: { id: string; usage: object }[] }>('GET', `${lists}/tenants`);
    const listed = tenants.body.data.map(({ id }) => id);
    t.ok(['acme', 'lister', 'quota'].every((name) => listed.includes(rig.tenant(name))));
    t.notOk(listed.includes(rig.tenant('onlooker')), 'a tenant that has never written anything is not listed');
    t.same(listed, listed.toSorted());

    const find = async (query: string): Promise<Container[]> => {
      const found: Container[] = [];
      let next = '';
      do {
        const path = `${lists}/containers?limit=2&${query}${next}`;
        const { body, text } = await operator.call<FoundPage>('GET', path);
        t.ok(body.data.length <= 2, text);
        found.push(...body.data.map(({ container }) => container));
        next = body.next_cursor === undefined ? '' : `&cursor=${body.next_cursor}`;
      } while (next !== '');
      return found;
    };
    /** Waits until both lists show the same containers, which settle meanwhile. */
    const agree = async (what: string, one: () => Promise<Container[]>, other: () => Promise<Container[]>) =>
      eventually(
        what,
        async () => Promise.all([one(), other()]),
        ([shown, wanted]) => shown.length > 0 && JSON.stringify(shown) === JSON.stringify(wanted),
      );
    const all = async (which: (one: Container) => boolean) => (await find('')).filter(which);
    await agree(
      'those of a tenant, as it sees them, oldest first',
      async () => find(`tenant=${own}`),
      async () => (await acme.list()).body.data.toReversed(),
    );
    await agree(
      'those of a tenant among all',
      async () => find(`tenant=${own}`),
      async () => all(({ tenant_id }) => tenant_id === own),
    );
    await agree(
      'those on a host',
      async () => find(`host=${hostKey}`),
      async () => all(({ host_key }) => host_key === hostKey),
    );
    for (const status of ['running', 'failed', 'pending'] as const) {
      await agree(
        status,
        async () => find(`status=${status}`),
        async () => all((one) => one.status === status),
      );
    }
    const ids = (await find('')).map(({ id }) => id);
    t.equal(new Set(ids).size, ids.length, 'each once');
    t.same(await find('host=nowhere'), []);
  });

  t.test('a host is listed, cordoned and uncordoned', async (t) => {
    const hosts = '/api/v2/operator/hosts';
    // Other files of the stack may have registered hosts of their own.
    const listed = async (client: typeof acme, path: string): Promise<Record<string, unknown> | undefined> =>
      (await client.call<{ data: Record<string, unknown>[] }>('GET', path)).body.data.find(
        ({ key }) => key === hostKey,
      );
    t.same(await listed(acme, `${compute}/hosts`), { key: hostKey, region: 'default' });
    t.equal((await acme.call('GET', `${compute}/hosts?cursor=x`)).status, 422);
    t.match(await listed(operator, hosts), { key: hostKey, region: 'default', status: 'up' });
    t.equal((await operator.call('PATCH', `${hosts}/${hostKey}`, { cordoned: true })).status, 200);
    const waiting = await acme.create({ name: 'waiting', ...rig.image, ...small });
    t.match(waiting.body.data, { host_key: null, status: 'pending' });
    t.equal((await operator.call('PATCH', `${hosts}/${hostKey}`, { cordoned: false })).status, 200);
    t.equal(
      (await acme.wait(waiting.body.data, 'running')).status,
      200,
      'the container is placed after the host is uncordoned',
    );
    t.equal((await operator.call('GET', `${hosts}/none`)).status, 404);
  });

  t.test('no random body is answered with 500', async (t) => {
    const anybody = await rig.client(rig.tenant('anybody'));
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom<Route>(...routes.filter(takesBody)), bodies, async (route, body) => {
        const client = route.access === 'operator' ? operator : anybody;
        // Not the host of the other tests: they need it unchanged.
        const path = route.path.replace(':tenant', rig.tenant('anybody')).replace(':key', 'h0').replace(':id', absent);
        const { status, text } = await client.call(route.method, path, body);
        seen.add(status);
        if (status >= 500) throw new Error(`${route.method} ${path}: ${status} ${text}`);
      }),
      { numRuns: 600 },
    );
    t.ok(seen.has(422) && seen.size >= 3, [...seen].join(' '));
  });
});
