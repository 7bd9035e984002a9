/** Output for a person at a terminal only: colours and questions. */
import { existsSync, readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import t from 'tap';
import { exitCodes } from '../../../cli/terminal/errors.ts';
import { commandLine } from '../../e2e/support/command-line.ts';
import { farEnd, type Scripted } from '../../cli/client/server.ts';

t.setTimeout(120_000);

const data = (value: unknown): Scripted => ({ status: 200, body: { data: value } });

t.test('colours are for a terminal, and not for a pipe', async (t) => {
  const image = { registry: 'docker.io', repository: 'library/web', tag: '1', digest: null };
  const web = { id: 'a', name: 'web', ...image, status: 'running', host_key: 'h1', ports: [], inserted_at: null };
  const { url } = await farEnd(t, data([{ container: web, labels: {} }]));
  const { longshore, onTerminal } = commandLine(t);
  const env = { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: 'a.b.c' };
  const shown = await onTerminal(['ps'], [], env);
  t.match(shown, { code: 0, out: 'docker.io/library/web:1  \u001b[32mrunning\u001b[39m' });
  const piped = await longshore(['ps'], { env });
  t.match(piped, { code: 0, err: '' });
  t.equal(piped.out, stripVTControlCharacters(shown.out).replaceAll('\r', ''), 'the same text, without them');
  t.equal((await onTerminal(['ps'], [], { ...env, NO_COLOR: '1' })).out.replaceAll('\r', ''), piped.out);
});

const begun = { handle: 'first', user_code: 'AB-CD', verification_uri: 'http://at', expires_in: 600, interval: 0 };
const choose = { status: 'choose', tenants: ['acme', 'beta'], handle: 'second' };
const token = `e30.${Buffer.from('{"tenant_id":"beta"}').toString('base64url')}.x`;

t.test('a person in several tenants is asked for one', async (t) => {
  const { url, asked } = await farEnd(
    t,
    data(begun),
    data({ status: 'pending' }),
    data(choose),
    data({ status: 'done', token }),
    data({ usage: {}, caps: {} }),
  );
  const { config, onTerminal } = commandLine(t);
  const ran = await onTerminal(['login', '--server', url], [[/Tenant \(acme, beta\): /, 'beta\n']]);
  t.match(ran, { code: 0, out: /Open http:\/\/at .* the code AB-CD[^]*Signed in to / });
  t.same(
    asked.slice(1, 4).map(({ body }) => JSON.parse(body) as unknown),
    [{ handle: 'first' }, { handle: 'first' }, { handle: 'second', tenant: 'beta' }],
  );
  t.match(JSON.parse(readFileSync(config, 'utf8')), { profiles: { [new URL(url).host]: { token } } });
});

t.test('Ctrl-C at the question', async (t) => {
  const { url, asked } = await farEnd(t, data(begun), data(choose));
  const { config, onTerminal } = commandLine(t);
  const ran = await onTerminal(['login', '--server', url], [[/Tenant \(acme, beta\): /, '\u0003']]);
  t.equal(ran.code, exitCodes.interrupted, ran.out);
  t.equal(asked.length, 2);
  t.notOk(existsSync(config), 'nobody is signed in');
});

t.test('the answer to a hidden question is not shown', async (t) => {
  const { url, asked } = await farEnd(t, data([]), data({ name: 'db', version: 1 }));
  const { onTerminal } = commandLine(t);
  const env = { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: 'a.b.c' };
  const ran = await onTerminal(['secret', 'set', 'db'], [[/Value of db: /, 'correct horse\n']], env);
  t.match(ran, { code: 0, out: 'db, version 1' });
  t.notMatch(ran.out, 'correct');
  t.equal(asked[1]?.body, '{"value":"correct horse"}');
});
