import t from 'tap';
import { trustedProxies } from '../../../gateway/configuration/proxies.ts';

t.test('addresses and networks of both families are trusted, and nothing else', (t) => {
  const proxies = trustedProxies(['10.0.0.0/8', '192.0.2.1', 'fd00::/8']);
  t.ok(proxies.check('10.1.2.3') && proxies.check('192.0.2.1') && proxies.check('fd00::1', 'ipv6'));
  t.notOk(proxies.check('192.0.2.2'));
  for (const wrong of ['10.0.0.0/33', 'x', '10.0.0.0/x', 'fd00::/129'])
    t.throws(() => trustedProxies([wrong]), /neither an address nor a network/);
  t.end();
});
