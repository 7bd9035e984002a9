/** `ps` and the other lists: what is printed of them, and how. */
import { stripVTControlCharacters } from 'node:util';
import t from 'tap';
import { commands, ok } from '../support.ts';

const id = (end: string): string => `01a213e1-a50e-7666-936f-${end}`;
const container = (name: string, end: string) => ({
  id: id(end),
  name,
  registry: 'docker.io',
  repository: 'library/nginx',
  tag: '1.27',
  digest: null,
  status: 'running',
  host_key: 'h1',
  ports: [8080],
  inserted_at: '2026-11-25T11:55:00.000Z',
});
const view = { status: 'running', reason: null, message: null, exit_code: null, restart_count: 0, addresses: [] };
const web = {
  container: container('web', '479459dfedcf'),
  status: { ...view, reason: 'unhealthy', addresses: [{ port: '8080/tcp', address: '192.0.2.7:28518' }] },
  labels: {},
  project: 'shop',
};
const db = {
  container: { ...container('db', '0000aaaabbbb'), status: 'failed' },
  status: { ...view, status: 'failed', reason: 'exited', exit_code: 3, restart_count: 2 },
  labels: {},
  project: null,
};
const listed = { 'GET /api/v2/containers': ok([web, db]) };

t.test('a table says health, exit code and addresses, and has short ids that differ', async (t) => {
  const { longshore, asked } = await commands(t, listed);
  const { code, out } = await longshore('ps');
  t.equal(code, 0);
  t.equal(new URL(asked[0]?.path ?? '', 'http://x').searchParams.get('include'), 'status');
  t.equal(
    out,
    [
      'NAME  ID        IMAGE                         STATUS                ' + 'PORTS                      HOST  AGE',
      'web   59dfedcf  docker.io/library/nginx:1.27  running (unhealthy)   ' + '192.0.2.7:28518->8080/tcp  h1    5m',
      'db    aaaabbbb  docker.io/library/nginx:1.27  failed (exit code 3)  ' + '8080/tcp                   h1    5m',
      '',
    ].join('\n'),
  );
});

t.test('at a terminal no line is longer than it', async (t) => {
  for (const columns of [80, 100]) {
    const { longshore } = await commands(t, listed, { columns });
    const { out } = await longshore('ps');
    const lines = stripVTControlCharacters(out.trimEnd()).split('\n');
    t.ok(
      lines.every((line) => line.length <= columns),
      out,
    );
    t.match(lines[1], /^web +59dfedcf +docker.*… +running/);
    t.notMatch((await longshore('ps', '-o', 'wide')).out, '…', 'wide is whole');
  }
});

t.test('names, ids, JSON, YAML, and all columns', async (t) => {
  const { longshore } = await commands(t, listed);
  t.same(await longshore('ps', '-q'), { code: 0, out: `${id('479459dfedcf')}\n${id('0000aaaabbbb')}\n`, err: '' });
  t.equal((await longshore('ps', '-o', 'name')).out, 'web\ndb\n');
  t.match((await longshore('ps', '-o', 'wide')).out, /RESTARTS +PROJECT.*\n.*-479459dfedcf .* 0 +shop /);
  const { out: json } = await longshore('ps', '-o', 'json');
  t.equal((await longshore('ps', '--json')).out, json, 'another spelling');
  t.match(JSON.parse(json), [
    { name: 'web', status: 'running', reason: 'unhealthy', project: 'shop' },
    { exit_code: 3 },
  ]);
  t.match((await longshore('ps', '-o', 'yaml')).out, /^- id: .*\n/);
  t.match(await longshore('ps', '-o', 'xml'), { code: 2, err: /Allowed choices are wide, name, json, yaml/ });
  const secrets = await commands(t, {
    'GET /api/v2/compute/secrets': ok([{ name: 'pw', version: 1, updated_at: '2026-11-25T12:00:00Z', used_by: [] }]),
  });
  t.equal((await secrets.longshore('secret', 'ls', '-q')).out, 'pw\n', 'the name of what has no id');
});

t.test('a container by the end of its id, or its beginning, where only one has it', async (t) => {
  const others = [web.container, db.container, container('other', '479459df0000')];
  const { longshore } = await commands(t, {
    'GET /api/v2/compute': ok(others),
    [`GET /api/v2/compute/${web.container.id}/status`]: ok(web.status),
  });
  t.match(await longshore('port', '59dfedcf', '8080'), { code: 0, out: '192.0.2.7:28518\n' });
  t.match(await longshore('port', '01a2'), { code: 1, err: /several ids begin or end with "01a2": .* \(web\), / });
  t.match(await longshore('port', 'dfedcg'), { code: 1, err: /there is no container "dfedcg"/ });
});

t.test('ps --watch follows those that match', async (t) => {
  const watch = 'GET /api/v2/containers/watch';
  const { longshore, asked } = await commands(t, {}, { interruptedBy: watch });
  await longshore('ps', '--watch', '--status', 'running', '--status', 'failed', '--project', 'shop');
  t.equal(asked[0]?.path, '/api/v2/containers/watch?status=running&status=failed&project=shop');
});
