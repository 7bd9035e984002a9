import t from 'tap';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet } from 'jose';
import { devAudience, devIssuer, mintDevTokens, prepareTokenIssuer } from '../../dev/tokens.ts';
import { temporaryFolder } from '../support/folder.ts';

const keySet = (file: string): JSONWebKeySet => JSON.parse(readFileSync(file, 'utf8')) as JSONWebKeySet;
const expected = { issuer: devIssuer, audience: devAudience, algorithms: ['EdDSA'] };

t.test('tokens verify against the JWKS and hold tenant and scope', async (t) => {
  const issuer = await prepareTokenIssuer(temporaryFolder(t));
  const keys = createLocalJWKSet(keySet(issuer.jwksFile));
  const { tenants, operator } = await mintDevTokens(issuer);
  const demo = (await jwtVerify(tenants.demo.token, keys, expected)).payload;
  t.match(demo, { tenant_id: 'demo', sub: 'demo-user' });
  t.equal(demo['scope'], undefined);
  t.ok(demo.jti && demo.exp);
  t.equal((await jwtVerify(tenants.other.token, keys, expected)).payload['tenant_id'], 'other');
  const operatorClaims = (await jwtVerify(operator.token, keys, expected)).payload;
  t.equal(operatorClaims['scope'], 'operator');
  t.equal(operatorClaims['tenant_id'], 'operator');
  const without = await issuer.mint({ subject: 's', lifetimeS: 60 });
  t.equal((await jwtVerify(without, keys, expected)).payload['tenant_id'], undefined);
  t.equal(decodeProtectedHeader(operator.token).kid, keySet(issuer.jwksFile).keys[0]?.kid);
});

t.test('the key is created once; only the owner can read its private half', async (t) => {
  const folder = temporaryFolder(t);
  const first = await prepareTokenIssuer(folder);
  const before = keySet(first.jwksFile);
  const token = await first.mint({ tenant: 'demo', subject: 's', lifetimeS: 60 });
  const second = await prepareTokenIssuer(folder);
  t.same(keySet(second.jwksFile), before);
  await jwtVerify(token, createLocalJWKSet(keySet(second.jwksFile)), expected);
  t.notMatch(readFileSync(second.jwksFile, 'utf8'), /"d":/);
  t.equal(statSync(`${folder}/private.jwk`).mode & 0o777, 0o600);
});

t.test('expired tokens and those of another issuer or audience do not verify', async (t) => {
  const issuer = await prepareTokenIssuer(temporaryFolder(t));
  const keys = createLocalJWKSet(keySet(issuer.jwksFile));
  const claims = { tenant: 'demo', subject: 's', lifetimeS: 60 };
  await t.rejects(jwtVerify(await issuer.mint({ ...claims, lifetimeS: -60 }), keys, expected), /exp/);
  await t.rejects(jwtVerify(await issuer.mint({ ...claims, issuer: 'x' }), keys, expected), /iss/);
  await t.rejects(jwtVerify(await issuer.mint({ ...claims, audience: 'x' }), keys, expected), /aud/);
});

t.test('a damaged key is named, with what to do', async (t) => {
  const folder = temporaryFolder(t);
  await prepareTokenIssuer(folder);
  for (const damaged of ['', '{"kty":"OKP"', '{"kty":"OKP","crv":"Ed25519","x":"x"}']) {
    writeFileSync(`${folder}/private.jwk`, damaged);
    await t.rejects(prepareTokenIssuer(folder), /private\.jwk is damaged \(.+\); delete it to make a new key$/);
  }
});
