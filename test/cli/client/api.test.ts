import t from 'tap';
import { createApi, dataOf, doneOf, orNone } from '../../../cli/client/api.ts';
import { farEnd } from './server.ts';

const params = { path: { network: 'office' } };

t.test('a missing thing is undefined; other refusals stay errors', async (t) => {
  const { url } = await farEnd(
    t,
    { status: 404, body: { error: 'not_found' } },
    { status: 403, body: { error: 'forbidden' } },
    { status: 200, body: { data: { name: 'office' } } },
    { status: 404, body: { error: 'not_found' } },
  );
  const api = createApi({ server: url });
  const ask = () => orNone(dataOf(api.GET('/api/v2/operator/networks/{network}', { params })));
  t.equal(await ask(), undefined);
  await t.rejects(ask(), { name: 'ApiError', code: 'forbidden' });
  t.match(await ask(), { name: 'office' });
  t.equal(await orNone(doneOf(api.DELETE('/api/v2/operator/networks/{network}', { params }))), undefined);
});
