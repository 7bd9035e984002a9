/** Messages for mistakes and for habits of other tools: each gives the way on in one line. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { cpuIn } from '../../cli/terminal/quantities.ts';
import { restartIn } from '../../cli/tenant/policy.ts';
import { limitIn, portIn } from '../../cli/tenant/run.ts';
import { temporaryFolder } from '../support/folder.ts';
import { commands, ok } from './support.ts';

const tokenOf = (claims: object): string => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
const unauthenticated = { status: 401, body: { error: 'unauthenticated' } };

t.test('a token that has ended says when', async (t) => {
  const answers = { 'GET /api/v2/compute/quota': unauthenticated };
  const exp = Date.parse('2026-11-25T11:00:00Z') / 1000;
  const ended = await commands(t, answers, { token: tokenOf({ exp }) });
  const { code, err } = await ended.longshore('quota');
  t.equal(code, 1);
  t.match(err, /^the token for http:\/\/\S+ ended at 2026-11-25T11:00:00\.000Z\nSign in with "longshore login/);
  for (const token of [tokenOf({ exp: exp + 7200 }), tokenOf({}), 'a.b.c']) {
    const refused = await commands(t, answers, { token });
    t.match((await refused.longshore('quota')).err, /^unauthenticated\nSign in with/, 'another reason');
  }
});

t.test('amounts of other tools', (t) => {
  for (const [text, cores] of [
    ['250m', '0.25'],
    ['1000m', '1.0'],
    ['2', '2.0'],
    ['0.5', '0.5'],
    ['many', 'many'],
  ] as const)
    t.equal(cpuIn(text), cores, text);
  t.equal(limitIn('64m'), '64m');
  t.throws(() => limitIn('64'), /--memory 64: that is 64 B; did you mean 64m\?/);
  t.equal(limitIn('67108864'), '67108864', 'bytes');
  t.equal(portIn('8080'), 8080);
  t.equal(portIn('53/udp'), '53/udp');
  t.throws(() => portIn('8080:80'), /--port 8080:80: give 80; Longshore chooses the port of the host/);
  t.throws(() => portIn('127.0.0.1:53:53/udp'), /give 53\/udp/);
  t.same(['no', 'on-failure', 'unless-stopped', 'never'].map(restartIn), ['never', 'on_failure', 'always', 'never']);
  t.throws(() => restartIn('sometimes'), /Allowed choices are always, on_failure, never/);
  t.end();
});

t.test('a file of variables is blamed with its line and key', async (t) => {
  const { longshore, asked } = await commands(t, {});
  const folder = temporaryFolder(t);
  const file = join(folder, 'web.env');
  for (const [text, words] of [
    ['# note\nexport 1A=1\n', /web\.env: line 2: "1A": a name begins with a letter/],
    ['A=1\n=2\n', /web\.env: line 2: it must be NAME=value/],
    ['A="1\n', /web\.env: line 1: its quotes are not closed/],
  ] as const) {
    writeFileSync(file, text);
    t.match(await longshore('run', 'web', '--env-file', file), { code: 2, err: words });
  }
  t.match(await longshore('run', 'web', '-e', '1A=1'), { code: 2, err: /--env 1A: a name begins with a letter/ });
  t.same(asked, []);
});

t.test('a quota is told in units of people, and an unknown secret with its command', async (t) => {
  const detail = { dimension: 'mem_bytes', requested: 100 * 2 ** 30, max: 16 * 2 ** 30 };
  const over = { status: 403, body: { error: 'over_quota', detail } };
  const { longshore } = await commands(t, { 'POST /api/v2/containers': over });
  t.match((await longshore('run', 'web')).err, /mem_bytes would be 100 GiB of 16 GiB\. See "longshore quota"/);
  const cpu = {
    status: 403,
    body: { error: 'over_quota', detail: { dimension: 'cpu_millis', requested: 8250, max: 8000 } },
  };
  const cores = await commands(t, { 'POST /api/v2/containers': cpu });
  t.match((await cores.longshore('run', 'web')).err, /cpu_millis would be 8\.25 cores of 8 cores/);
  const details = { 'secrets.env.A': ['"none" is not a secret that you have'] };
  const unknown = await commands(t, {
    'POST /api/v2/containers': { status: 422, body: { error: 'invalid', details } },
  });
  t.match(
    (await unknown.longshore('run', 'web', '--secret', 'A=none')).err,
    /"none" is not .*\nSet it with "longshore secret/,
  );
});

t.test('messages about missing things have one form', async (t) => {
  const { longshore } = await commands(t, {});
  t.match((await longshore('secret', 'rm', 'pw')).err, /^there is no secret "pw": "longshore secret ls" shows which/);
  t.match(
    (await longshore('registry', 'logout', 'r.io')).err,
    /^there is no registry "r\.io": "longshore registry ls"/,
  );
});

t.test('options of exec stand before the container', async (t) => {
  const { longshore } = await commands(t, {});
  t.match(await longshore('exec', 'web', '-it', 'sh'), {
    code: 2,
    err: '"-it": options stand before the container: longshore exec -it web ...\n',
  });
});

const id = '01a213e1-a50e-7666-936f-479459dfedcf';
const of = `/api/v2/compute/${id}`;

t.test('secret set says what it restarts, and waits for it', async (t) => {
  const view = { id, status: 'running', desired: 'running', generation: 2, reason: null, message: null };
  const after = { ...view, generation: 3, exit_code: null, addresses: [] };
  const file = join(temporaryFolder(t), 'value');
  writeFileSync(file, 'new');
  const answers = {
    'GET /api/v2/compute/secrets': ok([{ name: 'pw', version: 1, used_by: [id] }]),
    'PUT /api/v2/compute/secrets/pw': ok({ name: 'pw', version: 2, used_by: [id] }),
    'GET /api/v2/containers': ok([{ container: { id, name: 'web' }, status: view }]),
    [`GET ${of}/policy`]: ok({ restart: 'always', health: null }),
    [`GET ${of}/status`]: [ok(view), ok(after)],
    [`GET ${of}/wait`]: ok({ ...after, outcome: 'done' }),
  };
  const { longshore, asked } = await commands(t, answers);
  t.same(await longshore('secret', 'set', 'pw', '--file', file), {
    code: 0,
    out: 'pw, version 2\n',
    err: 'restarts web\nweb: running\n',
  });
  t.match(asked.at(-1)?.path, /wait\?.*generation=3/);
  asked.splice(0);
  t.match(await longshore('secret', 'set', 'pw', '--file', file, '-d'), { code: 0, err: 'restarts web\n' });
  t.notOk(asked.some(({ path }) => path.startsWith(of)));
  const same = await commands(t, { ...answers, 'PUT /api/v2/compute/secrets/pw': ok({ name: 'pw', version: 1 }) });
  t.match(await same.longshore('secret', 'set', 'pw', '--file', file), { code: 0, err: '' }, 'the same value');
  const forbidden = { status: 403, body: { error: 'forbidden', detail: { scope: 'read' } } };
  const narrow = await commands(t, { ...answers, 'GET /api/v2/containers': forbidden });
  t.match(await narrow.longshore('secret', 'set', 'pw', '--file', file), { code: 0, err: '' }, 'a narrow token');
});
