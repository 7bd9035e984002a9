/**
 * A client without a token posts bodies that cost more to check than to send (also in chunks of one
 * byte), guesses join tokens, and requests public routes without end; a tenant does the same with a
 * token. The gateway must refuse such a body before it is read, and check it no further than the
 * faults that it reports.
 */
import t from 'tap';
import { validateCreate } from '../../../gateway/validation/container.ts';
import { Body } from '../../../gateway/http/engine/body.ts';
import { hasMoreValues } from '../../../gateway/pipeline/check.ts';
import { bodyValidator } from '../../../gateway/validation/schema.ts';
import { limits } from '../../../schemas/limits.ts';
import { routes, type Route } from '../../../schemas/routes.ts';
import { usualEngines, memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { get, halfPost, openRaw, statusOf, type RawConnection } from '../../gateway/sockets.ts';
import { until } from '../../support/until.ts';

const compute = '/api/v2/compute';
const enrol = '/api/v2/hosts/enrol';
const ground = await startGround(t);
const owner = memoryOwner();
serveOwner(ground.nc, owner);
const token = await ground.issuer.mint();
const json = { 'Content-Type': 'application/json' };
const bearer = { ...json, Authorization: `Bearer ${token}` };

for (const engine of usualEngines) {
  t.test(`on ${engine}: a body that is too large is refused before it has arrived`, async (t) => {
    const { url } = await runGateway(t, ground, { engine });
    const cases: readonly (readonly [what: string, request: string, status: number])[] = [
      ['half a MiB to enrol', halfPost(enrol, { ...json, 'Content-Length': `${limits.bodyBytes}` }, '{'), 413],
      ['over its bound by one', halfPost(enrol, { ...json, 'Content-Length': `${limits.enrolBodyBytes + 1}` }), 413],
      ['a create without credentials', halfPost(compute, { ...json, 'Content-Length': '9000' }, '{'), 401],
      [
        'a create that is too large',
        halfPost(compute, { ...bearer, 'Content-Length': `${limits.bodyBytes + 1}` }),
        413,
      ],
      [
        'a create of another type',
        halfPost(compute, { Authorization: bearer.Authorization, 'Content-Length': '9' }),
        415,
      ],
      ['a path that is not there', halfPost('/nowhere', { ...json, 'Content-Length': '9000' }, '{'), 404],
      ['a method that is not there', halfPost('/healthz', { ...json, 'Content-Length': '9000' }, '{'), 405],
    ];
    for (const [what, request, status] of cases) t.equal(await statusOf(url, request), status, what);
    // A chunked body has no declared length: its bytes are counted as they arrive.
    const chunk = `1000\r\n${' '.repeat(0x1000)}\r\n`;
    const chunked = halfPost(enrol, { ...json, 'Transfer-Encoding': 'chunked' }, chunk + chunk);
    t.equal(await statusOf(url, chunked), 413, 'chunks without end');
  });
}

/** Number of pieces that the engine passed to bodies while `work` ran. */
async function piecesIn(work: () => Promise<void>): Promise<number> {
  const { push } = Body.prototype;
  let pieces = 0;
  Body.prototype.push = function (this: Body, ...given) {
    pieces++;
    return push.apply(this, given);
  };
  await work().finally(() => (Body.prototype.push = push));
  return pieces;
}

const oneByteChunks = (text: string): string => [...text].map((byte) => `1\r\n${byte}\r\n`).join('');

for (const engine of usualEngines) {
  t.test(`on ${engine}: thousands of chunks of one byte are accepted, millions are not`, async (t) => {
    const { url } = await runGateway(t, ground, { engine });
    const chunked = { 'Transfer-Encoding': 'chunked' };
    const inPieces = async (count: number): Promise<RawConnection> => {
      const body = oneByteChunks('{"name":"chunks"}'.padStart(count, ' '));
      const connection = openRaw(url, halfPost(compute, { ...bearer, ...chunked }, `${body}0\r\n\r\n`));
      await until('a reply', () => connection.status() !== undefined || connection.closed());
      connection.socket.destroy();
      return connection;
    };
    t.equal((await inPieces(limits.bodyPieces - 1)).status(), 201, 'the most pieces that are accepted');
    const beyond = await inPieces(limits.bodyPieces + 1);
    t.equal(beyond.status(), 413);
    t.match(beyond.text(), /in more than 4096 pieces; send it in larger chunks/);

    // A body that is read (a tenant's create), and bodies that are not: a create without a token,
    // and a body for no route.
    const flood = oneByteChunks(' '.repeat(10_000));
    for (const [what, head] of [
      ['a create', halfPost(compute, { ...bearer, ...chunked })],
      ['without credentials', halfPost(compute, { ...json, ...chunked })],
      ['nowhere', halfPost('/nowhere', { ...json, ...chunked })],
    ] as const) {
      const pieces = await piecesIn(async () => {
        const connection = openRaw(url, head);
        for (let sent = 0; sent < limits.bodyBytes && !connection.closed(); sent += 10_000) {
          connection.socket.write(flood);
          await until('sent', () => connection.socket.writableLength === 0 || connection.closed());
        }
        await until('closed', connection.closed);
      });
      // node:http parses what it has read, up to 64 KiB, to the end.
      const parsed = engine === 'uws' ? 1 : (64 * 1024) / oneByteChunks(' ').length;
      t.ok(pieces > 0 && pieces <= 2 * limits.bodyPieces + parsed, `${what}: ${pieces} pieces`);
    }
    t.equal(await statusOf(url, get(compute, token)), 200);
  });

  t.test(`on ${engine}: chunks of usual size are accepted up to the bound of the route`, async (t) => {
    const { url } = await runGateway(t, ground, { engine });
    const body = Buffer.from('{"name":"honest"}'.padStart(limits.bodyBytes, ' '));
    for (const bytes of [64 * 1024, 4096, 1460, 256]) {
      let at = 0;
      const stream = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          controller.enqueue(body.subarray(at, (at += bytes)));
          if (at >= body.length) controller.close();
        },
      });
      const response = await fetch(`${url}${compute}`, {
        method: 'POST',
        headers: bearer,
        body: stream,
        duplex: 'half',
      });
      t.equal(response.status, 201, `chunks of ${bytes} bytes`);
      await response.text();
    }
  });
}

t.test('every body that a route takes has a bound, and only few are large', (t) => {
  const large = (routes as readonly Route[]).filter(
    ({ body, maxBodyBytes = limits.bodyDefaultBytes }) =>
      body !== undefined && maxBodyBytes > 4 * limits.bodyDefaultBytes,
  );
  t.same(
    large.map(({ name, access }) => `${access} ${name}`),
    [
      'tenant spec.create',
      'tenant spec.put',
      'tenant spec.patch',
      'tenant container.create',
      'tenant secret.put',
      'tenant container.update',
      'operator container.operate',
      'operator network.create',
      'operator network.put',
    ],
  );
  t.end();
});

t.test('a validator checks a body no further than the faults that it reports', async (t) => {
  const { url } = await runGateway(t, ground);
  const post = async (path: string, body: string): Promise<{ status: number; text: string }> => {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers: bearer, body });
    return { status: response.status, text: await response.text() };
  };
  const keys = (count: number): string => Array.from({ length: count }, (_, n) => `"k${n}":0`).join(',');
  const many = await post(compute, `{"name":"many",${keys(limits.bodyValues)}}`);
  t.same(
    [many.status, JSON.parse(many.text)],
    [413, { error: 'too_large', message: `the body has more than ${limits.bodyValues} keys and items; send fewer` }],
  );
  t.equal(
    (await post(compute, `{"name":"some",${keys(limits.bodyValues - 10)}}`)).status,
    201,
    'unknown keys are ignored',
  );
  const unknown = await post('/api/forage/peers', `{"name":"x",${keys(1000)}}`);
  t.equal(unknown.status, 422);
  const { details } = JSON.parse(unknown.text) as { details: Record<string, string[]> };
  t.ok(Object.keys(details).length <= limits.bodyFaults, 'the number of reported faults is bounded');
  const long = await post('/api/forage/peers', JSON.stringify({ name: 'x', ['k'.repeat(10_000)]: 0 }));
  t.equal(long.status, 422);
  t.ok(long.text.length < 1000, 'a long key is cut in the answer');
});

t.test('the number of values that a validator checks has a bound', (t) => {
  let looks = 0;
  const watched = (entries: readonly (readonly [string, unknown])[]): Record<string, unknown> => {
    const value: Record<string, unknown> = {};
    for (const [key, item] of entries) {
      Object.defineProperty(value, key, { enumerable: true, get: () => (looks++, item) });
    }
    return value;
  };
  const entries = Array.from({ length: 5000 }, (_, n) => [`k${n}`, 'x'] as const);
  t.notOk(validateCreate(watched(entries)).ok);
  t.equal(looks, 0, 'unknown keys of a create are not checked');
  t.notOk(validateCreate({ name: 'a', env: watched(entries) }).ok);
  t.equal(looks, 0, 'the values of far too many variables are not checked');
  const { body } = (routes as readonly Route[]).find(({ name }) => name === 'network.put')!;
  const faults = bodyValidator(body!)(JSON.parse(`{${entries.map(([key]) => `"${key}":1`).join(',')}}`));
  t.ok(!faults.ok && Object.keys(faults.faults).length <= limits.bodyFaults);

  t.notOk(
    hasMoreValues(Buffer.from(JSON.stringify({ a: ','.repeat(20_000), b: '\\",[{'.repeat(20) })), 10),
    'commas and brackets in strings do not count',
  );
  t.ok(hasMoreValues(Buffer.from(`[${'[],'.repeat(10)}0]`), 10));
  t.ok(hasMoreValues(Buffer.from('['.repeat(20_000)), 10_000), 'depth counts');
  t.notOk(hasMoreValues(Buffer.from(JSON.stringify([1, 2, 3])), 3));
  t.ok(hasMoreValues(Buffer.from(JSON.stringify([1, 2, 3, 4])), 3));
  t.end();
});

t.test('wrong join tokens are limited, then refused before their body is read', async (t) => {
  const env = { RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '1', RATE_LIMIT_AUTH_FAILURES_BURST: '3' };
  const { url } = await runGateway(t, ground, { env });
  const body = JSON.stringify({ join_token: `lsj_h1_${'A'.repeat(43)}`, public_key: 'U'.padEnd(56, 'A') });
  const asked = owner.asks.length;
  const guess = async (): Promise<number> => {
    const response = await fetch(`${url}${enrol}`, {
      method: 'POST',
      headers: json,
      body: body.replace('U'.padEnd(56, 'A'), 'UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4'),
    });
    await response.text();
    return response.status;
  };
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 60) statuses.push(await guess());
  t.equal(statuses.at(-1), 429);
  t.ok(statuses.slice(0, -1).every((status) => status === 401));
  t.equal(owner.asks.length - asked, statuses.length - 1, 'owners get no further asks');
  const half = halfPost(enrol, { ...json, 'Content-Length': '200' }, '{');
  t.equal(await statusOf(url, half), 429, 'the gateway does not wait for the body');
  t.equal(await statusOf(url, get(compute, token)), 200, 'tenants at the same address go on');
  t.equal(
    await statusOf(url, halfPost(enrol, { ...json, 'Content-Length': '2' }, '{}'), '127.0.0.2'),
    422,
    'and others',
  );
});

t.test('wrong metrics tokens and public requests are limited', async (t) => {
  const failures = { RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '1', RATE_LIMIT_AUTH_FAILURES_BURST: '3' };
  const guarded = await runGateway(t, ground, { env: { ...failures, FORAGE_METRICS_TOKEN: 'right' } });
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 60) {
    statuses.push(await statusOf(guarded.url, get('/metrics/forage', 'wrong')));
  }
  t.equal(statuses.at(-1), 429);
  t.equal(await statusOf(guarded.url, get('/metrics/forage', 'right'), '127.0.0.2'), 200, 'Prometheus, elsewhere');

  const open = await runGateway(t, ground, {
    env: { RATE_LIMIT_PUBLIC_PER_SECOND: '1', RATE_LIMIT_PUBLIC_BURST: '3' },
  });
  for (const path of ['/api/forage/crl/default', '/metrics/forage']) {
    const address = path === '/metrics/forage' ? '127.0.0.3' : '127.0.0.4';
    const told: number[] = [];
    while (told.at(-1) !== 429 && told.length < 60) told.push(await statusOf(open.url, get(path), address));
    t.equal(told.at(-1), 429, path);
  }
  t.equal(await statusOf(open.url, get('/healthz'), '127.0.0.3'), 200, 'probes are not limited');
});

t.test('public requests have permits of their own', async (t) => {
  const { url } = await runGateway(t, ground);
  const half = halfPost(enrol, { ...json, 'Content-Length': '200' }, '{');
  const held = Array.from({ length: limits.publicRequestsPerClient + 1 }, () => openRaw(url, half, '127.0.0.5'));
  t.teardown(() => held.forEach(({ socket }) => socket.destroy()));
  await until('one too many', () => held.some(({ status }) => status() === 429));
  t.equal(await statusOf(url, get(compute, token), '127.0.0.5'), 200, 'tenants at the same address go on');
  t.equal(
    await statusOf(url, halfPost(enrol, { ...json, 'Content-Length': '2' }, '{}'), '127.0.0.6'),
    422,
    'and others',
  );
});
