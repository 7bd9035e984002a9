import t from 'tap';
import { createApi } from '../../../cli/client/api.ts';
import { clientAttempts } from '../../../cli/client/repeat.ts';
import { clientWaitAttempts, clientWaitSeconds, persist, waitFor } from '../../../cli/client/wait.ts';
import { ApiError, ConnectionError } from '../../../cli/client/errors.ts';
import { breaks, farEnd } from './server.ts';

const id = '019ab0c2-0000-7000-8000-000000000000';
const over = { status: 504, body: { error: 'timeout' } };

t.test('a long wait is several requests', async (t) => {
  const { url, asked } = await farEnd(t, over, over, { status: 200, body: { data: { status: 'running' } } });
  const found = await waitFor(createApi({ server: url }), id, ['running'], 3_600_000);
  t.equal(found?.status, 'running');
  t.equal(asked.length, 3);
  const [first] = asked;
  t.equal(first?.path, `/api/v2/compute/${id}/wait?status=running&timeout=${clientWaitSeconds}`);
});

t.test('after the time there is no status', async (t) => {
  const { url, asked } = await farEnd(t, over);
  t.equal(await waitFor(createApi({ server: url }), id, ['stopped'], 1), undefined);
  t.ok(asked.length >= 1);
});

t.test('a container that is being removed can reach no other status', async (t) => {
  const { url } = await farEnd(t, { status: 409, body: { error: 'conflict', message: 'it is being removed' } });
  await t.rejects(waitFor(createApi({ server: url }), id, ['running'], 1000), /it is being removed/);
});

t.test('a server that starts again ends no wait', async (t) => {
  const away = Array.from({ length: clientAttempts + 1 }, () => breaks);
  const { url, asked } = await farEnd(t, breaks, ...away, { status: 200, body: { data: { status: 'running' } } });
  const api = createApi({ server: url, pause: async () => undefined });
  t.match(await waitFor(api, id, ['running'], 60_000), { status: 'running' });
  t.equal(asked.length, clientAttempts + 3);
});

t.test('a wait for a server that stays away ends, and a refusal ends it at once', async (t) => {
  const ask = (error: Error) => {
    const asked = { times: 0 };
    const answer = persist(performance.now() + 60_000, () => {
      asked.times++;
      return Promise.reject(error);
    });
    return { asked, answer };
  };
  const away = ask(new ConnectionError('the server', new Error('refused')));
  await t.rejects(away.answer, ConnectionError);
  t.equal(away.asked.times, clientWaitAttempts);
  const refused = ask(new ApiError({ status: 403, headers: new Headers() }, { error: 'forbidden' }));
  await t.rejects(refused.answer, ApiError);
  t.equal(refused.asked.times, 1);
});

t.test('after its time a wait asks no more', async (t) => {
  let times = 0;
  const ask = () => {
    times++;
    return Promise.reject(new ConnectionError('the server', new Error('refused')));
  };
  await t.rejects(persist(performance.now(), ask), ConnectionError);
  t.equal(times, 1);
});
