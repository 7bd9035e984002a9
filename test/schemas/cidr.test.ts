import { BlockList, isIP } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import {
  addressAt,
  contains,
  formatAddress,
  formatCidr,
  lastIndex,
  loopOf,
  overlap,
  parseAddress,
  parseCidr,
  serverIndex,
  wholeRoutes,
  type Cidr,
} from '../../schemas/cidr.ts';

const normal = (text: string): string | undefined => {
  const address = parseAddress(text);
  return address === undefined ? undefined : formatAddress(address.family, address.value);
};
const cidr = (text: string): Cidr => {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
};

t.test('routes that cover a family together are one, and what lies in another stays', (t) => {
  const table: readonly (readonly [routes: string, whole: string])[] = [
    ['0.0.0.0/1 128.0.0.0/1', '0.0.0.0/0'],
    ['0.0.0.0/1 128.0.0.0/1 ::/1 8000::/1', '::/0 0.0.0.0/0'],
    ['0.0.0.0/1 192.0.0.0/2 128.0.0.0/2', '0.0.0.0/0'],
    ['0.0.0.0/1 192.168.7.0/24 128.0.0.0/1 10.0.0.0/8 ::/0', '0.0.0.0/0 192.168.7.0/24 10.0.0.0/8 ::/0'],
    ['192.168.7.0/24 0.0.0.0/0 fd00::/8', '192.168.7.0/24 0.0.0.0/0 fd00::/8'],
    ['0.0.0.0/1 128.0.0.0/2 192.0.0.0/3', '0.0.0.0/1 128.0.0.0/2 192.0.0.0/3'],
    ['::/1 8000::/2', '::/1 8000::/2'],
    ['10.0.0.0/8', '10.0.0.0/8'],
  ];
  for (const [routes, whole] of table)
    t.equal(wholeRoutes(routes.split(' ').map(cidr)).map(formatCidr).join(' '), whole, routes);
  t.end();
});

t.test('routes that lead the tunnel’s own packets into it', (t) => {
  const table: readonly (readonly [endpoint: string, routes: readonly string[], loop?: string])[] = [
    ['198.51.100.1', ['0.0.0.0/0', '::/0']],
    ['198.51.100.1', ['0.0.0.0/1', '128.0.0.0/1']],
    ['198.51.100.1', ['128.0.0.0/1'], '128.0.0.0/1'],
    ['198.51.100.1', ['0.0.0.0/0', '198.51.100.0/24'], '198.51.100.0/24'],
    ['198.51.100.1', ['198.51.100.2/32', '2001:db8::/32']],
    ['2001:db8::1', ['10.0.0.0/8', '2000::/3'], '2000::/3'],
    ['2001:db8::1', ['::/1', '8000::/1']],
    ['vpn.example.com', ['128.0.0.0/1']],
  ];
  for (const [endpoint, routes, loop] of table) t.equal(loopOf(endpoint, routes), loop, `${endpoint} ${routes.join()}`);
  t.end();
});

t.test('an address has one text', (t) => {
  const table: readonly (readonly [text: string, normal: string | undefined])[] = [
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['10.0.0.256', undefined],
    ['010.0.0.1', undefined],
    ['10.0.0', undefined],
    ['10.0.0.1.2', undefined],
    ['10.0.0.1 ', undefined],
    ['10.0.0.-1', undefined],
    ['0x7f.0.0.1', undefined],
    ['', undefined],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:db8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:0db8::0001', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['1:2:3:4:5:6:7:8::', undefined],
    ['1::2::3', undefined],
    [':1', undefined],
    ['1:', undefined],
    [':::', undefined],
    ['1:2:3:4:5:6:7', undefined],
    ['1:2:3:4:5:6:7:8:9', undefined],
    ['12345::', undefined],
    ['g::', undefined],
    ['fe80::1%eth0', undefined],
    ['::ffff:1.2.3.4', undefined],
    ['[::1]', undefined],
  ];
  for (const [text, expected] of table) t.equal(normal(text), expected, text || 'nothing');
  t.end();
});

t.test('an address to Node is one here, but for two forms that are refused', (t) => {
  const isRefused = (text: string): boolean => text.includes('%') || (text.includes(':') && text.includes('.'));
  const agree = (text: string): boolean => {
    const family = parseAddress(text)?.family ?? 0;
    return isRefused(text) ? family === 0 : family === isIP(text);
  };
  fc.assert(fc.property(fc.ipV4(), agree));
  fc.assert(fc.property(fc.ipV6(), agree), { numRuns: 2000 });
  fc.assert(fc.property(fc.stringMatching(/^[0-9a-fx.:%]{0,20}$/), agree), { numRuns: 5000 });
  fc.assert(fc.property(fc.stringMatching(/^([0-9]{1,3}\.){2,4}[0-9]{1,3}$/), agree), { numRuns: 2000 });
  fc.assert(fc.property(fc.stringMatching(/^([0-9a-f]{0,2}:){3,9}[0-9a-f]{0,2}$/), agree), { numRuns: 5000 });
  t.end();
});

const family = fc.constantFrom(4 as const, 6 as const);
const value = (of: 4 | 6) => fc.bigInt({ min: 0n, max: (1n << (of === 4 ? 32n : 128n)) - 1n });
/** Networks near to one another, so that some hold others. */
const network: fc.Arbitrary<Cidr> = family.chain((of) =>
  fc
    .record({ value: value(of), near: fc.boolean(), prefix: fc.integer({ min: 0, max: of === 4 ? 32 : 128 }) })
    .map(({ value: any, near, prefix }) => {
      const bits = BigInt((of === 4 ? 32 : 128) - prefix);
      const start = near ? any & 0xffffn : any;
      return { family: of, base: (start >> bits) << bits, prefix };
    }),
);

t.test('an address that is written is read as the same', (t) => {
  const roundTrip = family.chain((of) => value(of).map((number) => ({ family: of, value: number })));
  fc.assert(
    fc.property(roundTrip, (address) => {
      const text = formatAddress(address.family, address.value);
      const again = parseAddress(text);
      return isIP(text) === address.family && again?.value === address.value && again.family === address.family;
    }),
    { numRuns: 3000 },
  );
  // Few bits set: long runs of zeros.
  fc.assert(
    fc.property(fc.array(fc.constantFrom(0, 0, 0, 1, 0xffff), { minLength: 8, maxLength: 8 }), (groups) => {
      const number = groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n);
      const text = formatAddress(6, number);
      // WHATWG's serialisation of a host is that of RFC 5952.
      return parseAddress(text)?.value === number && new URL(`http://[${text}]/`).hostname === `[${text}]`;
    }),
    { numRuns: 3000 },
  );
  t.end();
});

t.test('a network has one text, and no bits after its prefix', (t) => {
  const table: readonly (readonly [text: string, normal: string | undefined])[] = [
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['::/0', '::/0'],
    ['10.86.0.0/24', '10.86.0.0/24'],
    ['10.86.0.1/24', undefined],
    ['10.86.0.1/32', '10.86.0.1/32'],
    ['10.0.0.0/33', undefined],
    ['10.0.0.0/08', undefined],
    ['10.0.0.0/', undefined],
    ['10.0.0.0', undefined],
    ['10.0.0.0/8/8', undefined],
    ['10.0.0.0/-1', undefined],
    ['10.0.0.0/8 ', undefined],
    ['10/8', undefined],
    ['FD00:0086::/64', 'fd00:86::/64'],
    ['fd00::1/64', undefined],
    ['fd00::/129', undefined],
    ['::1/128', '::1/128'],
    ['/8', undefined],
    ['', undefined],
  ];
  for (const [text, expected] of table) {
    const parsed = parseCidr(text);
    t.equal(parsed === undefined ? undefined : formatCidr(parsed), expected, text || 'nothing');
  }
  fc.assert(
    fc.property(network, (given) => {
      const again = parseCidr(formatCidr(given));
      return again?.base === given.base && again.prefix === given.prefix && again.family === given.family;
    }),
    { numRuns: 2000 },
  );
  t.end();
});

t.test('a network holds the addresses that Node’s BlockList says', (t) => {
  fc.assert(
    fc.property(network, network, (outer, inner) => {
      const list = new BlockList();
      const type = outer.family === 4 ? 'ipv4' : 'ipv6';
      list.addSubnet(formatAddress(outer.family, outer.base), outer.prefix, type);
      const bits = BigInt((inner.family === 4 ? 32 : 128) - inner.prefix);
      const ends = [inner.base, inner.base | ((1n << bits) - 1n)].map((end) => formatAddress(inner.family, end));
      // BlockList takes `::a.b.c.d` mapped addresses for IPv4; families are compared here as they
      // are.
      const holds =
        outer.family === inner.family && ends.every((end) => list.check(end, inner.family === 4 ? 'ipv4' : 'ipv6'));
      if (contains(outer, inner) !== holds) throw new Error(`${formatCidr(outer)} ${formatCidr(inner)}`);
      if (overlap(outer, inner) !== overlap(inner, outer)) throw new Error('overlap is of both');
      if (holds && !overlap(inner, outer)) throw new Error('what is held overlaps');
    }),
    { numRuns: 3000 },
  );
  const table: readonly (readonly [one: string, other: string, contains: boolean, overlap: boolean])[] = [
    ['10.0.0.0/8', '10.1.0.0/16', true, true],
    ['10.1.0.0/16', '10.0.0.0/8', false, true],
    ['10.0.0.0/8', '10.0.0.0/8', true, true],
    ['10.0.0.0/9', '10.128.0.0/9', false, false],
    ['0.0.0.0/0', '255.255.255.255/32', true, true],
    ['0.0.0.0/0', '::/0', false, false],
    ['::/0', '2001:db8::/32', true, true],
    ['2001:db8::/33', '2001:db8:8000::/33', false, false],
  ];
  for (const [one, other, holds, both] of table) {
    t.equal(contains(cidr(one), cidr(other)), holds, `${one} holds ${other}`);
    t.equal(overlap(cidr(one), cidr(other)), both, `${one} overlaps ${other}`);
  }
  t.end();
});

t.test('an index is an address of each pool, the last one before the broadcast', (t) => {
  const table: readonly (readonly [pool: string, last: number, text: string])[] = [
    ['10.86.0.0/24', 254, '10.86.0.254'],
    ['10.86.0.0/30', 2, '10.86.0.2'],
    ['10.86.0.0/16', 65534, '10.86.255.254'],
    ['192.168.255.0/29', 6, '192.168.255.6'],
  ];
  for (const [pool, last, text] of table) {
    t.equal(lastIndex(cidr(pool)), last, pool);
    t.equal(addressAt(cidr(pool), last), text, pool);
  }
  t.equal(addressAt(cidr('10.86.0.0/24'), serverIndex), '10.86.0.1');
  t.equal(addressAt(cidr('fd00:86::/64'), serverIndex), 'fd00:86::1');
  t.equal(addressAt(cidr('fd00:86::/64'), 65534), 'fd00:86::fffe');
  fc.assert(
    fc.property(fc.integer({ min: 16, max: 30 }), value(4), (prefix, any) => {
      const bits = BigInt(32 - prefix);
      const pool: Cidr = { family: 4, base: (any >> bits) << bits, prefix };
      const last = cidr(`${addressAt(pool, lastIndex(pool))}/32`);
      const broadcast = pool.base | ((1n << bits) - 1n);
      return contains(pool, last) && last.base === broadcast - 1n;
    }),
  );
  t.end();
});
