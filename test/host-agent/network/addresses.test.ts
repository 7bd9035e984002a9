import { BlockList, isIP } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { isPublicAddress, privateIpv4, privateIpv6 } from '../../../host-agent/network/addresses.ts';
import { overlap, parseCidr } from '../../../schemas/cidr.ts';

t.test('private and special addresses are not public', (t) => {
  const inside = [
    ...['0.0.0.0', '10.0.0.1', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.16.0.1', '172.31.255.255'],
    ...['192.168.1.1', '198.18.0.1', '224.0.0.1', '255.255.255.255'],
    ...['::', '::1', '::ffff:127.0.0.1', '::ffff:a00:1', '64:ff9b::a9fe:a9fe', '64:ff9b::7f00:1', '64:ff9b:1::1'],
    ...['2002:7f00:1::', '2001:0:1::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'fec0::1', 'ff02::1'],
  ];
  for (const address of inside) t.notOk(isPublicAddress(address), address);
  for (const address of ['1.1.1.1', '172.15.0.1', '172.32.0.1', '192.0.1.1', '2606:4700::1111', '64:ff9b::101:101'])
    t.ok(isPublicAddress(address), address);
  t.end();
});

t.test('a private IPv4 address inside an IPv6 address is private', (t) => {
  const list = new BlockList();
  for (const range of privateIpv4) list.addSubnet(range.split('/')[0]!, Number(range.split('/')[1]), 'ipv4');
  fc.assert(
    fc.property(fc.ipV4(), (ipv4) => {
      const isPrivate = list.check(ipv4, 'ipv4');
      const hex = ipv4.split('.').map((part) => Number(part).toString(16).padStart(2, '0'));
      const tail = `${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`;
      const nat64 = `64:ff9b::${tail}`;
      return isIP(nat64) === 6 && isPublicAddress(nat64) === !isPrivate && !isPublicAddress(`::ffff:${tail}`);
    }),
  );
  t.pass();
  t.end();
});

t.test('the ranges are networks, and none overlaps another', (t) => {
  for (const ranges of [privateIpv4, privateIpv6]) {
    const parsed = ranges.map((text) => parseCidr(text));
    t.notOk(parsed.includes(undefined), ranges.join());
    for (const [index, one] of parsed.entries()) {
      for (const other of parsed.slice(index + 1)) t.notOk(overlap(one!, other!), `${ranges[index]}`);
    }
  }
  t.end();
});
