import t from 'tap';
import { createApi } from '../../../cli/client/api.ts';
import { allOf, itemsOf } from '../../../cli/client/pages.ts';
import { farEnd } from './server.ts';

const page = (names: readonly string[], next?: string) => ({
  status: 200,
  body: { data: names.map((name) => ({ name })), ...(next === undefined ? {} : { next_cursor: next }) },
});

t.test('all pages, each with the cursor of the one before', async (t) => {
  const { url, asked } = await farEnd(t, page(['a', 'b'], 'c1'), page([], 'c/2'), page(['c']));
  const api = createApi({ server: url });
  const items = await allOf((query) => api.GET('/api/v2/compute', { params: { query } }));
  t.same(
    items.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  t.same(
    asked.map(({ path }) => path),
    ['/api/v2/compute', '/api/v2/compute?cursor=c1', '/api/v2/compute?cursor=c%2F2'],
  );
});

t.test('a page that nobody reads is not asked for', async (t) => {
  const { url, asked } = await farEnd(t, page(['a', 'b'], 'c1'));
  const api = createApi({ server: url });
  for await (const { name } of itemsOf((query) => api.GET('/api/v2/compute', { params: { query } }))) {
    t.equal(name, 'a');
    break;
  }
  t.equal(asked.length, 1);
});
