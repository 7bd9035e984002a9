/**
 * The rules for the VPN server: what they say, and that nft takes them. Packets meet them in
 * test/attacks/vpn/vpn-tenants.
 */
import t from 'tap';
import { serverNftables, type FilteredPeer } from '../../../../../gateway/vpn/render/wireguard/nftables.ts';
import type { TenantId } from '../../../../../schemas/ids.ts';
import type { NetworkSettings } from '../../../../../schemas/api/network.ts';
import { networkWith } from '../../support.ts';

const peer = (tenant: string, index: number): FilteredPeer => ({
  tenant: tenant as TenantId,
  ipv4: `10.86.0.${index}`,
  ipv6: `fd00:86::${index.toString(16)}`,
});
const [a1, a2, b1] = [peer('acme', 2), peer('acme', 5), peer('bolt', 3)];

/** The elements of a set or map of the file. */
function elementsOf(text: string, name: string): string[] {
  const [, whole = ''] = new RegExp(`(?:set|map) ${name} \\{([^}]*)`).exec(text) ?? [];
  const [, body = ''] = whole.split('elements = {');
  return body
    .split(',')
    .map((element) => element.trim())
    .filter((element) => element !== '');
}

t.test('each peer is of one tenant, whatever the order they come in', (t) => {
  const text = serverNftables(networkWith(), [a1, b1, a2]);
  t.same(elementsOf(text, 'peers4'), ['10.86.0.2', '10.86.0.3', '10.86.0.5']);
  t.same(elementsOf(text, 'tenant_of4'), ['10.86.0.2 : 1', '10.86.0.3 : 2', '10.86.0.5 : 1']);
  t.same(elementsOf(text, 'members6'), ['fd00:86::2 . 1', 'fd00:86::3 . 2', 'fd00:86::5 . 1']);
  t.match(text, '# mark 1: acme\n# mark 2: bolt\n');
  t.match(text, 'table inet longshore-demo\ndelete table inet longshore-demo\ntable inet longshore-demo {\n');
  t.end();
});

t.test('traffic that routes allow', (t) => {
  const cases: readonly [of: string, settings: Partial<NetworkSettings>, routes: string[], named: string[]][] = [
    ['everything: nothing private', { routes: ['0.0.0.0/0', '::/0'] }, ['0.0.0.0/0'], []],
    ['a private range by name', { routes: ['0.0.0.0/0', '192.168.7.0/24'] }, ['0.0.0.0/0'], ['192.168.7.0/24']],
    ['a range as it is reserved', { routes: ['10.0.0.0/8'] }, ['10.0.0.0/8'], ['10.0.0.0/8']],
    ['one in another', { routes: ['10.1.0.0/16', '10.1.2.0/24'] }, ['10.1.0.0/16'], ['10.1.0.0/16']],
    ['half of everything', { routes: ['0.0.0.0/1'] }, ['0.0.0.0/1'], []],
    ['a public range', { routes: ['203.0.113.0/24'] }, ['203.0.113.0/24'], []],
    ['none of this family', { routes: ['fd00:99::/64'] }, [], []],
  ];
  for (const [of, settings, routes, named] of cases) {
    const text = serverNftables(networkWith(settings), [a1]);
    t.same(elementsOf(text, 'routes4'), routes, of);
    t.same(elementsOf(text, 'named4'), named, of);
  }
  t.end();
});

t.test('a route wider than a private range opens none, however everything is cut', (t) => {
  const cut: readonly (readonly [routes: readonly string[], named4: string[], named6: string[]])[] = [
    [['0.0.0.0/1', '128.0.0.0/1', '::/1', '8000::/1'], [], []],
    [['0.0.0.0/2', '64.0.0.0/2', '128.0.0.0/2', '192.0.0.0/2', '::/2', '4000::/2', '8000::/2', 'c000::/2'], [], []],
    [['192.0.0.0/3', '224.0.0.0/3', '::/3', '2000::/3', '4000::/3', 'e000::/3', 'f000::/4', 'f800::/5'], [], []],
    [['8.0.0.0/5', '160.0.0.0/5', '192.0.0.0/10', 'fc00::/6', 'fe00::/7', 'fe00::/9'], [], []],
    [['172.0.0.0/11', '100.0.0.0/9', '::/7'], [], []],
    [['fc00::/7'], [], ['fc00::/7']],
    [['fd00::/8', 'fe80::/64', '64:ff9b::/96'], [], ['fd00::/8', 'fe80::/64', '64:ff9b::/96']],
    [['224.0.0.0/4', '10.0.0.0/8'], ['224.0.0.0/4', '10.0.0.0/8'], []],
  ];
  for (const [routes, named4, named6] of cut) {
    const text = serverNftables(networkWith({ routes: [...routes] }), [a1]);
    t.same(elementsOf(text, 'named4'), named4, routes.join(' '));
    t.same(elementsOf(text, 'named6'), named6, routes.join(' '));
  }
  t.end();
});

t.test('resolvers and a proxy that is an address', (t) => {
  const text = serverNftables(
    networkWith({
      dns: ['10.86.0.1', 'fd00:86::1'],
      proxy: { type: 'PROXY', host: '10.9.9.9', port: 3128, domains: [], exclude: [], direct_fallback: false },
    }),
    [],
  );
  t.equal(text.split('ip daddr { 10.86.0.1 } meta l4proto { tcp, udp } th dport { 53, 853 } accept').length, 3);
  t.equal(text.split('ip6 daddr { fd00:86::1 }').length, 3);
  t.equal(text.split('ip daddr 10.9.9.9 tcp dport 3128 accept').length, 3);
  t.notMatch(text, 'elements = {\n\n', 'no empty list');
  t.end();
});

t.test('only the tunnel’s own packets count as foreign, whatever else has its name', (t) => {
  const text = serverNftables(networkWith({}, 'demo'), [a1]);
  t.equal(text.split('iifname "demo" iiftype 65534 counter name spoofed drop').length, 3);
  t.match(text, 'iifname "demo" iiftype 65534 return');
  for (const name of ['eth0', 'tun0', 'wg0', 'lan', 'docker0', 'br0']) {
    const old = serverNftables(networkWith({}, name), [a1]);
    t.notMatch(old, /iifname "[^"]*"(?: iiftype 65534)? counter/, `a network called ${name} drops nothing of it`);
    t.match(old, `iifname "${name}" iiftype 65534 return`);
  }
  t.end();
});

t.test('a record that is not what it should be makes no file', (t) => {
  const evil = 'x } ; chain' as TenantId;
  t.throws(() => serverNftables(networkWith(), [{ ...a1, tenant: evil }]), /unfit tenant/);
  t.throws(() => serverNftables(networkWith(), [{ ...a1, ipv4: '10.86.0.2 }' }]), /unfit address/);
  t.throws(() => serverNftables(networkWith({}, 'a b'), []), /unfit network name/);
  t.end();
});
