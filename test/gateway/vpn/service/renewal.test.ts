import t from 'tap';
import { isRenewalDue, isTooLong, certificateGainMs } from '../../../../gateway/vpn/service/renewal.ts';
import { limits } from '../../../../schemas/limits.ts';

t.test('a certificate is renewed late in its life, and only if that gains time', (t) => {
  const life = limits.certificateLifetimeMs;
  const late = life * limits.certificateRenewFraction - 1;
  const due = (leftMs: number, newMs: number) => isRenewalDue({ notAfterMs: leftMs }, newMs, 0);
  t.equal(due(life, life), false, 'new');
  t.equal(due(late, life), true);
  t.equal(due(-1, life), true, 'expired');
  t.equal(due(late, late + certificateGainMs), false, 'its peer or authority ends as soon');
  t.equal(due(late, late + certificateGainMs + 1), true);
  t.end();
});

t.test('a server’s certificate is within 825 days, both of its ends counted', (t) => {
  const day = 86_400_000;
  const lasting = (ms: number) => isTooLong({ notBeforeMs: 5000, notAfterMs: 5000 + ms });
  t.equal(lasting(limits.certificateBackdateMs + limits.certificateLifetimeMs), false, 'a new one');
  t.equal(lasting(825 * day - 1000), false, '825 days with the last second');
  t.equal(lasting(825 * day), true);
  t.equal(lasting(825 * day + limits.certificateBackdateMs), true, 'one of an older release');
  t.end();
});
