import t from 'tap';
import { boundUrl, plainAddress } from '../../../../gateway/http/engine/engine.ts';

t.test('an IPv4-mapped address is written as IPv4', (t) => {
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

t.test('an IPv6 host stands in brackets', (t) => {
  t.equal(boundUrl('::1', 80), 'http://[::1]:80');
  t.equal(boundUrl('127.0.0.1', 8080), 'http://127.0.0.1:8080');
  t.end();
});
