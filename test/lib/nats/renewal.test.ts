/** Signatures of renewals of credentials. */
import { createUser, fromPublic } from '@nats-io/nkeys';
import t from 'tap';
import { isSignedRenewal, renewalText } from '../../../lib/nats/renewal.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { signedRenewal } from '../../support/host-user.ts';

const host = 'h1' as HostKey;

t.test('the key that it names, over all that it says', (t) => {
  for (let count = 0; count < 20; count++) {
    const user = createUser();
    const renewal = signedRenewal(user.getSeed(), host);
    t.ok(isSignedRenewal(renewal));
    const { signature, ...signed } = renewal;
    const bytes = new Uint8Array(Buffer.from(signature, 'base64url'));
    t.ok(fromPublic(user.getPublicKey()).verify(renewalText(signed), bytes), 'the library says the same');
    for (const more of [
      { host_key: 'h2' as HostKey },
      { public_key: createUser().getPublicKey() },
      { at: new Date(0).toISOString() },
      { nonce: 'n'.repeat(22) },
      { signature: signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')) },
      { signature: '' },
    ]) {
      t.notOk(isSignedRenewal({ ...renewal, ...more }), Object.keys(more).join());
    }
  }
  t.end();
});

t.test('a field cannot end where another begins', (t) => {
  const of = (host_key: string, nonce: string) =>
    renewalText({ host_key: host_key as HostKey, public_key: 'U', at: 'T', nonce }).toString();
  t.equal(of('h1', 'n'), 'longshore-renew-1\nh1\nU\nT\nn\n');
  t.end();
});
