import { Registry } from 'prom-client';
import t from 'tap';
import type { Admission } from '../../../gateway/auth/gate.ts';
import type { Call, Handler } from '../../../gateway/call.ts';
import { Dispatcher, type DispatcherOptions } from '../../../gateway/pipeline/dispatch.ts';
import type { RequestHead } from '../../../gateway/http/engine/engine.ts';
import { Permits } from '../../../lib/permits.ts';
import { createMeters } from '../../../gateway/metrics.ts';
import { createBodyValidators } from '../../../gateway/validation/bodies.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { routes, type RouteName } from '../../../schemas/routes.ts';
import { anyCall, exchangeOf } from '../calls.ts';
import { recordingLog } from '../support.ts';

const settled = (): Promise<void> => new Promise(setImmediate);
const refused = (code: 'unauthenticated' | 'rate_limited') =>
  ({ kind: 'refused', result: { code, body: '' } }) as const satisfies Admission;

function admitted(scopes: readonly string[] = []): Admission {
  const { identity } = anyCall;
  if (identity === undefined) throw new Error('no identity');
  return { kind: 'admitted', identity: { ...identity, scopes }, crossSite: false, isOfOurs: true };
}

const permits = (inAll = 10, perTenant = inAll): Permits => new Permits({ inAll, perClient: inAll, perTenant });

/** A dispatcher over the routes of the API: each handler is `handler`, each caller `caller`. */
function stage({
  handler = () => ({ code: 'ok', body: '{}' }),
  caller = admitted(),
  ...more
}: { handler?: Handler; caller?: Admission } & Partial<DispatcherOptions> = {}) {
  const log = recordingLog();
  const metered: unknown[] = [];
  const expected: [bytes: number, client: string][] = [];
  const handlers = Object.fromEntries(routes.map(({ name }) => [name, handler])) as Record<RouteName, Handler>;
  const dispatcher = new Dispatcher({
    routes,
    handlers,
    probes: {},
    validators: createBodyValidators(systemClock),
    gate: {
      admit: () => caller,
      limitedByFailures: () => undefined,
      limitedByAddress: () => undefined,
      rateHeaders: () => [],
      clientOf: ({ address }) => address,
      addressOf: ({ address }) => address,
    },
    urlTokens: { admit: () => Promise.resolve(refused('unauthenticated')) },
    notes: { settle: (_call, handled) => Promise.resolve(handled) },
    meters: {
      ...createMeters(new Registry()),
      request: (route, status, _seconds, waited) => void metered.push({ route, status, waited }),
      rateLimited: (what) => void metered.push({ limited: what }),
    },
    once: { ask: () => Promise.resolve({ code: 'ok', body: '{"data":null}' }), vault: undefined },
    log,
    clock: { nowMs: () => 0, monotonicMs: () => 1000 },
    requestDeadlineMs: 500,
    requestIdPrefix: 'gw',
    permits: permits(),
    publicPermits: permits(),
    enrolPermits: permits(),
    accessLog: false,
    ...more,
  });
  const dispatch = async (head: Partial<RequestHead>, body = '', change: object = {}) => {
    const exchange = Object.assign(exchangeOf(head, body), change);
    exchange.body.expect = (bytes, client) => void expected.push([bytes, client]);
    dispatcher.dispatch(exchange);
    await settled();
    return exchange.replies[0];
  };
  return { dispatch, log, metered, expected };
}

const list = { path: '/api/v2/compute' };
const json = { contentType: 'application/json' };

const operate = {
  method: 'PATCH',
  path: '/api/v2/operator/tenants/acme/containers/018f0000-0000-7000-8000-000000000001',
  headers: json,
};

t.test('the first fault that the contract names is the answer', async (t) => {
  const request = {
    head: { ...operate, path: operate.path.slice(0, -1), headers: {}, query: 'a'.repeat(limits.urlBytes) },
    body: 'x'.repeat(limits.bodyBytes + 1),
    caller: refused('unauthenticated') as Admission,
    permits: permits(0),
  };
  // From the worst request to a good one: each row mends the fault that was the answer before it.
  const steps: [status: number, mended: Partial<typeof request>][] = [
    [400, {}],
    [503, { head: { ...request.head, query: '' } }],
    [401, { permits: permits(1, 0) }],
    [429, { caller: admitted() }],
    [413, { permits: permits() }],
    [415, { body: '{' }],
    [400, { head: { ...request.head, query: '', headers: json } }],
    [404, { body: '{"pull_policy":7}' }],
    [422, { head: { ...operate, query: '' } }],
    [403, { body: '{"pull_policy":"always"}' }],
    [200, { caller: admitted(['operator:tenants']) }],
  ];
  let handled = 0;
  const handler: Handler = () => (handled++, { code: 'ok', body: '{}' });
  for (const [number, [status, mended]] of steps.entries()) {
    const { head, body, ...rest } = Object.assign(request, mended);
    t.equal((await stage({ handler, ...rest }).dispatch(head, body))?.status, status, `step ${number}`);
  }
  t.equal(handled, 1, 'only the good request reaches the handler');
});

t.test('a request that waits for nothing is answered before its dispatch returns', async (t) => {
  const rows: [head: Partial<RequestHead>, with_: Parameters<typeof stage>[0], status: number | undefined][] = [
    [{ path: '/healthz' }, {}, 200],
    [list, {}, 200],
    [{ ...list, query: 'limit=x' }, {}, 422],
    [{ ...list, method: 'OPTIONS' }, {}, 204],
    [{ path: '/api/v2/nothing' }, {}, 404],
    [list, { caller: refused('unauthenticated') }, 401],
    [list, { permits: permits(0) }, 503],
    [operate, {}, undefined],
    [{ path: '/api/forage/config/x' }, {}, undefined],
  ];
  for (const [head, more, status] of rows) {
    const statuses: number[] = [];
    const answered = stage(more).dispatch(head, '{}', {
      reply: ({ status: given }: { readonly status: number }) => void statuses.push(given),
    });
    t.equal(statuses[0], status, `${head.method ?? 'GET'} ${head.path}`);
    await answered;
    t.equal(statuses.length, 1, 'each is answered once');
  }
});

t.test('an invalid request shows what exists only to a caller who may know', async (t) => {
  let probed = 0;
  const answered = async (scopes: string[], code: 'not_found' | 'ok'): Promise<number | undefined> => {
    const probes = { 'container.operate': (() => (probed++, { code, body: '' })) as Handler };
    return (await stage({ caller: admitted(scopes), probes }).dispatch(operate, '{"x":1}'))?.status;
  };
  t.equal(await answered(['operator'], 'not_found'), 404);
  t.equal(await answered(['operator'], 'ok'), 422);
  t.equal(probed, 2);
  t.equal(await answered([], 'not_found'), 422);
  t.equal(probed, 2, 'no owner is asked for a caller without the scope');
});

t.test('each kind of request has permits of its own, and probes need none', async (t) => {
  const rows: [head: Partial<RequestHead>, full: Partial<DispatcherOptions>, status: number][] = [
    [list, { permits: permits(0) }, 503],
    [list, { publicPermits: permits(0), enrolPermits: permits(0) }, 200],
    [{ path: '/api/v2/openapi.json' }, { publicPermits: permits(0) }, 503],
    [{ path: '/api/v2/openapi.json' }, { permits: permits(0), enrolPermits: permits(0) }, 200],
    [{ path: '/api/v2/hosts/enrol', method: 'POST' }, { enrolPermits: permits(0) }, 503],
    [{ path: '/api/v2/hosts/enrol', method: 'POST' }, { permits: permits(0), publicPermits: permits(0) }, 415],
    [{ path: '/healthz' }, { permits: permits(0), publicPermits: permits(0), enrolPermits: permits(0) }, 200],
  ];
  for (const [head, full, status] of rows) {
    const reply = await stage(full).dispatch(head, 'x');
    t.equal(reply?.status, status, `${head.path} without ${Object.keys(full).join(', ')}`);
  }
});

t.test('a permit is held until the reply is written, or released by the handler before', async (t) => {
  const held = permits();
  let written = (): void => {};
  const { dispatch, expected } = stage({ permits: held });
  await dispatch(list, '', { whenFinished: (listener: () => void) => (written = listener) });
  t.same([held.taken, held.tenants.get('acme')?.count], [1, 1]);
  written();
  t.same([held.taken, held.tenants.size], [0, 0]);
  t.same(expected, [[0, '192.0.2.1']], 'a route without a body expects none');
  const takenBy: number[] = [];
  const handler = ({ releasePermit }: Call): 'streamed' => {
    releasePermit();
    takenBy.push(held.taken);
    return 'streamed';
  };
  const { dispatch: stream, metered } = stage({ permits: held, handler });
  t.equal(await stream(list), undefined, 'the handler has used the exchange itself');
  t.same(takenBy, [0]);
  t.same(metered, [{ route: 'container.list', status: 200, waited: true }]);
});

t.test('429 for too many in flight counts as a limit of the client or tenant; 503 does not', async (t) => {
  const rows: [Permits, number, unknown[]][] = [
    [new Permits({ inAll: 1, perClient: 0, perTenant: 1 }), 429, [{ limited: 'address' }]],
    [new Permits({ inAll: 1, perClient: 1, perTenant: 0 }), 429, [{ limited: 'tenant' }]],
    [new Permits({ inAll: 0, perClient: 1, perTenant: 1 }), 503, []],
  ];
  for (const [permits, status, limits] of rows) {
    const { dispatch, metered } = stage({ permits });
    await dispatch(list);
    t.same(metered, [...limits, { route: 'container.list', status, waited: false }]);
    t.equal(permits.taken, 0, 'no permit is lost');
  }
});

t.test('a handler that throws, and a reply that cannot be written, fail only their request', async (t) => {
  const { dispatch, log } = stage({ handler: () => Promise.reject(new Error('a bug')) });
  t.match(await dispatch({ ...list, headers: { requestId: 'r-1' } }), { status: 500, body: '{"error":"internal"}' });
  t.match(log.events, [{ event: 'request_failed', fields: { requestId: 'r-1', route: 'container.list' } }]);
  const gone = stage();
  await gone.dispatch(list, '', {
    reply: () => {
      throw new Error('the socket is gone');
    },
  });
  t.match(gone.log.events, [{ event: 'reply_failed' }]);
  t.equal((await gone.dispatch(list))?.status, 200);
});

t.test('a request has the id that its client gave, or the next of this process', async (t) => {
  const calls: Call[] = [];
  const { dispatch } = stage({ handler: (call) => (calls.push(call), { code: 'ok', body: '' }) });
  for (const requestId of ['a-1.b_2', 'a b', 'x'.repeat(65), undefined]) {
    await dispatch({ ...list, headers: requestId === undefined ? {} : { requestId } });
  }
  t.same(
    calls.map(({ requestId }) => requestId),
    ['a-1.b_2', 'gw-0', 'gw-1', 'gw-2'],
  );
  t.match(calls[0], { deadlineMs: 1500, client: '192.0.2.1', identity: { tenant: 'acme' } });
});
