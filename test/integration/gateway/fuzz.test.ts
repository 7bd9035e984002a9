/**
 * Random requests made from the route table: the gateway never answers 500, answers as the OpenAPI
 * document says, and shows nothing of another tenant.
 */
import fc from 'fast-check';
import t from 'tap';
import { v4 as uuid } from 'uuid';
import { routes, type Route } from '../../../schemas/routes.ts';
import { hasControls } from '../../../schemas/visible.ts';
import { faultsOf } from '../../support/http/api-answers.ts';
import { bodies as json } from '../../support/http/bodies.ts';
import { usualEngines, memoryOwner, recordingLog, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from './support.ts';

const ground = await startGround(t);
const owner = memoryOwner();
serveOwner(ground.nc, owner);
const secret = 'secret-of-the-rival';
const vaultKeys = `k1:${Buffer.alloc(32, 1).toString('base64')}`;
const rivalId = uuid();
owner.containers.set(`rival ${rivalId}`, { id: rivalId, tenant_id: 'rival', name: secret } as never);
const tokens = [
  undefined,
  await ground.issuer.mint(),
  await ground.issuer.mint({ tenant_id: 'ops', scope: 'operator' }),
  await ground.issuer.mint({ exp: 1 }),
  'x.y.z',
];
const [, tenantToken] = tokens;

const odd = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 10 }),
  fc.constantFrom(
    '..',
    '.',
    '%00',
    '%2f',
    '%',
    'quota',
    'events',
    '*',
    '>',
    'a.b',
    rivalId,
    rivalId.toUpperCase(),
    uuid(),
  ),
);
const requests = fc.record({
  route: fc.constantFrom<Route>(...routes.filter(({ name }) => name !== 'openapi')),
  method: fc.option(fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'), { freq: 8 }),
  parts: fc.array(odd, { minLength: 3, maxLength: 3 }),
  suffix: fc.option(odd, { freq: 10 }),
  query: fc.dictionary(fc.constantFrom('limit', 'cursor', 'region', 'status', 'timeout', 'tenant', 'host', 'x'), odd),
  body: fc.oneof(
    json.map((value) => JSON.stringify(value)),
    fc.string({ maxLength: 30 }),
  ),
  token: fc.constantFrom(...tokens, tenantToken, tenantToken, tenantToken),
  asCookie: fc.boolean(),
  contentType: fc.constantFrom('application/json', 'application/json', 'application/json; charset=utf-8', 'text/plain'),
});

/**
 * A segment of the wrong form matches no route: under a guarded prefix the answer is then 401, for
 * a public route too.
 */
const namesNothing = (path: string): boolean => /%(?:00|2f|(?![\da-f]{2}))/i.test(path) || hasControls(decoded(path));

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

for (const engine of usualEngines) {
  t.test(`on ${engine}`, async (t) => {
    const log = recordingLog();
    const { url } = await runGateway(t, ground, { engine, log, env: { VAULT_KEYS: vaultKeys } });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(requests, async (request) => {
        const { route, parts, suffix, token, asCookie } = request;
        const escaped = (part: string): string =>
          part.startsWith('%') || part.startsWith('.') ? part : encodeURIComponent(part);
        let at = 0;
        const path = route.path.replaceAll(/:\w+/g, () => escaped(parts[at++ % 3] || 'x').replaceAll('%EF%BF%BD', 'x'));
        const query = new URLSearchParams({
          ...request.query,
          ...(route.name === 'container.wait' ? { timeout: '1' } : {}),
        });
        const method = request.method ?? route.method;
        const sendsBody = method !== 'GET' && method !== 'HEAD';
        const response = await fetch(
          `${url}${path}${suffix === null ? '' : `/${escaped(suffix)}`}?${query.toString()}`,
          {
            method,
            redirect: 'manual',
            headers: {
              ...(token === undefined
                ? {}
                : asCookie
                  ? { cookie: `_dro_token=${token}` }
                  : { authorization: `Bearer ${token}` }),
              ...(sendsBody ? { 'content-type': request.contentType } : {}),
            },
            ...(sendsBody ? { body: request.body } : {}),
          },
        );
        const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
        if (isStream) await response.body?.cancel();
        const text = isStream ? '' : await response.text();
        count++;
        const { status } = response;
        const said = `${method} ${path}: ${status} ${text.slice(0, 200)}`;
        if (status === 500) throw new Error(`${said} ${JSON.stringify(log.events.at(-1)?.fields)}`);
        // `fetch` resolves `.` and `..` before it sends the request, so another route would answer.
        const asked = new URL(response.url).pathname;
        const faults = namesNothing(asked)
          ? []
          : faultsOf({ method, path: asked, status, headers: response.headers, text });
        if (faults.length > 0) throw new Error(`${said}\n${faults.join('\n')}`);
        if (text.includes(secret)) throw new Error(`${said}: another tenant's`);
        if (status === 422 && method !== 'HEAD' && route.forPeople !== true) {
          const { details } = JSON.parse(text) as { details: Record<string, unknown[]> };
          if (Object.values(details).flat().length === 0) throw new Error(said);
        }
      }),
      { numRuns: 1500 },
    );
    t.equal(count >= 1500, true);
    t.same(
      log.events.filter(({ event }) => event.endsWith('_failed')),
      [],
    );
  });
}
