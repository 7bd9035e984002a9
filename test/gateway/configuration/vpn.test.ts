import t from 'tap';
import { defaultNetworkOf, publicUrlOf } from '../../../gateway/configuration/vpn.ts';
import { settings } from '../../../gateway/configuration/settings.ts';
import { linksOf } from '../../../gateway/vpn/render/links.ts';
import { readSettings } from '../../../lib/config.ts';
import { subjectWith } from '../vpn/support.ts';

t.test('an accepted public URL can be written into every file', (t) => {
  const taken: Readonly<Record<string, string>> = {
    'https://vpn.example.com': 'https://vpn.example.com',
    'https://VPN.example.com:443/': 'https://vpn.example.com',
    'http://10.0.0.1:8080/a/b_c~d.e-f//': 'http://10.0.0.1:8080/a/b_c~d.e-f',
    'https://[2001:DB8::1]/x/../y': 'https://[2001:db8::1]/y',
    'https://büro.example': 'https://xn--bro-hoa.example',
  };
  for (const [given, url] of Object.entries(taken)) {
    t.equal(publicUrlOf({ PUBLIC_URL: given }), url, given);
    t.match(linksOf({ ...subjectWith(), baseUrl: url }).p12, url);
  }
  t.equal(publicUrlOf({ PUBLIC_URL: undefined }), undefined);
  t.end();
});

t.test('a public URL that some file cannot hold is refused', (t) => {
  for (const given of [
    'vpn.example.com',
    'ftp://vpn.example.com',
    'https://user@vpn.example.com',
    'https://:secret@vpn.example.com',
    'https://vpn.example.com/?a',
    'https://vpn.example.com/#a',
    'https://vpn.example.com/a%20b',
    'https://vpn.example.com/a//b',
    'https://my_host/',
    "https://vpn.example.com/a'b",
  ]) {
    t.throws(() => publicUrlOf({ PUBLIC_URL: given }), { name: 'ConfigurationError' }, given);
  }
  t.end();
});

t.test('the default network has a valid name', (t) => {
  const networkOf = (env: Record<string, string>) => defaultNetworkOf(readSettings(settings, env));
  t.equal(networkOf({}), 'default');
  t.equal(networkOf({ VPN_DEFAULT_NETWORK: 'office' }), 'office');
  t.throws(() => networkOf({ VPN_DEFAULT_NETWORK: 'Of/fice' }), /VPN_DEFAULT_NETWORK must be a network name/);
  t.end();
});
