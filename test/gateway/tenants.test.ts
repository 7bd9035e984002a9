/** How long a revocation is kept. */
import t from 'tap';
import { revocationOf } from '../../gateway/handlers/tenants.ts';
import type { TenantId } from '../../schemas/ids.ts';

t.test('a revocation ends when nothing that it refuses can be accepted any more', (t) => {
  const acme = 'acme' as TenantId;
  const times = { nowMs: 50_500, tokenLifeMaxMs: 100_000 };
  const rows: [string, Parameters<typeof revocationOf>[1], number][] = [
    ['all of the tenant', {}, 150_500],
    ['a subject', { sub: 'mallory' }, 150_500],
    ['a subject; `exp` is of one token', { sub: 'mallory', exp: 60 }, 150_500],
    ['a token, which may have been issued by a clock that is ahead', { jti: 'a' }, 250_500],
    ['a token whose end is known', { jti: 'a', exp: 60 }, 60_000],
    ['a token that says to live longer than is accepted', { jti: 'a', exp: 1000 }, 250_500],
  ];
  for (const [what, body, untilMs] of rows) {
    t.match(revocationOf(acme, body, times), { tenant: acme, issuedUntilS: 50, untilMs }, what);
  }
  t.end();
});
