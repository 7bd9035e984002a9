/**
 * Who gets in: every refusal of a token, keys from a file and from a URL that fails, cookies and
 * cross-site requests.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { generateKeyPairSync, sign } from 'node:crypto';
import t, { type Test } from 'tap';
import { SignJWT, exportJWK } from 'jose';
import type { Algorithm } from '../../../gateway/auth/claims.ts';
import { cookieValue, credentialsOf, isCrossSite } from '../../../gateway/auth/credentials.ts';
import { ClientAddresses, clientOf } from '../../../gateway/auth/client-address.ts';
import { IssuerKeys, type KeySource } from '../../../gateway/auth/keys.ts';
import { Revocations } from '../../../gateway/auth/revocations.ts';
import { Verifier, type TrustedIssuer } from '../../../gateway/auth/verifier.ts';
import { plainAddress } from '../../../gateway/http/engine/engine.ts';
import type { RequestHeaders } from '../../../gateway/http/engine/guard.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Revocation } from '../../../schemas/api/tenant.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { recordingLog } from '../../gateway/support.ts';
import { createIssuer, createKey, nowS, testAlgorithms, type Claims, type TestIssuer } from '../../gateway/tokens.ts';
import { until } from '../../support/until.ts';

/** A clock that tests can push forward. */
function movableClock(): Clock & { advance(ms: number): void } {
  let aheadMs = 0;
  return {
    nowMs: () => Date.now() + aheadMs,
    monotonicMs: () => performance.now() + aheadMs,
    advance: (ms) => {
      aheadMs += ms;
    },
  };
}

interface Stage {
  readonly issuer: TestIssuer;
  readonly verifier: Verifier;
  readonly revocations: Revocations;
  readonly keys: IssuerKeys;
  readonly clock: ReturnType<typeof movableClock>;
  readonly log: ReturnType<typeof recordingLog>;
  told(token: string): Promise<string>;
}

async function stage(
  t: Test,
  options: { source?: (issuer: TestIssuer) => KeySource; algorithms?: readonly Algorithm[]; start?: boolean } = {},
): Promise<Stage> {
  const issuer = await createIssuer(temporaryFolder(t));
  const clock = movableClock();
  const log = recordingLog();
  const source = options.source?.(issuer) ?? { kind: 'file' as const, path: issuer.jwksFile };
  const keys = new IssuerKeys(issuer.name, source, { log, clock });
  if (options.start !== false) await keys.start();
  t.teardown(() => keys.stop());
  const trusted: TrustedIssuer = {
    issuer: issuer.name,
    audience: issuer.audience,
    algorithms: options.algorithms ?? testAlgorithms,
    tenantClaim: 'tenant_id',
    tenants: ['*'],
    operators: true,
    keys,
  };
  const revocations = new Revocations();
  const verifier = new Verifier([trusted], revocations, { clock, log });
  const told = async (token: string): Promise<string> => {
    const verdict = verifier.recall(token) ?? (await verifier.verify(token));
    return verdict.kind === 'identity' ? `identity ${verdict.identity.tenant}` : `${verdict.kind} ${verdict.why}`;
  };
  return { issuer, verifier, revocations, keys, clock, log, told };
}

t.test('good tokens of every algorithm', async (t) => {
  const { issuer, told, verifier } = await stage(t);
  for (const algorithm of testAlgorithms) {
    t.equal(await told(await issuer.mint({}, { key: issuer.keys[algorithm] })), 'identity acme', algorithm);
  }
  t.equal(await told(await issuer.mint({ aud: ['other', issuer.audience], iat: undefined })), 'identity acme');
  const verdict = await verifier.verify(await issuer.mint({ scope: 'a operator b' }));
  t.match(verdict, { identity: { powers: ['operator'] } });
  t.match(await verifier.verify(await issuer.mint({ scope: 'operators' })), { identity: { powers: [] } });
});

t.test('refused as it stands, without a key', async (t) => {
  const { issuer, told } = await stage(t, { algorithms: ['EdDSA', 'RS256'], start: false });
  const cases: readonly (readonly [what: string, token: string | Promise<string>, why: string])[] = [
    ['no signature', issuer.unsecured(), 'header'],
    ['algorithm none', issuer.mint({}, { header: { alg: 'EdDSA', kid: undefined } }), 'header'],
    ['an algorithm that is not listed', issuer.mint({}, { key: issuer.keys.ES256 }), 'algorithm'],
    ['a critical header', withHeader(await issuer.mint(), { alg: 'EdDSA', kid: 'k', crit: ['x'], x: 1 }), 'crit'],
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
    ['rubbish', 'a.b.c', 'header'],
  ];
  for (const [what, token, why] of cases) t.equal(await told(await token), `refused ${why}`, what);
});

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const withHeader = (token: string, header: unknown): string => [part(header), ...token.split('.').slice(1)].join('.');

t.test('refused with the key', async (t) => {
  const { issuer, told } = await stage(t);
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
  for (const [what, wrong, why] of cases) t.equal(await told(wrong), `refused ${why}`, what);
  // The public RSA key taken for a secret: the classic confusion.
  const secret = Buffer.from(JSON.stringify(issuer.keys.RS256.jwk));
  const confused = await new SignJWT({ tenant_id: 'acme' })
    .setProtectedHeader({ alg: 'HS256', kid: issuer.keys.RS256.kid })
    .setIssuer(issuer.name)
    .setAudience(issuer.audience)
    .setSubject('x')
    .setExpirationTime('1h')
    .sign(secret);
  t.equal(await told(confused), 'refused algorithm');
});

t.test('an RSA key that is too short verifies nothing', async (t) => {
  const { issuer, told, log } = await stage(t, {
    source: ({ jwksFile }) => ({ kind: 'file', path: jwksFile }),
    start: false,
  });
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
  writeFileSync(issuer.jwksFile, JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'weak' }] }));
  const good = await issuer.mint();
  const signed = `${part({ alg: 'RS256', kid: 'weak' })}.${good.split('.')[1]}`;
  const token = `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`;
  t.equal(await told(token), 'refused signature');
  t.ok(log.events.some(({ event }) => event === 'token_key_unfit'));
});

t.test('what was verified is remembered for a minute; expiry and revocation are looked at every time', async (t) => {
  const { issuer, verifier, revocations, clock, told } = await stage(t);
  const token = await issuer.mint({ exp: nowS() + 90, jti: 'one' });
  t.equal(verifier.recall(token), undefined);
  await told(token);
  t.match(verifier.recall(token), { kind: 'identity' });
  clock.advance(limits.tokenCacheTtlMs + 1);
  t.equal(verifier.recall(token), undefined, 'forgotten after its time');
  await told(token);
  clock.advance(31_000);
  t.match(verifier.recall(token), { kind: 'refused', why: 'expired' });

  const second = await issuer.mint({ jti: 'two', exp: nowS() + 600 });
  await told(second);
  revocations.add(revocationOf({ by: 'jti', value: 'two' }), clock.nowMs());
  t.match(verifier.recall(second), { kind: 'refused', why: 'revoked' });
  const third = await issuer.mint({ jti: 'two' });
  t.equal(await told(third), 'refused revoked');
  t.match(verifier.recall(third), { kind: 'refused', why: 'revoked' }, 'not verified again');

  const wrong = await issuer.mint({}, { key: await createKey('EdDSA', issuer.keys.EdDSA.kid) });
  await told(wrong);
  t.equal(verifier.recall(wrong), undefined, 'failures are not remembered');
  t.notOk(verifier.provedBefore(wrong));
  clock.advance(limits.tokenCacheTtlMs + 1);
  t.equal(verifier.recall(third), undefined);
  t.ok(verifier.provedBefore(third), 'and what was proved is known to have been');
});

const revocationOf = (match: Revocation['match'], more: Partial<Revocation> = {}): Revocation => ({
  tenant: 'acme' as TenantId,
  match,
  issuedUntilS: nowS() + 1,
  untilMs: Date.now() + 3_600_000,
  ...more,
});

t.test('which tokens a revocation meets', async (t) => {
  const { issuer, revocations, told } = await stage(t);
  const revokedAtS = nowS() - 60;
  revocations.add(revocationOf({ by: 'sub', value: 'mallory' }, { issuedUntilS: revokedAtS }), Date.now());
  revocations.add(revocationOf({ by: 'tenant' }, { tenant: 'gone' as TenantId, issuedUntilS: revokedAtS }), Date.now());
  t.equal(await told(await issuer.mint({ sub: 'mallory', iat: revokedAtS })), 'refused revoked');
  t.equal(await told(await issuer.mint({ sub: 'alice' })), 'identity acme');
  t.equal(await told(await issuer.mint({ sub: 'mallory', tenant_id: 'other', iat: revokedAtS })), 'identity other');
  t.equal(await told(await issuer.mint({ sub: 'mallory', iat: revokedAtS + 1 })), 'identity acme', 'issued after it');
  t.equal(await told(await issuer.mint({ sub: 'mallory', iat: undefined })), 'refused revoked', 'without a date');
  t.equal(await told(await issuer.mint({ tenant_id: 'gone', iat: revokedAtS })), 'refused revoked');
  t.equal(revocations.count(), 2);
  revocations.add(revocationOf({ by: 'sub', value: 'mallory' }, { issuedUntilS: nowS() + 5 }), Date.now());
  t.equal(revocations.count(), 2, 'a later one of the same takes its place');
  revocations.sweep(Date.now() + 4_000_000);
  t.equal(revocations.count(), 0);
});

/** A JWKS server that can be told to fail. */
async function jwksServer(t: Test, body: () => { status: number; text: string }) {
  let fetches = 0;
  const server: Server = createServer((_request, response) => {
    fetches++;
    const { status, text } = body();
    response.writeHead(status).end(text);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/jwks`, server, port, fetches: () => fetches };
}

t.test('keys from a URL: fetched once, renewed, kept through an outage', async (t) => {
  const published = { status: 200, text: '{"keys":[]}' };
  const server = await jwksServer(t, () => published);
  const { issuer, told, clock, keys } = await stage(t, {
    source: () => ({ kind: 'url', url: server.url }),
    start: false,
  });
  const publish = (...of: readonly { jwk: unknown }[]): void => {
    published.text = JSON.stringify({ keys: of.map(({ jwk }) => jwk) });
  };
  publish(issuer.keys.EdDSA);
  await keys.start();
  t.equal(await told(await issuer.mint()), 'identity acme');
  t.equal(server.fetches(), 1);

  // A key that was not there yet: asked for again, but not at every such token.
  const newer = await createKey('EdDSA');
  const rotated = await issuer.mint({}, { key: newer });
  t.equal(await told(rotated), 'refused unknown key');
  t.equal(server.fetches(), 1, 'the set is fresh');
  clock.advance(limits.jwksUnknownKidMs + 1);
  publish(issuer.keys.EdDSA, newer);
  t.equal(await told(rotated), 'identity acme');
  t.equal(server.fetches(), 2);
  const strangers = await Promise.all(
    Array.from({ length: 20 }, async () => issuer.mint({}, { key: await createKey('EdDSA') })),
  );
  for (const stranger of strangers) t.equal(await told(stranger), 'refused unknown key');
  t.equal(server.fetches(), 2, 'strangers cost the issuer nothing');

  // The outage: what is known goes on, what can't be told is 503, and the issuer is left alone for
  // a while.
  published.status = 500;
  clock.advance(limits.jwksUnknownKidMs + 1);
  const [stranger = ''] = strangers;
  t.equal(await told(stranger), 'unavailable the keys of the issuer');
  t.equal(await told(stranger), 'unavailable the keys of the issuer');
  t.equal(server.fetches(), 3, 'within the back-off');
  t.equal(await told(await issuer.mint({ sub: 'another' })), 'identity acme', 'the last good keys are kept');
  published.text = 'not JSON';
  published.status = 200;
  clock.advance(limits.jwksBackoffMaxMs);
  t.equal(await told(stranger), 'unavailable the keys of the issuer', 'rubbish is an outage too');
  publish(issuer.keys.EdDSA);
  clock.advance(limits.jwksBackoffMaxMs);
  t.equal(await told(stranger), 'refused unknown key', 'back again');
});

t.test(
  'keys that were never had: 503, but 401 for what can be refused without them; then it mends itself',
  async (t) => {
    const answer = { status: 503, text: '' };
    const server = await jwksServer(t, () => answer);
    const { issuer, told, keys, clock } = await stage(t, {
      source: () => ({ kind: 'url', url: server.url }),
      start: false,
    });
    await keys.start();
    t.notOk(keys.loaded());
    t.equal(await told(await issuer.mint()), 'unavailable the keys of the issuer');
    t.equal(await told(await issuer.mint({ exp: nowS() - 10 })), 'refused expired');
    t.equal(await told(await issuer.mint({ iss: 'x' })), 'refused issuer');
    answer.text = JSON.stringify({ keys: [issuer.keys.EdDSA.jwk] });
    answer.status = 200;
    clock.advance(limits.jwksBackoffMaxMs);
    await until('fetched in the background', () => keys.loaded());
    t.equal(await told(await issuer.mint()), 'identity acme');
  },
);

t.test('a server that never answers, redirects, or sends too much is an outage', async (t) => {
  const answer = { status: 302, text: 'x' };
  const server = await jwksServer(t, () => answer);
  const { keys, clock } = await stage(t, { source: () => ({ kind: 'url', url: server.url }), start: false });
  t.match(await keys.find('k', 'EdDSA'), { kind: 'unavailable' });
  answer.status = 200;
  answer.text = JSON.stringify({ keys: [{ kid: 'k', kty: 'OKP', crv: 'Ed25519', x: 'x'.repeat(limits.jwksBytes) }] });
  clock.advance(limits.jwksBackoffMaxMs);
  t.match(await keys.find('k', 'EdDSA'), { kind: 'unavailable' });
  answer.text = JSON.stringify({ keys: [{ kid: 'k', kty: 'OKP', crv: 'Ed25519', x: '!' }, 7, null, {}] });
  clock.advance(limits.jwksBackoffMaxMs);
  t.match(await keys.find('k', 'EdDSA'), { kind: 'unknown' }, 'a damaged key is none');
});

t.test('keys from a file are reloaded when it changes, and kept when it is damaged', async (t) => {
  const { issuer, told, keys } = await stage(t);
  const newer = await createKey('ES256');
  const token = await issuer.mint({}, { key: newer });
  t.equal(await told(token), 'refused unknown key');
  issuer.writeJwks([issuer.keys.EdDSA, newer]);
  t.equal(await told(token), 'identity acme', 'looked at anew for an unknown key');
  writeFileSync(issuer.jwksFile, '{');
  t.match(await keys.find('nope', 'EdDSA'), { kind: 'unavailable' });
  t.equal(await told(await issuer.mint({ sub: 'x' })), 'identity acme');
  t.match(await stage(t, { source: ({ jwksFile }) => ({ kind: 'file', path: join(jwksFile, 'no') }) }), {
    keys: { loaded: Function },
  });
});

t.test('where the credentials are', async (t) => {
  const jws = 'aa.bb.cc';
  const cases: readonly (readonly [headers: RequestHeaders, told: string])[] = [
    [{}, 'none'],
    [{ authorization: `Bearer ${jws}` }, `bearer ${jws}`],
    [{ authorization: `bearer   ${jws}` }, `bearer ${jws}`],
    [{ authorization: `BEARER ${jws}` }, `bearer ${jws}`],
    [{ authorization: 'Bearer' }, 'malformed'],
    [{ authorization: 'Bearer x' }, 'malformed'],
    [{ authorization: `Bearer ${jws}, x` }, 'malformed'],
    [{ authorization: `Bearer ${'a'.repeat(limits.tokenBytes)}.b.c` }, 'malformed'],
    [{ authorization: `Basic ${jws}` }, 'none'],
    [{ authorization: `Bearer${jws}` }, 'none'],
    [{ authorization: `Basic x`, cookie: `_dro_token=${jws}` }, `cookie ${jws}`],
    [{ authorization: 'Bearer x', cookie: `_dro_token=${jws}` }, 'malformed'],
    [{ authorization: `Bearer ${jws}`, cookie: '_dro_token=dd.ee.ff' }, `bearer ${jws}`],
    [{ cookie: `a=1; _dro_token=${jws}; b=2` }, `cookie ${jws}`],
    [{ cookie: `_dro_token="${jws}"` }, `cookie ${jws}`],
    [{ cookie: `_dro_token=${jws}; _dro_token=dd.ee.ff` }, `cookie ${jws}`],
    [{ cookie: `x_dro_token=${jws}` }, 'none'],
    [{ cookie: `_dro_token_x=${jws}` }, 'none'],
    [{ cookie: '_dro_token=' }, 'malformed'],
    [{ cookie: ';;=; _dro_token' }, 'none'],
  ];
  for (const [headers, told] of cases) {
    const found = credentialsOf(headers);
    t.equal(
      found.kind === 'token' ? `${found.from} ${found.token}` : found.kind,
      told,
      JSON.stringify(headers).slice(0, 80),
    );
  }
  t.equal(cookieValue('', 'a'), undefined);
});

t.test('cross-site requests with a cookie', async (t) => {
  const host = 'api.example.org';
  const cases: readonly (readonly [headers: RequestHeaders, refused: boolean])[] = [
    [{ host }, false],
    [{ host, secFetchSite: 'same-origin' }, false],
    [{ host, secFetchSite: 'none' }, false],
    [{ host, secFetchSite: 'same-site' }, true],
    [{ host, secFetchSite: 'cross-site' }, true],
    [{ host, secFetchSite: 'same-origin', origin: 'https://evil.test' }, false],
    [{ host, secFetchSite: 'cross-site', origin: `https://${host}` }, true],
    [{ host, origin: `https://${host}` }, false],
    [{ host: `${host}:443`, origin: `https://${host}` }, false],
    [{ host: `${host}:8080`, origin: `http://${host}:8080` }, false],
    [{ host: `${host}:8080`, origin: `http://${host}` }, true],
    [{ host: host.toUpperCase(), origin: `https://${host}` }, false],
    [{ host, origin: 'https://evil.test' }, true],
    [{ host, origin: `https://${host}.evil.test` }, true],
    [{ host, origin: 'null' }, true],
    [{ host, origin: '' }, true],
    [{ host, origin: `ftp://${host}` }, true],
    [{ origin: `https://${host}` }, true],
  ];
  for (const [headers, refused] of cases) {
    const said = JSON.stringify(headers);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      t.equal(isCrossSite(method, 'cookie', headers), refused, `${method} ${said}`);
      t.equal(isCrossSite(method, 'bearer', headers), false);
    }
    for (const method of ['GET', 'HEAD']) t.equal(isCrossSite(method, 'cookie', headers), false);
  }
});

t.test('an IPv4 peer of a socket that listens on both families', (t) => {
  const rows: [string, string][] = [
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['0000:0000:0000:0000:0000:ffff:c000:0201', '192.0.2.1'],
    ['192.0.2.1', '192.0.2.1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:0db8:0000:0000:0000:0000:0000:0001'],
    ['::1', '::1'],
  ];
  for (const [address, plain] of rows) t.equal(plainAddress(address), plain, address);
  t.end();
});

t.test('the client’s address', async (t) => {
  const networks = new BlockList();
  networks.addSubnet('10.0.0.0', 8, 'ipv4');
  networks.addSubnet('fd00::', 8, 'ipv6');
  const log = recordingLog();
  let nowMs = 0;
  const clients = new ClientAddresses(networks, { clock: { nowMs: () => nowMs, monotonicMs: () => nowMs }, log });
  const told = (address: string, forwardedFor?: string): string =>
    clients.addressOf({ address, headers: forwardedFor === undefined ? {} : { forwardedFor } });
  t.equal(told('192.0.2.1'), '192.0.2.1');
  t.equal(told('192.0.2.1', '198.51.100.1'), '192.0.2.1', 'not from a proxy of ours');
  t.equal(told('10.0.0.1', '198.51.100.1'), '198.51.100.1');
  t.equal(told('10.0.0.1', '203.0.113.9, 198.51.100.1, 10.0.0.2'), '198.51.100.1', 'the last that is none of ours');
  t.equal(told('fd00::1', '2001:db8::1'), '2001:db8::1');
  t.equal(told('10.0.0.1', '10.0.0.2'), '10.0.0.1');
  t.equal(told('::1'), '::1');
  t.equal(told('10.0.0.1', '::ffff:198.51.100.1'), '198.51.100.1');
  t.equal(told('10.0.0.1', Array(8000).fill('10.0.0.3').join(',')), '10.0.0.1', 'a list of proxies alone');

  t.same(
    log.events.map(({ event, fields }) => [event, fields['address']]),
    [['forwarded_for_untrusted', '192.0.2.1']],
  );
  told('192.0.2.9', '198.51.100.1');
  t.equal(log.events.length, 1, 'not said again so soon');
  nowMs += limits.forwardedWarnMs;
  told('192.0.2.9', '198.51.100.1');
  t.match(log.events.at(-1), { event: 'forwarded_for_untrusted', fields: { address: '192.0.2.9' } });
  told('192.0.2.9');
  t.equal(log.events.length, 2);

  for (const [address, client] of [
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ] as const) {
    t.equal(clientOf(address), client, address);
  }
});

t.test('hops as proxies write them, and hops that are none', async (t) => {
  const networks = new BlockList();
  networks.addSubnet('10.0.0.0', 8, 'ipv4');
  networks.addSubnet('2001:db8:ffff::', 48, 'ipv6');
  const log = recordingLog();
  let nowMs = 0;
  const clients = new ClientAddresses(networks, { clock: { nowMs: () => nowMs, monotonicMs: () => nowMs }, log });
  const told = (forwardedFor: string, address = '10.0.0.1'): string =>
    clients.addressOf({ address, headers: { forwardedFor } });
  for (const [forwardedFor, client] of [
    ['203.0.113.7:4711', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7:65535 , 10.0.0.2:80', '203.0.113.7'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['203.0.113.7, [2001:db8:ffff::2]:443', '203.0.113.7'],
    ['[::ffff:198.51.100.1]:9', '198.51.100.1'],
    ['2001:db8::1:4711', '2001:db8::1:4711'],
  ] as const) {
    t.equal(told(forwardedFor), client, forwardedFor);
  }
  t.same(log.events, []);

  for (const hop of [
    'rubbish',
    'unknown',
    '',
    '_hidden',
    '203.0.113.7:',
    '203.0.113.7:471100',
    '203.0.113.7:http',
    '203.0.113.256',
    '[203.0.113.7]:80',
    '[2001:db8::1',
    '2001:db8::1]:80',
    '[2001:db8::1]:',
    '"[2001:db8::1]"',
  ]) {
    t.equal(told(hop), '10.0.0.1', hop);
    t.equal(told(`203.0.113.7, ${hop}, 10.0.0.9`), '10.0.0.9', `${hop}: nothing before it counts`);
  }
  t.equal(told('x'.repeat(8000)), '10.0.0.1');
  t.equal(told('rubbish', '192.0.2.1'), '192.0.2.1', 'not from a proxy of ours');
  t.match(log.events, [
    { event: 'forwarded_for_malformed', fields: { address: '10.0.0.1', hop: 'rubbish' } },
    { event: 'forwarded_for_untrusted', fields: { address: '192.0.2.1' } },
  ]);
  nowMs += limits.forwardedWarnMs;
  told('x'.repeat(8000));
  t.match(log.events.at(-1), { fields: { hop: 'x'.repeat(limits.forwardedHopChars) } }, 'in no more than a few words');
  t.equal(log.events.length, 3);
});

t.test('nothing is logged that holds a token', async (t) => {
  const { issuer, told, log } = await stage(t);
  const token = await issuer.mint({}, { key: await createKey('EdDSA', issuer.keys.EdDSA.kid) });
  await told(token);
  t.notOk(JSON.stringify(log.events).includes(token));
});
