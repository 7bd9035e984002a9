/** `stop`, `restart`, `rm`, `describe`, `port` and `version`: what is asked, and what is said. */
import t from 'tap';
import { version } from '../../../lib/version.ts';
import { commands, ok, type Answers } from '../support.ts';

const id = '01a213e1-a50e-7666-936f-479459dfedcf';
const container = {
  id,
  name: 'web',
  registry: 'docker.io',
  repository: 'library/nginx',
  tag: '1.27',
  digest: null,
  status: 'running',
  host_key: 'h1',
  ports: [8080],
  env: { MODE: 'fast' },
  cpu_limit: '0.5',
  mem_limit: '256m',
  inserted_at: '2026-11-25T11:55:00.000Z',
};
const view = {
  id,
  status: 'running',
  desired: 'running',
  generation: 2,
  reason: null,
  message: null,
  exit_code: null,
  restart_count: 0,
  next_retry_at: null,
  started_at: '2026-11-25T11:55:00.000Z',
  addresses: [{ port: '8080/tcp', address: '192.0.2.7:28518' }],
};
const policy = { restart: 'always', health: null, stop_grace_seconds: 10, stop_signal: 'SIGTERM' };
const of = `/api/v2/compute/${id}`;
const known: Answers = {
  'GET /api/v2/compute': ok([container]),
  [`GET ${of}`]: ok(container),
  [`GET ${of}/policy`]: ok(policy),
  [`POST ${of}/stop`]: ok({ ...container, status: 'stopping' }),
  [`POST ${of}/start`]: ok({ ...container, status: 'pending' }, { 'longshore-generation': '4' }),
  [`DELETE ${of}`]: ok({ ...container, status: 'removing' }),
};
const stopped = { ...view, status: 'stopped', desired: 'stopped' };
const timeOut = { status: 504, body: { error: 'timeout' } };

t.test('stop and rm wait for the end, unless they are told not to', async (t) => {
  const { longshore, asked } = await commands(t, {
    ...known,
    [`GET ${of}/status`]: [ok({ ...view, status: 'stopping' }), ok(stopped)],
    [`GET ${of}/wait`]: [ok(stopped), ok({ ...stopped, status: 'removed' })],
  });
  const requests = (): string[] => asked.splice(0).map(({ method, path }) => `${method} ${path.split('?')[0]}`);
  t.same(await longshore('stop', 'web'), { code: 0, out: 'web\n', err: '' });
  t.same(requests().slice(1), [`POST ${of}/stop`, `GET ${of}/status`, `GET ${of}/wait`]);
  t.same(await longshore('rm', 'web'), { code: 0, out: 'web\n', err: '' });
  t.same(requests().slice(1), [`DELETE ${of}`, `GET ${of}/wait`]);
  await longshore('rm', '--detach', 'web');
  await longshore('stop', '-d', 'web');
  t.notMatch(requests().join(), /wait|status/);
});

t.test('a failed container is at rest', async (t) => {
  const failed = { ...view, status: 'failed', exit_code: 1, desired: 'stopped' };
  const { longshore } = await commands(t, { ...known, [`GET ${of}/status`]: ok(failed) });
  t.match(await longshore('stop', 'web'), { code: 0 });
});

t.test('restart starts what has stopped, and waits until it is up', async (t) => {
  const answers = {
    ...known,
    [`GET ${of}/status`]: [ok({ ...view, status: 'stopping' }), ok(stopped), ok({ ...view, generation: 4 })],
    [`GET ${of}/wait`]: [ok(stopped), ok({ ...view, generation: 4, outcome: 'done' })],
  };
  const { longshore, asked } = await commands(t, answers);
  t.match(await longshore('restart', 'web'), { code: 0, out: 'web\n', err: 'web: running\n' });
  const writes = asked.filter(({ method }) => method === 'POST').map(({ path }) => path);
  t.same(writes, [`${of}/stop`, `${of}/start`]);
  const waits = asked.filter(({ path }) => path.includes('/wait')).map(({ path }) => new URL(path, 'http://x'));
  t.match(waits[0]?.searchParams.get('status'), 'stopped', 'a start before the end would let it run on');
  t.match(waits.at(-1)?.searchParams.get('generation'), '4');
  const job = await commands(t, {
    ...answers,
    [`GET ${of}/policy`]: ok({ ...policy, restart: 'never' }),
    [`GET ${of}/wait`]: [ok(stopped), ok({ ...stopped, reason: 'completed', exit_code: 0, outcome: 'done' })],
  });
  t.match(await job.longshore('restart', 'web'), { code: 0 });
  t.match(job.asked.at(-1)?.path, /job=true/, 'a job is waited for to its end');
});

t.test('Ctrl-C says what goes on', async (t) => {
  const answers = { ...known, [`GET ${of}/status`]: ok({ ...view, status: 'stopping' }) };
  const rows = [
    ['stop', `GET ${of}/wait`, 'web is being stopped: "longshore wait web stopped"\n'],
    ['rm', `GET ${of}/wait`, `web is being removed: "longshore wait ${id} removed"\n`],
    ['start', `GET ${of}/wait`, 'web goes on: "longshore wait web" waits again, and "longshore stop web" stops it\n'],
    ['wait', `GET ${of}/wait`, 'web goes on: "longshore wait web" waits again\n'],
    ['restart', `GET ${of}/wait`, 'web does not start again: "longshore start web"\n'],
  ] as const;
  for (const [command, interruptedBy, said] of rows) {
    const { longshore } = await commands(t, answers, { interruptedBy });
    const { code, err } = await longshore(command, 'web');
    t.equal(code, 130, command);
    t.ok(err.endsWith(said), `${command}: ${err}`);
  }
});

t.test('describe says in words what inspect has as JSON', async (t) => {
  const event = {
    ts: '2026-11-25T11:58:00.000Z',
    name: 'web',
    type: 'status',
    status: 'failed',
    reason: 'exited',
    message: 'exit code 3',
    host_key: 'h1',
    by: null,
  };
  const answers: Answers = {
    ...known,
    [`GET ${of}/status`]: ok({
      ...view,
      status: 'backoff',
      reason: 'crash_loop',
      exit_code: 3,
      restart_count: 4,
      project: 'shop',
      labels: { tier: 'front' },
      network: { ipv4: null, ipv6: 'fd00::1', names: ['web', 'web.internal'], state: 'unavailable', message: 'why' },
      update: { phase: 'done', from: {}, to: {}, reason: null, message: null, at: '2026-11-25T11:50:00.000Z' },
    }),
    [`GET ${of}/policy`]: ok({ ...policy, health: { http: { port: 8080, path: '/up' }, interval: 10 } }),
    [`GET ${of}/secrets`]: ok({ env: { PW: 'pw' }, files: {} }),
    [`GET ${of}/events`]: ok([event]),
    [`GET /api/v2/containers/${id}/spec`]: ok({ process: {} }),
  };
  const { longshore } = await commands(t, answers);
  const { code, out } = await longshore('describe', 'web');
  t.equal(code, 0);
  const lines = [
    /^Name: +web$/m,
    /^Project: +shop$/m,
    /^Labels: +tier=front$/m,
    /^Image: +docker\.io\/library\/nginx:1\.27$/m,
    /^Status: +backoff \(crash_loop, exit code 3\)$/m,
    /^Exit code: +3$/m,
    /^Restarts: +4$/m,
    /^Network: +web, fd00::1 \(not there: why\)$/m,
    /^Health: +http 8080\/up, every 10 s$/m,
    /^Ports: +192\.0\.2\.7:28518->8080\/tcp$/m,
    /^Secrets: +PW$/m,
    /^Last update: +done, 10m ago$/m,
    /^Events:\n {2}2026-11-25T11:58:00\.000Z web status failed on h1 exited: exit code 3$/m,
  ];
  for (const line of lines) t.match(out, line);
  t.match(JSON.parse((await longshore('describe', 'web', '-o', 'json')).out), { events: [{ type: 'status' }] });
  t.match((await longshore('inspect', 'web', '-o', 'yaml')).out, /^container:\n {2}id: /);
});

t.test('port says the addresses, or why there is none', async (t) => {
  const { longshore } = await commands(t, { ...known, [`GET ${of}/status`]: ok(view) });
  t.match(await longshore('port', 'web'), {
    code: 0,
    err: '',
    out: /^PORT +ADDRESS\n8080\/tcp +192\.0\.2\.7:28518\n$/,
  });
  t.equal((await longshore('port', 'web', '8080')).out, '192.0.2.7:28518\n');
  t.match(await longshore('port', 'web', '80'), { code: 1, err: 'web does not publish 80: it publishes 8080/tcp\n' });
  const down = await commands(t, { ...known, [`GET ${of}/status`]: ok({ ...stopped, addresses: [] }) });
  t.match(await down.longshore('port', 'web'), { code: 1, err: /web is stopped: its ports have addresses while/ });
});

t.test('version tells both releases', async (t) => {
  const document = { status: 200, body: {}, headers: { 'longshore-version': '0.9.0' } };
  const { longshore, url } = await commands(t, { 'GET /api/v2/openapi.json': document });
  t.equal((await longshore('version')).out, `longshore ${version}\nserver    0.9.0, ${url}\n`);
  t.same(JSON.parse((await longshore('version', '--json')).out), { client: version, server: '0.9.0', url });
});

t.test('a wait that the server ends without an answer is asked again', async (t) => {
  const { longshore } = await commands(t, {
    ...known,
    [`GET ${of}/status`]: ok({ ...view, status: 'stopping' }),
    [`GET ${of}/wait`]: timeOut,
  });
  t.match(await longshore('stop', 'web', '--timeout', '1'), {
    code: 1,
    err: 'web has not stopped after 1 s: "longshore wait web stopped"\n',
  });
});

t.test('stop: a container that fails while it stops is at rest', async (t) => {
  const { longshore, asked } = await commands(t, {
    ...known,
    [`GET ${of}/status`]: ok({ ...view, status: 'stopping', desired: 'stopped' }),
    [`GET ${of}/wait`]: ok({ ...stopped, status: 'failed', exit_code: 3 }),
  });
  t.same(await longshore('stop', 'web'), { code: 0, out: 'web\n', err: '' });
  const [waited] = asked.filter(({ path }) => path.startsWith(`${of}/wait`));
  t.match(waited?.path, /status=stopped&status=failed/);
});
