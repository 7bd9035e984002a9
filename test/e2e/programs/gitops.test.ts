/** A reconciler: it makes what exists of a project what a folder declares, and nothing else. */
import t from 'tap';
import { answerOf, dataOf, doneOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { allOf } from '../../../cli/client/pages.ts';
import { create, groundOf, small } from './program.ts';

t.setTimeout(300_000);

type Body = Schemas['ContainerSpecPut'];

/** @returns its actions, by name */
async function reconcile(api: Api, project: string, wanted: readonly Body[]): Promise<Record<string, string>> {
  const done: Record<string, string> = {};
  const filter = { project: [project], include: ['spec' as const] };
  const found = await allOf((query) => api.GET('/api/v2/containers', { params: { query: { ...query, ...filter } } }));
  const there = new Map(found.map(({ container, etag }) => [container.name, { id: container.id, etag: etag ?? '' }]));
  for (const one of wanted) {
    const body = { ...one, project };
    const existing = there.get(one.name ?? '');
    there.delete(one.name ?? '');
    if (existing === undefined) {
      await create(api, body);
      done[one.name ?? ''] = 'create';
      continue;
    }
    const { id, etag } = existing;
    const params = { path: { id }, header: { 'If-Match': etag } };
    const asked = { params: { ...params, query: { dry_run: true as const } }, body };
    const { body: planned } = await answerOf(api.PUT('/api/v2/containers/{id}/spec', asked));
    if (!('plan' in planned) || planned.plan.action === 'none') continue;
    await doneOf(api.PUT('/api/v2/containers/{id}/spec', { params, body }));
    done[one.name ?? ''] = planned.plan.action;
  }
  for (const [name, { id, etag }] of there) {
    await doneOf(api.DELETE('/api/v2/compute/{id}', { params: { path: { id }, header: { 'If-Match': etag } } }));
    await dataOf(api.GET('/api/v2/compute/{id}/wait', { params: { path: { id }, query: { status: ['removed'] } } }));
    done[name] = 'delete';
  }
  return done;
}

t.test('a project is as its folder says, and a second look changes nothing', async (t) => {
  const { api, image } = await groundOf(t, 'gitops');
  await create(api, { name: 'other', image, project: 'elsewhere', ...small });
  const web = { name: 'web', image, ...small };
  const worker = { name: 'worker', image, process: { working_dir: '/' }, ...small };
  t.same(await reconcile(api, 'shop', [web, worker]), { web: 'create', worker: 'create' });
  t.same(await reconcile(api, 'shop', [web, worker]), {});
  const changed = [
    { ...web, labels: { tier: 'front' } },
    { ...worker, env: { A: '1' } },
  ];
  t.same(await reconcile(api, 'shop', changed), { web: 'change', worker: 'replace' });
  t.same(await reconcile(api, 'shop', [changed[0]!]), { worker: 'delete' });
  t.same(await reconcile(api, 'shop', [changed[0]!]), {});
  const left = await dataOf(api.GET('/api/v2/containers', {}));
  t.same(left.map(({ container }) => container.name).sort(), ['other', 'web'], 'another project is left alone');
});
