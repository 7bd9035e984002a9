import t from 'tap';
import { prepareRoute } from '../../../gateway/pipeline/app-route.ts';
import { check, missing, paramsCanBe, refusalOf } from '../../../gateway/pipeline/check.ts';
import type { Handler } from '../../../gateway/call.ts';
import { createBodyValidators } from '../../../gateway/validation/bodies.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { routes, type RouteName } from '../../../schemas/routes.ts';
import { anyCall } from '../calls.ts';

const handler: Handler = () => ({ code: 'ok', body: '' });
const handlers = Object.fromEntries(routes.map(({ name }) => [name, handler])) as Record<RouteName, Handler>;
const validators = createBodyValidators(systemClock);

function prepared(name: RouteName, probe?: Handler) {
  const route = routes.find((one) => one.name === name);
  if (route === undefined) throw new Error(name);
  return prepareRoute(route, { handlers, probes: probe === undefined ? {} : { [name]: probe }, validators });
}

t.test('a route without a body takes none, and the others have a bound', (t) => {
  t.equal(prepared('container.get').bodyBoundBytes, 0);
  t.equal(prepared('tenant.revoke').bodyBoundBytes, limits.bodyDefaultBytes);
  t.equal(prepared('container.create').bodyBoundBytes, limits.bodyBytes);
  t.end();
});

t.test('a path parameter of the wrong form names nothing', (t) => {
  t.ok(paramsCanBe({}));
  t.ok(paramsCanBe({ key: 'host-1' }));
  t.notOk(paramsCanBe({ key: 'Host 1' }));
  t.notOk(paramsCanBe({ id: 'x' }));
  t.end();
});

t.test('faults of query and body are reported together', (t) => {
  const route = prepared('tenant.revoke');
  t.match(check(route, '', {}), { ok: true, body: {} });
  t.match(check(route, '', { jti: 7, x: 1 }), {
    ok: false,
    faults: { jti: ['must be a string'], x: ['is not known'] },
  });
  t.match(check(prepared('container.list'), 'limit=x', undefined), {
    ok: false,
    faults: { limit: [/must be an integer/] },
  });
  t.match(check(prepared('container.list'), '', undefined), { ok: true, query: { limit: Number } });
  t.end();
});

t.test('a caller without the scope, or from another site, is refused', (t) => {
  const { identity } = anyCall;
  if (identity === undefined) throw new Error('no identity');
  const caller = (scopes: string[], crossSite = false) =>
    ({ kind: 'admitted', identity: { ...identity, scopes }, crossSite, isOfOurs: true }) as const;
  const hosts = prepared('host.list');
  t.equal(refusalOf(caller(['operator']), hosts, {}), undefined);
  t.match(refusalOf(caller([]), hosts, {}), { code: 'forbidden', body: /"scope"/ });
  const list = prepared('container.list');
  t.equal(refusalOf(caller([]), list, {}), undefined);
  t.match(refusalOf(caller(['operator:read']), list, {}), { code: 'forbidden', body: /"scope":"read"/ });
  t.match(refusalOf(caller(['operator'], true), hosts, {}), { code: 'forbidden' });
  t.end();
});

t.test('an invalid request about something that does not exist is 404', async (t) => {
  const probe = (code: 'ok' | 'not_found' | 'unavailable') => prepared('container.wait', () => ({ code, body: '' }));
  t.match(await missing(probe('not_found'), anyCall), { code: 'not_found' });
  t.equal(await missing(probe('ok'), anyCall), undefined);
  t.equal(await missing(probe('unavailable'), anyCall), undefined);
  t.equal(await missing(prepared('container.wait'), anyCall), undefined);
});
