/** What an agent lets its engine be sent to. */
import { BlockList, isIP } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { isPublicAddress, privateIpv4, privateIpv6 } from '../../../host-agent/network/addresses.ts';
import { createPermit, type RegistryFault } from '../../../host-agent/images/registries.ts';
import { settings } from '../../../host-agent/settings.ts';
import { overlap, parseCidr } from '../../../schemas/cidr.ts';

t.test('addresses that are not of the internet', (t) => {
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

t.test('every spelling of a private IPv4 address inside IPv6 is private', (t) => {
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

const names: Readonly<Record<string, readonly string[]>> = {
  'public.example.net': ['1.1.1.1', '2606:4700::1111'],
  'inside.example.net': ['10.0.0.5'],
  'both.example.net': ['1.1.1.1', 'fd00::5'],
  'metadata.example.net': ['169.254.169.254'],
  'none.example.net': [],
  'docker.io': ['1.1.1.1'],
  'index.docker.io': ['1.1.1.1'],
  'registry-1.docker.io': ['1.1.1.1'],
  'auth.docker.io': ['1.1.1.1'],
};

/** Also says which names were looked up. */
function permitOf(allowed: readonly string[], known = names) {
  const asked: string[] = [];
  const permit = createPermit(allowed, (name) => {
    asked.push(name);
    const addresses = known[name];
    return addresses === undefined ? Promise.reject(new Error('ENOTFOUND')) : Promise.resolve(addresses);
  });
  const verdict = async (registry: string): Promise<RegistryFault | 'allowed'> =>
    permit(registry).then(
      () => 'allowed',
      (error: { fault: RegistryFault }) => error.fault,
    );
  return { verdict, asked };
}

t.test('public: the name resolves, and to public addresses alone', async (t) => {
  const { verdict } = permitOf(['public']);
  for (const [registry, expected] of [
    ['public.example.net', 'allowed'],
    ['public.example.net:5000', 'allowed'],
    ['docker.io', 'allowed'],
    ['inside.example.net', 'private_address'],
    ['both.example.net', 'private_address'],
    ['metadata.example.net', 'private_address'],
    ['none.example.net', 'unresolved'],
    ['unknown.example.net', 'unresolved'],
    ['127.0.0.1:5000', 'not_allowed'],
    ['[::1]:5000', 'not_allowed'],
    ['localhost', 'not_allowed'],
    ['169.254.169.254', 'not_allowed'],
  ] as const) {
    t.equal(await verdict(registry), expected, registry);
  }
  const forged = permitOf(['public'], { ...names, 'auth.docker.io': ['192.168.0.1'] });
  t.equal(await forged.verdict('docker.io'), 'private_address', 'every name that Docker Hub is asked at');
});

t.test('what a rule names is not looked up', async (t) => {
  const { verdict, asked } = permitOf(['public', '127.0.0.1:5000', '*.corp.example']);
  t.equal(await verdict('127.0.0.1:5000'), 'allowed');
  t.equal(await verdict('r.corp.example'), 'allowed');
  t.equal(await verdict('127.0.0.1:5001'), 'not_allowed');
  t.same(asked, []);
});

t.test('the setting', (t) => {
  const { parse, fallback } = settings.REGISTRIES_ALLOWED;
  t.same(fallback?.value, ['public']);
  t.same(parse('public, 10.0.0.1:5000'), ['public', '10.0.0.1:5000']);
  for (const bad of [
    'https://r.example',
    'r.example/path',
    Array.from({ length: 65 }, (_, n) => `r${n}.example`).join(),
  ])
    t.equal(parse(bad), undefined, bad.slice(0, 40));
  t.end();
});
