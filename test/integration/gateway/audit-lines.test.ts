/**
 * The audit: every request that writes leaves one line, whatever became of it, and no line has a
 * value that was sent. A real owner, a real gateway, and the streams that they write and read.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { jetstreamManager } from '@nats-io/jetstream';
import { createUser } from '@nats-io/nkeys';
import t from 'tap';
import { isAudited } from '../../../gateway/audit/cause.ts';
import { readStream } from '../../../lib/nats/direct-reads.ts';
import type { AuditLine } from '../../../schemas/api/audit/line.ts';
import { streams } from '../../../schemas/records/buckets.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { routes, type RouteName } from '../../../schemas/routes.ts';
import { signedRenewal } from '../../support/host-user.ts';
import { until } from '../../support/until.ts';
import { runGateway, startGround, startOwnerOn } from './support.ts';

const containers = '/api/v2/containers';
const compute = '/api/v2/compute';
const operatorApi = '/api/v2/operator';
const peersApi = '/api/forage';
const absent = '01890000-0000-7000-8000-000000000000';
/** Secret that a browser sends with a one-time link. */
const verifier = randomBytes(32).toString('base64url');
const canary = `canary-${randomBytes(8).toString('hex')}`;

const ground = await startGround(t);
const owner = await startOwnerOn(t, ground);
const keys = `k1:${randomBytes(32).toString('base64')}`;
const gateway = await runGateway(t, ground, {
  env: { VAULT_KEYS: keys, PUBLIC_URL: 'https://vpn.test', VPN_DEFAULT_NETWORK: 'office' },
});
const tokenOf = (tenant: string, scope?: string) =>
  ground.issuer.mint({ tenant_id: tenant, sub: `of ${tenant}`, jti: `token-${tenant}`, ...(scope && { scope }) });
const acme = await tokenOf('acme');
const operator = await tokenOf('ops', 'operator');
const reader = await tokenOf('acme', 'read');

let requests = 0;
async function once(token: string | undefined, method: string, path: string, body?: unknown) {
  const requestId = `request-${requests++}`;
  const response = await fetch(`${gateway.url}${path}`, {
    method,
    headers: {
      'x-request-id': requestId,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = (text === '' ? {} : JSON.parse(text)) as { data: never; next_cursor?: string };
  return { requestId, status: response.status, text, ...json };
}

/** Sends a request as a client does: again, if a busy machine answered too late. */
async function call(...request: Parameters<typeof once>): ReturnType<typeof once> {
  let answer = await once(...request);
  await until('an answer in time', async () => {
    if (answer.status < 503) return true;
    answer = await once(...request);
    return false;
  });
  return answer;
}

async function page(token: string, path: string) {
  const { status, text, data, next_cursor } = await call(token, 'GET', path);
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  return { lines: data as AuditLine[], next: next_cursor };
}
const auditOf = (query = '') => page(acme, `/api/v2/audit?limit=500${query}`);
const allAudit = (query = '') => page(operator, `${operatorApi}/audit?limit=500${query}`);
const of = (requestId: string, { lines }: { readonly lines: readonly AuditLine[] }) =>
  lines.filter(({ request_id }) => request_id === requestId);

interface Made {
  readonly id: string;
  readonly url: string;
  readonly join_token: string;
  readonly host: { readonly key: string };
}
/** Ids and tokens from the answers of earlier requests. */
const made: Record<string, string> = {};
interface Case {
  readonly route: RouteName;
  readonly path: string | (() => string);
  readonly body?: object | (() => object);
  readonly token?: string | undefined;
  readonly status?: number;
  readonly keep?: (data: Made) => void;
  readonly target?: () => object;
}
const container =
  (rest = '') =>
  () =>
    `${compute}/${made['container']}${rest}`;
const peer =
  (rest = '') =>
  () =>
    `${peersApi}/peers/${made['peer']}${rest}`;
const settings = { endpoint: 'vpn.example.com', ipv4_pool: '10.86.0.0/24' };
const asOperator = { token: operator };

const agent = createUser();
/** Every route that writes, once with success. */
const cases: readonly Case[] = [
  {
    route: 'container.create',
    path: compute,
    body: { name: 'web', repository: 'library/nginx', env: { PASSWORD: canary } },
    status: 201,
    keep: ({ id }) => (made['container'] = id),
    target: () => ({ id: made['container'] }),
  },
  { route: 'container.update', path: container(), body: { env: { PASSWORD: `${canary}-2` } } },
  { route: 'labels.put', path: container('/labels'), body: { team: 'web' } },
  { route: 'labels.patch', path: container('/labels'), body: { team: null } },
  { route: 'project.put', path: container('/project'), body: { project: 'shop' } },
  { route: 'policy.put', path: container('/policy'), body: { restart: 'never' } },
  { route: 'container.rollback', path: container('/rollback'), body: { version: 1 } },
  {
    route: 'spec.create',
    path: containers,
    body: { name: 'worker', image: { repository: 'library/nginx' }, env: { PASSWORD: canary } },
    status: 201,
    keep: ({ id }) => (made['worker'] = id),
    target: () => ({ id: made['worker'] }),
  },
  {
    route: 'spec.put',
    path: () => `${containers}/${made['worker']}/spec`,
    body: { name: 'worker', image: { repository: 'library/nginx' }, process: { command: [canary] } },
    target: () => ({ id: made['worker'] }),
  },
  {
    route: 'spec.patch',
    path: () => `${containers}/${made['worker']}/spec`,
    body: { process: null },
    target: () => ({ id: made['worker'] }),
  },
  {
    route: 'secret.put',
    path: `${compute}/secrets/db`,
    body: { value: canary },
    status: 201,
    target: () => ({ secret: 'db' }),
  },
  { route: 'container.secrets.put', path: container('/secrets'), body: { env: { DB: 'db' } } },
  {
    route: 'registry.put',
    path: `${compute}/registries/docker.io`,
    body: { username: 'u', password: canary },
    status: 201,
  },
  { route: 'registry.remove', path: `${compute}/registries/docker.io`, status: 204 },
  { route: 'container.start', path: container('/start') },
  { route: 'container.stop', path: container('/stop') },
  {
    ...asOperator,
    route: 'container.operate',
    path: () => `${operatorApi}/tenants/acme/containers/${made['container']}`,
    body: { pull_policy: 'never' },
  },
  { route: 'container.delete', path: container(), status: 202 },
  { route: 'secret.remove', path: `${compute}/secrets/db`, status: 204 },
  {
    route: 'key.create',
    path: '/api/v2/keys',
    body: { name: 'ci', scopes: ['read'] },
    status: 201,
    keep: ({ id }) => (made['key'] = id),
    target: () => ({ key_id: made['key'] }),
  },
  { route: 'key.remove', path: () => `/api/v2/keys/${made['key']}`, status: 204 },
  { ...asOperator, route: 'tenant.put', path: `${operatorApi}/tenants/acme`, body: { regions: ['default'] } },
  {
    ...asOperator,
    route: 'tenant.revoke',
    path: `${operatorApi}/tenants/acme/revocations`,
    body: { jti: 'x' },
    status: 201,
  },
  {
    ...asOperator,
    route: 'host.create',
    path: `${operatorApi}/hosts`,
    body: { key: 'h1', region: 'default' },
    status: 201,
    target: () => ({ key: 'h1' }),
  },
  {
    ...asOperator,
    route: 'host.join_token',
    path: `${operatorApi}/hosts/h1/join-token`,
    status: 201,
    keep: ({ join_token }) => (made['join'] = join_token),
  },
  {
    route: 'host.enrol',
    token: undefined,
    path: '/api/v2/hosts/enrol',
    body: () => ({ join_token: made['join'], public_key: agent.getPublicKey() }),
    status: 201,
    target: () => ({ key: 'h1' }),
  },
  {
    route: 'host.renew',
    token: undefined,
    path: '/api/v2/hosts/renew',
    body: () => signedRenewal(agent.getSeed(), 'h1' as HostKey),
    target: () => ({ key: 'h1' }),
  },
  { ...asOperator, route: 'host.update', path: `${operatorApi}/hosts/h1`, body: { draining: true } },
  {
    ...asOperator,
    route: 'network.create',
    path: `${operatorApi}/networks`,
    body: { name: 'office', ...settings },
    status: 201,
  },
  { ...asOperator, route: 'network.put', path: `${operatorApi}/networks/office`, body: settings },
  {
    ...asOperator,
    route: 'network.servers.put',
    path: `${operatorApi}/networks/office/servers`,
    body: { host_keys: ['h1'] },
  },
  {
    ...asOperator,
    route: 'network.servers.remove',
    path: `${operatorApi}/networks/office/servers`,
    status: 204,
  },
  { ...asOperator, route: 'host.remove', path: `${operatorApi}/hosts/h1?force=true&dead=true`, status: 202 },
  {
    route: 'peer.create',
    path: `${peersApi}/peers`,
    body: { name: 'phone' },
    status: 201,
    keep: ({ id }) => (made['peer'] = id),
    target: () => ({ peer: made['peer'] }),
  },
  { route: 'peer.update', path: peer(), body: { name: 'tablet' } },
  { route: 'peer.rotate', path: peer('/rotate') },
  {
    route: 'peer.token.create',
    path: peer('/tokens'),
    body: { scope: 'download' },
    status: 201,
    keep: ({ id }) => (made['peer token'] = id),
    target: () => ({ peer: made['peer'], token: made['peer token'] }),
  },
  { route: 'peer.token.remove', path: () => `${peer()()}/tokens/${made['peer token']}`, status: 204 },
  {
    route: 'peer.link.create',
    path: peer('/links'),
    body: {},
    status: 201,
    keep: ({ id, url }) => {
      made['link'] = id;
      made['link token'] = new URL(url).hash.slice(1);
    },
    target: () => ({ peer: made['peer'], link: made['link'] }),
  },
  {
    route: 'peer.link.redeem',
    token: undefined,
    path: `${peersApi}/links/redeem`,
    body: () => ({ token: made['link token'], verifier }),
    target: () => ({ peer: made['peer'], link: made['link'] }),
  },
  { route: 'peer.link.remove', path: () => `${peer()()}/links/${made['link']}`, status: 204 },
  { route: 'peer.password', path: () => `${peersApi}/p12/${made['peer']}/password`, status: 201 },
  { route: 'peer.remove', path: peer(), status: 204 },
  { ...asOperator, route: 'secret.reseal', path: `${operatorApi}/vpn-keys/reseal` },
  { ...asOperator, route: 'signing_key.rotate', path: `${operatorApi}/signing-keys/rotate`, status: 201 },
  { ...asOperator, route: 'network.remove', path: `${operatorApi}/networks/office`, status: 204 },
];

/** Lines of a request, once there are as many as there will be. */
async function linesOf(requestId: string, wanted = 1): Promise<readonly AuditLine[]> {
  let found: readonly AuditLine[] = [];
  await until('the line is in the stream', async () => (found = of(requestId, await allAudit())).length >= wanted);
  return found;
}

const methodOf = (name: RouteName): string => routes.find((route) => route.name === name)?.method ?? '';
const given = <T>(value: T | (() => T)): T => (typeof value === 'function' ? (value as () => T)() : value);

t.test('every route that writes leaves one line', async (t) => {
  // A session, with WebSocket or without, needs a host (test/e2e/containers/sessions.test.ts).
  const isSession = (route: object): boolean => 'upgrades' in route || 'forgets' in route;
  const audited = routes.filter((route) => isAudited(route) && !isSession(route)).map(({ name }) => name);
  t.same(cases.map(({ route }) => route).sort(), [...audited].sort(), 'the table has all of them');
  for (const one of cases) {
    const token = 'token' in one ? one.token : acme;
    const { requestId, status, text, data } = await call(token, methodOf(one.route), given(one.path), given(one.body));
    if (status !== (one.status ?? 200)) return t.equal(status, one.status ?? 200, `${one.route} ${text}`);
    one.keep?.(data);
    const lines = await linesOf(requestId);
    t.equal(lines.length, 1, one.route);
    const by =
      token === undefined
        ? { tenant: null, subject: null, token: null }
        : { tenant: token === acme ? 'acme' : 'ops', token: token === acme ? 'token-acme' : 'token-ops' };
    t.match(lines[0], { action: one.route, outcome: 'done', by: { ...by, address: '127.0.0.1' }, detail: null });
    if (one.target !== undefined) t.match(lines[0]?.target, one.target(), one.route);
  }
  return undefined;
});

t.test('a refused write leaves one line, of a gateway or of an owner', async (t) => {
  const refused: readonly [token: string, method: string, path: string, body: object | undefined, line: object][] = [
    [reader, 'POST', compute, { name: 'x' }, { outcome: 'forbidden', detail: { scope: 'deploy' } }],
    [
      acme,
      'POST',
      compute,
      { name: '!', env: { A: canary.repeat(9000) } },
      { outcome: 'invalid', detail: { fields: ['name', 'env'] } },
    ],
    [
      acme,
      'POST',
      compute,
      { name: 'y', host_key: 'no-host' },
      { outcome: 'invalid', detail: { fields: ['host_key'] } },
    ],
    [
      acme,
      'POST',
      compute,
      { name: 'y', cpu_limit: '9.0' },
      { outcome: 'over_quota', detail: { dimension: 'cpu_millis' } },
    ],
    [acme, 'DELETE', `${compute}/${absent}`, undefined, { outcome: 'not_found', target: { id: absent } }],
    [acme, 'PUT', `${compute}/secrets/a.b`, { value: canary }, { outcome: 'invalid', detail: { fields: ['name'] } }],
    [
      acme,
      'POST',
      `${peersApi}/peers`,
      { name: 'z', network: 'none' },
      { outcome: 'invalid', detail: { fields: ['network'] } },
    ],
    [
      acme,
      'POST',
      '/api/v2/keys',
      { name: 'k', scopes: ['read'], expires_at: '2099-01-01T00:00:00Z' },
      { outcome: 'invalid' },
    ],
    [acme, 'POST', `${operatorApi}/hosts`, { key: 'h9', region: 'eu' }, { outcome: 'forbidden' }],
    [
      acme,
      'GET',
      `${compute}/${absent}/exec?command=ls`,
      undefined,
      { action: 'container.exec', outcome: 'not_found' },
    ],
  ];
  for (const [token, method, path, body, line] of refused) {
    const { requestId, status, text } = await call(token, method, path, body);
    t.ok(status >= 400 && status < 500, `${method} ${path} ${status} ${text}`);
    const lines = of(requestId, await auditOf());
    t.equal(lines.length, 1, `${method} ${path}: at once`);
    t.match(lines[0], line);
  }
});

t.test('a write that changes nothing leaves a line, too', async (t) => {
  const { data } = await call(acme, 'POST', compute, { name: 'idle', repository: 'library/nginx' });
  const path = `${compute}/${(data as Made).id}`;
  await call(acme, 'PUT', `${compute}/secrets/same`, { value: canary });
  const repeated: readonly [method: string, path: string, body?: object][] = [
    ['POST', `${path}/start`],
    ['POST', `${path}/start`],
    ['PUT', `${path}/policy`, { restart: 'always' }],
    ['PUT', `${path}/policy`, { restart: 'always' }],
    ['PUT', `${compute}/secrets/same`, { value: canary }],
  ];
  for (const [method, to, body] of repeated) {
    const { requestId, status, text } = await call(acme, method, to, body);
    t.equal(status, 200, text);
    t.match(of(requestId, await auditOf()), [{ outcome: 'done' }], `${method} ${to}`);
  }
});

t.test('a tenant sees its own lines and those that concern it, and no address of an operator', async (t) => {
  const { lines } = await auditOf();
  t.ok(lines.every(({ tenant }) => tenant === 'acme'));
  const byOperator = lines.filter(({ by }) => by.tenant === 'ops');
  t.same(
    new Set(byOperator.map(({ action }) => action)),
    new Set(['container.operate', 'tenant.put', 'tenant.revoke']),
  );
  t.ok(byOperator.every(({ by }) => by.address === null && by.subject === 'of ops'));
  const rival = await tokenOf('rival');
  t.same((await page(rival, '/api/v2/audit')).lines, []);
  t.same((await page(operator, `${operatorApi}/audit?tenant=rival`)).lines, []);
  t.equal((await call(reader, 'GET', '/api/v2/audit')).status, 403);
  t.equal((await call(acme, 'GET', `${operatorApi}/audit`)).status, 403);
});

t.test('pages and filters', async (t) => {
  const whole = await auditOf();
  t.equal(whole.next, undefined);
  await linesOf(whole.lines[0]?.request_id ?? '');
  t.same(
    whole.lines.map(({ ts }) => ts),
    whole.lines
      .map(({ ts }) => ts)
      .sort()
      .reverse(),
    'newest first',
  );
  for (const [token, path, all] of [
    [acme, '/api/v2/audit', whole],
    [operator, `${operatorApi}/audit`, await allAudit()],
  ] as const) {
    const read: string[] = [];
    let next: string | undefined;
    do {
      const more = next === undefined ? '' : `&cursor=${next}`;
      const one = await page(token, `${path}?limit=7${more}`);
      t.ok(one.lines.length <= 7);
      read.push(...one.lines.map(({ id }) => id));
      next = one.next;
    } while (next !== undefined);
    t.same(
      read,
      all.lines.map(({ id }) => id),
      path,
    );
  }
  const created = whole.lines.filter(({ action, outcome }) => action === 'container.create' && outcome === 'done');
  t.same((await auditOf('&action=container.create&outcome=done')).lines, created);
  t.same((await auditOf('&subject=of%20ops')).lines.length, 3);
  const middle = whole.lines[Math.floor(whole.lines.length / 2)]?.ts ?? '';
  const since = (await auditOf(`&from=${middle}`)).lines;
  const before = (await auditOf(`&to=${middle}`)).lines;
  t.same([...since, ...before], whole.lines, 'from one time on, and before it');
  for (const query of ['from=yesterday', 'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', 'limit=0', 'cursor=!']) {
    t.equal((await call(acme, 'GET', `/api/v2/audit?${query}`)).status, 422, query);
  }
  const misspelt = await call(acme, 'GET', '/api/v2/audit?action=container_create&outcome=nonsense');
  t.match(JSON.parse(misspelt.text), {
    details: {
      action: ['is no operation of the audit: did you mean container.create?'],
      outcome: [/^must be one of done, bad_request, /],
    },
  });
});

t.test('no line has a value that was sent', async (t) => {
  const reading = { stream: streams.audit.name, filter: 'audit.>', timeoutMs: 5000, from: { seq: 1 } } as const;
  const messages: string[] = [];
  for await (const { data } of readStream(ground.nc, { ...reading, batchMessages: 100, batchBytes: 1_000_000 })) {
    messages.push(Buffer.from(data).toString());
  }
  const text = messages.join('\n');
  t.match(text, 'container.create');
  for (const secret of [canary, acme, operator, verifier, made['join'] ?? '?', made['link token'] ?? '?'])
    t.notOk(text.includes(secret), secret.slice(0, 9));
});

t.test('lines are read at once while the stream is away, and the next owner has them, each once', async (t) => {
  const jsm = await jetstreamManager(ground.nc);
  await jsm.streams.update(streams.audit.name, { subjects: ['elsewhere.>'] });
  const requestIds: string[] = [];
  for (let index = 0; index < 5; index++) {
    const { requestId } = await call(acme, 'POST', compute, { name: `away-${index}`, repository: 'library/nginx' });
    requestIds.push(requestId);
    t.equal(of(requestId, await auditOf()).length, 1, 'at once');
  }
  await startOwnerOn(t, ground);
  await owner.stop();
  await jsm.streams.update(streams.audit.name, { subjects: [...streams.audit.subjects] });
  for (const requestId of requestIds) t.equal((await linesOf(requestId)).length, 1);
  const { lines } = await auditOf();
  t.equal(new Set(lines.map(({ id }) => id)).size, lines.length);
  for (const requestId of requestIds) t.equal(of(requestId, { lines }).length, 1);
});

t.test('without an owner a refusal goes out, and is counted', async (t) => {
  const lonely = await startGround(t);
  const alone = await startOwnerOn(t, lonely);
  const other = await runGateway(t, lonely);
  await alone.stop();
  const token = await lonely.issuer.mint({ tenant_id: 'acme', scope: 'read' });
  const response = await fetch(`${other.url}${compute}/${randomUUID()}/start`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}` },
  });
  t.equal(response.status, 403);
  t.match(await other.registry.metrics(), /longshore_gateway_audit_lines_lost_total 1/);
});
