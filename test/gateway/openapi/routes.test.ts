import t from 'tap';
import { publicRoutes } from '../../../gateway/openapi/routes.ts';
import { anyCall } from '../calls.ts';

t.test('readiness is asked at each request, liveness is not in doubt', async (t) => {
  let ready = false;
  const { healthz, readyz } = publicRoutes({ version: '1.2.3', ready: () => ready });
  t.match(await readyz(anyCall), { code: 'unavailable' });
  t.match(await healthz(anyCall), { code: 'ok' });
  ready = true;
  t.match(await readyz(anyCall), { code: 'ok', body: '{"status":"ready"}' });
});

t.test('the OpenAPI document names this version, and may be cached', async (t) => {
  const { openapi } = publicRoutes({ version: '1.2.3', ready: () => true });
  const answer = await openapi(anyCall);
  t.match(answer, { code: 'ok', headers: ['etag', /^"/, 'cache-control', /^public, max-age=\d+$/] });
  t.match(answer === 'streamed' ? undefined : JSON.parse(String(answer.body)), { info: { version: '1.2.3' } });
});
