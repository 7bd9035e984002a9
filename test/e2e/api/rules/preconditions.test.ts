/** Preconditions and ETags (RFC 9110 sections 8.8 and 13), on every write of the route table. */
import t from 'tap';
import type { Container } from '../../../../schemas/api/container.ts';
import { sharedStack } from '../../support/stack.ts';
import { worldOf, writes, type WriteRequest } from './writes.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';
const unmet = { status: 412, body: { error: 'precondition_failed' } };

t.test('preconditions', async (t) => {
  const rig = await sharedStack(t);
  const world = await worldOf(rig);
  const { acme } = world;
  const isDone = ({ status }: { readonly status: number }) => status >= 200 && status < 300;

  for (const route of writes) {
    t.test(`${route.method} ${route.path}`, async (t) => {
      const { name } = route;
      const isNew = 'withoutPrior' in route;
      const request = await world.request(name);
      t.match(await world.send(name, request, { 'if-match': '"no"' }), unmet, 'another ETag');
      t.match(await world.send(name, request, { 'if-match': 'no' }), unmet, 'no ETag');
      if (!isNew) {
        t.match(request.etag, /^"[0-9a-f]{16}"$/, 'the resource has an ETag');
        const { etag = '' } = request;
        t.match(await world.send(name, request, { 'if-match': `W/${etag}` }), unmet, 'a weak one never matches');
        for (const known of ['*', etag, `"no", W/${etag}`])
          t.match(await world.send(name, request, { 'if-none-match': known }), unmet, `not ${known}`);
      }
      const done = await world.send(
        name,
        request,
        isNew ? { 'if-none-match': '*' } : { 'if-match': `"no", ${request.etag}`, 'if-none-match': '"no"' },
      );
      t.ok(isDone(done), `${done.status} ${done.text}`);
      t.equal(done.headers.has('etag'), 'tagged' in route, 'an ETag');
      if (isNew) return;
      const other = await world.request(name);
      t.ok(isDone(await world.send(name, other, { 'if-match': '*' })), 'any');
    });
  }

  t.test('a PUT that would make something', async (t) => {
    const makes: readonly (readonly ['secret.put' | 'registry.put', WriteRequest])[] = [
      ['secret.put', { path: `${compute}/secrets/first`, body: { value: 'one' } }],
      ['registry.put', { path: `${compute}/registries/first.example.com`, body: { username: 'u', password: 'p' } }],
    ];
    for (const [name, request] of makes) {
      t.match(await world.send(name, request, { 'if-match': '*' }), unmet, 'there is none');
      const made = await world.send(name, request, { 'if-none-match': '*' });
      t.ok(isDone(made), made.text);
      t.match(await world.send(name, request, { 'if-none-match': '*' }), unmet, 'also with the same value');
      const same = await world.send(name, request, { 'if-match': made.headers.get('etag') ?? '' });
      t.equal(same.headers.get('etag'), made.headers.get('etag'), 'the same value is the same version');
    }
  });

  t.test('a refusal for another reason comes first', async (t) => {
    const none = `${compute}/01890000-0000-7000-8000-000000000000`;
    const when = { 'if-match': '"no"' };
    t.equal((await acme.call('DELETE', none, undefined, when)).status, 404);
    t.equal((await acme.call('PUT', `${none}/policy`, {}, when)).status, 404);
    const { path } = await world.request('policy.put');
    t.equal((await acme.call('PUT', path, { restart: 'maybe' }, when)).status, 422);
  });

  t.test('one ETag stands for all that is declared of a container', async (t) => {
    const { path, etag: first = '' } = await world.request('container.stop');
    const one = path.replace('/stop', '');
    let etag = first;
    const seen = new Set([etag]);
    const changes: readonly (readonly [string, string, object?])[] = [
      ['PUT', `${one}/policy`, { restart: 'never' }],
      ['PUT', `${one}/secrets`, { env: { A: (await world.request('secret.put')).path.split('/').at(-1) } }],
      ['PUT', `${one}/labels`, { a: 'b' }],
      ['PATCH', `${one}/labels`, { b: 'c' }],
      ['PUT', `${one}/project`, { project: 'shop' }],
      ['PATCH', one, { env: { B: 'c' } }],
      ['POST', `${one}/start`],
      ['POST', `${one}/stop`],
    ];
    for (const [method, to, body] of changes) {
      const stale = await acme.call(method, to, body, { 'if-match': '"no"' });
      t.match(stale, unmet, `${method} ${to}`);
      const done = await acme.call(method, to, body, { 'if-match': etag });
      t.equal(done.status, 200, done.text);
      etag = done.headers.get('etag') ?? '';
      if (to.endsWith('/stop')) continue;
      t.notOk(seen.has(etag), `${method} ${to} changes it`);
      seen.add(etag);
    }
    const read = await acme.call<{ data: Container }>('GET', one);
    t.equal(read.headers.get('etag'), etag);
    for (const view of ['policy', 'secrets', 'labels', 'project']) {
      const shown = await acme.call('GET', `${one}/${view}`);
      t.equal(shown.headers.get('etag'), etag, view);
      const known = await acme.call('GET', `${one}/${view}`, undefined, { 'if-none-match': etag });
      t.same([known.status, known.text], [304, ''], view);
    }
    t.equal((await acme.call('GET', one, undefined, { 'if-none-match': etag })).status, 200, 'it shows a status');
    t.match(await acme.call('PUT', `${one}/policy`, { restart: 'always' }, { 'if-match': first }), unmet);
  });

  t.test('the document of the API has an ETag', async (t) => {
    const path = '/api/v2/openapi.json';
    const etag = (await acme.call('GET', path)).headers.get('etag') ?? '';
    t.equal((await acme.call('GET', path, undefined, { 'if-none-match': etag })).status, 304);
  });
});
