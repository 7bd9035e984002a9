/** An autoscaler: what uses most of its memory gets twice as much, and never more than a cap. */
import t from 'tap';
import { answerOf, dataOf, writtenOf, type Api } from '../../../cli/client/api.ts';
import { allOf } from '../../../cli/client/pages.ts';
import { create, groundOf, settled } from './program.ts';

t.setTimeout(300_000);

const mebibyte = 1024 ** 2;
const capMib = 128;

/** @returns outcomes of the updates to more memory, by name */
async function scale(api: Api, project: string): Promise<Record<string, string | undefined>> {
  const done: Record<string, string | undefined> = {};
  const filter = { project: [project], status: ['running' as const], include: ['spec' as const] };
  const found = await allOf((query) => api.GET('/api/v2/containers', { params: { query: { ...query, ...filter } } }));
  for (const { container, etag = '' } of found) {
    const params = { path: { id: container.id } };
    const { mem_bytes: used, mem_limit: limit } = await dataOf(api.GET('/api/v2/compute/{id}/stats', { params }));
    if (used === null || limit === null || used < 0.5 * limit || limit >= capMib * mebibyte) continue;
    const body = { mem_limit: `${Math.min(capMib, (2 * limit) / mebibyte)}m` };
    // If somebody has changed it since, their change counts.
    const asked = { params: { ...params, header: { 'If-Match': etag } }, body };
    const { generation } = await writtenOf(api.PATCH('/api/v2/containers/{id}/spec', asked));
    done[container.name] = (await settled(api, container.id, generation)).outcome;
  }
  return done;
}

t.test('a container that fills its memory gets more, once, and its neighbours do not', async (t) => {
  const { api, image, imageOf } = await groundOf(t, 'autoscaler');
  // A file in memory counts as memory of the container.
  const hungry = await imageOf('head -c 20m /dev/zero > /data/fill; while :; do sleep 1; done');
  const process = { tmpfs: { '/data': '64m' } };
  const more = { project: 'shop', cpu_limit: '0.1', mem_limit: '32m' };
  const made = [
    await create(api, { name: 'hungry', image: hungry, process, ...more }),
    await create(api, { name: 'modest', image, ...more }),
  ];
  for (const { data, generation } of made) t.equal((await settled(api, data.id, generation)).outcome, 'done');
  t.same(await scale(api, 'shop'), { hungry: 'done' });
  const limitOf = async ({ data: { id } }: (typeof made)[number]) =>
    (await answerOf(api.GET('/api/v2/containers/{id}/spec', { params: { path: { id } } }))).body.data.mem_limit;
  t.same(await Promise.all(made.map(limitOf)), ['64m', '32m']);
  t.same(await scale(api, 'shop'), {}, 'it has enough now');
});
