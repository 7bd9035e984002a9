/** The document of a container, and what its part `process` makes of a program, on real servers. */
import t from 'tap';
import type { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import type { Spec, SpecPlan } from '../../../schemas/api/spec.ts';
import { steady } from '../../host-agent/support/rig.ts';
import { eventually } from '../support/eventually.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(300_000);
const containers = '/api/v2/containers';

t.test('one document for a container', async (t) => {
  const rig = await sharedStack(t);
  const acme = await rig.client(rig.tenant('spec'));
  const image = await imageRunning(rig, steady);
  const limits = { cpu_limit: '0.1', mem_limit: '32m' };
  const create = (body: object, query = '') =>
    acme.call<{ data: Container }>('POST', `${containers}${query}`, { image, ...limits, ...body });
  const specPath = ({ id }: { readonly id: string }): string => `${containers}/${id}/spec`;
  const read = async (container: Container) => acme.call<{ data: Spec }>('GET', specPath(container));
  const statusOf = async ({ id }: Container): Promise<ContainerStatusView> =>
    (await acme.call<{ data: ContainerStatusView }>('GET', `/api/v2/compute/${id}/status`)).body.data;
  const linesOf = async ({ id }: Container): Promise<string[]> =>
    (await acme.call<{ data: { line: string }[] }>('GET', `/api/v2/compute/${id}/logs`)).body.data.map(
      ({ line }) => line,
    );

  await t.test('is written and read whole, in one generation', async (t) => {
    const planned = await create({ name: 'web' }, '?dry_run=true');
    t.match(planned, { status: 200, body: { data: { name: 'web' }, plan: { action: 'create' } } });
    t.same((await acme.call<{ data: unknown[] }>('GET', containers)).body.data, [], 'nothing was made');

    const made = await create({
      name: 'web',
      env: { MODE: 'one' },
      labels: { team: 'shop' },
      project: 'shop',
      aliases: ['www'],
      policy: { restart: 'on_failure', stop_grace_seconds: 3 },
    });
    t.equal(made.status, 201, made.text);
    const web = made.body.data;
    t.equal(made.headers.get('location'), specPath(web));
    t.equal((await acme.wait(web, 'running')).status, 200);
    const { body, headers } = await read(web);
    const spec = body.data;
    t.match(spec, {
      name: 'web',
      image,
      env: { MODE: 'one' },
      ...limits,
      process: {},
      policy: { restart: 'on_failure', stop_grace_seconds: 3, stop_signal: 'SIGTERM', health: null },
      secrets: { env: {}, files: {} },
      labels: { team: 'shop' },
      project: 'shop',
      aliases: ['www'],
      desired: 'running',
    });
    const etag = headers.get('etag') ?? '';
    t.match(await acme.call('PUT', specPath(web), spec), { status: 200, body: { data: spec } }, 'as it was read');
    const before = await statusOf(web);

    const next = { ...spec, env: { MODE: 'two' }, labels: {}, policy: { restart: 'always' } };
    const dry = await acme.call<{ plan: SpecPlan }>('PUT', `${specPath(web)}?dry_run=true`, next);
    t.match(dry, { status: 200, body: { data: { env: { MODE: 'two' } }, plan: { action: 'replace' } } });
    t.same(dry.body.plan.changed, ['env', 'policy', 'labels']);
    t.equal((await read(web)).headers.get('etag'), etag, 'nothing was written');

    const put = await acme.call<{ data: Spec }>('PUT', specPath(web), next, { 'if-match': etag });
    t.equal(put.status, 200, put.text);
    t.not(put.headers.get('etag'), etag);
    t.equal((await acme.call('GET', `/api/v2/compute/${web.id}`)).headers.get('etag'), put.headers.get('etag'));
    const after = await statusOf(web);
    t.equal(after.generation, before.generation + 1, 'one write, one generation');
    t.match(after, { restart_policy: 'always', labels: {}, update: { from: { env: { MODE: 'one' } } } });
    t.match(await acme.call('PUT', specPath(web), next, { 'if-match': etag }), { status: 412 });
    const stale = { 'if-match': etag };
    t.match(await acme.call('PUT', `${specPath(web)}?dry_run=true`, next, stale), { status: 412 }, 'a plan, too');
    t.match(await acme.call('PATCH', specPath(web), { env: { A: 'b' } }, { 'if-match': etag }), { status: 412 });

    const patched = await acme.call<{ data: Spec }>('PATCH', specPath(web), { env: { A: 'b' }, project: null });
    t.same([patched.status, patched.body.data.env, patched.body.data.project], [200, { MODE: 'two', A: 'b' }, null]);
    const stopped = await acme.call('PATCH', specPath(web), { desired: 'stopped' });
    t.match(stopped, { status: 200, body: { data: { desired: 'stopped' } } });
    t.equal((await acme.wait(web, 'stopped')).status, 200);
    const { desired: _, ...absent } = patched.body.data;
    t.match(await acme.call('PUT', specPath(web), absent), { body: { data: { desired: 'stopped' } } }, 'it stays');
    await acme.remove(web);
  });

  await t.test('two creates with one Idempotency-Key make one container', async (t) => {
    const key = { 'idempotency-key': 'one' };
    const send = (more: object) =>
      acme.call<{ data: Container }>('POST', containers, { name: 'once', desired: 'stopped', ...more }, key);
    const [one, two] = [await send({}), await send({})];
    t.same([one.status, two.status, two.body.data.id], [201, 201, one.body.data.id]);
    t.equal(two.headers.get('location'), specPath(one.body.data));
    t.match(await send({ process: { user: '7' } }), { status: 422, body: { details: { idempotency_key: [/./] } } });
    await acme.remove(one.body.data);
  });

  await t.test('refuses what it cannot do, at its place', async (t) => {
    const refused = async (body: object, details: object): Promise<void> =>
      void t.match(await create({ name: 'odd', ...body }), { status: 422, body: { details } }, JSON.stringify(body));
    await refused({ aliases: ['a', 'A_b', 'a'] }, { 'aliases.1': [/DNS label/], 'aliases.2': [/distinct/] });
    await refused({ nmae: 1 }, { nmae: [/no part of the document/] });
    await refused({ volumes: {} }, { volumes: ['is not supported yet'] });
    await refused({ image: { repository: 'A' } }, { 'image.repository': [/lower-case/] });
    await refused({ files: { '/a': { from: './a' } } }, { 'files./a.from': [/send what is in it/] });
    await refused({ process: { comand: ['a'] } }, { 'process.comand': [/no setting/] });
    await refused({ process: { command: 'a b' } }, { 'process.command': [/list/] });
    await refused({ process: { tmpfs: { '/proc/x': '1m' } } }, { 'process.tmpfs./proc/x': [/must not be below/] });
    await refused({ process: { ulimits: { nofile: '9:1' } } }, { 'process.ulimits.nofile': [/soft:hard/] });
    await refused({ policy: { restart: 'no' } }, { 'policy.restart': [/./] });
    await refused({ secrets: { env: { A: 'none' } } }, { 'secrets.env.A': [/not a secret/] });
    const { body } = await create({ name: 'pinned', desired: 'stopped' });
    const put = (more: object) => acme.call('PUT', specPath(body.data), { name: 'pinned', image, ...more });
    t.match(await put({ name: 'other' }), { status: 422, body: { details: { name: [/can't be changed/] } } });
    t.match(await put({ host_key: 'nowhere' }), {
      status: 422,
      body: { details: { host_key: [/not a host in an allocated region/] } },
    });
    await acme.remove(body.data);
  });

  await t.test('files: read-only in the container, in every answer, and through an update', async (t) => {
    const script = 'cat /etc/app/a.conf; ls -l /etc/app/a.conf | cut -c1-10; echo x > /etc/app/a.conf; exec sleep 1000';
    const files = {
      '/etc/app/a.conf': { content: 'mode = "one"\n', mode: 0o440 },
      ...Object.fromEntries(
        Array.from({ length: 15 }, (_, index) => [
          `/data/${index}`,
          { content: `${index}`.repeat(32_000), mode: 0o444 },
        ]),
      ),
    };
    const process = { entrypoint: ['sh', '-c'], command: [script] };
    const made = await create({ name: 'configured', process, files });
    t.equal(made.status, 201, made.text);
    const configured = made.body.data;
    t.equal((await acme.wait(configured, 'running')).status, 200, JSON.stringify(await statusOf(configured)));
    const lines = (wanted: string) =>
      eventually(
        wanted,
        () => linesOf(configured),
        (found) => found.includes(wanted),
      );
    t.same((await lines('mode = "one"')).includes('-r--r-----'), true);
    const { body, headers } = await read(configured);
    t.same(body.data.files, files);
    const list = await acme.call('GET', containers);
    t.notMatch(list.text, /mode = /, 'no list has them');
    const etag = headers.get('etag') ?? '';
    const same = await acme.call<{ data: Spec }>('PUT', specPath(configured), body.data, { 'if-match': etag });
    t.equal(same.headers.get('etag'), etag, same.text.slice(0, 200));

    const patch = { files: { '/etc/app/a.conf': { content: 'mode = "two"\n' }, '/data/3': null } };
    const dry = await acme.call<{ data: Spec; plan: SpecPlan }>('PATCH', `${specPath(configured)}?dry_run=true`, patch);
    t.match(dry.body.plan, { action: 'replace', changed: ['files'] }, dry.text.slice(0, 200));
    t.equal(dry.body.data.files['/etc/app/a.conf']?.content, 'mode = "two"\n');
    const patched = await acme.call<{ data: Spec }>('PATCH', specPath(configured), patch);
    t.equal(patched.status, 200, patched.text.slice(0, 200));
    t.same(patched.body.data.files, {
      ...Object.fromEntries(Object.entries(files).filter(([path]) => path !== '/data/3')),
      '/etc/app/a.conf': { content: 'mode = "two"\n', mode: 0o440 },
    });
    await lines('mode = "two"');
    const full = Object.fromEntries(
      Array.from({ length: 16 }, (_, index) => [
        `/data/${index}`,
        { content: (index % 2 === 0 ? '"' : 'x').repeat(64 * 1024), mode: 0o444 },
      ]),
    );
    const whole = await acme.call<{ data: Spec }>('PATCH', specPath(configured), {
      files: { ...full, '/etc/app/a.conf': null },
    });
    t.equal(whole.status, 200, whole.text.slice(0, 200));
    const shown = (await read(configured)).body.data.files;
    t.ok(
      Object.entries(full).every(([path, { content }]) => shown[path]?.content === content),
      'a MiB',
    );
    t.equal(Object.keys(shown).length, 16);
    const secrets = { files: { '/data/1': { secret: 'none' } } };
    const crossed = await acme.call('PATCH', specPath(configured), { secrets });
    t.match(crossed, { status: 422, body: { details: { 'files./data/1': [/also a file of `secrets`/] } } });
    await acme.remove(configured);
  });

  await t.test('process: the program, its user, its folder, its limits', async (t) => {
    const script = [
      'echo user $(id -u):$(id -g) in $(pwd) with $1',
      'echo files $(ulimit -Sn) $(ulimit -Hn)',
      'touch /written 2>/dev/null && echo written || echo read-only',
      'touch /scratch/a && echo scratch',
      'echo tmpfs $(df -k /scratch | tail -1 | tr -s " " | cut -d" " -f2) $(df -k /dev/shm | tail -1 | tr -s " " | cut -d" " -f2)',
      'echo parent $$',
      'exec sleep 1000',
    ].join('; ');
    const { status, body, text } = await create({
      name: 'worker',
      process: {
        entrypoint: ['sh', '-c'],
        command: [script, 'sh', 'an argument'],
        user: '1000:1001',
        working_dir: '/tmp',
        tmpfs: { '/scratch': '4m' },
        shm_size: '2m',
        init: true,
        read_only: true,
        ulimits: { nofile: '512:1024' },
      },
    });
    t.equal(status, 201, text);
    const worker = body.data;
    t.equal((await acme.wait(worker, 'running')).status, 200, JSON.stringify(await statusOf(worker)));
    const lines = await eventually(
      'its lines',
      () => linesOf(worker),
      ({ length }) => length >= 6,
    );
    t.match(lines, [
      'user 1000:1001 in /tmp with an argument',
      'files 512 1024',
      'read-only',
      'scratch',
      'tmpfs 4096 2048',
      /^parent (?!1$)/,
    ]);
    // Without `process` the image's own program runs.
    t.match(await acme.call('PATCH', specPath(worker), { process: null }), { status: 200 });
    await eventually(
      'the program of the image',
      () => linesOf(worker),
      (found) => found.includes('up'),
    );
    await acme.remove(worker);
  });
});
