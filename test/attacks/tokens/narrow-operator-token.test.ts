/**
 * A thief has a token for a part of the operator API, such as a VPN server's, or the key of an
 * issuer that may name only a few tenants. The test tries every route of the table: the token opens
 * its part and nothing else.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { routes, type Route } from '../../../schemas/routes.ts';
import { memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { createIssuer } from '../../gateway/tokens.ts';
import { temporaryFolder } from '../../support/folder.ts';

// Before the first test: tap ends a file that has a teardown and nothing to do for a moment.
const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const folder = temporaryFolder(t);
const guests = await createIssuer(join(folder, 'guests'), 'https://guests.test');
const entryOf = ({ name, audience, jwksFile }: typeof guests) => ({
  issuer: name,
  audience,
  algorithms: ['EdDSA', 'ES256', 'RS256'],
  jwks_file: jwksFile,
});
const issuersFile = join(folder, 'issuers.json');
writeFileSync(
  issuersFile,
  JSON.stringify([
    { ...entryOf(ground.issuer), tenants: ['*'], operators: true },
    { ...entryOf(guests), tenants: ['guest', 'guest-*'], operators: false },
  ]),
);
const gateway = await runGateway(t, ground, { env: { AUTH_ISSUERS_FILE: issuersFile } });

const id = '0190c9b0-0000-7000-8000-000000000000';
/** What a route needs in its query: a fault there would be named before the scope. */
const queries: Readonly<Record<string, string>> = { 'container.exec': '?command=id', 'container.forward': '?port=80' };
const pathOf = ({ name, path }: Route, network: string): string =>
  path
    .replace(':network', network)
    .replace(':tenant', 'acme')
    .replace(':key', 'h1')
    .replace(':token', id)
    .replace(/:(id|peer)/, id)
    .concat(queries[name] ?? '');

interface Answer {
  readonly status: number;
  readonly body: { readonly error?: string; readonly detail?: { readonly scope: string } } | undefined;
}

async function call(token: string, method: string, path: string): Promise<Answer> {
  const response = await fetch(gateway.url + path, { method, headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, body: isJson ? (JSON.parse(text) as Answer['body']) : undefined };
}

/**
 * Whether the scope sufficed. A 422 and the like would come first, so these requests have no body.
 */
const isOpen = ({ status, body }: Answer): boolean => status !== 401 && body?.error !== 'forbidden';

const wanting = (routes as readonly Route[]).filter(({ access }) => access !== 'public' && access !== 'pac');
const files = ['wireguard.conf', 'swanctl.conf', 'nftables.conf', 'server.pem', 'server-key.pem', 'ca.pem'];

t.test('a VPN server’s token opens the files of its network, and no other route', async (t) => {
  const token = await ground.issuer.mint({ tenant_id: 'acme', scope: 'network:demo' });
  const opened: string[] = [];
  for (const route of wanting) {
    // A body would be checked before the scope; without one, routes that need a body refuse for
    // that reason.
    if (route.body !== undefined) continue;
    if (isOpen(await call(token, route.method, pathOf(route, 'demo')))) opened.push(pathOf(route, 'demo'));
    const other = await call(token, route.method, pathOf(route, 'other'));
    t.notOk(isOpen(other), `${route.name} of another network`);
  }
  const prefix = '/api/v2/operator/networks/demo/';
  t.same(
    opened.filter((path) => !path.startsWith(prefix)),
    [],
  );
  for (const file of files) t.ok(opened.includes(prefix + file), file);
  const other = await call(token, 'GET', '/api/v2/operator/networks/other/server-key.pem');
  t.same(other.body, { error: 'forbidden', detail: { scope: 'network:other' } });
});

t.test('writes with a body are refused too, and change nothing', async (t) => {
  const token = await ground.issuer.mint({ tenant_id: 'acme', scope: 'network:demo operator:read' });
  for (const [method, path, body] of [
    ['POST', '/api/v2/compute', { repository: 'x', name: 'x' }],
    ['PUT', '/api/v2/operator/tenants/acme', {}],
    ['POST', '/api/v2/operator/tenants/acme/revocations', {}],
    ['POST', '/api/v2/operator/hosts', { key: 'h1', region: 'r' }],
  ] as const) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch(gateway.url + path, { method, headers, body: JSON.stringify(body) });
    t.equal(response.status, 403, path);
    t.match(await response.json(), { error: 'forbidden' });
  }
});

t.test('each narrow scope opens exactly the routes in the table', async (t) => {
  for (const scope of [
    'operator:read',
    'operator:tenants',
    'operator:hosts',
    'operator:networks',
    'operator:typo',
  ] as const) {
    const token = await ground.issuer.mint({ tenant_id: 'acme', scope: `openid ${scope} profile` });
    for (const route of wanting) {
      if (route.body !== undefined) continue;
      const answer = await call(token, route.method, pathOf(route, 'demo'));
      const expected = route.scopes?.some((known) => known === scope) === true;
      if (isOpen(answer) !== expected) t.fail(`${scope} ${route.name}: ${answer.status}`);
      if (!expected && route.access === 'operator' && answer.status === 403) {
        const [first = ''] = route.scopes ?? [];
        t.equal(answer.body?.detail?.scope, first === 'network:' ? 'network:demo' : first, route.name);
      }
    }
  }
  const whole = await ground.issuer.mint({ tenant_id: 'acme', scope: 'operator' });
  for (const route of wanting) {
    if (route.body !== undefined) continue;
    t.ok(isOpen(await call(whole, route.method, pathOf(route, 'demo'))), route.name);
  }
});

t.test('the table names scopes for the routes of the operator, and no others', (t) => {
  for (const { name, method, access, scopes } of routes as readonly Route[]) {
    t.equal(scopes !== undefined, access === 'operator', name);
    t.ok(scopes?.includes('operator:read') !== true || method === 'GET', `${name}: to read changes nothing`);
  }
  t.end();
});

t.test('an issuer can name only its own tenants, and operators only if configured', async (t) => {
  const status = async (claims: Record<string, string>): Promise<number> =>
    (await call(await guests.mint(claims), 'GET', '/api/v2/compute')).status;
  t.equal(await status({ tenant_id: 'guest' }), 200);
  t.equal(await status({ tenant_id: 'guest-7' }), 200);
  t.equal(await status({ tenant_id: 'acme' }), 401);
  t.equal(await status({ tenant_id: 'guests' }), 401);
  t.equal(await status({ tenant_id: 'guest', scope: 'openid profile' }), 200);
  for (const scope of ['operator', 'operator:read', 'network:demo']) {
    t.equal(await status({ tenant_id: 'guest', scope }), 401, scope);
  }
  t.equal((await call(await ground.issuer.mint({ tenant_id: 'acme' }), 'GET', '/api/v2/compute')).status, 200);
});
