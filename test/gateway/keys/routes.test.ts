/** Keys of tenants at a gateway, over an owner's decisions (ADR 41). */
import { decodeJwt } from 'jose';
import t from 'tap';
import { validateKey } from '../../../gateway/validation/tokens.ts';
import { keyRoutes } from '../../../gateway/keys/routes.ts';
import type { Vault } from '../../../gateway/vault/vault.ts';
import type { Revocation } from '../../../schemas/api/tenant.ts';
import type { KeyId } from '../../../schemas/ids.ts';
import { acme } from '../../actors/support/records.ts';
import { anyCall, callOf, servicesWith } from '../calls.ts';
import { signingStage, vaultOf } from './world.ts';

const nowMs = 1_000_000;
const lifeMs = 60_000;

function stage({ vault = vaultOf() }: { vault?: Vault | null } = {}) {
  const { world, ask, gateway } = signingStage();
  const announced: Revocation[] = [];
  let count = 0;
  const services = servicesWith(ask, {
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    tokenLifeMaxMs: lifeMs,
    newKeyId: () => `01890000-0000-7000-8000-${String(++count).padStart(12, '0')}` as KeyId,
    announceRevocation: (revocation) => void announced.push(revocation),
  });
  const handlers = keyRoutes({ ...services, signingKeys: gateway(vault, lifeMs) });
  const make = async (body: object, scopes: readonly string[] = []) => {
    const valid = validateKey(body, nowMs);
    if (!valid.ok) throw new Error(JSON.stringify(valid.faults));
    const identity = { ...anyCall.identity!, scopes };
    const handled = await handlers['key.create'](callOf('key.create', { body: valid.value, identity }));
    if (handled === 'streamed') throw new Error('streamed');
    return { code: handled.code, body: JSON.parse(String(handled.body)) as { data: { id: KeyId; token: string } } };
  };
  return { world, services, handlers, make, announced };
}

t.test('a key is a token with its scopes, which nobody stores', async (t) => {
  const { world, services, make } = stage();
  const { code, body } = await make({ name: 'ci', scopes: ['deploy', 'read'] });
  t.equal(code, 'created');
  const { token, id } = body.data;
  t.match(decodeJwt(token), { jti: id, sub: 'alice', tenant_id: 'acme', scope: 'deploy read', iat: 1000, exp: 1060 });
  t.notMatch(JSON.stringify(services.asked), token);
  t.notMatch(JSON.stringify([...world.state.tenant(acme).keys]), token.split('.')[2]!);
});

t.test('a key never has more scopes than who made it', async (t) => {
  const { make } = stage();
  t.match(await make({ name: 'a', scopes: ['read', 'exec'] }, ['admin', 'read']), {
    code: 'forbidden',
    body: { detail: { scope: 'exec' } },
  });
  t.match(await make({ name: 'a', scopes: ['admin', 'read'] }, ['admin', 'read']), { code: 'created' });
  t.match(await make({ name: 'b', scopes: ['vpn'] }, ['operator']), { code: 'created' });
  t.match(await make({ name: 'o', scopes: ['operator', 'network:lab'] }, ['operator']), { code: 'created' });
  t.match(await make({ name: 'n', scopes: ['network:office'] }, ['admin', 'network:office']), { code: 'created' });
  for (const scope of ['operator', 'operator:read', 'network:office']) {
    const refused = { code: 'forbidden', body: { detail: { scope } } };
    t.match(await make({ name: 'd', scopes: [scope] }), refused, `${scope}, by a token without scopes`);
    t.match(await make({ name: 'd', scopes: [scope] }, ['admin', 'network:lab']), refused, scope);
  }
  t.match(await make({ name: 'c', scopes: ['vpn'] }, ['admin', 'operator:read', 'network:office']), {
    code: 'forbidden',
  });
});

t.test('it lives as long as any token at most', async (t) => {
  const { make } = stage();
  const at = (ms: number) => new Date(ms).toISOString();
  const { body } = await make({ name: 'a', scopes: ['read'], expires_at: at(nowMs + 5500) });
  t.match(decodeJwt(body.data.token), { exp: 1005 });
  t.match(await make({ name: 'b', scopes: ['read'], expires_at: at(nowMs + lifeMs + 1) }), {
    code: 'invalid',
    body: { details: { expires_at: [/longest life/] } },
  });
  t.match(validateKey({ name: 'b', scopes: ['read'], expires_at: at(nowMs) }, nowMs), { ok: false });
});

t.test('bodies are checked', (t) => {
  const faultsOf = (body: object) => {
    const valid = validateKey(body, nowMs);
    return valid.ok ? [] : Object.keys(valid.faults);
  };
  t.same(faultsOf({ name: 'ci', scopes: ['read', 'read'] }), ['scopes']);
  t.same(faultsOf({ name: 'ci', scopes: [] }), ['scopes']);
  for (const scope of ['Read', 'operator:typo', 'network:', 'network:Office', 'read deploy']) {
    t.same(faultsOf({ name: 'ci', scopes: [scope] }), ['scopes.0'], scope);
  }
  t.same(faultsOf({ name: '-', scopes: ['read'], tenant: 'x' }).sort(), ['name', 'tenant']);
  t.end();
});

t.test('a deleted key is revoked at once; without a vault there are none', async (t) => {
  const { handlers, make, announced } = stage();
  const { body } = await make({ name: 'ci', scopes: ['read'] });
  const params = { key_id: body.data.id };
  t.match(await handlers['key.remove'](callOf('key.remove', { params })), { code: 'no_content' });
  t.match(announced, [{ tenant: acme, match: { by: 'jti', value: body.data.id }, untilMs: nowMs + lifeMs }]);
  t.match(await handlers['key.remove'](callOf('key.remove', { params })), { code: 'not_found' });
  t.equal(announced.length, 1);
  t.match(await stage({ vault: null }).make({ name: 'ci', scopes: ['read'] }), { code: 'unavailable' });
});
