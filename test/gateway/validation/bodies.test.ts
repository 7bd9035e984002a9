import fc from 'fast-check';
import t from 'tap';
import { validateNetworkCreate, validateNetworkPut } from '../../../gateway/validation/network.ts';
import { validatePeerCreate, validatePeerUpdate } from '../../../gateway/validation/peer.ts';
import { parseTimestamp } from '../../../gateway/validation/timestamp.ts';
import { clientConf, serverConf } from '../../../gateway/vpn/render/wireguard.ts';
import { pac } from '../../../gateway/vpn/render/pac.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys, label, networkWith, subjectWith } from '../vpn/support.ts';

const nowMs = Date.UTC(2026, 5, 1);
const control = 'must not contain control characters';
const edge = 'must not begin or end with a space';
const notNetwork = 'is not a network';
const notAddress = 'is not an address';
const format = 'has invalid format';

type Faults = Readonly<Record<string, readonly string[]>>;
const faultsOf = (valid: { ok: true } | { ok: false; faults: Faults }): Faults => (valid.ok ? {} : valid.faults);

t.test('a peer is a name, and what the network says else', (t) => {
  t.same(validatePeerCreate({ name: 'phone' }, nowMs), {
    ok: true,
    value: { name: 'phone', network: null, expiresAtMs: null, routes: null, dns: null },
  });
  const full = {
    name: 'Ann’s phone 😀',
    network: 'demo',
    expires_at: '2026-06-01T02:00:00.5+01:00',
    routes: ['10.0.0.0/8', '2001:DB8:0::/32'],
    dns: ['9.9.9.9', '2001:DB8:0:0::1'],
  };
  t.same(validatePeerCreate(full, nowMs), {
    ok: true,
    value: {
      name: 'Ann’s phone 😀',
      network: 'demo',
      expiresAtMs: nowMs + 3_600_500,
      routes: ['10.0.0.0/8', '2001:db8::/32'],
      dns: ['9.9.9.9', '2001:db8::1'],
    },
  });
  const nothing = { name: 'a', network: null, expires_at: null, routes: null, dns: null };
  t.ok(validatePeerCreate(nothing, nowMs).ok, 'null is as if absent');
  t.end();
});

t.test('a change has what the body has', (t) => {
  t.same(validatePeerUpdate({}, nowMs), { ok: true, value: {} });
  const body = { name: 'b', enabled: false, expires_at: null, routes: null, dns: [] };
  t.same(validatePeerUpdate(body, nowMs), {
    ok: true,
    value: { name: 'b', enabled: false, expiresAtMs: null, routes: null, dns: [] },
  });
  t.same(faultsOf(validatePeerUpdate({ enabled: 1, network: 'x' }, nowMs)), {
    enabled: ['must be true or false'],
    network: ['is not known'],
  });
  t.end();
});

t.test('what is wrong with a peer’s field, and nothing else with the body', (t) => {
  const table: readonly (readonly [field: string, value: unknown, faults: Faults])[] = [
    ['name', undefined, { name: ["can't be blank"] }],
    ['name', null, { name: ['must be a string'] }],
    ['name', 7, { name: ['must be a string'] }],
    ['name', '', { name: ["can't be blank"] }],
    ['name', '   ', { name: ["can't be blank"] }],
    ['name', ' a', { name: [edge] }],
    ['name', 'a\u00a0', { name: [edge] }],
    ['name', 'a b', {}],
    ['name', 'x'.repeat(64), {}],
    ['name', 'x'.repeat(65), { name: ['must be at most 64 characters'] }],
    ['name', '\u0958'.repeat(33), { name: ['must be at most 64 characters'] }],
    ['name', 'a\nb', { name: [control] }],
    ['name', '\u0000', { name: [control] }],
    ['name', 'a\u0085b', { name: [control] }],
    ['name', 'a\u2028b', { name: [control] }],
    ['name', 'a\u2029b', { name: [control] }],
    ['name', 'a\u202eb', { name: [control] }],
    ['name', 'a\u200bb', { name: [control] }],
    ['name', '\ufeffa', { name: [control] }],
    ['name', 'a\ud800', { name: [control] }],
    ['name', 'a\ue000', { name: [control] }],
    ['name', 'a\uffff', { name: [control] }],
    ['name', 'a\u0378', { name: [control] }],
    ['name', '</script>"\'`$(x)\\', {}],
    ['network', 'demo', {}],
    ['network', 'Demo', { network: [format] }],
    ['network', '-', { network: [format] }],
    ['network', 7, { network: ['must be a string'] }],
    ['expires_at', '2026-06-01T00:00:00.001Z', {}],
    ['expires_at', '2026-06-01T00:00:00Z', { expires_at: ['must be in the future'] }],
    ['expires_at', '2020-01-01T00:00:00Z', { expires_at: ['must be in the future'] }],
    ['expires_at', '2027-02-30T00:00:00Z', { expires_at: [format] }],
    ['expires_at', '2027-01-01', { expires_at: [format] }],
    ['expires_at', 'tomorrow', { expires_at: [format] }],
    ['expires_at', 1_900_000_000, { expires_at: ['must be a string'] }],
    ['routes', ['0.0.0.0/0', '::/0'], {}],
    ['routes', ['10.0.0.1/8'], { 'routes.0': [notNetwork] }],
    ['routes', ['10.0.0.0/8', 'fd00::1/64'], { 'routes.1': [notNetwork] }],
    ['routes', ['10.0.0.0/33'], { 'routes.0': [notNetwork] }],
    ['routes', ['10.0.0.0'], { 'routes.0': [format] }],
    ['routes', ['10.0.0.0/8\n'], { 'routes.0': [format] }],
    ['routes', ['2001:db8::/32', '2001:DB8::/32'], { routes: ['must be distinct'] }],
    ['routes', 'all', { routes: ['must be a list'] }],
    ['routes', Array.from({ length: 65 }, (_, at) => `10.${at}.0.0/16`), { routes: ['must be at most 64 items'] }],
    ['dns', [], {}],
    ['dns', ['::1', '0:0::1'], { dns: ['must be distinct'] }],
    ['dns', ['1.2.3'], { 'dns.0': [notAddress] }],
    ['dns', ['1.2.3.04'], { 'dns.0': [notAddress] }],
    ['dns', ['dns.example'], { 'dns.0': [format] }],
    ['dns', ['1.1.1.1', '1.1.1.2', '1.1.1.3', '1.1.1.4', '1.1.1.5'], { dns: ['must be at most 4 items'] }],
    ['ipv4', '10.0.0.2', { ipv4: ['is not known'] }],
    ['enabled', false, { enabled: ['is not known'] }],
  ];
  for (const [field, value, faults] of table) {
    const body: Record<string, unknown> = { name: 'a', [field]: value };
    if (value === undefined) delete body[field];
    t.same(faultsOf(validatePeerCreate(body, nowMs)), faults, `${field}: ${label(JSON.stringify(value) ?? 'absent')}`);
  }
  for (const body of [null, [], 'x', 7]) {
    t.same(faultsOf(validatePeerCreate(body, nowMs)), { _: ['must be an object'] });
    t.same(faultsOf(validatePeerUpdate(body, nowMs)), { _: ['must be an object'] });
  }
  t.end();
});

t.test('all faults of a body are told at once', (t) => {
  const body = { name: 'a\u0000', expires_at: '2020-01-01T00:00:00Z', routes: ['10.0.0.1/8'], dns: ['1.2.3'], x: 1 };
  t.same(faultsOf(validatePeerCreate(body, nowMs)), {
    name: [control],
    expires_at: ['must be in the future'],
    'routes.0': [notNetwork],
    'dns.0': [notAddress],
    x: ['is not known'],
  });
  t.end();
});

t.test('the same name in other code points is the same name', (t) => {
  const valid = validatePeerCreate({ name: 'Zoe\u0308' }, nowMs);
  t.equal(valid.ok && valid.value.name, 'Zo\u00eb');
  const update = validatePeerUpdate({ name: 'Zoe\u0308' }, nowMs);
  t.equal(update.ok && update.value.name, 'Zo\u00eb');
  t.end();
});

t.test('a timestamp is read as it was written', (t) => {
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }), (date) => {
      return parseTimestamp(date.toISOString()) === date.getTime();
    }),
  );
  const table: readonly (readonly [text: string, ms: number | undefined])[] = [
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['2023-02-29T00:00:00Z', undefined],
    ['2024-01-01t00:00:00z', Date.UTC(2024, 0, 1)],
    ['2024-01-01T00:00:00+14:00', Date.UTC(2023, 11, 31, 10)],
    ['2024-01-01T00:00:00+24:00', undefined],
    ['2024-01-01T24:00:00Z', undefined],
    ['2024-01-01T00:60:00Z', undefined],
    ['2024-12-31T23:59:60Z', undefined],
    ['2024-13-01T00:00:00Z', undefined],
    ['2024-00-01T00:00:00Z', undefined],
    ['2024-01-00T00:00:00Z', undefined],
    ['0000-01-01T00:00:00Z', undefined],
    ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
    ['9999-12-31T23:59:59-00:01', undefined],
    ['2024-01-01T00:00:00', undefined],
    ['2024-01-01 00:00:00Z', undefined],
    ['2024-01-01T00:00:00.Z', undefined],
    ['2024-01-01T00:00:00Z\n', undefined],
    ['+002024-01-01T00:00:00Z', undefined],
  ];
  for (const [text, ms] of table) t.equal(parseTimestamp(text), ms, label(text));
  t.end();
});

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

t.test('what is given is kept in its normal form', (t) => {
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

t.test('what is wrong with a network’s field, and nothing else with the body', (t) => {
  const host = 'must be a host name or an address';
  const pool4 = 'must be from /16 to /30';
  const nobody = 'has addresses that no host can have';
  const table: readonly (readonly [field: string, value: unknown, faults: Faults])[] = [
    ['endpoint', '192.0.2.1', {}],
    ['endpoint', '2001:db8::1', {}],
    ['endpoint', 'localhost', {}],
    ['endpoint', 'a-b.c1', {}],
    ['endpoint', 'xn--bcher-kva.example', {}],
    ['endpoint', `${'a'.repeat(63)}.example`, {}],
    ['endpoint', `${'a'.repeat(64)}.example`, { endpoint: [host] }],
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
    ['endpoint', 'a_b.example', { endpoint: [format] }],
    ['endpoint', 'a.example\nPostUp = x', { endpoint: [format] }],
    ['endpoint', '', { endpoint: ["can't be blank", format] }],
    ['name', 'a'.repeat(15), {}],
    ['name', 'a'.repeat(16), { name: [format] }],
    ['wireguard_port', 0, { wireguard_port: ['must be at least 1'] }],
    ['wireguard_port', '51820', { wireguard_port: ['must be an integer'] }],
    ['ipv4_pool', '10.0.0.0/16', {}],
    ['ipv4_pool', '10.0.0.0/30', {}],
    ['ipv4_pool', '10.0.0.0/15', { ipv4_pool: [pool4] }],
    ['ipv4_pool', '10.0.0.0/31', { ipv4_pool: [pool4] }],
    ['ipv4_pool', '10.0.0.1/24', { ipv4_pool: ['is not an IPv4 network'] }],
    ['ipv4_pool', 'fd00::/64', { ipv4_pool: ['is not an IPv4 network'] }],
    ['ipv4_pool', '0.1.0.0/16', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '127.0.0.0/24', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '224.0.0.0/24', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '239.255.0.0/16', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '255.255.255.0/24', { ipv4_pool: [nobody] }],
    ['ipv4_pool', '223.255.255.0/24', {}],
    ['ipv6_pool', 'fd00:86::/64', {}],
    ['ipv6_pool', 'fd00:86::/120', {}],
    ['ipv6_pool', 'fd00:86::/121', { ipv6_pool: ['must be from /64 to /120'] }],
    ['ipv6_pool', 'fd00::/63', { ipv6_pool: ['must be from /64 to /120'] }],
    ['ipv6_pool', 'fd00::1/64', { ipv6_pool: ['is not an IPv6 network'] }],
    ['ipv6_pool', '10.0.0.0/24', { ipv6_pool: ['is not an IPv6 network'] }],
    ['ipv6_pool', 'ff02::/64', { ipv6_pool: [nobody] }],
    ['ipv6_pool', 'fe80::/64', { ipv6_pool: [nobody] }],
    ['ipv6_pool', '::/64', { ipv6_pool: [nobody] }],
    ['ipv6_pool', '::ffff:0:0/96', { ipv6_pool: [nobody] }],
    ['routes', [], { routes: ["can't be blank"] }],
    ['routes', ['10.0.0.1/8'], { 'routes.0': [notNetwork] }],
    ['dns', ['999.1.1.1'], { 'dns.0': [notAddress] }],
    ['mtu', 1279, { mtu: ['must be at least 1280'] }],
    ['mtu', 1501, { mtu: ['must be at most 1500'] }],
    ['proxy', { host: 'a b', port: 1 }, { 'proxy.host': [format] }],
    ['proxy', { host: '1.2.3', port: 1 }, { 'proxy.host': [host] }],
    ['proxy', { host: 'a.example' }, { 'proxy.port': ["can't be blank"] }],
    ['proxy', { host: 'a.example', port: 1, domains: ['a..b'] }, { 'proxy.domains.0': ['is not a domain name'] }],
    ['proxy', { host: 'a.example', port: 1, exclude: ['a', 'A'] }, { 'proxy.exclude': ['must be distinct'] }],
    ['proxy', { host: 'a.example', port: 1, exclude: ['";x'] }, { 'proxy.exclude.0': [format] }],
    ['proxy', { host: 'a.example', port: 1, type: 'FTP' }, { 'proxy.type': ['must be one of PROXY, HTTPS, SOCKS5'] }],
    ['proxy', { host: 'a.example', port: 1, x: 1 }, { 'proxy.x': ['is not known'] }],
    ['proxy', 'a.example:1', { proxy: ['must be an object'] }],
    ['tenants', [], {}],
    ['tenants', ['a b'], { 'tenants.0': [format] }],
    ['postup', 'x', { postup: ['is not known'] }],
  ];
  for (const [field, value, faults] of table) {
    const found = faultsOf(validateNetworkCreate({ ...least, [field]: value }));
    t.same(found, faults, `${field}: ${label(JSON.stringify(value))}`);
  }
  t.end();
});

t.test('what passes can be written into every file', (t) => {
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

t.test('a list of a whole body’s length is told to be too long, in few words', (t) => {
  const items = Array.from({ length: 160_000 }, () => '');
  const peer = faultsOf(validatePeerCreate({ name: 'a', routes: items, dns: items }, nowMs));
  t.strictSame(peer['routes'], [`must be at most ${limits.networkRoutes} items`, 'must be distinct']);
  t.strictSame(peer['dns'], [`must be at most ${limits.networkDns} items`, 'must be distinct']);
  const settings = { endpoint: 'a.example', ipv4_pool: '10.0.0.0/24' };
  const tenants = Array.from(items, () => 'acme');
  const ofTenants = faultsOf(validateNetworkPut({ ...settings, tenants }));
  t.strictSame(ofTenants, { tenants: [`must be at most ${limits.networkTenants} items`, 'must be distinct'] });
  const proxy = { host: 'p.example', port: 1, domains: tenants, exclude: items };
  const ofProxy = faultsOf(validateNetworkPut({ ...settings, proxy }));
  t.strictSame(ofProxy['proxy.domains'], [`must be at most ${limits.proxyDomains} items`]);
  t.ok('proxy.exclude.0' in ofProxy);
  for (const faults of [peer, ofProxy]) t.ok(Object.keys(faults).length < 1000, 'not a word for each item');
  t.end();
});

t.test('what is nested deeper than a stack is only of the wrong kind', (t) => {
  const deep: unknown = JSON.parse(`${'['.repeat(200_000)}${']'.repeat(200_000)}`);
  t.same(faultsOf(validatePeerCreate({ name: deep }, nowMs)), { name: ['must be a string'] });
  t.same(faultsOf(validatePeerCreate({ name: 'a', routes: [deep] }, nowMs)), { 'routes.0': ['must be a string'] });
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
