import t from 'tap';
import { isRenewalDue } from '../../../../gateway/vpn/service/renewal.ts';
import { limits } from '../../../../schemas/limits.ts';

t.test('a certificate is renewed late in its life, and only if that gains time', (t) => {
  const life = limits.certificateLifetimeMs;
  const late = life * limits.certificateRenewFraction - 1;
  const due = (leftMs: number, newMs: number) => isRenewalDue({ notAfterMs: leftMs }, newMs, 0);
  t.equal(due(life, life), false, 'new');
  t.equal(due(late, life), true);
  t.equal(due(-1, life), true, 'expired');
  t.equal(due(late, late + limits.certificateGainMs), false, 'its peer or authority ends as soon');
  t.equal(due(late, late + limits.certificateGainMs + 1), true);
  t.end();
});
