/** A migration before a deploy: a job that runs once, whose exit code and lines are the result. */
import t from 'tap';
import { dataOf, doneOf, type Answer, type Api, type Schemas } from '../../../cli/client/api.ts';
import type { paths } from '../../../cli/client/openapi.d.ts';
import { allOf } from '../../../cli/client/pages.ts';
import { create, groundOf, settled, small } from './program.ts';

t.setTimeout(300_000);

interface Ran {
  readonly exitCode: number | null;
  readonly lines: readonly string[];
}

type Query = NonNullable<paths['/api/v2/compute/{id}/logs']['get']['parameters']['query']>;

/** Without `follow`, the answer is a page. */
const page = (api: Api, id: string, query: Query) =>
  api.GET('/api/v2/compute/{id}/logs', { params: { path: { id }, query } }) as Promise<
    Answer<{ readonly data: Schemas['LogEntry'][]; readonly next_cursor?: string }>
  >;

/** Runs to the end, frees the name, and reads what it said: a log outlives its container. */
async function runOnce(api: Api, body: Schemas['ContainerSpecPut']): Promise<Ran> {
  const { data, generation } = await create(api, { ...body, policy: { restart: 'never' } });
  const params = { path: { id: data.id } };
  const { exit_code: exitCode } = await settled(api, data.id, generation);
  await doneOf(api.DELETE('/api/v2/compute/{id}', { params }));
  await dataOf(api.GET('/api/v2/compute/{id}/wait', { params: { ...params, query: { status: ['removed'] } } }));
  // Its host has handed over every line before it says that the container is gone.
  const order = 'asc' as const;
  const entries = await allOf((query) => page(api, data.id, { ...query, order }));
  return { exitCode: exitCode ?? null, lines: entries.map(({ line }) => line) };
}

t.test('a migration ends with its exit code and its lines, and its name is free again', async (t) => {
  const { api, imageOf } = await groundOf(t, 'migration');
  const image = await imageOf('echo one; echo two >&2; exit $CODE');
  const job = (CODE: string) => runOnce(api, { name: 'migrate', image, env: { CODE }, ...small });
  const good = await job('0');
  t.same([good.exitCode, [...good.lines].sort()], [0, ['one', 'two']]);
  t.equal((await job('7')).exitCode, 7, 'and the next run has the same name');
});
