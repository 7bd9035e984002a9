/** From a token to an identity: every refusal, with and without a key, and what is remembered. */
import { generateKeyPairSync, sign } from 'node:crypto';
import t from 'tap';
import { SignJWT, exportJWK } from 'jose';
import { writeFileSync } from 'node:fs';
import { limits } from '../../../schemas/limits.ts';
import { createKey, nowS, testAlgorithms, type Claims } from '../tokens.ts';
import { revocationOf, stage } from './support.ts';
import { scopesLogged, scopeLoggedChars } from '../../../gateway/auth/verifier.ts';

t.test('valid tokens of every algorithm are accepted', async (t) => {
  const { issuer, verdictOf, verifier } = await stage(t);
  for (const algorithm of testAlgorithms) {
    t.equal(await verdictOf(await issuer.mint({}, { key: issuer.keys[algorithm] })), 'identity acme', algorithm);
  }
  const ed25519 = issuer.mint({}, { key: issuer.keys.EdDSA, header: { alg: 'Ed25519' } });
  t.equal(await verdictOf(await ed25519), 'identity acme', 'the name of RFC 9864');
  for (const typ of [undefined, 'JWT', 'jwt', 'at+jwt', 'AT+JWT', 'application/at+jwt', 'application/jwt'])
    t.equal(await verdictOf(await issuer.mint({}, { header: { typ } })), 'identity acme', typ ?? 'none');
  t.equal(await verdictOf(await issuer.mint({ aud: ['other', issuer.audience], iat: undefined })), 'identity acme');
  const verdict = await verifier.verify(await issuer.mint({ scope: 'a operator b' }));
  t.match(verdict, { identity: { scopes: ['a', 'operator', 'b'] } });
  t.match(await verifier.verify(await issuer.mint()), { identity: { scopes: [] } });
});

t.test('each word that is no scope is logged once, up to a bound', async (t) => {
  const { issuer, verdictOf, log } = await stage(t);
  const told = (): unknown[] =>
    log.events.filter(({ event }) => event === 'scope_unknown').map(({ fields }) => fields['scope']);
  for (let i = 0; i < 2; i++) await verdictOf(await issuer.mint({ scope: 'openid READ read', scp: ['x'.repeat(300)] }));
  t.same(told(), ['READ', 'x'.repeat(scopeLoggedChars)]);
  const many = Array.from({ length: scopesLogged }, (_, index) => `w${index}`);
  for (let i = 0; i < 10; i++)
    await verdictOf(await issuer.mint({ scope: many.slice(i * 100, (i + 1) * 100).join(' ') }));
  t.equal(told().length, scopesLogged);
});

t.test('tokens that are refused without a key', async (t) => {
  const { issuer, verdictOf } = await stage(t, { algorithms: ['EdDSA', 'RS256'], start: false });
  const cases: readonly (readonly [what: string, token: string | Promise<string>, why: string])[] = [
    ['no signature', issuer.unsecured(), 'header'],
    ['algorithm none', issuer.mint({}, { header: { alg: 'EdDSA', kid: undefined } }), 'header'],
    ['an algorithm that is not listed', issuer.mint({}, { key: issuer.keys.ES256 }), 'algorithm'],
    ['a critical header', withHeader(await issuer.mint(), { alg: 'EdDSA', kid: 'k', crit: ['x'], x: 1 }), 'crit'],
    ['the news of a sign-out', issuer.mint({}, { header: { typ: 'logout+jwt' } }), 'type'],
    ['the news of an event', issuer.mint({}, { header: { typ: 'application/secevent+JWT' } }), 'type'],
    ['a proof of a key', issuer.mint({}, { header: { typ: 'dpop+jwt' } }), 'type'],
    ['an empty type', issuer.mint({}, { header: { typ: '' } }), 'type'],
    ['a type that is a number', withHeader(await issuer.mint(), { alg: 'EdDSA', kid: 'k', typ: 1 }), 'header'],
    ['a bit behind the signature', otherBit(await issuer.mint()), 'encoding'],
    ['a signature in another base64', `${await issuer.mint()}=`, 'encoding'],
    ['HS256', withHeader(await issuer.mint(), { alg: 'HS256', kid: issuer.keys.RS256.kid }), 'algorithm'],
    ['another issuer', issuer.mint({ iss: 'https://evil.test' }), 'issuer'],
    ['no issuer', issuer.mint({ iss: undefined }), 'claims'],
    ['another audience', issuer.mint({ aud: 'other' }), 'audience'],
    ['an audience that only contains ours', issuer.mint({ aud: `x${issuer.audience}x` }), 'audience'],
    ['no audience', issuer.mint({ aud: undefined }), 'claims'],
    ['expired', issuer.mint({ exp: nowS() - 1 }), 'expired'],
    ['issued in the future', issuer.mint({ iat: nowS() + 60, exp: nowS() + 120 }), 'issued in the future'],
    ['a life longer than revocations are kept', issuer.mint({ exp: nowS() + 401 * 86_400 }), 'lives too long'],
    ['the same without a date', issuer.mint({ iat: undefined, exp: nowS() + 401 * 86_400 }), 'lives too long'],
    ['no expiry', issuer.mint({ exp: undefined }), 'claims'],
    ['an expiry that is a text', issuer.mint({ exp: '9999999999' }), 'claims'],
    ['not yet valid', issuer.mint({ nbf: nowS() + 60 }), 'not yet valid'],
    ['no subject', issuer.mint({ sub: undefined }), 'claims'],
    ['an empty subject', issuer.mint({ sub: '' }), 'claims'],
    ['no tenant', issuer.mint({ tenant_id: undefined }), 'tenant'],
    ['a tenant that is a list', issuer.mint({ tenant_id: ['acme'] }), 'tenant'],
    ['a tenant with a dot', issuer.mint({ tenant_id: 'a.b' }), 'tenant'],
    ['a tenant that is a wildcard', issuer.mint({ tenant_id: '*' }), 'tenant'],
    ['an empty tenant', issuer.mint({ tenant_id: '' }), 'tenant'],
    ['a tenant that is too long', issuer.mint({ tenant_id: 'a'.repeat(65) }), 'tenant'],
    ['a tenant with a line break', issuer.mint({ tenant_id: 'acme\n' }), 'tenant'],
    ['a scope that is a number', issuer.mint({ scope: 1 }), 'scopes'],
    ['a list of scopes with a number', issuer.mint({ scp: ['read', 1] }), 'scopes'],
    ['rubbish', 'a.b.c', 'header'],
  ];
  for (const [what, token, why] of cases) t.equal(await verdictOf(await token), `refused ${why}`, what);
});

/** 64 bytes are 85 letters and two bits; the other four of the last letter say nothing. */
const otherBit = (token: string): string =>
  token.slice(0, -1) + String.fromCharCode(token.charCodeAt(token.length - 1) + 1);

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const withHeader = (token: string, header: unknown): string => [part(header), ...token.split('.').slice(1)].join('.');

t.test('tokens that are refused with a key', async (t) => {
  const { issuer, verdictOf } = await stage(t);
  const token = await issuer.mint();
  const [header = '', claims = '', signature = ''] = token.split('.');
  const other = await createKey('EdDSA', issuer.keys.EdDSA.kid);
  const forged = part({ ...(JSON.parse(Buffer.from(claims, 'base64url').toString()) as Claims), tenant_id: 'rival' });
  const cases: readonly (readonly [what: string, token: string, why: string])[] = [
    ['a changed claim', `${header}.${forged}.${signature}`, 'signature'],
    ['a changed signature', `${header}.${claims}.${'A'.repeat(signature.length)}`, 'signature'],
    ['a foreign key under a known id', await issuer.mint({}, { key: other }), 'signature'],
    ['an unknown key', await issuer.mint({}, { key: await createKey('EdDSA') }), 'unknown key'],
    ['the key of another algorithm', await issuer.mint({}, { header: { kid: issuer.keys.RS256.kid } }), 'unknown key'],
  ];
  for (const [what, wrong, why] of cases) t.equal(await verdictOf(wrong), `refused ${why}`, what);
  // The public RSA key taken for a secret: the classic confusion.
  const secret = Buffer.from(JSON.stringify(issuer.keys.RS256.jwk));
  const confused = await new SignJWT({ tenant_id: 'acme' })
    .setProtectedHeader({ alg: 'HS256', kid: issuer.keys.RS256.kid })
    .setIssuer(issuer.name)
    .setAudience(issuer.audience)
    .setSubject('x')
    .setExpirationTime('1h')
    .sign(secret);
  t.equal(await verdictOf(confused), 'refused algorithm');
});

t.test('an RSA key that is too short verifies no token', async (t) => {
  const { issuer, verdictOf, log } = await stage(t, {
    source: ({ jwksFile }) => ({ kind: 'file', path: jwksFile }),
    start: false,
  });
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
  writeFileSync(issuer.jwksFile, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'weak' }] }));
  const good = await issuer.mint();
  const signed = `${part({ alg: 'RS256', kid: 'weak' })}.${good.split('.')[1]}`;
  const token = `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`;
  t.equal(await verdictOf(token), 'refused signature');
  t.ok(log.events.some(({ event }) => event === 'token_key_unfit'));
});

t.test('a verified token is cached for a minute; expiry and revocation are checked at every use', async (t) => {
  const { issuer, verifier, revocations, clock, verdictOf } = await stage(t);
  const token = await issuer.mint({ exp: nowS() + 90, jti: 'one' });
  t.equal(verifier.recall(token), undefined);
  await verdictOf(token);
  t.match(verifier.recall(token), { kind: 'identity' });
  clock.advance(limits.tokenCacheTtlMs + 1);
  t.equal(verifier.recall(token), undefined, 'forgotten after its time');
  await verdictOf(token);
  clock.advance(31_000);
  t.match(verifier.recall(token), { kind: 'refused', why: 'expired' });

  const second = await issuer.mint({ jti: 'two', exp: nowS() + 600 });
  await verdictOf(second);
  revocations.add(revocationOf({ by: 'jti', value: 'two' }), clock.nowMs());
  t.match(verifier.recall(second), { kind: 'refused', why: 'revoked' });
  const third = await issuer.mint({ jti: 'two' });
  t.equal(await verdictOf(third), 'refused revoked');
  t.match(verifier.recall(third), { kind: 'refused', why: 'revoked' }, 'not verified again');

  const wrong = await issuer.mint({}, { key: await createKey('EdDSA', issuer.keys.EdDSA.kid) });
  await verdictOf(wrong);
  t.equal(verifier.recall(wrong), undefined, 'failures are not remembered');
  t.notOk(verifier.provedBefore(wrong));
  clock.advance(limits.tokenCacheTtlMs + 1);
  t.equal(verifier.recall(third), undefined);
  t.ok(verifier.provedBefore(third), 'and what was proved is known to have been');
});

t.test('no log line holds a token', async (t) => {
  const { issuer, verdictOf, log } = await stage(t);
  const token = await issuer.mint({}, { key: await createKey('EdDSA', issuer.keys.EdDSA.kid) });
  await verdictOf(token);
  t.notOk(JSON.stringify(log.events).includes(token));
});
