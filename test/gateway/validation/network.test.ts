import fc from 'fast-check';
import t from 'tap';
import { newFaults, validateNetworkCreate, validateNetworkPut } from '../../../gateway/validation/network.ts';
import { clientConf, serverConf } from '../../../gateway/vpn/render/wireguard/wireguard.ts';
import { pac } from '../../../gateway/vpn/render/pac.ts';
import { tenantIdPattern, type NetworkName } from '../../../schemas/ids.ts';
import { networkNamePattern } from '../../../schemas/words.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys, label, networkWith, subjectWith } from '../vpn/support.ts';

const notNetwork = 'must be a network in CIDR form, like 10.0.0.0/8, with no bits beyond its prefix';
const notAddress = 'must be an IPv4 or IPv6 address';
const domain = 'must be a domain name, like example.com';

type Faults = Readonly<Record<string, readonly string[]>>;
const faultsOf = (valid: { ok: true } | { ok: false; faults: Faults }): Faults => (valid.ok ? {} : valid.faults);

const least = { name: 'demo', endpoint: 'vpn.example.com', ipv4_pool: '10.86.0.0/24' };

t.test('a network has a default for all but its endpoint and its pool', (t) => {
  const settings = {
    endpoint: 'vpn.example.com',
    wireguard_port: 51820,
    ipv4_pool: '10.86.0.0/24',
    ipv6_pool: null,
    routes: ['0.0.0.0/0', '::/0'],
    dns: [],
    mtu: null,
    proxy: null,
  };
  const made = { name: 'demo', settings, nameConstraints: false };
  t.same(validateNetworkCreate(least), { ok: true, value: made });
  const asked = validateNetworkCreate({ ...least, name_constraints: true });
  t.same(asked, { ok: true, value: { ...made, nameConstraints: true } });
  const { name, ...body } = least;
  t.same(validateNetworkPut(body), { ok: true, value: settings });
  t.same(faultsOf(validateNetworkPut({ ...body, name })), { name: ['is not known'] });
  t.same(faultsOf(validateNetworkCreate({})), {
    name: ["can't be blank"],
    endpoint: ["can't be blank"],
    ipv4_pool: ["can't be blank"],
  });
  for (const nothing of [null, [], 'x']) t.same(faultsOf(validateNetworkPut(nothing)), { _: ['must be an object'] });
  t.end();
});

t.test('given fields are kept in their normal form', (t) => {
  const valid = validateNetworkCreate({
    ...least,
    endpoint: 'VPN.Example.COM',
    wireguard_port: 1,
    ipv6_pool: 'FD00:0086::/64',
    routes: ['10.0.0.0/8', 'FD00::/8'],
    dns: ['FD00::1'],
    mtu: 1280,
    proxy: { host: 'Proxy.Example', port: 8080, domains: ['Corp.Example'] },
    tenants: ['a'],
  });
  t.same(valid, {
    ok: true,
    value: {
      name: 'demo',
      nameConstraints: false,
      settings: {
        endpoint: 'vpn.example.com',
        wireguard_port: 1,
        ipv4_pool: '10.86.0.0/24',
        ipv6_pool: 'fd00:86::/64',
        routes: ['10.0.0.0/8', 'fd00::/8'],
        dns: ['fd00::1'],
        mtu: 1280,
        proxy: {
          type: 'PROXY',
          host: 'proxy.example',
          port: 8080,
          domains: ['corp.example'],
          exclude: [],
          direct_fallback: false,
        },
        tenants: ['a'],
      },
    },
  });
  t.end();
});

t.test('faults of a network’s fields', (t) => {
  const host = 'must be a host name or an address; write letters other than a-z in punycode (xn--...)';
  const resolver = 'must be the address of a resolver, not an unspecified, loopback or multicast one';
  const unroutable = 'none is of a family that peers have; name an IPv4 network, or give the network an ipv6_pool';
  const inPool = 'is an address of the pools; give one that devices reach without the tunnel';
  const pool4 = 'must have a prefix from /16 to /30';
  const nobody = 'must not overlap reserved addresses (loopback, link-local, multicast)';
  const table: readonly (readonly [field: string, value: unknown, faults: Faults])[] = [
    ['endpoint', '192.0.2.1', {}],
    ['endpoint', '2001:db8::1', {}],
    ['endpoint', 'localhost', {}],
    ['endpoint', 'a-b.c1', {}],
    ['endpoint', 'xn--bcher-kva.example', {}],
    ['endpoint', `${'a'.repeat(63)}.example`, {}],
    ['endpoint', `${'a'.repeat(64)}.example`, { endpoint: [host] }],
    ['endpoint', 'bücher.example', { endpoint: [host] }],
    ['endpoint', 'vpn.example.com.', { endpoint: [host] }],
    ['endpoint', '-a.example', { endpoint: [host] }],
    ['endpoint', 'a-.example', { endpoint: [host] }],
    ['endpoint', 'a..example', { endpoint: [host] }],
    ['endpoint', '1.2.3', { endpoint: [host] }],
    ['endpoint', '256.1.1.1', { endpoint: [host] }],
    ['endpoint', '01.2.3.4', { endpoint: [host] }],
    ['endpoint', 'a.0x7f', { endpoint: [host] }],
    ['endpoint', 'example.com:51820', { endpoint: [host] }],
    ['endpoint', '1::2::3', { endpoint: [host] }],
    ['endpoint', 'a_b.example', { endpoint: [host] }],
    ['endpoint', 'a.example\nPostUp = x', { endpoint: [host] }],
    ['endpoint', '', { endpoint: ["can't be blank", host] }],
    ['name', 'a'.repeat(15), {}],
    ['name', 'a'.repeat(16), { name: [`must match ${networkNamePattern}`] }],
    ['wireguard_port', 0, { wireguard_port: ['must be at least 1'] }],
    ['wireguard_port', '51820', { wireguard_port: ['must be an integer'] }],
    ['ipv4_pool', '10.0.0.0/16', {}],
    ['ipv4_pool', '10.0.0.0/30', {}],
    ['ipv4_pool', '10.0.0.0/15', { ipv4_pool: [pool4] }],
    ['ipv4_pool', '10.0.0.0/31', { ipv4_pool: [pool4] }],
    ['ipv4_pool', '10.0.0.1/24', { ipv4_pool: ['must be an IPv4 network, like 10.86.0.0/24'] }],
    ['ipv4_pool', 'fd00::/64', { ipv4_pool: ['must be an IPv4 network, like 10.86.0.0/24'] }],
    ['ipv4_pool', '0.1.0.0/16', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '127.0.0.0/24', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '169.254.0.0/24', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '169.254.0.0/16', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '224.0.0.0/24', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '239.255.0.0/16', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '255.255.255.0/24', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '223.255.255.0/24', {}],
    ['ipv6_pool', 'fd00:86::/64', {}],
    ['ipv6_pool', 'fd00:86::/120', {}],
    ['ipv6_pool', 'fd00:86::/121', { ipv6_pool: ['must have a prefix from /64 to /120'] }],
    ['ipv6_pool', 'fd00::/63', { ipv6_pool: ['must have a prefix from /64 to /120'] }],
    ['ipv6_pool', 'fd00::1/64', { ipv6_pool: ['must be an IPv6 network, like fd00:86::/64'] }],
    ['ipv6_pool', '10.0.0.0/24', { ipv6_pool: ['must be an IPv6 network, like fd00:86::/64'] }],
    ['ipv6_pool', 'ff02::/64', { ipv6_pool: [nobody] }],
    ['ipv6_pool', 'fe80::/64', { ipv6_pool: [nobody] }],
    ['ipv6_pool', '::/64', { ipv6_pool: [nobody] }],
    ['ipv6_pool', '::ffff:0:0/96', { ipv6_pool: [nobody] }],
    ['routes', [], { routes: ["can't be blank"] }],
    ['routes', ['10.0.0.1/8'], { 'routes.0': [notNetwork] }],
    ['dns', ['999.1.1.1'], { 'dns.0': [notAddress] }],
    ['dns', ['0.0.0.0', '9.9.9.9'], { 'dns.0': [resolver] }],
    ['dns', ['10.86.0.1', '127.0.0.53', '224.0.0.251'], { 'dns.1': [resolver], 'dns.2': [resolver] }],
    ['dns', ['255.255.255.255'], { 'dns.0': [resolver] }],
    ['dns', ['::'], { 'dns.0': [resolver] }],
    ['dns', ['::1'], { 'dns.0': [resolver] }],
    ['dns', ['::ffff:7f00:1'], { 'dns.0': [resolver] }],
    ['dns', ['ff02::fb'], { 'dns.0': [resolver] }],
    ['dns', ['169.254.169.253', 'fd00::53', '2001:4860:4860::8888'], {}],
    ['search_domains', ['corp.example'], { search_domains: ['need resolvers: give their addresses in `dns`'] }],
    ['routes', ['fd00::/8'], { routes: [unroutable] }],
    ['routes', ['fd00::/8', '10.0.0.0/8'], {}],
    ['endpoint', '10.86.0.1', { endpoint: [inPool] }],
    ['routes', ['0.0.0.0/1', '128.0.0.0/1', '192.168.7.0/24'], {}],
    ['endpoint', '10.87.0.1', {}],
    ['mtu', 1279, { mtu: ['must be at least 1280'] }],
    ['mtu', 1501, { mtu: ['must be at most 1500'] }],
    ['proxy', { host: 'a b', port: 1 }, { 'proxy.host': [host] }],
    ['proxy', { host: '1.2.3', port: 1 }, { 'proxy.host': [host] }],
    ['proxy', { host: 'a.example' }, { 'proxy.port': ["can't be blank"] }],
    ['proxy', { host: 'a.example', port: 1, domains: ['a..b'] }, { 'proxy.domains.0': [domain] }],
    ['proxy', { host: 'a.example', port: 1, exclude: ['a', 'A'] }, { 'proxy.exclude': ['must be distinct'] }],
    ['proxy', { host: 'a.example', port: 1, exclude: ['";x'] }, { 'proxy.exclude.0': [domain] }],
    ['proxy', { host: 'a.example', port: 1, type: 'FTP' }, { 'proxy.type': ['must be one of PROXY, HTTPS, SOCKS5'] }],
    ['proxy', { host: 'a.example', port: 1, x: 1 }, { 'proxy.x': ['is not known'] }],
    ['proxy', 'a.example:1', { proxy: ['must be an object'] }],
    ['tenants', [], {}],
    ['tenants', ['a b'], { 'tenants.0': [`must match ${tenantIdPattern}`] }],
    ['postup', 'x', { postup: ['is not known'] }],
  ];
  for (const [field, value, faults] of table) {
    const found = faultsOf(validateNetworkCreate({ ...least, [field]: value }));
    t.same(found, faults, `${field}: ${label(JSON.stringify(value))}`);
  }
  const searching = { ...least, dns: ['9.9.9.9'], search_domains: ['Corp.Example', 'lan'] };
  const made = validateNetworkCreate(searching);
  t.match(made, { ok: true, value: { settings: { search_domains: ['corp.example', 'lan'] } } });
  for (const wrong of ['1.2.3.4', 'a b', '-a', 'a\nb'])
    t.ok(faultsOf(validateNetworkCreate({ ...searching, search_domains: [wrong] }))['search_domains.0'], wrong);
  t.end();
});

t.test('a network of an older release keeps what is refused today, and gets no more of it', (t) => {
  const old = validateNetworkPut({
    endpoint: '169.254.0.1',
    ipv4_pool: '169.254.0.0/24',
    routes: ['fd00::/8'],
    dns: ['0.0.0.0', '9.9.9.9'],
  });
  if (!old.ok) throw new Error('an older release took it');
  const before = { ...old.value, tenants: null };
  const change = (more: object) => Object.keys(newFaults({ ...old.value, ...more }, before));
  t.same(change({}), []);
  t.same(change({ tenants: ['acme'], mtu: 1400, wireguard_port: 1 }), []);
  t.same(change({ dns: ['0.0.0.0'] }), []);
  t.same(change({ dns: ['0.0.0.0', '127.0.0.1'] }), ['dns.1']);
  t.same(change({ routes: ['fe80::/10'] }), ['routes']);
  t.same(change({ routes: ['fd00::/8', '10.0.0.0/8'] }), []);
  t.same(change({ endpoint: '169.254.0.2' }), ['endpoint']);
  t.same(change({ endpoint: 'vpn.example.com' }), []);
  t.end();
});

t.test('no route but everything leads the endpoint’s own packets into the tunnel', (t) => {
  const loop = (route: string, endpoint: string) => ({
    routes: [
      `${route} contains the endpoint ${endpoint}, whose packets can't go into the tunnel; leave that address out, or route everything (0.0.0.0/0 or ::/0)`,
    ],
  });
  const [v4, v6] = ['198.51.100.1', '2001:db8::1'];
  const rows: readonly (readonly [endpoint: string, routes: readonly string[], faults: Faults])[] = [
    [v4, ['0.0.0.0/0', '::/0'], {}],
    [v4, ['0.0.0.0/1', '128.0.0.0/1'], {}],
    [v4, ['10.0.0.0/8', '198.51.0.0/16'], loop('198.51.0.0/16', v4)],
    [v4, ['0.0.0.0/0', '198.51.100.0/24'], loop('198.51.100.0/24', v4)],
    [v6, ['10.0.0.0/8', '2000::/3'], loop('2000::/3', v6)],
    ['vpn.example.com', ['198.51.0.0/16'], {}],
  ];
  for (const [endpoint, routes, faults] of rows) {
    const found = faultsOf(validateNetworkCreate({ ...least, endpoint, ipv6_pool: 'fd86::/64', routes }));
    t.same(found, faults, `${endpoint} ${routes.join()}`);
  }
  const old = validateNetworkPut({
    ...(({ name: _, ...body }) => body)(least),
    endpoint: v4,
    routes: ['198.51.0.0/16'],
  });
  if (!old.ok) throw new Error('an older release took it');
  const before = { ...old.value, tenants: null };
  t.same(newFaults({ ...old.value, mtu: 1400, routes: ['198.51.0.0/16', '10.0.0.0/8'] }, before), {}, 'it goes on');
  t.same(newFaults({ ...old.value, endpoint: '198.51.7.7' }, before), loop('198.51.0.0/16', '198.51.7.7'));
  t.same(newFaults({ ...old.value, routes: ['198.51.100.0/24'] }, before), loop('198.51.100.0/24', v4));
  t.end();
});

t.test('two networks on one server have pools of their own', (t) => {
  const made = validateNetworkPut({ endpoint: 'vpn.example.com', ipv4_pool: '10.90.0.0/24', ipv6_pool: 'fd90::/64' });
  if (!made.ok) throw new Error('a valid body');
  const vpa = {
    ...{ name: 'vpa' as NetworkName, endpoint: 'vpn.example.com', wireguard_port: 51821 },
    ...{ ipv4_pool: '10.90.0.0/16', ipv6_pool: null },
  };
  const faults = newFaults(made.value, undefined, [vpa]);
  t.same(faults, { ipv4_pool: ['overlaps that of network vpa, which has the same endpoint'] });
  t.same(newFaults(made.value, undefined, [{ ...vpa, endpoint: 'other.example.com' }]), {}, 'on another server');
  t.same(newFaults(made.value, undefined, [{ ...vpa, ipv4_pool: '10.91.0.0/24' }]), {});
  const six = { ...vpa, ipv4_pool: '10.91.0.0/24', ipv6_pool: 'fd90::/64' };
  t.same(Object.keys(newFaults(made.value, undefined, [six])), ['ipv6_pool']);
  const before = { ...made.value, tenants: null };
  t.same(newFaults(made.value, before, [vpa]), {}, 'one of an older release goes on');
  const moved = newFaults(made.value, { ...before, endpoint: 'old.example.com' }, [vpa]);
  t.same(moved, { endpoint: ['is that of network vpa, whose pools overlap'] });
  t.end();
});

t.test('two networks on one server have ports of their own', (t) => {
  const made = validateNetworkPut({ endpoint: 'VPN.Example.com', ipv4_pool: '10.90.0.0/24' });
  if (!made.ok) throw new Error('a valid body');
  const vpa = {
    ...{ name: 'vpa' as NetworkName, endpoint: 'vpn.example.com', wireguard_port: 51820 },
    ...{ ipv4_pool: '10.91.0.0/24', ipv6_pool: null },
  };
  const taken = { wireguard_port: ['is that of network vpa, which has the same endpoint; choose another'] };
  t.same(newFaults(made.value, undefined, [vpa]), taken);
  t.same(newFaults({ ...made.value, wireguard_port: 51821 }, undefined, [vpa]), {});
  t.same(newFaults(made.value, undefined, [{ ...vpa, endpoint: 'other.example.com' }]), {});
  const before = { ...made.value, tenants: null };
  t.same(newFaults(made.value, before, [vpa]), {}, 'one of an older release goes on');
  t.same(newFaults(made.value, { ...before, wireguard_port: 51821 }, [vpa]), taken);
  t.same(newFaults(made.value, { ...before, endpoint: 'old.example.com' }, [vpa]), taken);
  t.end();
});

t.test('a network is not called as other programs call their interfaces', (t) => {
  const other = ['is the name of another interface on many machines; choose one like "office"'];
  const taken = [
    ...['lo', 'all', 'default', 'eth0', 'eth', 'ens3', 'enp0s31f6', 'eno1', 'enx001122334455', 'wlan0', 'wlp2s0'],
    ...['wwan0', 'wwp0s20u4i6', 'docker0', 'docker-gwbridge', 'br-1a2b3c4d5e6f', 'br0', 'veth1a2b3c4', 'tun0', 'tap1'],
    ...['ipsec0', 'wg', 'wg0', 'wg12', 'lan', 'lan1', 'wan', 'bond0', 'virbr0', 'ppp0', 'tailscale0', 'cni0', 'vmbr0'],
    ...['cali0123456789a', 'if2', 'dummy0', 'tunl0'],
  ];
  for (const name of taken) t.same(faultsOf(validateNetworkCreate({ ...least, name })), { name: other }, name);
  const word = ['is a word of the commands that make the interface; choose one like "office"'];
  for (const name of [
    'dev',
    'up',
    'l',
    'ty',
    'type',
    'mtu',
    'vrf',
    'qlen',
    'link-net',
    'help',
    'interfaces',
    'include',
  ])
    t.same(faultsOf(validateNetworkCreate({ ...least, name })), { name: word }, name);
  const free = [
    'office',
    'links',
    'updates',
    'devs',
    'mod',
    'engineering',
    'england',
    'wales',
    'tunnel',
    'team',
    'bridge',
    'lab1',
    '0-my-net',
    'vpn0',
    'con',
  ];
  for (const name of free) t.same(faultsOf(validateNetworkCreate({ ...least, name })), {}, name);
  t.end();
});

t.test('an accepted network can be written into every file', (t) => {
  const text = fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.ipV6(),
    fc.string({ maxLength: 20 }),
    fc.stringMatching(/^[a-z0-9.:-]{1,12}$/),
  );
  let passed = 0;
  fc.assert(
    fc.property(
      fc.record({ endpoint: text, host: text, domain: text, address: text, prefix: fc.integer({ min: 0, max: 128 }) }),
      ({ endpoint, host, domain, address, prefix }) => {
        const { name, ...body } = least;
        const valid = validateNetworkPut({
          ...body,
          endpoint,
          ...(prefix % 2 === 0 ? { dns: [address] } : { routes: [`${address}/${prefix}`] }),
          proxy: { host, port: 1, domains: [domain] },
        });
        if (!valid.ok) return;
        passed++;
        clientConf(subjectWith({}, valid.value), keys);
        serverConf(networkWith(valid.value), keys.privateKey, []);
        pac(networkWith(valid.value));
        const again = validateNetworkPut(valid.value);
        t.same(again.ok && again.value, valid.value, `${name}: what is normal stays`);
      },
    ),
    { numRuns: 3000 },
  );
  t.ok(passed > 20, 'and some do pass');
  t.equal(limits.ipv4PoolPrefixMin, 16);
  t.end();
});

t.test('null is as if absent, in a network’s body too', (t) => {
  const needed = { endpoint: 'vpn.example.com', ipv4_pool: '10.0.0.0/24' };
  const proxy = { host: 'p.example', port: 1 };
  const nulls = { wireguard_port: null, ipv6_pool: null, routes: null, dns: null, mtu: null };
  const nullsOfProxy = { type: null, domains: null, exclude: null, direct_fallback: null };
  t.same(
    validateNetworkPut({ ...needed, ...nulls, proxy: { ...proxy, ...nullsOfProxy } }),
    validateNetworkPut({ ...needed, proxy }),
  );
  t.same(validateNetworkPut({ ...needed, proxy: null }), validateNetworkPut(needed));
  const everyTenant = validateNetworkPut({ ...needed, tenants: null });
  t.match(everyTenant, { value: { tenants: null } }, 'but for the tenants: every one, which is said and not left out');
  t.not('tenants' in (validateNetworkPut(needed) as { value: object }).value, true);
  t.same(faultsOf(validateNetworkPut({ endpoint: null, ipv4_pool: null, wireguard_port: 'x', proxy: { type: 1 } })), {
    endpoint: ['must be a string'],
    ipv4_pool: ['must be a string'],
    wireguard_port: ['must be an integer'],
    'proxy.host': ["can't be blank"],
    'proxy.port': ["can't be blank"],
    'proxy.type': ['must be one of PROXY, HTTPS, SOCKS5'],
  });
  t.end();
});
