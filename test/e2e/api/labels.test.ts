/** Labels of containers, wherever they are shown, on real servers and programs. */
import t from 'tap';
import type { Container, ContainerStatusView } from '../../../schemas/api/container.ts';
import type { Event } from '../../../schemas/api/event.ts';
import { steady } from '../../host-agent/support/rig.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(300_000);
const compute = '/api/v2/compute';

interface Item {
  readonly container: Container;
  readonly labels: Readonly<Record<string, string>>;
}

t.test('labels', async (t) => {
  const rig = await sharedStack(t);
  const acme = await rig.client(rig.tenant('labels'));
  const body = { ...(await imageRunning(rig, steady)), cpu_limit: '0.1', mem_limit: '16m' };
  const create = (more: object) => acme.call<{ data: Container }>('POST', compute, { ...body, ...more });
  const { data: web } = (await create({ name: 'web', labels: { team: 'shop', tier: '' } })).body;
  const { data: db } = (await create({ name: 'db' })).body;
  t.equal((await acme.wait(web, 'running')).status, 200);
  const path = `${compute}/${web.id}/labels`;
  const of = async <T>(path: string): Promise<T> => (await acme.call<{ data: T }>('GET', path)).body.data;

  t.same(await of(path), { team: 'shop', tier: '' });
  t.notOk('labels' in web, 'the container has its sixteen fields');
  const before = await of<ContainerStatusView>(`${compute}/${web.id}/status`);
  t.match(before, { labels: { team: 'shop' } });
  t.match(await acme.call('PUT', path, { team: 'web' }), { status: 200, body: { data: { team: 'web' } } });
  const after = await of<ContainerStatusView>(`${compute}/${web.id}/status`);
  t.same(after.labels, { team: 'web' });
  t.same([after.generation, after.started_at], [before.generation, before.started_at], 'nothing starts again');

  t.same(
    (await of<Item[]>('/api/v2/containers')).map(({ container: { name }, labels }) => [name, labels]),
    [
      ['db', {}],
      ['web', { team: 'web' }],
    ],
  );
  for (const list of [compute, '/api/v2/containers'])
    t.same(
      [(await of<unknown[]>(`${list}?label=team=web`)).length, (await of<unknown[]>(`${list}?label=none`)).length],
      [1, 0],
      list,
    );
  t.match(await acme.call('GET', `${compute}?label=-a`), { status: 422, body: { details: { label: [/must be/] } } });
  t.match(await acme.call('PATCH', path, { tier: 'a' }), { status: 200, body: { data: { team: 'web', tier: 'a' } } });
  t.match(await acme.call('PATCH', path, { tier: null }), { body: { data: { team: 'web' } } });
  const events = await of<Event[]>(`${compute}/events`);
  const changes = events.filter(({ type }) => type === 'labels_changed');
  t.equal(changes.length, 3, 'each change is one event');
  t.match(changes[0], { container_id: web.id, generation: before.generation, message: null });
  t.ok(events.length > 0);
  for (const { container_id, labels } of events) t.same(labels, container_id === web.id ? { team: 'web' } : {});
  t.match(await of<Event[]>(`${compute}/${web.id}/events`), [{ labels: { team: 'web' } }]);

  t.match(await acme.call('PUT', path, { '-a': 'x' }), { status: 422, body: { details: { '-a': [/^keys must/] } } });
  t.match(await create({ name: 'odd', labels: { a: 1 } }), { status: 422, body: { details: { labels: [/strings/] } } });
  const missing = `${compute}/01890000-0000-7000-8000-000000000001/labels`;
  t.match(await acme.call('PUT', missing, { '-a': 'x' }), { status: 404 });
  const other = await rig.client(rig.tenant('labels-other'));
  t.match(await other.call('GET', path), { status: 404 }, "another tenant's");

  const project = `${compute}/${db.id}/project`;
  t.same(await of(project), { project: null });
  t.match(await acme.call('PUT', project, { project: 'shop-1' }), { body: { data: { project: 'shop-1' } } });
  t.match(await of<ContainerStatusView>(`${compute}/${db.id}/status`), { project: 'shop-1', labels: {} });
  t.match((await of<Item[]>('/api/v2/containers'))[0], { container: { name: 'db' }, project: 'shop-1' });
  t.match(await acme.call('PUT', project, { project: 'a b' }), { status: 422, body: { details: { project: [/./] } } });
  t.match(await acme.call('PUT', project, { name: 'x' }), { status: 422 });
  t.match(await acme.call('PUT', project, { project: null }), { body: { data: { project: null } } });

  await acme.remove(web);
  t.equal((await acme.wait(web, 'removed')).status, 200);
  const removed = (await of<Event[]>(`${compute}/${web.id}/events`)).at(-1);
  t.match(removed, { type: 'removed', labels: { team: 'web' } }, 'after its end');
  await acme.remove(db);
});
