/**
 * A thief has a token from an issuer whose clock is an hour ahead, or that lies: the token's `iat`
 * is later than the revocation of its `jti`. The gateway must refuse the token at the time of the
 * revocation, and also once its `iat` has passed, even if all tokens of the tenant were revoked
 * since.
 */
import t from 'tap';
import { IssuerKeys } from '../../../gateway/auth/keys.ts';
import { Revocations } from '../../../gateway/auth/revocations.ts';
import { Verifier } from '../../../gateway/auth/verifier.ts';
import { revocationOf } from '../../../gateway/auth/revocations.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { limits } from '../../../schemas/limits.ts';
import { defaultTenant, type Revocation, type RevocationBody } from '../../../schemas/api/tenant.ts';
import { acme, stateOf } from '../../actors/support/records.ts';
import { read, write } from '../../actors/support/vpn.ts';
import { quietLog } from '../../gateway/support.ts';
import { createIssuer, nowS } from '../../gateway/tokens.ts';
import { temporaryFolder } from '../../support/folder.ts';

const hourS = 3600;
let aheadMs = 0;
const clock: Clock = { nowMs: () => Date.now() + aheadMs, monotonicMs: () => performance.now() + aheadMs };

/** Sends the revocations to the tenant's owner, one after another, and returns what it keeps. */
function kept(bodies: readonly RevocationBody[], before: readonly Revocation[] = []) {
  const state = stateOf({ ...defaultTenant(acme), revocations: before });
  const times = { nowMs: clock.nowMs(), tokenLifeMaxMs: limits.tokenLifeMaxMs };
  const answers = bodies.map((body) => {
    const revocation = revocationOf(acme, body, times);
    return write(state, { type: 'tenant.revoke', tenant: acme, revocation });
  });
  const page = read(state, { type: 'revocation.list', partition: 0, after: null }).body as { data: Revocation[] };
  const codes = answers.map(({ code }) => code);
  const messages = answers.map(({ body }) => (body as { message?: string }).message ?? '');
  return { codes, messages, revocations: page.data };
}

t.test('a token revoked by its `jti` is refused whatever its `iat`', async (t) => {
  const issuer = await createIssuer(temporaryFolder(t));
  const keys = new IssuerKeys(issuer.name, { kind: 'file', path: issuer.jwksFile }, { log: quietLog, clock });
  await keys.start();
  t.teardown(() => keys.stop());
  const { name, audience } = issuer;
  const trusted = { issuer: name, audience, algorithms: ['EdDSA'], tenantClaim: 'tenant_id', tenants: ['*'] } as const;
  const revocations = new Revocations();
  const rules = { operators: true, scopes: { claim: undefined, ignore: [] } };
  const verifier = new Verifier([{ ...trusted, ...rules, keys }], revocations, { clock, log: quietLog });
  const told = async (token: string): Promise<string> => {
    const verdict = verifier.recall(token) ?? (await verifier.verify(token));
    return verdict.kind === 'identity' ? 'good' : verdict.why;
  };
  const ahead = { iat: nowS() + hourS, exp: nowS() + 3 * hourS };
  const [stolen, other] = await Promise.all([
    issuer.mint({ ...ahead, jti: 'stolen' }),
    issuer.mint({ ...ahead, jti: 'b' }),
  ]);
  t.equal(await told(stolen), 'issued in the future');

  const owner = kept([{ jti: 'stolen', exp: ahead.exp }, {}]);
  t.same(owner.codes, ['created', 'created']);
  for (const revocation of owner.revocations) t.ok(revocations.add(revocation, clock.nowMs()));
  aheadMs = (hourS + 10) * 1000;
  revocations.sweep(clock.nowMs());
  t.equal(await told(stolen), 'revoked');
  t.equal(await told(other), 'good', 'a token without a revocation of its own, issued after all were revoked');
});

t.test('revoking all tokens empties a list that single revocations have filled', (t) => {
  const single = (n: number, revokedAtMs: number): Revocation => ({
    tenant: acme,
    match: { by: 'jti', value: `${n}` },
    issuedUntilS: Math.floor(revokedAtMs / 1000),
    untilMs: revokedAtMs + limits.tokenLifeMaxMs + limits.issuerAheadMs,
  });
  const full = (agoMs: number): Revocation[] =>
    Array.from({ length: limits.revocationsPerTenant }, (_, n) => single(n, clock.nowMs() - agoMs));
  const hour = full(hourS * 1000);
  const young = kept([{ jti: 'one more' }, {}, {}], hour);
  t.same(young.codes, ['conflict', 'created', 'created'], 'a revocation of all tokens is always accepted');
  t.equal(
    young.revocations.length,
    hour.length + 1,
    'the single revocations stay, because an issuer’s clock may be ahead of the first revocation',
  );
  t.match(
    young.messages[0],
    /^this tenant has 1,000 revocations of single tokens and subjects.*revoke all its tokens.*"exp"$/,
  );

  const old = kept([{}, { jti: 'one more' }], full(limits.issuerAheadMs));
  t.same(old.codes, ['created', 'created'], 'there is room again');
  t.same(
    old.revocations.map(({ match }) => match),
    [{ by: 'tenant' }, { by: 'jti', value: 'one more' }],
    'tokens of that time can’t have an `iat` in the future, so their revocations are dropped',
  );
  t.end();
});
