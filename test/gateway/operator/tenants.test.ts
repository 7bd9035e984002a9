/** Retention of revocations, and their announcement to the other gateways. */
import fc from 'fast-check';
import t from 'tap';
import { matchesToken } from '../../../schemas/api/tenant.ts';
import { revocationOf } from '../../../gateway/auth/revocations.ts';
import { tenantRoutes } from '../../../gateway/operator/tenants.ts';
import type { Region, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { isCovered, type Revocation, type RevocationBody } from '../../../schemas/api/tenant.ts';
import { callOf, servicesWith } from '../calls.ts';

const acme = 'acme' as TenantId;

t.test('a revocation ends when nothing that it refuses can be accepted any more', (t) => {
  const times = { nowMs: 50_500, tokenLifeMaxMs: 100_000 };
  const rows: [string, Parameters<typeof revocationOf>[1], number][] = [
    ['all of the tenant', {}, 150_500],
    ['a subject', { sub: 'mallory' }, 150_500],
    ['a subject; `exp` is of one token', { sub: 'mallory', exp: 60 }, 150_500],
    ['a token, which may have been issued by a clock that is ahead', { jti: 'a' }, 150_500 + limits.issuerAheadMs],
    ['a token whose end is known', { jti: 'a', exp: 60 }, 60_000],
    ['one that says to live longer than is accepted', { jti: 'a', exp: 10 ** 9 }, 150_500 + limits.issuerAheadMs],
  ];
  for (const [what, body, untilMs] of rows) {
    t.match(revocationOf(acme, body, times), { tenant: acme, issuedUntilS: 50, untilMs }, what);
  }
  t.end();
});

t.test('a replaced revocation refuses nothing that the later one does not', (t) => {
  const tokenLifeMaxMs = 10 * limits.issuerAheadMs;
  const aheadS = limits.issuerAheadMs / 1000;
  const hours = (max: number): fc.Arbitrary<number> => fc.integer({ min: 0, max }).map((n) => n * 3600);
  const second = hours(48).map((s) => 1_000_000 + s);
  const name = fc.constantFrom('a', 'b');
  const withEnd = fc.constant({ jti: 'a', hasEnd: true } as const);
  const body: fc.Arbitrary<RevocationBody & { readonly hasEnd?: true }> = fc.oneof(
    withEnd,
    fc.record({ jti: name }),
    fc.record({ sub: name }),
    fc.constant({}),
  );
  const token = fc.record({ jti: name, sub: name, issuedS: second, aheadS: hours(aheadS / 3600) });
  const scenario = fc.record({
    revoked: fc.array(fc.record({ body, atS: second }), { minLength: 2, maxLength: 6 }),
    token,
    usedS: hours(14 * 24).map((s) => 1_000_000 + s),
    lifeS: fc.integer({ min: 1, max: tokenLifeMaxMs / 1000 }),
  });
  fc.assert(
    fc.property(scenario, ({ revoked, token: { jti, sub, issuedS, aheadS }, usedS, lifeS }) => {
      const issuedAtS = issuedS + aheadS;
      const expiresAtS = issuedAtS + lifeS;
      const identity = { tenant: acme, subject: sub, scopes: [], tokenId: jti, tokenName: jti, issuedAtS, expiresAtS };
      const meeting = (of: readonly Revocation[]): boolean =>
        of.some((one) => matchesToken(one, identity) && one.untilMs > usedS * 1000);
      const told = revoked
        .filter(({ atS }) => atS <= usedS)
        .sort((one, other) => one.atS - other.atS)
        .map(({ body: { hasEnd, ...named }, atS }) => {
          const body = hasEnd === true && jti === 'a' ? { ...named, exp: expiresAtS } : named;
          return { atS, revocation: revocationOf(acme, body, { nowMs: atS * 1000, tokenLifeMaxMs }) };
        });
      const kept = told.reduce<Revocation[]>(
        (held, { revocation }) => [...held.filter((one) => !isCovered(one, revocation)), revocation],
        [],
      );
      // A token can be revoked by its name once it is there; its issuer dates it ahead by no more
      // than is allowed for.
      const isNamed = told.some(({ atS, revocation }) => atS >= issuedS && matchesToken(revocation, identity));
      return !isNamed || expiresAtS <= usedS || meeting(kept);
    }),
    { numRuns: 3000 },
  );
  t.end();
});

t.test('a revocation is announced after its commit, and only then', async (t) => {
  const steps: string[] = [];
  const revoke = async (code: 'created' | 'timeout' | 'conflict') => {
    steps.length = 0;
    const committed = () => (steps.push('asked'), { code, body: '{"data":{}}' });
    const services = servicesWith(committed, { announceRevocation: ({ match }) => void steps.push(match.by) });
    const { 'tenant.revoke': handler } = tenantRoutes(services);
    const answer = await handler(callOf('tenant.revoke', { params: { tenant: acme }, body: { sub: 'mallory' } }));
    t.match(services.asked, [{ lane: 'write', question: { type: 'tenant.revoke', revocation: { untilMs: 60_000 } } }]);
    return answer;
  };
  const shown = '{"data":{"issued_until":"1970-01-01T00:00:00.000Z","expires_at":"1970-01-01T00:01:00.000Z"}}';
  t.match(await revoke('created'), { code: 'created', body: shown });
  t.same(steps, ['asked', 'sub']);
  for (const code of ['timeout', 'conflict'] as const) {
    t.match(await revoke(code), { code });
    t.same(steps, ['asked'], code);
  }
});

t.test('a repair revokes all tokens of the tenant, a change of settings none', async (t) => {
  const services = servicesWith();
  const { 'tenant.put': put } = tenantRoutes(services);
  const params = { tenant: acme };
  const regions = ['eu' as Region];
  await put(callOf('tenant.put', { params, body: { regions, repair: true } }));
  await put(callOf('tenant.put', { params, body: { regions, repair: false } }));
  const same = { type: 'tenant.put', tenant: 'acme', settings: { regions } };
  t.match(services.asked, [
    { lane: 'write', question: { ...same, repair: { tenant: 'acme', match: { by: 'tenant' } } } },
    { lane: 'write', question: { ...same, repair: null } },
  ]);
});
