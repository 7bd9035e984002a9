/** A Terraform provider's resource: create, read, plan, update and delete, with drift noticed. */
import t from 'tap';
import { answerOf, dataOf, doneOf, orNone, type Api, type Schemas } from '../../../cli/client/api.ts';
import { ApiError } from '../../../cli/client/errors.ts';
import { groundOf, small } from './program.ts';

t.setTimeout(300_000);

type Document = Schemas['ContainerSpec'];

/** State that a provider keeps. */
interface State {
  readonly id: string;
  readonly etag: string;
  readonly document: Document;
}

async function read(api: Api, id: string): Promise<State | undefined> {
  const found = await orNone(answerOf(api.GET('/api/v2/containers/{id}/spec', { params: { path: { id } } })));
  if (found === undefined) return undefined;
  return { id, etag: found.response.headers.get('etag') ?? '', document: found.body.data };
}

async function create(
  api: Api,
  body: Schemas['ContainerSpecPut'],
): Promise<{ readonly status: number; readonly state: State }> {
  const { response } = await answerOf(api.POST('/api/v2/containers', { body }));
  const [, id = ''] = /^\/api\/v2\/containers\/([^/]+)\/spec$/.exec(response.headers.get('location') ?? '') ?? [];
  const state = await read(api, id);
  if (state === undefined) throw new Error('it is not where Location says');
  return { status: response.status, state };
}

async function plan(api: Api, { id }: State, body: Schemas['ContainerSpecPut']) {
  const params = { path: { id }, query: { dry_run: true as const } };
  const { body: answer } = await answerOf(api.PUT('/api/v2/containers/{id}/spec', { params, body }));
  if (!('plan' in answer)) throw new Error('a dry run says what would be done');
  return answer.plan;
}

/** Only what was planned: 412 if somebody changed it meanwhile. */
async function update(api: Api, { id, etag }: State, body: Schemas['ContainerSpecPut']): Promise<State> {
  const params = { path: { id }, header: { 'If-Match': etag } };
  const { response, body: answer } = await answerOf(api.PUT('/api/v2/containers/{id}/spec', { params, body }));
  return { id, etag: response.headers.get('etag') ?? '', document: answer.data };
}

async function destroy(api: Api, { id }: State): Promise<void> {
  await doneOf(api.DELETE('/api/v2/compute/{id}', { params: { path: { id } } }));
  const query = { status: ['removed' as const], timeout: 60 };
  await dataOf(api.GET('/api/v2/compute/{id}/wait', { params: { path: { id }, query } }));
}

t.test('a resource is made, planned, changed and destroyed, and drift is seen', async (t) => {
  const { api, image } = await groundOf(t, 'terraform');
  const wanted = { name: 'web', image, env: { A: '1' }, ...small };
  const { status, state } = await create(api, wanted);
  t.equal(status, 201);
  t.same(await plan(api, state, wanted), { action: 'none', changed: [] }, 'what was applied needs no change');
  t.same(await plan(api, state, { ...wanted, env: { A: '2' } }), { action: 'replace', changed: ['env'] });
  t.same(await plan(api, state, { ...wanted, labels: { team: 'a' } }), { action: 'change', changed: ['labels'] });

  const labelled = await update(api, state, { ...wanted, labels: { team: 'a' } });
  t.not(labelled.etag, state.etag);
  t.same((await read(api, state.id))?.etag, labelled.etag);
  const stale = await update(api, state, wanted).catch((error: unknown) => error);
  t.equal(stale instanceof ApiError && stale.status, 412, 'somebody else changed it');
  const taken = await create(api, wanted).catch((error: unknown) => error);
  t.equal(taken instanceof ApiError && taken.status, 422, 'its name is taken');

  await destroy(api, labelled);
  t.equal(await read(api, state.id), undefined);
  await destroy(api, labelled).then(
    () => t.fail('it is gone'),
    (error: unknown) => t.equal(error instanceof ApiError && error.status, 404, 'and a second destroy sees it'),
  );
});
