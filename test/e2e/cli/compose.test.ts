/** Compose files, and what counts as done, by `longshore` against all of Longshore. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../support/folder.ts';
import { commandLine, imageOf, type Options } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { imageRunning } from '../support/images.ts';
import type { Rig } from '../support/rig.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(1_200_000);

interface Inspected {
  readonly status: { readonly project?: string | null };
  readonly container: { readonly env: Readonly<Record<string, string>> };
}

/** An image that runs a script, as a command names it. */
async function imageText(rig: Rig, script: string): Promise<string> {
  const { registry, repository, tag } = await imageRunning(rig, script);
  return `${registry}/${repository}:${tag}`;
}

t.test('Compose files', async (t) => {
  const rig = await sharedStack(t);
  const { longshore } = commandLine(t);
  const folderWith = (files: Readonly<Record<string, string>>, name = 'blog'): string => {
    const path = join(temporaryFolder(t), name);
    mkdirSync(path);
    for (const [one, text] of Object.entries(files)) writeFileSync(join(path, one), text);
    return path;
  };
  const { token } = await rig.client(rig.tenant('compose'));
  const shell = { LONGSHORE_SERVER: rig.baseUrl, LONGSHORE_TOKEN: token, DB_PASSWORD: 'second' };
  const run = (args: readonly string[], options: Options = {}) =>
    longshore(args, { ...options, env: { ...shell, ...options.env } });
  const ok = async (args: readonly string[], options?: Options): Promise<string> => {
    const { code, out, err } = await run(args, options);
    t.equal(code, 0, `${args.join(' ')}: ${err}`);
    return out;
  };
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await ok([...args, '--json'])) as T;

  await t.test('a Compose file of a web program and its database', async (t) => {
    const image = imageOf(rig);
    const compose = `
services:
  front:
    image: ${image}
    depends_on: {migrate: {condition: service_completed_successfully}, store: {condition: service_healthy}}
    pid: host
    env_file: front.env
    environment: {GREETING: "hi from \${WHO}"}
    ports: ["127.0.0.1:80:8080"]
    cpus: 0.2
    mem_limit: 32mb
    healthcheck: {test: "wget -qO- http://127.0.0.1:8080/", interval: 1s}
    restart: unless-stopped
    stop_grace_period: 2s
    secrets: [store-password]
  store:
    image: ${image}
    volumes: [data:/data]
    restart: always
    stop_grace_period: 2s
    healthcheck: {test: "wget -qO- http://127.0.0.1:8080/", interval: 1s}
  migrate: {image: '${await imageText(rig, 'echo migrated')}', restart: "no"}
volumes: {data: }
secrets: {store-password: {environment: DB_PASSWORD}}
`;
    const blog = folderWith({ 'compose.yml': compose, '.env': 'WHO="the file"\n', 'front.env': 'A=abc#def\n' });
    const refused = await run(['apply'], { cwd: blog });
    t.match(refused, { code: 1, err: /compose\.yml:6:5: services\.front\.pid: is not supported, and changes/ });
    t.match(refused.err, /compose\.yml:18:5: services\.store\.volumes: is not supported[^]*Nothing has been changed/);
    t.same(await json('ps'), []);
    const made = await run(['apply', '--ignore', 'pid', '--ignore', 'volumes'], { cwd: blog });
    t.match(made, { code: 0, out: /container blog-migrate, container blog-store, container blog-front changed/ });
    t.match(made.err, /left out, as asked, although it changes what runs: .*pid \(front\)/);
    t.match(made.err, /services\.front\.ports\.0: the address 127\.0\.0\.1 is not kept/);
    const names = await json<readonly { readonly name: string; readonly kind: string }[]>('network', 'names');
    t.same(
      names.filter(({ kind }) => kind === 'alias').map(({ name }) => name),
      ['front', 'migrate', 'store'],
      'services find each other by their names',
    );
    t.match(made.err, /blog-migrate: stopped: completed/, 'it is waited for to its end');
    t.match(JSON.parse(await ok(['inspect', 'front', '--json'], { cwd: blog })) as Inspected, {
      container: { name: 'blog-front', env: { GREETING: 'hi from the file', A: 'abc#def' } },
      status: { project: 'blog' },
    });
    t.equal(await ok(['exec', 'front', 'cat', '/run/secrets/store-password'], { cwd: blog }), 'second');
    t.match(await run(['inspect', 'front']), { code: 1, err: /there is no container "front"/ }, 'elsewhere');
    const again = await ok(['apply', '--ignore', 'pid', '--ignore', 'volumes'], { cwd: blog });
    t.match(again, /Done: nothing has changed/);

    const other = folderWith({ 'compose.yml': `services: {store: {image: '${image}', mem_limit: 16m}}` }, 'other');
    t.match(await run(['apply'], { cwd: other }), { code: 0, out: /container other-store changed/ });
    t.match((await json<Inspected>('inspect', 'blog-store')).status, { project: 'blog' });
    t.match(await run(['apply', '-p', 'blog', '--dry-run'], { cwd: other }), {
      code: 0,
      out: /~ container blog-store/,
    });
    t.match(await run(['apply'], { cwd: folderWith({}, 'empty') }), { code: 1, err: /there is no file to apply here/ });
    await ok(['rm', 'store'], { cwd: other });
    await ok(['rm', 'front', 'store', 'migrate'], { cwd: blog });
  });

  await t.test('one image as web and worker', async (t) => {
    const text = (greeting: string): string => `
services:
  web: &app
    image: ${imageOf(rig)}
    command: sh -c "echo ${greeting} from $$(id -u); while :; do sleep 1; done"
    mem_limit: 16m
    stop_grace_period: 0s
    labels: {tier: front}
  worker:
    <<: *app
    entrypoint: [sh, -c]
    command: ["echo working in $$(pwd); touch /scratch/a; while :; do sleep 1; done"]
    user: "1000:1000"
    working_dir: /tmp
    tmpfs: /scratch:size=1m
    read_only: true
    init: true
    ulimits: {nofile: {soft: 64, hard: 128}}
    labels: {tier: back}
`;
    const shop = folderWith({ 'compose.yaml': text('hello') }, 'shop');
    const made = await run(['apply', '--stable', '1'], { cwd: shop });
    t.match(made, { code: 0, out: /container shop-web, container shop-worker changed/ });
    const logOf = (service: string, line: string): Promise<string> =>
      eventually(
        `the log of ${service}`,
        () => ok(['logs', service], { cwd: shop }),
        (log) => log.includes(line),
      );
    await logOf('web', 'hello from 0\n');
    await logOf('worker', 'working in /tmp\n');
    const script = 'id -u; ulimit -Hn; touch /a 2>/dev/null || echo refused; cat /proc/1/comm';
    const inside = await ok(['exec', 'worker', 'sh', '-c', script], { cwd: shop });
    t.match(inside, /^1000\n128\nrefused\n.*init\n$/);
    const statusOf = async (service: string): Promise<{ generation: number }> =>
      (JSON.parse(await ok(['inspect', service, '--json'], { cwd: shop })) as { status: { generation: number } })
        .status;
    const [web, worker] = [await statusOf('web'), await statusOf('worker')];
    t.match(worker, { labels: { tier: 'back' }, project: 'shop' });
    const events = await ok(['events', 'worker'], { cwd: shop });
    t.notMatch(events, /_changed|_requested/, 'one write made it');
    t.match(await ok(['apply'], { cwd: shop }), /Done: nothing has changed/);
    const below = join(shop, 'src');
    mkdirSync(below);
    const again = await run(['apply'], { cwd: below });
    t.match(again, { code: 0, out: /Done: nothing has changed/, err: /^\.\.\/compose\.yaml is applied\n/ });
    t.match(await ok(['logs', 'web'], { cwd: below }), /hello/, 'a service has its name there, too');
    writeFileSync(join(shop, 'over.yml'), 'services: {worker: {user: "1001"}}\n---\nservices: {worker: {init: false}}');
    t.match(
      await ok(['apply', '--dry-run', '-f', 'compose.yaml', '-f', 'over.yml'], { cwd: shop }),
      /= container shop-web\n~ container shop-worker\n {4}process\.user: 1000:1000 → 1001\n {4}process\.init: true → \(none\)\n/,
    );

    writeFileSync(join(shop, 'compose.yaml'), text('bye'));
    const plan = await ok(['apply', '--dry-run'], { cwd: shop });
    t.match(plan, /~ container shop-web\n {4}process\.command: .*hello.* → .*bye.*\n= container shop-worker\n/);
    await ok(['apply', '--stable', '1'], { cwd: shop });
    await logOf('web', 'bye from 0\n');
    t.equal((await statusOf('web')).generation, web.generation + 1, 'one write changed it');
    t.equal((await statusOf('worker')).generation, worker.generation);

    writeFileSync(join(shop, 'compose.yaml'), text('bye').replace('tier: front', 'tier: edge'));
    const labels = await ok(['apply', '--stable', '1'], { cwd: shop });
    t.match(labels, /~ container shop-web {2}\(nothing starts again\)\n {4}labels\.tier: front → edge\n/);
    const large = text('bye').replace('mem_limit: 16m', 'mem_limit: 16384g');
    writeFileSync(join(shop, 'compose.yaml'), large);
    t.match(await run(['apply', '--dry-run'], { cwd: shop }), {
      code: 1,
      err: /compose\.yaml:3:\d+: services\.web: over quota: mem_bytes would be .*Nothing has been changed/s,
    });
    await ok(['rm', 'web', 'worker'], { cwd: shop });
  });

  await t.test('a run that may not be broken off keeps its secret, whatever is pulled', async (t) => {
    const text = `services:
  once: {image: '${imageOf(rig)}', mem_limit: 16m, stop_grace_period: 1s, pull_policy: always, secrets: [key]}
secrets: {key: {environment: KEY}}
`;
    const cwd = folderWith({ 'compose.yml': text }, 'once');
    const applied = (KEY: string) => run(['apply'], { cwd, env: { KEY } });
    const value = () => ok(['exec', 'once', 'cat', '/run/secrets/key'], { cwd });
    const said = 'once-once: still with an earlier value of once-key: "longshore restart -d once-once"';
    t.match(await applied('first'), { code: 0, err: /once-once: running/ });
    t.match(await applied('second'), { code: 0, err: said, out: /Done: secret once-key changed/ });
    t.match(await applied('second'), { code: 0, err: said, out: /Done: nothing has changed/ });
    t.equal(await value(), 'first');
    await ok(['restart', '-d', 'once'], { cwd });
    await ok(['wait', 'once-once', 'running'], { cwd });
    t.equal(await value(), 'second');
    const after = await applied('second');
    t.match(after, { code: 0, out: /\? container once-once {2}\(its tag is looked at again[^]*nothing has changed/ });
    t.notMatch(after.err, said);
    await ok(['rm', 'once'], { cwd });
  });

  await t.test('a broken container is not done', async (t) => {
    const crashing = await imageText(rig, 'echo no such table; exit 3');
    const jobs = folderWith({ 'compose.yml': `services: {job: {image: '${crashing}', restart: "no"}}` }, 'jobs');
    const job = await run(['apply'], { cwd: jobs });
    t.match(job, { code: 1, err: /jobs-job is failed: exited .*, exit code 3;/ });
    t.match(job.err, /Its log ends with:\n {2}no such table\n[^]*Stopped at container jobs-job/);
    t.match(await run(['wait', 'jobs-job', 'stopped']), {
      code: 1,
      err: /exit code 3[^]*can't become stopped by itself/,
    });
    t.match(await run(['wait', 'jobs-job']), { code: 1, err: /exit code 3/ });
    t.match(await run(['start', 'jobs-job']), { code: 1, err: /exit code 3/ });
    await ok(['rm', 'jobs-job']);
    const loop = await run(['run', crashing, '--name', 'loop', '-m', '16m']);
    t.match(loop, { code: 1, err: /loop is backoff: crash_loop .*, exit code 3;[^]*Its log ends with:\n/ });
    t.match(loop.err, /\n {2}no such table/);
    await ok(['rm', 'loop']);
    const ill = {
      health: { command: ['false'], interval: 1, timeout: 1, retries: 2, start_period: 0 },
      stop_grace_seconds: 1,
    };
    const text = JSON.stringify({ containers: { ill: { image: imageOf(rig), policy: ill } } });
    const file = join(folderWith({ 'ill.yml': text }, 'ill'), 'ill.yml');
    t.match(await run(['apply', '-f', file]), { code: 1, err: /ill is .*unhealthy.*; see/ });
    t.match(
      await run(['apply', '-f', file, '--stable', '1']),
      { code: 1, err: /ill is .*unhealthy/ },
      'nor the next time',
    );
    await ok(['update', 'ill', '--no-health']);
    t.match(await json('policy', 'get', 'ill'), { health: { none: true } });
    const said = await run(['update', 'ill', '--image', imageOf(rig)]);
    t.match(said, { code: 0, err: /ill: nothing changed: the same image/ });
    await ok(['rm', 'ill']);
  });
});
