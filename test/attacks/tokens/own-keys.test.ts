/**
 * An attacker wants a token of the cluster itself: with the key of another issuer, with another
 * algorithm, with a signing key of its own that it puts among the cluster's, with a key that was
 * deleted, or with a key of few scopes. The gateways are real, and so are the owner's decisions.
 */
import { createHmac } from 'node:crypto';
import { decodeProtectedHeader } from 'jose';
import t from 'tap';
import { startRedis } from '../../../dev/servers/redis.ts';
import { routes } from '../../../schemas/routes.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { secretWorld } from '../../actors/support/secrets.ts';
import { runGateway, startGround, type RunningGateway } from '../../integration/gateway/support.ts';
import { serveOwner, type AnswerOf } from '../../gateway/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { createKey, nowS } from '../../gateway/tokens.ts';
import { Vault } from '../../../gateway/vault/vault.ts';

const ground = await startGround(t);
const world = secretWorld();
serveOwner(ground.nc, (ask: Ask): AnswerOf => {
  const { code, body } = 'op' in ask ? world.write(ask).reply : world.read(ask as never);
  return { code, body: String(body) };
});
const keyOf = (byte: number): Buffer => Buffer.alloc(32, byte);
const redis = await startRedis({ folder: temporaryFolder(t) });
t.teardown(() => redis.stop());
const env = { VAULT_KEYS: `k1:${keyOf(1).toString('base64')}`, ...redis.settings };
const gateway = await runGateway(t, ground, { env });
const owner = await ground.issuer.mint();

interface Answer {
  readonly status: number;
  readonly body: { readonly data?: { readonly id: string; readonly token: string }; readonly detail?: object };
}
async function call(token: string, method: string, path: string, sent?: object, at = gateway): Promise<Answer> {
  const response = await fetch(at.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(sent && { 'content-type': 'application/json' }) },
    ...(sent && { body: JSON.stringify(sent) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Answer['body'] };
}

let names = 0;
async function keyWith(...scopes: string[]): Promise<{ readonly id: string; readonly token: string }> {
  const { status, body } = await call(owner, 'POST', '/api/v2/keys', { name: `k${++names}`, scopes });
  t.equal(status, 201);
  return body.data!;
}
const reads = async (token: string, at: RunningGateway = gateway): Promise<number> =>
  (await call(token, 'GET', '/api/v2/compute', undefined, at)).status;

const own = await keyWith('read');
const kid = decodeProtectedHeader(own.token).kid ?? '';
const claims = { iss: 'longshore', aud: 'longshore', scope: 'operator' };

t.test('a key opens what its scopes name', async (t) => {
  t.equal(await reads(own.token), 200);
  const { status, body } = await call(own.token, 'POST', '/api/v2/compute', { name: 'x', repository: 'x' });
  t.equal(status, 403);
  t.same(body.detail, { scope: 'deploy' });
  for (const { method, path } of routes.filter(({ name }) => name.startsWith('key.'))) {
    const sent = method === 'POST' ? { name: 'more', scopes: ['read'] } : undefined;
    t.equal((await call(own.token, method, path.replace(':key_id', own.id), sent)).status, 403, `${method} ${path}`);
  }
});

t.test('another issuer’s key signs nothing of the cluster', async (t) => {
  t.equal(await reads(await ground.issuer.mint(claims)), 401, 'under its own id');
  const { EdDSA } = ground.issuer.keys;
  t.equal(await reads(await ground.issuer.mint(claims, { header: { kid } })), 401, 'under the id of ours');
  const cluster = { iss: 'longshore', aud: ground.issuer.audience };
  t.equal(await reads(await ground.issuer.mint(cluster, { key: EdDSA })), 401);
});

t.test('another algorithm verifies nothing', async (t) => {
  t.equal(await reads(ground.issuer.unsecured(claims)), 401, 'none');
  for (const algorithm of ['ES256', 'RS256'] as const) {
    const key = await createKey(algorithm, kid);
    t.equal(await reads(await ground.issuer.mint(claims, { key })), 401, algorithm);
  }
  const published = (await (await fetch(`${gateway.url}/.well-known/jwks.json`)).json()) as { keys: { x: string }[] };
  t.same(
    published.keys.map((key) => ({ ...key, x: '' })),
    [{ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA', use: 'sig', kid, x: '' }],
  );
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const body = { ...claims, sub: 'x', tenant_id: 'acme', iat: nowS(), exp: nowS() + 60 };
  const unsigned = `${encoded({ alg: 'HS256', kid })}.${encoded(body)}`;
  for (const secret of [published.keys[0]!.x, Buffer.from(published.keys[0]!.x, 'base64url')]) {
    const signature = createHmac('sha256', secret).update(unsigned).digest('base64url');
    t.equal(await reads(`${unsigned}.${signature}`), 401, 'the public key as a shared secret');
  }
});

t.test('a signature does not cover other claims', async (t) => {
  const [header, , signature] = own.token.split('.');
  const body = { ...claims, sub: 'x', tenant_id: 'acme', iat: nowS(), exp: nowS() + 60 };
  t.equal(await reads(`${header}.${Buffer.from(JSON.stringify(body)).toString('base64url')}.${signature}`), 401);
});

t.test('a thief that may ask owners, but lacks the vault, adds no signing key', async (t) => {
  const planted = await createKey('EdDSA', 'planted');
  const thief = new Vault([{ id: 'k1', key: keyOf(9) }]);
  const { privateKey } = planted;
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', privateKey));
  const sealed = thief.seal({ of: 'signing_key', id: 'planted' }, der);
  const key = { id: 'planted', sealed };
  const put = { type: 'signing_key.put', partition: 0, key, replaces: kid, lifeMaxMs: 1e9, endOthers: false } as const;
  t.equal(world.write(put).reply.code, 'created');
  const forged = await ground.issuer.mint(claims, { key: planted });
  const fresh = await runGateway(t, ground, { env });
  for (const at of [gateway, fresh]) t.ok([401, 503].includes(await reads(forged, at)), 'not accepted');
  t.equal(await reads(own.token, fresh), 200, 'and the others are as good as before');
  const unsigned = await call(owner, 'POST', '/api/v2/keys', { name: 'x', scopes: ['read'] }, fresh);
  t.equal(unsigned.status, 503, 'no gateway signs with it');
  const operator = await ground.issuer.mint({ scope: 'operator' });
  t.equal((await call(operator, 'POST', '/api/v2/operator/signing-keys/rotate')).status, 201);
});

t.test('a key never makes one with more scopes', async (t) => {
  const { token } = await keyWith('admin', 'read');
  const more = await call(token, 'POST', '/api/v2/keys', { name: 'more', scopes: ['read', 'deploy'] });
  t.equal(more.status, 403);
  t.same(more.body.detail, { scope: 'deploy' });
  for (const scope of ['operator', 'operator:read', 'network:demo'])
    for (const maker of [token, owner])
      t.equal((await call(maker, 'POST', '/api/v2/keys', { name: 'op', scopes: [scope] })).status, 403, scope);
  const same = await call(token, 'POST', '/api/v2/keys', { name: 'same', scopes: ['read'], tenant_id: 'rival' });
  t.equal(same.status, 422);
  t.equal((await call(token, 'POST', '/api/v2/keys', { name: 'same', scopes: ['read'] })).status, 201);
});

t.test('an operator’s key opens what its scopes name, and ends with its deletion', async (t) => {
  const operator = await ground.issuer.mint({ tenant_id: 'ops', scope: 'operator' });
  const body = { name: 'fleet', scopes: ['operator:hosts'] };
  const { id, token } = (await call(operator, 'POST', '/api/v2/keys', body)).body.data!;
  const asks = async (path: string): Promise<number> => (await call(token, 'GET', path)).status;
  t.not(await asks('/api/v2/operator/hosts'), 403);
  t.equal(await asks('/api/v2/operator/signing-keys'), 403);
  t.equal(await reads(token), 403);
  t.equal((await call(operator, 'DELETE', `/api/v2/keys/${id}`)).status, 204);
  t.equal(await asks('/api/v2/operator/hosts'), 401);
});

t.test('a deleted key is refused at every gateway, and another tenant’s id is not found', async (t) => {
  const other = await runGateway(t, ground, { env });
  const { id, token } = await keyWith('read');
  t.equal(await reads(token, other), 200);
  const rival = await ground.issuer.mint({ tenant_id: 'rival' });
  const foreign = await call(rival, 'DELETE', `/api/v2/keys/${id}`);
  t.equal(foreign.status, 404);
  t.equal(await reads(token), 200);
  t.equal((await call(owner, 'DELETE', `/api/v2/keys/${id}`)).status, 204);
  t.equal(await reads(token), 401);
  // Without the doorbell it would take half a minute at least.
  await until(
    'the other gateway refuses it',
    () => reads(token, other),
    (status) => status === 401,
    20_000,
  );
  const restarted = await runGateway(t, ground, { env });
  t.equal(await reads(token, restarted), 401, 'a gateway that starts later knows it, too');
  t.equal((await call(owner, 'DELETE', `/api/v2/keys/${id}`)).status, 404);
});

t.test('without a vault a gateway refuses to judge, and makes no keys', async (t) => {
  const bare = await runGateway(t, ground);
  t.equal(await reads(own.token, bare), 503);
  t.equal((await call(owner, 'POST', '/api/v2/keys', { name: 'x', scopes: ['read'] }, bare)).status, 503);
  t.equal((await fetch(`${bare.url}/.well-known/jwks.json`)).status, 503);
  t.equal((await call(owner, 'GET', '/api/v2/keys', undefined, bare)).status, 200);
});

t.test('a rotation signs nobody out; ending the others does', async (t) => {
  const operator = await ground.issuer.mint({ scope: 'operator' });
  const { token } = await keyWith('read');
  const path = '/api/v2/operator/signing-keys/rotate';
  t.equal((await call(operator, 'POST', path)).status, 201);
  const after = await keyWith('read');
  t.not(decodeProtectedHeader(after.token).kid, decodeProtectedHeader(token).kid);
  const fresh = await runGateway(t, ground, { env });
  for (const one of [token, after.token]) t.equal(await reads(one, fresh), 200);
  t.equal((await call(operator, 'POST', `${path}?end_others=true`)).status, 201);
  const later = await runGateway(t, ground, { env });
  for (const one of [token, after.token])
    await until(
      'it is refused',
      () => reads(one, later),
      (is) => is === 401,
    );
  t.equal(await reads((await keyWith('read')).token, later), 200);
});
