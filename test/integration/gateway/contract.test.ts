/**
 * The statuses and bodies that the API promises, over real sockets, on both engines. Every answer
 * is held to the OpenAPI document.
 */
import { createUser } from '@nats-io/nkeys';
import t, { type Test } from 'tap';
import { v4 as uuid } from 'uuid';
import { hostKeyPattern, regionPattern, tenantIdPattern } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { routes } from '../../../schemas/routes.ts';
import { engines, memoryOwner, serveOwner } from '../../gateway/support.ts';
import { holdToDocument } from '../../support/http/api-answers.ts';
import { runGateway, startGround } from './support.ts';

const compute = '/api/v2/compute';
const ground = await startGround(t);
const owner = memoryOwner();
serveOwner(ground.nc, owner);
const token = await ground.issuer.mint();
const operatorToken = await ground.issuer.mint({ tenant_id: 'ops', scope: 'read operator' });
const bearer = { authorization: `Bearer ${token}` };
const operator = { authorization: `Bearer ${operatorToken}` };
const jsonType = { 'content-type': 'application/json' };

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: unknown;
}

async function call(url: string, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${url}${path}`, init);
  const text = await response.text();
  holdToDocument({ method: init.method ?? 'GET', path, status: response.status, headers: response.headers, text });
  const isJson = response.headers.get('content-type') === 'application/json';
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson && text !== '' ? (JSON.parse(text) as unknown) : undefined,
  };
}

const post = (body: unknown, headers: Record<string, string> = { ...bearer, ...jsonType }): RequestInit => ({
  method: 'POST',
  headers,
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

for (const engine of engines) {
  t.test(`on ${engine}`, async (t) => {
    const gateway = await runGateway(t, ground, { engine });
    t.equal(gateway.engine, engine);
    const { url } = gateway;
    await computeRoutes(t, url);
    await refusals(t, url);
    await encodedNames(t, url);
    await common(t, url);
    await operatorRoutes(t, url);
  });
}

function computeRoutes(t: Test, url: string) {
  return t.test('a container from create to delete', async (t) => {
    const created = await call(url, compute, post({ name: 'web', env: { A: 'ü\n"' }, status: 'x', tenant_id: 'evil' }));
    t.equal(created.status, 201);
    const { data } = created.json as { data: Record<string, unknown> };
    t.match(data, { name: 'web', tenant_id: 'acme', env: { A: 'ü\n"' }, status: 'pending', pull_policy: 'always' });
    t.match(String(data['id']), /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/, 'UUIDv7');
    t.equal(Object.keys(data).length, 16);
    const path = `${compute}/${String(data['id'])}`;
    for (const [method, suffix, status] of [
      ['GET', '', 200],
      ['GET', '/', 200],
      ['POST', '/start', 200],
      ['POST', '/stop', 200],
      ['GET', '/status', 200],
      ['GET', '/events', 200],
      ['GET', '/logs', 200],
      ['GET', '/wait?status=pending', 200],
      ['DELETE', '', 202],
    ] as const) {
      const answer = await call(url, `${path}${suffix}`, { method, headers: bearer });
      t.equal(answer.status, status, `${method} ${suffix}`);
      t.ok((answer.json as { data: unknown }).data, 'wrapped in data');
    }
    const misspelt = await call(url, compute, post({ name: 'api', repositry: 'x' }));
    t.equal(misspelt.status, 201);
    t.match(misspelt.headers.get('longshore-warning'), /"repositry" is ignored: did you mean "repository"/);
    const patch = { ...post('{"tag":"2"}'), method: 'PATCH' };
    const merge = { ...bearer, 'content-type': 'application/merge-patch+json', 'if-match': '"a", "b"' };
    t.equal((await call(url, path, patch)).status, 200);
    t.equal((await call(url, path, { ...patch, headers: merge })).status, 200);
    t.match(owner.asks.at(-1), { type: 'container.update', patch: { tag: '2' }, when: { match: ['"a"', '"b"'] } });
    t.equal((await call(url, path, { ...patch, body: '{"name":"x"}' })).status, 422);
    t.equal((await call(url, path, { ...patch, body: '[' })).status, 400);
    t.equal((await call(url, compute, post('{"name":"x"}', merge))).status, 415, 'a create is no patch');
    t.equal((await call(url, `${compute}/quota?region=eu&tenant_id=rival`, { headers: bearer })).status, 200);
    t.match(owner.asks.at(-1), { type: 'tenant.quota', region: 'eu', tenant: 'acme' });
    const list = await call(url, `${compute}/`, { headers: bearer });
    t.equal(list.status, 200);
    t.match(list.json, { data: [{ tenant_id: 'acme' }] });

    const foreign = { authorization: `Bearer ${await ground.issuer.mint({ tenant_id: 'rival' })}` };
    for (const suffix of ['', '/status', '/logs', '/events', '/wait']) {
      const answer = await call(url, `${path}${suffix}`, { headers: foreign });
      t.equal(answer.status, 404, `another tenant ${suffix}`);
      t.equal(answer.text, '{"error":"not_found"}');
    }
  });
}

/** A page for people stays one where a name in its path can be none. */
function encodedNames(t: Test, url: string) {
  return t.test('names with an encoded separator or control', async (t) => {
    for (const name of ['a%2fb', 'a%2F', '%00', '%1b', '%zz']) {
      const page = await fetch(`${url}/login/tenants/${name}`, { method: 'POST' });
      t.same([page.status, page.headers.get('content-type')], [404, 'text/html; charset=utf-8'], name);
      const list = await fetch(`${url}/api/forage/crl/${name}`);
      t.same([list.status, await list.text()], [404, '{"error":"not_found"}'], name);
    }
  });
}

function refusals(t: Test, url: string) {
  return t.test('refusals, in the order of the contract', async (t) => {
    const cases: [string, string, RequestInit, number, unknown][] = [
      ['no credentials', compute, {}, 401, { error: 'unauthenticated' }],
      ['no credentials, unknown path', `${compute}/a/b/c`, {}, 401, { error: 'unauthenticated' }],
      ['no credentials, dots', '/api/v2/operator/x/y', {}, 401, { error: 'unauthenticated' }],
      ['no credentials, wrong body', compute, post('{', jsonType), 401, { error: 'unauthenticated' }],
      ['no credentials, huge', compute, post('x'.repeat(600 * 1024), jsonType), 401, { error: 'unauthenticated' }],
      ['too large', compute, post('x'.repeat(limits.bodyBytes + 1), bearer), 413, { error: 'too_large' }],
      ['wrong type', compute, post('{', { ...bearer, 'content-type': 'text/plain' }), 415, undefined],
      [
        'other charset',
        compute,
        post('{}', { ...bearer, 'content-type': 'application/json; charset=latin1' }),
        415,
        undefined,
      ],
      ['no JSON', compute, post('{'), 400, undefined],
      ['no UTF-8', compute, { ...post(''), body: new Uint8Array([0x22, 0xff, 0x22]) }, 400, undefined],
      ['empty body', compute, post(''), 400, undefined],
      ['an array', compute, post([]), 422, { error: 'invalid', details: { _: ['must be an object'] } }],
      ['a string', compute, post('"x"'), 422, { error: 'invalid', details: { _: ['must be an object'] } }],
      ['no name', compute, post({}), 422, { error: 'invalid', details: { name: ["can't be blank"] } }],
      ['unknown path', '/api/v2/compute/quota/x', { headers: bearer }, 404, { error: 'not_found' }],
      ['unknown path, open', '/nope', {}, 404, { error: 'not_found' }],
      ['no UUID', `${compute}/nope`, { headers: bearer }, 404, { error: 'not_found' }],
      ['unknown id', `${compute}/${uuid()}`, { headers: bearer }, 404, { error: 'not_found' }],
      ['escaped slash', `${compute}/a%2fb`, { headers: bearer }, 404, { error: 'not_found' }],
      ['bad escape', `${compute}/%zz`, { headers: bearer }, 404, { error: 'not_found' }],
      ['NUL', `${compute}/%00`, { headers: bearer }, 404, { error: 'not_found' }],
      [
        'limit 0',
        `${compute}?limit=0`,
        { headers: bearer },
        422,
        { error: 'invalid', details: { limit: ['must be an integer from 1 to 100'] } },
      ],
      ['limit word', `${compute}?limit=ten`, { headers: bearer }, 422, undefined],
      ['limit 1e1', `${compute}?limit=1e1`, { headers: bearer }, 422, undefined],
      [
        'cursor',
        `${compute}?cursor=x`,
        { headers: bearer },
        422,
        { error: 'invalid', details: { cursor: ['is not a valid cursor; use the `next_cursor` of the page before'] } },
      ],
      ['404 before 422', `${compute}/${uuid()}/logs?limit=0`, { headers: bearer }, 404, undefined],
      ['404 before 422, wait', `${compute}/${uuid()}/wait?status=x`, { headers: bearer }, 404, undefined],
      [
        'no operator',
        '/api/v2/operator/hosts',
        { headers: bearer },
        403,
        { error: 'forbidden', detail: { scope: 'operator:read' } },
      ],
      ['422 before 403', '/api/v2/operator/hosts', post({ key: 'A', region: '' }), 422, undefined],
      [
        'bad idempotency key',
        compute,
        post({ name: 'x' }, { ...bearer, ...jsonType, 'idempotency-key': 'a b' }),
        422,
        undefined,
      ],
      ['method', `${compute}/quota`, { method: 'DELETE', headers: bearer }, 405, { error: 'method_not_allowed' }],
      ['method, no credentials', `${compute}/quota`, { method: 'DELETE' }, 401, undefined],
    ];
    for (const [name, path, init, status, body] of cases) {
      const answer = await call(url, path, init);
      t.equal(answer.status, status, name);
      if (body !== undefined) t.same(answer.json, body, name);
      t.ok(answer.headers.get('x-request-id'), `${name}: request id`);
      t.notMatch(answer.text, /part\.|at .*\.js/, `${name}: no inner word`);
    }
    const logs = owner.containers.keys().next().value?.split(' ')[1];
    for (const limit of ['0', '501', 'x', '1.5', '']) {
      const answer = await call(url, `${compute}/${logs}/logs?limit=${limit}`, { headers: bearer });
      t.match(answer, { status: 422, json: { error: 'invalid', details: { limit: [String] } } }, `limit=${limit}`);
    }
  });
}

function common(t: Test, url: string) {
  return t.test('methods, headers, health', async (t) => {
    const allowed = await call(url, compute, { method: 'OPTIONS' });
    t.equal(allowed.status, 204);
    t.equal(allowed.headers.get('allow'), 'GET, HEAD, POST, OPTIONS');
    t.equal(allowed.text, '');
    t.equal(
      (await call(url, `${compute}/quota`, { method: 'PUT', headers: bearer })).headers.get('allow'),
      'GET, HEAD, OPTIONS',
    );

    const get = await call(url, compute, { headers: bearer });
    const head = await call(url, compute, { method: 'HEAD', headers: bearer });
    t.equal(head.status, 200);
    t.equal(head.text, '');
    t.equal(head.headers.get('content-length'), String(Buffer.byteLength(get.text)));
    t.equal(get.headers.get('cache-control'), 'no-store');
    t.equal(get.headers.get('content-type'), 'application/json');

    const named = await call(url, '/healthz', { headers: { 'x-request-id': 'abc-1.2_3' } });
    t.equal(named.headers.get('x-request-id'), 'abc-1.2_3');
    const unfit = await call(url, '/healthz', { headers: { 'x-request-id': 'a b' } });
    t.match(unfit.headers.get('x-request-id'), /^[A-Za-z0-9._-]{1,64}$/);
    t.equal((await call(url, '/readyz')).status, 200);

    const openapi = await call(url, '/api/v2/openapi.json');
    t.match(openapi.json, { openapi: '3.1.0' });
    t.match(openapi.headers.get('cache-control'), /max-age/);

    const tooMany = Array.from({ length: routes.length }, () => call(url, compute, { headers: bearer }));
    for (const answer of await Promise.all(tooMany)) t.equal(answer.status, 200);

    const large = await call(
      url,
      compute,
      post({ name: 'large', env: { A: 'a'.repeat(32 * 1024), B: 'ä'.repeat(16 * 1024) } }),
    );
    t.equal(large.status, 201, 'a reply over 64 KiB');
    t.equal((large.json as { data: { env: { B: string } } }).data.env.B.length, 16 * 1024);
  });
}

function operatorRoutes(t: Test, url: string) {
  return t.test('operator routes', async (t) => {
    for (const list of ['hosts', 'tenants', 'containers', 'containers?tenant=acme&host=h1&status=lost&limit=5']) {
      const answer = await call(url, `/api/v2/operator/${list}`, { headers: operator });
      t.same([answer.status, answer.json], [200, { data: [] }], list);
    }
    const misfit = await call(url, '/api/v2/operator/containers?tenant=a.b&host=H&status=up&limit=0', {
      headers: operator,
    });
    t.match(misfit, { status: 422, json: { details: { tenant: [String], host: [String], status: [String] } } });
    const { tenant, host } = (misfit.json as { details: Record<string, string[]> }).details;
    t.same([tenant, host], [[`must match ${tenantIdPattern}`], [`must match ${hostKeyPattern}`]]);
    const astray = await call(url, '/api/v2/operator/containers?cursor=x', { headers: operator });
    t.match(astray, {
      status: 422,
      json: { details: { cursor: ['is not a valid cursor; use the `next_cursor` of the page before'] } },
    });
    const made = await call(
      url,
      '/api/v2/operator/hosts',
      post({ key: 'h1', region: 'eu' }, { ...operator, ...jsonType }),
    );
    t.equal(made.status, 201);
    const { data } = made.json as { data: { join_token: string; expires_at: string; host: unknown } };
    t.match(data.join_token, /^lsj_h1_[A-Za-z0-9_-]{43}$/);
    const asked = owner.asks.findLast(({ type }) => type === 'host.create');
    t.match(asked, { host: 'h1', region: 'eu', joinTokenHash: /^[0-9a-f]{64}$/ });
    t.notMatch(JSON.stringify(asked), data.join_token, 'only the hash leaves the gateway');

    const body = { join_token: data.join_token, public_key: createUser().getPublicKey() };
    const enrol = (given: unknown) => call(url, '/api/v2/hosts/enrol', post(given, jsonType));
    t.match(await enrol(body), { status: 401, json: { error: 'unauthenticated' } });
    t.equal((await enrol({ ...body, join_token: 'nonsense' })).status, 401);
    t.equal((await enrol({ public_key: 'x' })).status, 422);
    const unsummed = await enrol({ ...body, public_key: `U${'A'.repeat(55)}` });
    t.same(
      [unsummed.status, unsummed.json],
      [422, { error: 'invalid', details: { public_key: ['must be a public user nkey; its checksum is wrong'] } }],
    );

    const caps = { caps: { containers: -1, nope: 1 }, regions: ['EU'] };
    const wrong = await call(url, '/api/v2/operator/tenants/acme', {
      ...post(caps, { ...operator, ...jsonType }),
      method: 'PUT',
    });
    t.match(wrong, {
      status: 422,
      json: {
        details: {
          'caps.containers': ['must be at least 0'],
          'caps.nope': ['is not known'],
          'regions.0': [`must match ${regionPattern}`],
        },
      },
    });
    t.equal((await call(url, '/api/v2/operator/tenants/a.b', { headers: operator })).status, 404);
    const revoked = await call(
      url,
      '/api/v2/operator/tenants/ghost/revocations',
      post({ sub: 'x' }, { ...operator, ...jsonType }),
    );
    t.match(revoked, { status: 201, json: { data: { issued_until: String, expires_at: String } } });
  });
}
