import t from 'tap';
import { containerRoutes } from '../../../gateway/compute/routes.ts';
import { validateCreate } from '../../../gateway/validation/container.ts';
import { callOf, servicesWith } from '../calls.ts';

function createWith(body: unknown, idempotencyKey?: string) {
  const valid = validateCreate(body);
  if (!valid.ok) throw new Error(JSON.stringify(valid.faults));
  return callOf('container.create', { body: valid.value, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) });
}

t.test('a create carries the token’s tenant, new ids, and a hash of what it declares', async (t) => {
  const services = servicesWith();
  const { 'container.create': create } = containerRoutes(services);
  await create(createWith({ name: 'web', repository: 'library/nginx' }));
  await create(createWith({ name: 'web', repository: 'library/nginx' }, 'key'));
  await create(createWith({ repository: 'library/nginx', name: 'web', tag: null }, 'key'));
  const asks = services.asked.map(({ lane, question }) => ({ lane, ...question }));
  const same = { lane: 'write', type: 'container.create', tenant: 'acme', id: 'container', op: 'operation-00000000' };
  t.match(asks, [
    { ...same, idempotency: null },
    { ...same, idempotency: { key: 'key' } },
    { ...same, idempotency: { key: 'key' } },
  ]);
  t.match(asks[2], { idempotency: Object(asks[1])['idempotency'] }, 'however the body is written');
});

t.test('a list refuses a cursor that it did not give', async (t) => {
  const services = servicesWith();
  const { 'container.list': list } = containerRoutes(services);
  t.match(await list(callOf('container.list', { query: { limit: 10, cursor: 'x', label: undefined } })), {
    code: 'invalid',
    body: /next_cursor/,
  });
  await list(callOf('container.list', { query: { limit: 10, cursor: undefined, label: undefined } }));
  await list(callOf('container.list', { query: { limit: 10, cursor: undefined, label: ['team=web'] } }));
  t.match(services.asked, [
    { lane: 'read', question: { type: 'container.list', limit: 10, before: null } },
    { question: { labels: ['team=web'] } },
  ]);
  t.notOk('labels' in (services.asked[0]?.question ?? {}), 'none are asked for');
});
