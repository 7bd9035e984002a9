import t from 'tap';
import { createApi } from '../../../cli/client/api.ts';
import { waitFor } from '../../../cli/client/wait.ts';
import { limits } from '../../../schemas/limits.ts';
import { farEnd } from './server.ts';

const id = '019ab0c2-0000-7000-8000-000000000000';
const over = { status: 504, body: { error: 'timeout' } };

t.test('a long wait is several requests', async (t) => {
  const { url, asked } = await farEnd(t, over, over, { status: 200, body: { data: { status: 'running' } } });
  const found = await waitFor(createApi({ server: url }), id, 'running', 3_600_000);
  t.equal(found?.status, 'running');
  t.equal(asked.length, 3);
  const [first] = asked;
  t.equal(first?.path, `/api/v2/compute/${id}/wait?status=running&timeout=${limits.clientWaitSeconds}`);
});

t.test('after the time there is no status', async (t) => {
  const { url, asked } = await farEnd(t, over);
  t.equal(await waitFor(createApi({ server: url }), id, 'stopped', 1), undefined);
  t.ok(asked.length >= 1);
});

t.test('a container that is being removed can reach no other status', async (t) => {
  const { url } = await farEnd(t, { status: 409, body: { error: 'conflict', message: 'it is being removed' } });
  await t.rejects(waitFor(createApi({ server: url }), id, 'running', 1000), /it is being removed/);
});
