import t from 'tap';
import { addressReader } from '../../../../gateway/http/engine/uws-address.ts';

const bytesOf = (hex: string): ArrayBuffer => new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex')).buffer;

t.test('an address is read from its bytes, and IPv4 within IPv6 as IPv4', (t) => {
  const read = addressReader();
  const rows: [bytes: string, address: string][] = [
    ['c0000201', '192.0.2.1'],
    ['ffffffff', '255.255.255.255'],
    ['00000000', '0.0.0.0'],
    ['0000000000000000 0000ffff c0000202', '192.0.2.2'],
    ['0000000000000001 0000ffff c0000202', '0000:0000:0000:0001:0000:ffff:c000:0202'],
    ['0000000000000000 0001ffff c0000202', '0000:0000:0000:0000:0001:ffff:c000:0202'],
    ['0000000100000000 0000ffff c0000202', '0000:0001:0000:0000:0000:ffff:c000:0202'],
    ['20010db8000000000000000000000001', '2001:0db8:0000:0000:0000:0000:0000:0001'],
    ['', ''],
  ];
  for (const [bytes, address] of [...rows, ...rows]) t.equal(read(bytesOf(bytes)), address, bytes);
  t.end();
});
