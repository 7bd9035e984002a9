import t from 'tap';
import { commands, ok } from '../support.ts';
import { envFileIn, pairsIn } from '../../../cli/tenant/run.ts';

t.test('variables: with a value, or from the shell', (t) => {
  t.same(pairsIn(['A=1', 'B=x=y', 'C=', 'HOME'], { HOME: '/home/ada' }), {
    A: '1',
    B: 'x=y',
    C: '',
    HOME: '/home/ada',
  });
  t.throws(() => pairsIn(['NOT_SET'], {}), {
    name: 'WrongUsage',
    message: '--env NOT_SET: give it a value (NOT_SET=...), or set it in this shell',
  });
  t.end();
});

t.test('a file of variables', (t) => {
  const env = { HOME: '/home/ada' };
  t.same(envFileIn('f', '# words\n\nA=1\r\nB=x = y\n', env), { A: '1', B: 'x = y' });
  t.same(envFileIn('f', `export A=b\nC="hello world" # said\nD='$A'\nE=$A-$HOME\nHOME\n`, env), {
    A: 'b',
    C: 'hello world',
    D: '$A',
    E: 'b-/home/ada',
    HOME: '/home/ada',
  });
  t.throws(() => envFileIn('web.env', 'A=1\n=2\n', env), {
    name: 'WrongUsage',
    message: 'web.env: line 2: it must be NAME=value',
  });
  t.throws(() => envFileIn('web.env', 'A="1', env), { message: 'web.env: line 1: its quotes are not closed' });
  t.throws(() => envFileIn('web.env', '1A=1', env), {
    name: 'WrongUsage',
    message: /^web\.env: line 1: "1A": a name begins/,
  });
  t.end();
});

const headers = { 'longshore-generation': '1' };

t.test('run: in the network of the tenant, or in none', async (t) => {
  const id = '01a20000-0000-7000-8000-000000000001';
  const made = { status: 201, body: { data: { id, name: 'web' } }, headers };
  const { longshore, asked } = await commands(t, { 'POST /api/v2/containers': made });
  t.equal((await longshore('run', '-d', 'nginx')).code, 0);
  t.equal((await longshore('run', '-d', 'nginx', '--network', 'none')).code, 0);
  const [usual, none] = asked.map(({ body }) => JSON.parse(body) as object);
  t.notOk('network' in (usual ?? {}));
  t.match(none, { network: { mode: 'none' } });
  t.match(await longshore('run', '-d', 'nginx', '--network', 'host'), {
    code: 2,
    err: /Allowed choices are tenant, none/,
  });
});

t.test('run: a container of the name that is being removed is waited for', async (t) => {
  const id = '01a20000-0000-7000-8000-000000000001';
  const taken = { status: 422, body: { error: 'invalid', details: { name: ['has already been taken'] } } };
  const answers = {
    'POST /api/v2/containers': [taken, { status: 201, body: { data: { id: `${id}2`, name: 'web' } }, headers }],
    'GET /api/v2/compute': ok([{ id, name: 'web', status: 'removing' }]),
    [`GET /api/v2/compute/${id}/wait`]: ok({ status: 'removing' }),
    [`GET /api/v2/compute/${id}2/policy`]: ok({ restart: 'always', health: null }),
    [`GET /api/v2/compute/${id}2/status`]: ok({ status: 'running', generation: 1, addresses: [] }),
    [`GET /api/v2/compute/${id}2/wait`]: ok({ status: 'running', generation: 1, addresses: [], outcome: 'done' }),
  };
  const { longshore, asked } = await commands(t, answers);
  const { code, err } = await longshore('run', 'nginx', '--name', 'web');
  t.equal(code, 0, err);
  t.match(err, /^web is being removed: waiting until it is gone\n/);
  t.match(asked.find(({ path }) => path.startsWith(`/api/v2/compute/${id}/wait`))?.path, /status=removed/);
  const other = await commands(t, { ...answers, 'POST /api/v2/containers': taken });
  t.match(await other.longshore('run', '-d', 'nginx', '--name', 'web'), {
    code: 1,
    err: /web is being removed: "longshore wait/,
  });
  const free = await commands(t, { ...answers, 'POST /api/v2/containers': taken, 'GET /api/v2/compute': ok([]) });
  t.match(await free.longshore('run', 'nginx', '--name', 'web'), { code: 1, err: /has already been taken/ });
});
