/** A wrong answer fails: otherwise every test that holds answers to the document shows nothing. */
import t from 'tap';
import { faultsOf, holdToComponent, holdToDocument, type Answered } from './api-answers.ts';

const id = '0190c9b0-0000-7000-8000-000000000000';
const container = {
  id,
  tenant_id: 'acme',
  name: 'web',
  host_key: null,
  registry: 'docker.io',
  repository: 'library/nginx',
  tag: 'latest',
  digest: null,
  pull_policy: 'always',
  ports: [80, '53/udp'],
  env: { A: 'b' },
  cpu_limit: '0.5',
  mem_limit: '256m',
  status: 'running',
  inserted_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

const every = { 'x-request-id': 'r', 'longshore-version': '0.2.0' };
const json = { ...every, 'content-type': 'application/json' };
const got = (
  more: Partial<Omit<Answered, 'headers'>> & { readonly headers?: Record<string, string> } = {},
): Answered => {
  const { headers = { ...json, etag: '"a"' }, ...rest } = more;
  return {
    method: 'GET',
    path: `/api/v2/compute/${id}`,
    status: 200,
    text: JSON.stringify({ data: container }),
    ...rest,
    headers: new Headers({ date: 'now', 'cache-control': 'no-store', ...headers }),
  };
};
const withData = (data: unknown, beside = {}): Answered => got({ text: JSON.stringify({ data, ...beside }) });
const refused = (status: number, body: unknown, headers = {}): Answered =>
  got({ status, text: JSON.stringify(body), headers: { ...json, ...headers } });

t.test('answers as they are documented', (t) => {
  const list = '/api/v2/compute/?limit=2';
  const right: Record<string, Answered> = {
    container: got(),
    HEAD: got({ method: 'HEAD', text: '' }),
    list: got({ path: list, text: JSON.stringify({ data: [container], next_cursor: 'x' }), headers: json }),
    'not found': refused(404, { error: 'not_found' }),
    'over quota': {
      ...refused(403, { error: 'over_quota', detail: { dimension: 'containers', requested: 2, max: 1 } }),
      method: 'POST',
      path: '/api/v2/compute',
    },
    'missing scope': refused(403, { error: 'forbidden', detail: { scope: 'operator:read' } }),
    'rate limit': refused(429, { error: 'rate_limited' }, { 'retry-after': '1' }),
    'unknown path': { ...refused(404, { error: 'not_found' }), path: '/api/v2/nope' },
    'wrong method': { ...refused(405, { error: 'method_not_allowed' }, { allow: 'GET' }), method: 'PUT' },
    deleted: got({
      method: 'DELETE',
      path: `/api/forage/peers/${id}`,
      status: 204,
      text: '',
      headers: every,
    }),
    stream: got({
      path: '/api/v2/compute/events?follow=true',
      text: 'event: end',
      headers: { ...json, 'content-type': 'text/event-stream' },
    }),
    options: got({ method: 'OPTIONS', status: 204, text: '', headers: { ...every, allow: 'GET' } }),
  };
  for (const [name, answered] of Object.entries(right)) t.same(faultsOf(answered), [], name);
  t.end();
});

t.test('values that are not of a component’s form', (t) => {
  const entry = { ts: '2026-01-01T00:00:00Z', stream: 'stdout', line: 'ready', seq: 1 };
  holdToComponent('LogEntry', entry);
  t.throws(() => holdToComponent('LogEntry', { ...entry, stream: 'log' }), /LogEntry.*\n.*body\/stream/);
  t.throws(() => holdToComponent('Container', entry), /required/);
  t.end();
});

t.test('each wrong answer has its fault', (t) => {
  const { env: _env, ...lacking } = container;
  const wrong: [string, Answered, RegExp][] = [
    ['a seventeenth field', withData({ ...container, secret: 'x' }), /additional properties/],
    ['a missing field', withData(lacking), /required/],
    ['a wrong type', withData({ ...container, ports: ['8080:80'] }), /body\/data\/ports\/0/],
    ['a wrong status of a container', withData({ ...container, status: 'fine' }), /body\/data\/status/],
    ['a wrong time', withData({ ...container, inserted_at: 'today' }), /date-time/],
    ['no data', got({ text: '{}' }), /required/],
    ['a key beside data', withData(container, { more: true }), /additional properties/],
    ['no JSON', got({ text: '<html>' }), /not JSON/],
    ['another content type', got({ headers: { ...json, etag: '"a"', 'content-type': 'text/html' } }), /content type/],
    ['no content type', got({ headers: { 'x-request-id': 'r', etag: '"a"' } }), /content type/],
    ['a status that is not documented', { ...got(), status: 201 }, /status 201/],
    ['no ETag', got({ headers: json }), /header etag is missing/],
    ['no request id', got({ headers: { 'content-type': 'application/json', etag: '"a"' } }), /x-request-id/],
    ['a header that is not documented', got({ headers: { ...json, etag: '"a"', 'x-node': '7' } }), /x-node/],
    ['an error of another status', refused(404, { error: 'internal' }), /body/],
    ['an error with more than it may say', refused(404, { error: 'not_found', subject: 'part.3' }), /additional/],
    [
      'faults of another shape',
      { ...refused(422, { error: 'invalid', details: ['x'] }), path: '/api/v2/compute' },
      /body/,
    ],
    ['no Retry-After', refused(503, { error: 'unavailable' }), /retry-after is missing/],
    ['a Retry-After in words', refused(503, { error: 'unavailable' }, { 'retry-after': 'soon' }), /no integer/],
    [
      'a body where there is none',
      got({ method: 'DELETE', path: `/api/forage/peers/${id}`, status: 204 }),
      /not empty/,
    ],
    ['a route that nobody knows', got({ path: '/api/v2/nope' }), /has no GET/],
    ['no Allow to OPTIONS', got({ method: 'OPTIONS', status: 204, text: '' }), /allow is missing/],
    ['no Allow', { ...refused(405, { error: 'method_not_allowed' }), method: 'PUT' }, /allow is missing/],
  ];
  for (const [name, answered, fault] of wrong) {
    t.match(faultsOf(answered).join('\n'), fault, name);
    t.throws(() => holdToDocument(answered), fault, name);
  }
  t.end();
});
