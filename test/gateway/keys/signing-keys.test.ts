/** The keys with which gateways sign, over an owner's decisions (ADR 41). */
import { decodeJwt, decodeProtectedHeader, importJWK, jwtVerify } from 'jose';
import t from 'tap';
import type { OwnClaims, SigningKeys } from '../../../gateway/keys/signing-keys.ts';
import type { KeySet } from '../../../schemas/api/keys/signing-key.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { acme } from '../../actors/support/records.ts';
import { request, signingStage, vaultOf } from './world.ts';

const claims: OwnClaims = {
  id: '01890000-0000-7000-8000-000000000001',
  tenant: acme,
  subject: 'alice',
  scopes: ['read', 'deploy'],
  issuedAtS: 1000,
  expiresAtS: 1010,
};

async function tokenOf(gateway: SigningKeys): Promise<string> {
  const signed = await gateway.sign(claims, request);
  if ('code' in signed) throw new Error(signed.code);
  return signed.token;
}
const kidOf = async (gateway: SigningKeys): Promise<string> => decodeProtectedHeader(await tokenOf(gateway)).kid ?? '';
const setOf = async (gateway: SigningKeys): Promise<KeySet['keys']> => {
  const set = await gateway.published();
  if ('code' in set) throw new Error(set.code);
  return set.keys;
};

t.test('the first token makes the key, and every gateway verifies by it', async (t) => {
  const { gateway, pass } = signingStage();
  const [one, other] = [gateway(), gateway()];
  t.same(await setOf(other), []);
  const token = await tokenOf(one);
  t.match(decodeJwt(token), { iss: 'longshore', aud: 'longshore', sub: 'alice', tenant_id: 'acme', jti: claims.id });
  t.equal(decodeJwt(token)['scope'], 'read deploy');
  const { kid = '', alg } = decodeProtectedHeader(token);
  t.equal(alg, 'EdDSA');
  pass(limits.signingKeysUnknownMs);
  t.match(await other.find(kid), { kind: 'key' }, 'it looks for a key that it does not know');
  t.equal(await kidOf(other), kid, 'and signs with the same');
  const [jwk] = await setOf(one);
  await jwtVerify(token, await importJWK(jwk!, 'EdDSA'), { currentDate: new Date(1_001_000) });
  t.same(Object.keys(jwk!).sort(), ['alg', 'crv', 'kid', 'kty', 'use', 'x'], 'no private part');
});

t.test('two gateways that make the first key at the same time agree', async (t) => {
  const { gateway, world } = signingStage();
  const [one, other] = await Promise.all([kidOf(gateway()), kidOf(gateway())]);
  t.equal(one, other);
  t.equal(world.state.signingKeys().size, 1);
});

t.test('after a rotation earlier tokens verify, unless their key was ended', async (t) => {
  const { gateway, pass } = signingStage();
  const one = gateway();
  const before = await kidOf(one);
  await one.rotate(request, { endOthers: false });
  const after = await kidOf(one);
  t.not(after, before);
  for (const kid of [before, after]) t.match(await one.find(kid), { kind: 'key' });
  t.same((await setOf(one)).map(({ kid }) => kid).sort(), [before, after].sort());
  await one.rotate(request, { endOthers: true });
  pass(limits.signingKeysUnknownMs);
  for (const kid of [before, after]) t.same(await one.find(kid), { kind: 'unknown' });
});

t.test('a key that the vault did not seal counts nowhere', async (t) => {
  const { gateway, world } = signingStage();
  const foreign = gateway(vaultOf('k1', 2));
  const planted = await kidOf(foreign);
  const one = gateway();
  t.same(await one.find(planted), { kind: 'unavailable' }, 'it may be one of ours, so it is not refused');
  t.same(await setOf(one), []);
  t.match(await one.sign(claims, request), { code: 'unavailable', body: /rotate the signing keys/ });
  await one.rotate(request, { endOthers: false });
  t.not(await kidOf(one), planted);
  // Moved under another id, the seal does not open either.
  const [record] = world.state.signingKeys().values();
  world.state.put({ ...record!, id: 'moved' });
  const another = gateway(vaultOf('k1', 2));
  t.same(await another.find('moved'), { kind: 'unavailable' });
});

t.test('unknown ids do not flood the owner', async (t) => {
  let reads = 0;
  const { gateway, pass } = signingStage((question) => void (question.type === 'signing_key.list' && reads++));
  const one = gateway();
  for (let index = 0; index < 100; index++) t.same(await one.find(`junk-${index}`), { kind: 'unknown' });
  t.equal(reads, 1);
  pass(limits.signingKeysUnknownMs);
  await one.find('junk');
  t.equal(reads, 2);
});

t.test('without a vault, or its owner, nothing is signed and no token is refused', async (t) => {
  const away = signingStage(() => ({ code: 'unavailable', body: '' })).gateway();
  const odd = signingStage(() => ({ code: 'ok', body: '{"data":[{}]}' })).gateway();
  const bare = signingStage().gateway(null);
  for (const gateway of [away, odd, bare]) {
    t.match(await gateway.sign(claims, request), { code: 'unavailable' });
    t.match(await gateway.rotate(request, { endOthers: false }), { code: 'unavailable' });
    t.same(await gateway.find('any'), { kind: 'unavailable' });
    t.match(await gateway.published(), { code: 'unavailable' });
  }
  t.match(await bare.sign(claims, request), { body: /VAULT_KEYS/ });
});

t.test('a damaged key is neither trusted nor refused', async (t) => {
  const { gateway, world } = signingStage();
  const kid = await kidOf(gateway());
  world.state.quarantine(keys.signingKey(kid));
  const one = gateway();
  t.same(await one.find(kid), { kind: 'unavailable' });
  t.not(await kidOf(one), kid, 'another is made');
});
