import t from 'tap';
import { ikeWanted, isForeign } from '../../../host-agent/tenant-network/ike.ts';
import type { HostKey, NetworkName, TenantId } from '../../../schemas/ids.ts';
import type { VpnNetwork } from '../../../schemas/wire/net.ts';

const ranges = { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' };
const keyOf = (letter: string): string => `${letter.repeat(43)}=`;
const peer = (letter: string, at: number, more: Partial<VpnNetwork['peers'][number]> = {}) => ({
  ...{ tenant: 'acme' as TenantId, ipv4: `10.86.0.${at}`, ipv6: `fd86::${at}`, key: keyOf(letter) },
  ...{ preshared_key: keyOf('p'), ike: { id: `${letter}.office.internal`, certificate: `certificate of ${letter}` } },
  ...more,
});
const ike = { id: 'vpn.example.com', certificate: 'certificate', private_key: 'key' };
const network = (peers: VpnNetwork['peers'], more: Partial<VpnNetwork> = {}): VpnNetwork => ({
  ...{ name: 'office' as NetworkName, host: 'h1' as HostKey, pools: ['10.86.0.0/24', 'fd86::/64'], peers },
  server: { port: 1, mtu: null, private_key: keyOf('s'), ike },
  ...more,
});
const wanted = (...vpn: VpnNetwork[]) => ikeWanted({ ranges, vpn }, 'router');

t.test('a peer has a connection for each of its identities, and pools of one address', (t) => {
  const { keys, pools, connections, owners, networks, own } = wanted(network([peer('a', 2)]));
  t.same(networks, ['office']);
  t.same(
    [...keys.values()].map(({ message }) => message),
    [{ type: 'any', data: 'key' }],
  );
  t.same(
    [...pools.values()].map(({ message }) => message),
    [
      {
        'longshore:router:10.86.0.2': {
          addrs: '10.86.0.2-10.86.0.2',
          dns: ['10.200.0.53', 'fd5e:1:2::53', '10.200.0.54', 'fd5e:1:2::54'],
          25: ['internal'],
        },
      },
      { 'longshore:router:fd86::2': { addrs: 'fd86::2-fd86::2' } },
    ],
  );
  const of = [...connections].map(([name, { message }]) => [name, message[name]] as const);
  t.match(of, [
    [/^longshore:router:a\.office\.internal:[0-9a-f]{12}$/, { remote: { id: 'a.office.internal' } }],
    [/:dn$/, { remote: { id: 'CN=a.office.internal' } }],
  ]);
  for (const [, message] of of)
    t.match(message, {
      pools: ['longshore:router:10.86.0.2', 'longshore:router:fd86::2'],
      local: { certs: ['certificate'], id: 'vpn.example.com' },
      remote: { certs: ['certificate of a'] },
      children: { net: { local_ts: ['10.200.0.0/16', 'fd5e:1:2::/48', '10.86.0.0/24', 'fd86::/64'] } },
    });
  t.same(
    [...owners.values()],
    Array.from(of, () => ({ network: 'office', key: keyOf('a') })),
  );
  t.same(own, ['10.200.0.53', 'fd5e:1:2::53', '10.86.0.1', 'fd86::1']);
  t.end();
});

t.test('a network without an IPv6 pool leads to IPv4 alone', (t) => {
  const { connections, pools, own } = wanted(network([peer('a', 2, { ipv6: null })], { pools: ['10.86.0.0/24'] }));
  const [[name, connection] = ['', undefined]] = connections;
  t.match(connection?.message[name], { children: { net: { local_ts: ['10.200.0.0/16', '10.86.0.0/24'] } } });
  t.equal(pools.size, 1);
  t.same(own, ['10.200.0.53', '10.86.0.1']);
  t.end();
});

t.test('who is not served by IKEv2', (t) => {
  const { ike: _, ...without } = peer('b', 3);
  t.same([...wanted(network([without])).connections], []);
  t.same(wanted(network([peer('a', 2)], { server: null })).networks, []);
  t.same(wanted(network([peer('a', 2)], { server: { port: 1, mtu: null, private_key: keyOf('s') } })).networks, []);
  t.end();
});

t.test('a key that is replaced has another connection; anything else changes the one that is there', (t) => {
  const before = wanted(network([peer('a', 2)])).connections;
  const names = (...all: VpnNetwork[]) => [...wanted(...all).connections.keys()];
  const rotated = { ...peer('a', 2), key: keyOf('n') };
  t.notOk(names(network([rotated])).some((name) => before.has(name)));
  const renamed = network([peer('a', 2)], {
    server: { port: 1, mtu: null, private_key: keyOf('s'), ike: { ...ike, id: 'x' } },
  });
  t.same(names(renamed), [...before.keys()]);
  for (const [name, { text }] of wanted(renamed).connections) t.not(text, before.get(name)?.text);
  t.end();
});

t.test('what another longshore-net has', (t) => {
  t.ok(isForeign('longshore:other:x', 'router'));
  t.notOk(isForeign('longshore:router:x', 'router'));
  t.notOk(isForeign('site-to-site', 'router'));
  t.end();
});
