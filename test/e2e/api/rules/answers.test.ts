/**
 * Headers that every answer of the route table has, and the refusal of unknown parameters by every
 * route. The clients hold each answer to the OpenAPI document as well.
 */
import t from 'tap';
import { version } from '../../../../lib/version.ts';
import { successStatus } from '../../../../schemas/errors.ts';
import { routes, type Route } from '../../../../schemas/routes.ts';
import { clientOf } from '../../support/client.ts';
import { sharedStack } from '../../support/stack.ts';
import { worldOf, writes } from './writes.ts';

t.setTimeout(400_000);
const compute = '/api/v2/compute';
const known: ReadonlyMap<string, Route> = new Map(routes.map((route) => [route.name, route]));

/** A route whose answer is no stream, no session and no page. */
const reads = (routes as readonly Route[]).filter(
  ({ method, upgrades, forPeople }) => method === 'GET' && upgrades !== true && forPeople !== true,
);

t.test('answers', async (t) => {
  const rig = await sharedStack(t);
  const world = await worldOf(rig);
  const { acme, operator } = world;
  const nobody = await clientOf(rig.baseUrl, 'no-token');

  t.test('401 says how to authenticate, whatever the route', async (t) => {
    for (const route of routes as readonly Route[]) {
      if (route.access === 'public') continue;
      const { status, headers } = await nobody.call(route.method, await world.pathOf(route));
      t.equal(status, 401, route.name);
      t.equal(headers.get('www-authenticate'), 'Bearer realm="longshore"', route.name);
    }
  });

  for (const { name } of writes) {
    const route = known.get(name);
    if (route === undefined) throw new Error(name);
    t.test(`${route.method} ${route.path}`, async (t) => {
      const request = await world.request(name);
      const path = `${request.path}${request.path.includes('?') ? '&' : '?'}nosuch=1`;
      const strange = await world.send(name, { ...request, path });
      if (route.ignores === undefined)
        t.match(strange, { status: 422, body: { details: { nosuch: ['is no parameter of this route'] } } });
      else t.match(strange.headers.get('longshore-warning'), /"nosuch" is no parameter of this route/);

      const done = await world.send(name, route.ignores === undefined ? request : await world.request(name));
      t.equal(done.status, successStatus[route.success], done.text);
      t.equal(done.headers.get('longshore-version'), version);
      t.match(done.headers.get('ratelimit'), /^"tenant";r=\d+;t=\d+$/);
      t.match(done.headers.get('ratelimit-policy'), /^"tenant";q=\d+;w=\d+$/);
      t.equal(done.headers.has('longshore-generation'), route.generates === true, 'its generation');
      if (route.method === 'DELETE') t.equal(done.status, done.text === '' ? 204 : 202);
      const location = done.headers.get('location');
      if (route.success !== 'created') return void t.equal(location, null);
      t.match(location, /^\/api\//);
      t.notMatch(location, /[:?]|\/$/, 'of what was made');
      const client = route.access === 'operator' ? operator : acme;
      const made = await client.call('GET', location ?? '');
      t.ok([200, 405].includes(made.status), `${location}: ${made.status}`);
    });
  }

  for (const route of reads) {
    t.test(`${route.method} ${route.path}`, async (t) => {
      const client = route.access === 'operator' ? operator : acme;
      const path = await world.pathOf(route);
      const strange = await client.call('GET', `${path}?nosuch=1`);
      if (route.ignores === 'all') return void t.equal(strange.status, 200);
      if (route.ignores === 'named') {
        const isFile = route.access === 'pac';
        if (!isFile) t.match(strange.headers.get('longshore-warning'), /"nosuch" is no parameter of this route/);
        return;
      }
      t.match(strange, { status: 422, body: { details: { nosuch: ['is no parameter of this route'] } } });
      for (const [name, { schema }] of Object.entries(route.query ?? {})) {
        // Refused in any case, so that no stream opens.
        const twice = await client.call('GET', `${path}?${name}=1&${name}=1&nosuch=1`);
        const isList = (schema as { readonly type?: string }).type === 'array';
        const { details = {} } = (twice.body ?? {}) as { details?: Record<string, string[]> };
        t.equal(details[name]?.includes('must be given only once') === true, !isList, `${name} twice`);
      }
    });
  }

  t.test('a misspelt parameter is named with the one that was meant', async (t) => {
    const near = { details: { limitt: ['is no parameter of this route: did you mean "limit"?'] } };
    t.match(await acme.call('GET', '/api/v2/containers?limitt=1'), { status: 422, body: near });
    const fixed = await acme.call('GET', `${compute}?limitt=1&status=failed&limit=1&limit=2`);
    t.equal(fixed.status, 200);
    t.equal(
      fixed.headers.get('longshore-warning'),
      '"limitt" is no parameter of this route: did you mean "limit"?; "status" is no parameter of this route; "limit" must be given only once',
    );
    const odd = await acme.call('GET', `${compute}?a%0d%0ab=1&%E2%82%AC=1`);
    t.notOk(odd.headers.has('longshore-warning'), 'a name that no header can have');
  });

  t.test('a PUT that makes something answers 201, and another one 200', async (t) => {
    const secret = { path: `${compute}/secrets/made`, body: { value: 'one' } };
    const login = { path: `${compute}/registries/made.example.com`, body: { username: 'u', password: 'p' } };
    for (const [name, request] of [['secret.put', secret] as const, ['registry.put', login] as const]) {
      const made = await world.send(name, request);
      t.same([made.status, made.headers.get('location')], [201, request.path], made.text);
      t.equal((await world.send(name, request)).status, 200);
    }
  });

  t.test('refusals for a name or a key are documented', async (t) => {
    for (const area of ['secrets', 'registries'])
      for (const name of ['%00', '%1b', 'a%2fb'])
        t.equal((await acme.call('PUT', `${compute}/${area}/${name}`, { value: 'x' })).status, 404, `${area} ${name}`);
    const key = { 'idempotency-key': 'of-one-that-is-gone' };
    const create = async () => acme.create({ name: 'gone' }, key);
    const made = await create();
    t.equal(made.status, 201, made.text);
    t.equal((await acme.remove(made.body.data)).status, 202);
    t.equal((await acme.wait(made.body.data, 'removed')).status, 200);
    t.match(await create(), { status: 409, body: { error: 'conflict', reason: 'key_used' } });
  });

  t.test('the generation of a write is the one to wait for', async (t) => {
    const { path } = await world.request('container.stop');
    const one = path.replace('/stop', '');
    const generationOf = async (method: string, to: string, body?: object): Promise<number> =>
      Number((await acme.call(method, `${one}${to}`, body)).headers.get('longshore-generation'));
    const stopped = await generationOf('POST', '/stop');
    const started = await generationOf('POST', '/start');
    t.ok(started > stopped);
    t.equal(await generationOf('PUT', '/labels', { a: 'b' }), started, 'labels make none');
    const status = await acme.call<{ data: { generation: number } }>('GET', `${one}/status`);
    t.equal(status.body.data.generation, started);
    const gone = await generationOf('DELETE', '');
    t.ok(gone > started);
    const waited = await acme.call('GET', `${one}/wait?until=settled&generation=${gone}&timeout=60`);
    t.match(waited, { status: 200, body: { data: { outcome: 'removed' } } });
  });
});
