import t from 'tap';
import { createApi, dataOf, doneOf, type Api } from '../../../cli/client/api.ts';
import { ApiError, ConnectionError, InterruptedError } from '../../../cli/client/errors.ts';
import { clientAttempts } from '../../../cli/client/repeat.ts';
import { freePort } from '../../../dev/process/process.ts';
import { breaks, farEnd, type Reaction } from './server.ts';

const id = '019ab0c2-0000-7000-8000-000000000000';
const refused: Reaction = { status: 503, body: { error: 'unavailable' }, headers: { 'retry-after': '2' } };
const limited: Reaction = { status: 429, body: { error: 'rate_limited' }, headers: { 'retry-after': '3600' } };
const unknown: Reaction = { status: 504, body: { error: 'timeout' } };
const done: Reaction = { status: 200, body: { data: {} } };
const created: Reaction = { status: 201, body: { data: { id } } };

/** A client that does not sleep, and what it would have slept. */
function clientOf(server: string, signal?: AbortSignal) {
  const pauses: number[] = [];
  const api = createApi({
    server,
    token: 'secret',
    ...(signal === undefined ? {} : { signal }),
    pause: async (ms) => void pauses.push(ms),
  });
  return { api, pauses };
}

const quota = (api: Api) => dataOf(api.GET('/api/v2/compute/quota'));
const create = (api: Api) => dataOf(api.POST('/api/v2/compute', { body: { name: 'web' } }));
const start = (api: Api) => dataOf(api.POST('/api/v2/compute/{id}/start', { params: { path: { id } } }));
const peer = (api: Api) => dataOf(api.POST('/api/forage/peers', { body: { name: 'phone' } }));
const patch = (api: Api) => dataOf(api.PATCH('/api/v2/compute/{id}', { params: { path: { id } }, body: { tag: '2' } }));
const wait = (api: Api) => dataOf(api.GET('/api/v2/compute/{id}/wait', { params: { path: { id } } }));

const cases: readonly [name: string, script: Reaction, ask: (api: Api) => Promise<unknown>, times: number][] = [
  ['a read after 503', refused, quota, 2],
  ['a create after 503', refused, create, 2],
  ['a peer after 503: nothing was executed', refused, peer, 2],
  ['a read after a break', breaks, quota, 2],
  ['a create after a break: it has a key', breaks, create, 2],
  ['a create of unknown outcome: it has a key', unknown, create, 2],
  ['a start of unknown outcome', unknown, start, 2],
  ['a peer after a break: it has a key', breaks, peer, 2],
  ['a peer of unknown outcome: it has a key', unknown, peer, 2],
  ['not an update of unknown outcome', unknown, patch, 1],
  ['not a wait that has ended', unknown, wait, 1],
  ['not after an hour', limited, quota, 1],
];

for (const [name, first, ask, times] of cases) {
  t.test(`sends again: ${name}`, async (t) => {
    const { url, asked } = await farEnd(t, first, ask === quota || ask === wait ? done : created);
    const { api } = clientOf(url);
    if (times === 1) await t.rejects(ask(api));
    else await ask(api);
    t.equal(asked.length, times);
    t.same(new Set(asked.map(({ body }) => body)).size, 1, 'the same body');
    t.same(new Set(asked.map(({ headers }) => headers['idempotency-key'])).size, 1, 'the same key');
    t.ok(asked.every(({ headers }) => headers.authorization === 'Bearer secret'));
  });
}

t.test('pauses for as long as the answer says, and not for ever', async (t) => {
  const { url, asked } = await farEnd(t, refused);
  const { api, pauses } = clientOf(url);
  await t.rejects(quota(api), { status: 503, code: 'unavailable', retryAfterS: 2 });
  t.equal(asked.length, clientAttempts);
  t.equal(pauses.length, clientAttempts - 1);
  t.ok(pauses.every((ms) => ms >= 2000));
});

t.test('two creates have two keys, and a start has none', async (t) => {
  const { url, asked } = await farEnd(t, created);
  const { api } = clientOf(url);
  await create(api);
  await create(api);
  await peer(api);
  await start(api);
  const keys = asked.map(({ headers }) => headers['idempotency-key']);
  t.equal(new Set(keys).size, 4);
  t.equal(keys[3], undefined);
});

t.test('an error says what the answer said', async (t) => {
  const { url } = await farEnd(
    t,
    {
      status: 422,
      body: { error: 'invalid', details: { name: ["can't be blank"], ports: ['one', 'two'] } },
      headers: { 'x-request-id': 'r-1' },
    },
    { status: 403, body: { error: 'over_quota', detail: { dimension: 'containers', requested: 21, max: 20 } } },
    { status: 502, body: 'a proxy' },
  );
  const { api } = clientOf(url);
  const invalid = await create(api).catch((error: unknown) => error);
  t.type(invalid, ApiError);
  t.match(invalid, { code: 'invalid', requestId: 'r-1', message: "name can't be blank" });
  t.same((invalid as ApiError).details['ports'], ['one', 'two']);
  t.match(await create(api).catch((error: unknown) => error), { code: 'over_quota', detail: { requested: 21 } });
  t.match(await create(api).catch((error: unknown) => error), { code: 'unknown', message: /answered 502/ });
});

t.test('a server that is not there is named, with the reason of the system', async (t) => {
  const port = await freePort();
  const { api, pauses } = clientOf(`http://127.0.0.1:${port}`);
  const error = await quota(api).catch((failure: unknown) => failure);
  t.type(error, ConnectionError);
  t.match((error as Error).message, /^http:\/\/127\.0\.0\.1:\d+ can't be reached: .*ECONNREFUSED/);
  t.equal(pauses.length, clientAttempts - 1);
});

t.test('a port that fetch asks no server at is refused at once', async (t) => {
  const { api, pauses } = clientOf('http://127.0.0.1:6000');
  await t.rejects(quota(api), { name: 'ConnectionError', message: /bad port/ });
  t.same(pauses, []);
});

t.test('the signal ends a request that is under way, and one that pauses', async (t) => {
  const abort = new AbortController();
  const { url, asked } = await farEnd(t, () => abort.abort());
  await t.rejects(quota(clientOf(url, abort.signal).api), InterruptedError);
  t.equal(asked.length, 1);
  await t.rejects(doneOf(clientOf(url, abort.signal).api.GET('/api/v2/compute')), InterruptedError);
  t.equal(asked.length, 1, 'nothing is sent after it');
});
