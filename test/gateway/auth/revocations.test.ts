import t from 'tap';
import { Revocations } from '../../../gateway/auth/revocations.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import type { Revocation } from '../../../schemas/api/tenant.ts';
import { nowS } from '../tokens.ts';
import { revocationOf, stage } from './support.ts';

t.test('tokens that a revocation matches', async (t) => {
  const { issuer, revocations, verdictOf } = await stage(t);
  const revokedAtS = nowS() - 60;
  revocations.add(revocationOf({ by: 'sub', value: 'mallory' }, { issuedUntilS: revokedAtS }), Date.now());
  revocations.add(revocationOf({ by: 'tenant' }, { tenant: 'gone' as TenantId, issuedUntilS: revokedAtS }), Date.now());
  t.equal(await verdictOf(await issuer.mint({ sub: 'mallory', iat: revokedAtS })), 'refused revoked');
  t.equal(await verdictOf(await issuer.mint({ sub: 'alice' })), 'identity acme');
  t.equal(
    await verdictOf(await issuer.mint({ sub: 'mallory', tenant_id: 'other', iat: revokedAtS })),
    'identity other',
  );
  t.equal(
    await verdictOf(await issuer.mint({ sub: 'mallory', iat: revokedAtS + 1 })),
    'identity acme',
    'issued after it',
  );
  t.equal(await verdictOf(await issuer.mint({ sub: 'mallory', iat: undefined })), 'refused revoked', 'without a date');
  t.equal(await verdictOf(await issuer.mint({ tenant_id: 'gone', iat: revokedAtS })), 'refused revoked');
  t.equal(revocations.count(), 2);
  revocations.add(revocationOf({ by: 'sub', value: 'mallory' }, { issuedUntilS: nowS() + 5 }), Date.now());
  t.equal(revocations.count(), 2, 'a later one of the same takes its place');
  revocations.sweep(Date.now() + 4_000_000);
  t.equal(revocations.count(), 0);
});

t.test('revocations are bounded by their memory over all tenants', (t) => {
  const held = new Revocations(10_000);
  const of = (tenant: string, n: number): Revocation => ({
    tenant: tenant as TenantId,
    match: { by: 'sub', value: `${n}` },
    issuedUntilS: 1,
    untilMs: 10 ** 13,
  });
  let added = 0;
  while (held.add(of('noisy', added), 0)) added++;
  t.ok(added > 5 && added < 100, `${added}`);
  t.notOk(held.add(of('other', 1), 0));
  t.ok(held.add(of('noisy', 1), 0), 'what is held already needs no room');
  held.sweep(10 ** 13);
  t.equal(held.count(), 0);
  t.ok(held.add(of('other', 1), 0), 'room again');
  t.ok(held.add({ ...of('other', 1), match: { by: 'tenant' } }, 0));
  t.equal(held.count(), 1, 'one of the whole tenant takes the place of those that it covers');
  t.ok(held.add({ ...of('other', 1), match: { by: 'jti', value: 'stolen' } }, 0));
  t.equal(held.count(), 2, 'one of a token stands beside it: it also refuses what is issued later');
  t.end();
});
