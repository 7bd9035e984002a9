import t from 'tap';
import { vpnOf, type VpnInput } from '../../../host-agent/network/vpn.ts';
import type { HostKey, NetworkName, PeerId, TenantId } from '../../../schemas/ids.ts';
import type { PeerMember } from '../../../schemas/wire/members.ts';
import type { NetworkServer } from '../../../schemas/wire/network-server.ts';

const [h1, h2] = ['h1' as HostKey, 'h2' as HostKey];
const office = 'office' as NetworkName;
const keyOf = (letter: string): string => `${letter.repeat(43)}=`;
const server = (host: HostKey, more: Partial<NetworkServer> = {}): NetworkServer => ({
  ...{ network: office, host, key: keyOf('S'), port: 7, mtu: null, tenants: null },
  ...{ ipv4_pool: '10.86.0.0/24', ipv6_pool: 'fd86::/64', certificate: '1a' },
  ...more,
});
const peer = (letter: string, tenant = 'acme', expires_at_ms: number | null = null): PeerMember => ({
  ...{ tenant: tenant as TenantId, id: letter as PeerId, network: office, key: keyOf(letter), expires_at_ms },
  ...{ ipv4: '10.86.0.2', ipv6: null },
});
const ikeOf = (id: string) => ({ id, certificate: `certificate of ${id}`, serial: '1a' });
const draw = (more: Partial<VpnInput>) =>
  vpnOf({
    ...{ here: h1, servers: [server(h1)], peers: [peer('A')], nowMs: 1000 },
    secretOf: (key) => ({ key: `secret of ${key}`, ike: ikeOf(key) }),
    ...more,
  });

t.test('the host that serves a network has its key and those of its peers', async (t) => {
  const { networks, secrets } = draw({});
  t.match(networks, [
    {
      name: office,
      pools: ['10.86.0.0/24', 'fd86::/64'],
      server: { port: 7, private_key: `secret of ${keyOf('S')}` },
      peers: [{ tenant: 'acme', ipv4: '10.86.0.2', preshared_key: `secret of ${keyOf('A')}` }],
    },
  ]);
  t.same(
    [...secrets],
    [
      [keyOf('S'), { network: office, certificate: '1a' }],
      [keyOf('A'), { tenant: 'acme', peer: 'A' }],
    ],
  );
});

t.test('it serves IKEv2 where it has the certificates', async (t) => {
  const secretOf = (key: string) =>
    key === keyOf('S')
      ? { key, ike: { ...ikeOf('vpn.example.com'), private_key: 'private' } }
      : { key, ike: ikeOf('a.office.internal') };
  const { networks, secrets } = draw({ secretOf, servers: [server(h1, { certificate: '2b' })] });
  t.same(networks[0]?.server?.ike, {
    ...{ id: 'vpn.example.com', certificate: 'certificate of vpn.example.com', private_key: 'private' },
  });
  t.same(networks[0]?.peers[0]?.ike, { id: 'a.office.internal', certificate: 'certificate of a.office.internal' });
  t.same(secrets.get(keyOf('S')), { network: office, certificate: '2b' }, 'of the certificate that it has now');
  t.equal(draw({}).networks[0]?.server?.ike, undefined, 'without its private key');
});

t.test('another host asks for no key, and knows the peers', async (t) => {
  const { networks, secrets } = draw({ servers: [server(h2)] });
  t.match(networks, [{ host: h2, server: null, peers: [{ ipv4: '10.86.0.2', preshared_key: null }] }]);
  t.equal(secrets.size, 0);
});

t.test('without its key a network is not served; without that of a peer, the peer is not', async (t) => {
  t.match(draw({ secretOf: () => undefined }).networks, [{ server: null }]);
  const others = draw({ secretOf: (key) => (key === keyOf('S') ? { key: 'known', ike: ikeOf(key) } : undefined) });
  t.match(others.networks, [{ server: { private_key: 'known' }, peers: [{ preshared_key: null }] }]);
});

t.test('peers that do not connect: one past its end, one of a tenant that the network does not serve', async (t) => {
  const peers = [peer('A', 'acme', 1000), peer('B', 'acme', 3000), peer('C', 'acme', 2000), peer('D', 'other')];
  const { networks, nextEndMs, secrets } = draw({ peers, servers: [server(h1, { tenants: ['acme' as TenantId] })] });
  t.same(
    networks[0]?.peers.map(({ key }) => key),
    [keyOf('B'), keyOf('C')],
  );
  t.equal(nextEndMs, 2000, 'the next that ends');
  t.notOk(secrets.has(keyOf('D')));
  t.equal(draw({}).nextEndMs, undefined);
});
