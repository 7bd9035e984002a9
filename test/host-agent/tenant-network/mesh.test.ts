import t from 'tap';
import { meshLinkOf } from '../../../host-agent/tenant-network/link-names.ts';
import { away, meshConfiguration } from '../../../host-agent/tenant-network/mesh.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import type { DesiredNetwork, NamedMember } from '../../../schemas/wire/net.ts';

const keyOf = (letter: string): string => `${letter.repeat(42)}A=`;
const member = (at: number, host: string | null): NamedMember => ({
  id: `00000000-0000-7000-8000-${String(at).padStart(12, '0')}` as ContainerId,
  tenant: 'acme' as TenantId,
  name: `c${at}`,
  host: host as HostKey | null,
  ipv4: at === 2 ? null : `10.200.0.${at}`,
  ipv6: `fd00::${at}`,
});
const end = (host: string, letter: string, address = '192.0.2.7') => ({
  host: host as HostKey,
  key: keyOf(letter),
  address,
  port: 51_820,
});
const desired = (more: Partial<DesiredNetwork>): DesiredNetwork => ({
  v: 1,
  owner: 'h1',
  ranges: { ipv4: '10.200.0.0/16', ipv6: 'fd00::/48' },
  mtu: 1420,
  attached: [],
  members: [],
  vpn: [],
  mesh: null,
  ...more,
});

const configuration = (network: DesiredNetwork, key: string): string => meshConfiguration(network, away(network), key);

t.test('a peer has the addresses of the members on its host', async (t) => {
  const ends = [end('h2', 'B'), end('h3', 'C', '2001:db8::3'), end('h4', 'D')];
  const members = [member(1, 'h2'), member(2, 'h2'), member(3, 'h3'), member(4, 'h9'), member(5, null)];
  t.equal(
    configuration(desired({ members, mesh: { port: 7, ends } }), keyOf('P')),
    [
      `[Interface]\nPrivateKey = ${keyOf('P')}\nListenPort = 7`,
      `[Peer]\nPublicKey = ${keyOf('B')}\nEndpoint = 192.0.2.7:51820\nAllowedIPs = fd00::1/128, 10.200.0.1/32, fd00::2/128`,
      `[Peer]\nPublicKey = ${keyOf('C')}\nEndpoint = [2001:db8::3]:51820\nAllowedIPs = fd00::3/128, 10.200.0.3/32`,
      '',
    ].join('\n'),
  );
});

t.test('one that is attached here is no peer’s', async (t) => {
  const { id, tenant, ipv4, ipv6 } = member(1, 'h2');
  const attached = [{ id, tenant, ipv4, ipv6, namespace: '/run/netns/a', run: 'a' }];
  const mesh = { port: 7, ends: [end('h2', 'B')] };
  t.notMatch(configuration(desired({ attached, members: [member(1, 'h2')], mesh }), keyOf('P')), 'Peer');
});

t.test('of two hosts that claim a key, the first has it', async (t) => {
  const mesh = { port: 7, ends: [end('h2', 'B'), end('h3', 'B', '203.0.113.9')] };
  const text = configuration(desired({ members: [member(1, 'h2'), member(3, 'h3')], mesh }), keyOf('P'));
  t.match(text, 'AllowedIPs = fd00::1/128');
  t.notMatch(text, /fd00::3|203\.0\.113\.9/);
  // Also where it has no members.
  t.notMatch(configuration(desired({ members: [member(3, 'h3')], mesh }), keyOf('P')), 'Peer');
});

t.test('a link has a name that the kernel takes', async (t) => {
  t.match(meshLinkOf('longshore'), /^lsm[0-9a-f]{12}$/);
  t.not(meshLinkOf('longshore'), meshLinkOf('longshore-2'));
});
