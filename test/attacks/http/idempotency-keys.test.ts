/**
 * Somebody guesses or repeats `Idempotency-Key`s: of another tenant, at other routes, with other
 * bodies and other tokens. A key is of its tenant and of one request; the answer that is given
 * again is what the caller's own body says, and never another's. A secret is shown again only to
 * the token that it was shown to.
 */
import t from 'tap';
import { runGateway, startGround, startOwnerOn } from '../../integration/gateway/support.ts';
import { until } from '../../support/until.ts';

const compute = '/api/v2/compute';
const ground = await startGround(t);
await startOwnerOn(t, ground);
const { url } = await runGateway(t, ground, { env: { VAULT_KEYS: `a:${Buffer.alloc(32, 7).toString('base64')}` } });
const [mine, theirs] = await Promise.all(['acme', 'rival'].map((tenant_id) => ground.issuer.mint({ tenant_id })));
const secret = 'hunter2';

async function send(
  token: string | undefined,
  key: string,
  body: unknown,
  { path = compute, method = 'POST', headers = {} }: { path?: string; method?: string; headers?: object } = {},
) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      'content-type': 'application/json',
      'idempotency-key': key,
      ...headers,
    },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const { data } = (text === '' ? {} : JSON.parse(text)) as { data?: { id?: string } };
  return { status: response.status, id: data?.id, text };
}
const web = { name: 'web', repository: 'library/web', env: { PASSWORD: secret } };

await until('the owner answers', async () => (await send(mine, 'warm', { ...web, name: 'warm' })).status === 201);
const first = await send(mine, 'order-1', web);

t.test('the same key of another tenant is another key', async (t) => {
  t.equal(first.status, 201);
  const other = await send(theirs, 'order-1', web);
  t.equal(other.status, 201, 'nothing says that another tenant has used it');
  t.not(other.id, first.id);
  const changed = await send(theirs, 'order-2', { ...web, name: 'other' });
  t.equal(changed.status, 201);
  t.notMatch(changed.text, new RegExp(first.id ?? 'x'));
});

t.test('a repetition gives the same container, once, whatever token of the tenant asks', async (t) => {
  const repeated = await Promise.all(Array.from({ length: 10 }, () => send(mine, 'order-1', web)));
  t.same(new Set(repeated.map(({ id }) => id)), new Set([first.id]));
  const colleague = await ground.issuer.mint({ tenant_id: 'acme', sub: 'colleague' });
  t.equal((await send(colleague, 'order-1', web)).id, first.id);
});

t.test('a thief of the key without the body learns nothing of the container', async (t) => {
  for (const guess of [{ name: 'web' }, { ...web, env: {} }, { ...web, env: { PASSWORD: 'other' } }]) {
    const answer = await send(mine, 'order-1', { repository: 'library/web', ...guess });
    t.equal(answer.status, 422);
    t.notMatch(answer.text, new RegExp(`${secret}|${first.id ?? 'x'}`));
  }
  const stopped = await send(mine, 'order-1', web, { path: `${compute}?start=false` });
  t.equal(stopped.status, 422, 'the query is part of what was asked');
});

t.test('tokens that may not create get no stored answer', async (t) => {
  const reader = await ground.issuer.mint({ tenant_id: 'acme', scope: 'read' });
  t.equal((await send(reader, 'order-1', web)).status, 403);
  t.equal((await send(undefined, 'order-1', web)).status, 401);
  t.equal((await send(`${mine ?? ''}x`, 'order-1', web)).status, 401);
});

t.test('a key at other routes gives nothing', async (t) => {
  const path = `${compute}/${first.id ?? ''}`;
  const read = await send(theirs, 'order-1', undefined, { path, method: 'GET' });
  t.equal(read.status, 404);
  const put = await send(mine, 'order-1', { value: secret }, { path: `${compute}/secrets/token`, method: 'PUT' });
  t.not(put.id, first.id, 'a secret is no container');
  t.notMatch(put.text, new RegExp(`${first.id ?? 'x'}|${secret}`));
  const key = await send(mine, 'order-1', { name: 'ci', scopes: ['read'] }, { path: '/api/v2/keys' });
  t.equal(key.status, 422);
  t.notMatch(key.text, new RegExp(`${first.id ?? 'x'}|${secret}`));
});

t.test('a token is shown again only to the token that made it', async (t) => {
  const ask = (token: string | undefined) =>
    send(token, 'ci', { name: 'ci', scopes: ['read'] }, { path: '/api/v2/keys' });
  const made = await ask(mine);
  t.equal(made.status, 201, made.text);
  t.same(await ask(mine), made);
  for (const token_of of [{ sub: 'colleague' }, {}]) {
    const other = await ask(await ground.issuer.mint({ tenant_id: 'acme', jti: 'other', ...token_of }));
    t.equal(other.status, 409, other.text);
    t.notMatch(other.text, /eyJ/);
  }
  const reader = await ground.issuer.mint({ tenant_id: 'acme', scope: 'read' });
  t.equal((await ask(reader)).status, 403, 'scopes are looked at first');
});

t.test('keys that are none, and names of prototypes', async (t) => {
  for (const key of ['x'.repeat(256), 'a b', 'é']) {
    t.equal((await send(mine, key, { ...web, name: 'none' })).status, 422, key.slice(0, 8));
  }
  for (const [n, key] of ['__proto__', 'constructor', 'hasOwnProperty', 'toString'].entries()) {
    t.equal((await send(mine, key, { ...web, name: `proto-${n}` })).status, 201, key);
    t.equal((await send(mine, key, { ...web, name: `proto-${n}` })).status, 201, key);
    t.equal((await send(mine, key, { ...web, name: `other-${n}` })).status, 422, key);
  }
});

t.test('after a delete the key gives nothing back', async (t) => {
  const gone = await send(mine, 'gone', { ...web, name: 'gone' });
  const path = `${compute}/${gone.id ?? ''}`;
  t.equal((await send(mine, 'gone', undefined, { path, method: 'DELETE' })).status < 300, true);
  const again = await send(mine, 'gone', { ...web, name: 'gone' });
  t.not(again.status, 500);
  if (again.status !== 201) t.notMatch(again.text, new RegExp(secret));
});
