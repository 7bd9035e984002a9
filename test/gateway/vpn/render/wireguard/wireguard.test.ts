import t from 'tap';
import { clientConf, serverConf } from '../../../../../gateway/vpn/render/wireguard/wireguard.ts';
import { Unfit } from '../../../../../gateway/vpn/render/fit.ts';
import { isFullTunnel, withoutIpv6 } from '../../../../../gateway/vpn/render/subject.ts';
import { keys, label, nasty, networkWith, proxy, subjectWith } from '../../support.ts';

type Section = readonly [name: string, keys: ReadonlyMap<string, string>];

const known: Readonly<Record<string, readonly string[]>> = {
  Interface: ['PrivateKey', 'ListenPort', 'Address', 'DNS', 'MTU'],
  Peer: ['PublicKey', 'PresharedKey', 'AllowedIPs', 'Endpoint', 'PersistentKeepalive'],
};

/**
 * A parser as strict as the apps of Apple's platforms: an unknown or repeated key fails; here, a
 * comment does as well.
 */
function parse(conf: string): Section[] {
  const sections: [string, Map<string, string>][] = [];
  for (const line of conf.split('\n')) {
    if (line === '') continue;
    const section = /^\[(\w+)\]$/.exec(line)?.[1];
    if (section !== undefined) {
      sections.push([section, new Map()]);
      continue;
    }
    const [, key = '', value = ''] = /^(\w+) = ([!-~]+(?: [!-~]+)*)$/.exec(line) ?? [];
    const [name, content] = sections.at(-1) ?? ['', new Map<string, string>()];
    if (!known[name]?.includes(key) || value.includes('#')) throw new Error(`[${name}] ${JSON.stringify(line)}`);
    if (content.has(key)) throw new Error(`twice: ${key}`);
    content.set(key, value);
  }
  return sections;
}

const asObject = (sections: readonly Section[]) =>
  sections.map(([name, content]) => [name, Object.fromEntries(content)]);

t.test('a client’s configuration has the keys that every client takes', (t) => {
  t.same(asObject(parse(clientConf(subjectWith(), keys))), [
    [
      'Interface',
      {
        PrivateKey: keys.privateKey,
        Address: '10.86.0.2/32, fd00:86::2/128',
        DNS: '10.86.0.1, fd00:86::1',
        MTU: '1380',
      },
    ],
    [
      'Peer',
      {
        PublicKey: keys.publicKey,
        PresharedKey: keys.presharedKey,
        AllowedIPs: '0.0.0.0/0, ::/0',
        Endpoint: 'vpn.example.com:51820',
        PersistentKeepalive: '25',
      },
    ],
  ]);
  t.end();
});

t.test('what the network leaves out, the configuration leaves out; a peer’s own routes and DNS count', (t) => {
  const one = (peer: Parameters<typeof subjectWith>[0], network: Parameters<typeof subjectWith>[1]) =>
    Object.assign({}, ...asObject(parse(clientConf(subjectWith(peer, network), keys))).map(([, content]) => content));
  const bare = one({ ipv6: null }, { ipv6_pool: null, dns: [], mtu: null });
  t.equal(bare.Address, '10.86.0.2/32');
  t.notOk('DNS' in bare);
  t.notOk('MTU' in bare);
  t.equal(one({ routes: ['192.0.2.0/24'], dns: ['9.9.9.9'] }, {}).AllowedIPs, '192.0.2.0/24');
  t.equal(one({ routes: ['192.0.2.0/24'], dns: ['9.9.9.9'] }, {}).DNS, '9.9.9.9');
  t.notOk('DNS' in one({ dns: [] }, {}), 'none at all is a choice, too');
  t.equal(one({ dns: ['9.9.9.9'] }, { search_domains: ['corp.example', 'lan'] }).DNS, '9.9.9.9, corp.example, lan');
  t.notOk('DNS' in one({ dns: [] }, { search_domains: ['corp.example'] }), 'nobody to ask');
  t.throws(() => one({}, { search_domains: ['a\nPostUp = reboot'] }), Unfit);
  t.equal(one({}, { endpoint: '2001:DB8::1', wireguard_port: 1 }).Endpoint, '[2001:db8::1]:1');
  t.equal(one({}, { endpoint: '192.0.2.1' }).Endpoint, '192.0.2.1:51820');
  t.end();
});

t.test('a device without IPv6 gets a file without it', (t) => {
  const conf = clientConf(withoutIpv6(subjectWith()), keys);
  t.match(conf, 'Address = 10.86.0.2/32\nDNS = 10.86.0.1\n');
  t.match(conf, 'AllowedIPs = 0.0.0.0/0\n');
  t.end();
});

const allowed = (peer: Parameters<typeof subjectWith>[0], network: Parameters<typeof subjectWith>[1]): string => {
  const [, text = ''] = /^AllowedIPs = (.*)$/m.exec(clientConf(subjectWith(peer, network), keys)) ?? [];
  return text;
};

t.test('a resolver that only the server reaches is reached through the tunnel', (t) => {
  const split = ['192.168.7.0/24'];
  const lan = '192.168.7.0/24';
  const rows: readonly (readonly [of: string, routes: string, ...Parameters<typeof allowed>])[] = [
    ['in the pool', `${lan}, 10.86.0.1/32`, { ipv6: null }, { routes: split, dns: ['10.86.0.1'], ipv6_pool: null }],
    ['of both families', `${lan}, 10.86.0.1/32, fd00:86::1/128`, {}, { routes: split }],
    ['private, named by the network', `${lan}, 10.1.1.53/32`, {}, { routes: split, dns: ['10.1.1.53'] }],
    ['within the routes', lan, {}, { routes: split, dns: ['192.168.7.53'] }],
    ['public', lan, {}, { routes: split, dns: ['9.9.9.9'] }],
    ['of a family that no peer has', lan, { ipv6: null }, { routes: split, dns: ['fd99::53'], ipv6_pool: null }],
    ['everything is routed', '0.0.0.0/0, ::/0', {}, {}],
    ['the peer’s routes leave it out', `${lan}, 10.86.0.1/32`, { routes: split }, { dns: ['10.86.0.1'] }],
    [
      'the peer’s own, in a network’s private route',
      '10.9.0.0/16, 192.168.7.53/32',
      { routes: ['10.9.0.0/16'], dns: ['192.168.7.53'] },
      { routes: [...split, '10.9.0.0/16'] },
    ],
    ['the peer’s own, at its home', lan, { dns: ['192.168.1.1'] }, { routes: split }],
    ['of an older release: the device itself', lan, {}, { routes: split, dns: ['127.0.0.1'] }],
    [
      'the server at its endpoint, which no tunnel reaches',
      lan,
      {},
      { routes: split, endpoint: '10.1.1.1', dns: ['10.1.1.1'] },
    ],
  ];
  for (const [of, routes, peer, network] of rows) t.equal(allowed(peer, network), routes, of);
  t.end();
});

t.test('everything in parts is everything, so that wg-quick keeps its own packets out of the tunnel', (t) => {
  const halves = ['0.0.0.0/1', '128.0.0.0/1', '::/1', '8000::/1'];
  t.equal(allowed({}, { routes: halves, endpoint: '198.51.100.1' }), '::/0, 0.0.0.0/0');
  t.equal(
    allowed({ routes: [...halves, '10.1.0.0/16'] }, { endpoint: '198.51.100.1' }),
    '::/0, 0.0.0.0/0, 10.1.0.0/16',
  );
  t.ok(isFullTunnel(subjectWith({}, { routes: halves })));
  t.end();
});

t.test('a proxy that only the server reaches is reached through the tunnel', (t) => {
  const proxyAt = (host: string) => ({
    routes: ['192.168.7.0/24'],
    dns: [],
    proxy: { ...proxy, host },
  });
  const lan = '192.168.7.0/24';
  const rows: readonly (readonly [of: string, routes: string, ...Parameters<typeof allowed>])[] = [
    ['in the pool', `${lan}, 10.86.0.1/32`, {}, proxyAt('10.86.0.1')],
    ['in the pool of IPv6', `${lan}, fd00:86::1/128`, {}, proxyAt('fd00:86::1')],
    ['private', `${lan}, 10.9.9.9/32`, {}, proxyAt('10.9.9.9')],
    ['and the resolver', `${lan}, 10.86.0.1/32`, {}, { ...proxyAt('10.86.0.1'), dns: ['10.86.0.1'] }],
    ['the peer’s routes leave it out', '10.1.0.0/16, 10.9.9.9/32', { routes: ['10.1.0.0/16'] }, proxyAt('10.9.9.9')],
    ['within the routes', lan, {}, proxyAt('192.168.7.9')],
    ['public', lan, {}, proxyAt('203.0.113.9')],
    ['by name', lan, {}, proxyAt('proxy.example.com')],
    ['the device itself', lan, {}, proxyAt('127.0.0.1')],
    ['at the endpoint', lan, {}, { ...proxyAt('10.9.9.9'), endpoint: '10.9.9.9' }],
    ['of a family that no peer has', lan, { ipv6: null }, { ...proxyAt('fd99::9'), ipv6_pool: null }],
  ];
  for (const [of, routes, peer, network] of rows) t.equal(allowed(peer, network), routes, of);
  const without = clientConf(withoutIpv6(subjectWith({}, proxyAt('fd00:86::1'))), keys);
  t.match(without, `AllowedIPs = ${lan}\n`, 'without IPv6 on the device');
  t.end();
});

t.test('the server’s configuration has each peer at its addresses', (t) => {
  const { privateKey, publicKey, presharedKey } = keys;
  const peers = [
    { publicKey, presharedKey, ipv4: '10.86.0.2', ipv6: 'fd00:86::2' },
    { publicKey, presharedKey, ipv4: '10.86.0.3', ipv6: null },
  ];
  t.same(asObject(parse(serverConf(networkWith(), privateKey, peers))), [
    ['Interface', { PrivateKey: privateKey, Address: '10.86.0.1/24, fd00:86::1/64', ListenPort: '51820', MTU: '1380' }],
    ['Peer', { PublicKey: publicKey, PresharedKey: presharedKey, AllowedIPs: '10.86.0.2/32, fd00:86::2/128' }],
    ['Peer', { PublicKey: publicKey, PresharedKey: presharedKey, AllowedIPs: '10.86.0.3/32' }],
  ]);
  const plain = networkWith({ ipv6_pool: null, mtu: null, ipv4_pool: '10.0.0.0/16' });
  t.same(asObject(parse(serverConf(plain, privateKey, []))), [
    ['Interface', { PrivateKey: privateKey, Address: '10.0.0.1/16', ListenPort: '51820' }],
  ]);
  t.end();
});

t.test('no name is in it, and no value but keys, addresses and numbers', (t) => {
  const plain = clientConf(subjectWith(), keys);
  for (const text of nasty) {
    t.equal(clientConf(subjectWith({ name: text }), keys), plain, label(text));
    t.throws(() => clientConf(subjectWith(), { ...keys, privateKey: text }), Unfit);
    t.throws(() => clientConf(subjectWith(), { ...keys, presharedKey: `${keys.presharedKey}${text}` }), Unfit);
    t.throws(() => serverConf(networkWith(), text, []), Unfit);
    const peer = { ...keys, ipv4: '10.86.0.2', ipv6: null };
    t.throws(() => serverConf(networkWith(), keys.privateKey, [{ ...peer, publicKey: text }]), Unfit);
    t.throws(() => serverConf(networkWith(), keys.privateKey, [{ ...peer, ipv4: `10.86.0.2${text}` }]), Unfit);
    t.throws(() => serverConf(networkWith({ ipv4_pool: `10.86.0.0/24${text}` }), keys.privateKey, []), Unfit);
  }
  // 43 characters hold two bits more than 32 bytes: `wg` refuses a key that sets them.
  t.throws(() => clientConf(subjectWith(), { ...keys, privateKey: keys.privateKey.replace('k=', 'l=') }), Unfit);
  t.throws(() => clientConf(subjectWith({}, { wireguard_port: 0 }), keys), Unfit);
  t.throws(() => clientConf(subjectWith({}, { mtu: 1.5 }), keys), Unfit);
  t.end();
});
