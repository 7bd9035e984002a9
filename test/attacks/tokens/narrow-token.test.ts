/**
 * A thief has a token with few scopes, such as a build server's or a VPN server's, or the key of an
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
import { tenantScopes } from '../../../schemas/scopes.ts';
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
/** Valid queries and bodies of routes: a gateway would report faults in them before the scope. */
const queries: Readonly<Record<string, string>> = { 'container.exec': '?command=id', 'container.forward': '?port=80' };
const network = { endpoint: 'vpn.example.com', ipv4_pool: '10.86.0.0/24' };
const bodies: Readonly<Record<string, object>> = {
  'container.create': { repository: 'x', name: 'x' },
  'registry.put': { username: 'u', password: 'p' },
  'secret.put': { value: 'v' },
  'container.update': { tag: 'x' },
  'project.put': { project: 'shop' },
  'container.rollback': { version: 1 },
  'container.run': { command: ['id'] },
  'spec.create': { name: 'x', image: { repository: 'x' } },
  'spec.put': { name: 'x', image: { repository: 'x' } },
  'host.create': { key: 'h1', region: 'r' },
  'network.create': { name: 'office', ...network },
  'network.put': network,
  'network.servers.put': { host_keys: ['h1'] },
  'peer.create': { name: 'phone' },
  'key.create': { name: 'ci', scopes: ['admin'] },
  'peer.token.create': { scope: 'pac' },
};
const pathOf = ({ name, path }: Route, network: string): string =>
  path
    .replace(':network', network)
    .replace(':tenant', 'another')
    .replace(':key_id', id)
    .replace(':key', 'h1')
    .replace(':token', id)
    .replace(':link', id)
    .replace(':secret', 'db')
    .replace(':registry', 'docker.io')
    .replace(/:(id|peer)/, id)
    .concat(queries[name] ?? '');

interface Answer {
  readonly status: number;
  readonly body: { readonly error?: string; readonly detail?: { readonly scope: string } } | undefined;
}

async function get(token: string, path: string, method = 'GET', sent?: object): Promise<Answer> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(sent && { 'content-type': 'application/json' }) },
    ...(sent && { body: JSON.stringify(sent) }),
  });
  const type = response.headers.get('content-type') ?? '';
  if (type.startsWith('text/event-stream')) {
    await response.body?.cancel();
    return { status: response.status, body: undefined };
  }
  const text = await response.text();
  const isJson = type.startsWith('application/json');
  return { status: response.status, body: isJson ? (JSON.parse(text) as Answer['body']) : undefined };
}

async function call(token: string, route: Route, network = 'demo'): Promise<Answer> {
  const sent = route.body === undefined ? undefined : (bodies[route.name] ?? {});
  const answer = await get(token, pathOf(route, network), route.method, sent);
  if (answer.status === 422) throw new Error(`${route.name}: its body above is not valid`);
  return answer;
}

/** True if the scope sufficed. */
const isOpen = ({ status, body }: Answer): boolean => status !== 401 && body?.error !== 'forbidden';

const wanting = (routes as readonly Route[]).filter(({ access }) => access !== 'public' && access !== 'pac');
const files = ['wireguard.conf', 'swanctl.conf', 'nftables.conf', 'server.pem', 'server-key.pem', 'ca.pem'];

t.test('a VPN server’s token opens the files of its network, and no other route', async (t) => {
  const token = await ground.issuer.mint({ tenant_id: 'acme', scope: 'network:demo' });
  const opened: string[] = [];
  for (const route of wanting) {
    if (isOpen(await call(token, route))) opened.push(pathOf(route, 'demo'));
    t.notOk(isOpen(await call(token, route, 'other')), `${route.name} of another network`);
  }
  const prefix = '/api/v2/operator/networks/demo/';
  t.same(
    opened.filter((path) => !path.startsWith(prefix)),
    [],
  );
  for (const file of files) t.ok(opened.includes(prefix + file), file);
  const other = await get(token, '/api/v2/operator/networks/other/server-key.pem');
  t.same(other.body, { error: 'forbidden', detail: { scope: 'network:other' } });
});

t.test('each scope opens exactly the routes in the table', async (t) => {
  for (const scope of [
    ...tenantScopes,
    'operator:read',
    'operator:tenants',
    'operator:hosts',
    'operator:networks',
    'operator:typo',
  ] as const) {
    const token = await ground.issuer.mint({ tenant_id: 'acme', scope: `openid ${scope} profile` });
    for (const route of wanting) {
      const answer = await call(token, route);
      const expected = route.scopes?.some((known) => known === scope) === true;
      if (isOpen(answer) !== expected) t.fail(`${scope} ${route.name}: ${answer.status}`);
      if (!expected) {
        const [first = ''] = route.scopes ?? [];
        t.equal(answer.body?.detail?.scope, first === 'network:' ? 'network:demo' : first, route.name);
      }
    }
  }
  const whole = await ground.issuer.mint({ tenant_id: 'acme', scope: 'operator' });
  const unscoped = await ground.issuer.mint({ tenant_id: 'acme', scope: 'openid profile' });
  for (const route of wanting) {
    t.ok(isOpen(await call(whole, route)), route.name);
    const isOfTenant = route.access !== 'operator';
    t.equal(isOpen(await call(unscoped, route)), isOfTenant, `${route.name}: no scope`);
  }
});

t.test('an issuer can name only its own tenants, and operators only if configured', async (t) => {
  const status = async (claims: Record<string, string>): Promise<number> =>
    (await get(await guests.mint(claims), '/api/v2/compute')).status;
  t.equal(await status({ tenant_id: 'guest' }), 200);
  t.equal(await status({ tenant_id: 'guest-7' }), 200);
  t.equal(await status({ tenant_id: 'acme' }), 401);
  t.equal(await status({ tenant_id: 'guests' }), 401);
  t.equal(await status({ tenant_id: 'guest', scope: 'openid profile' }), 200);
  for (const scope of ['operator', 'operator:read', 'network:demo']) {
    t.equal(await status({ tenant_id: 'guest', scope }), 401, scope);
  }
  t.equal((await get(await ground.issuer.mint({ tenant_id: 'acme' }), '/api/v2/compute')).status, 200);
});
