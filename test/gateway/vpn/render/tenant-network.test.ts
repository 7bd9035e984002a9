import t from 'tap';
import { joined } from '../../../../gateway/vpn/render/tenant-network.ts';
import { clientConf } from '../../../../gateway/vpn/render/wireguard/wireguard.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import type { NetworkSettings } from '../../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../../schemas/api/peer.ts';
import { keys, proxy, subjectWith } from '../support.ts';

const ranges = { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' };
const host = 'h1' as HostKey;

function confOf(network: Partial<NetworkSettings>, peer: Partial<PeerRecord> = {}, known = ranges): string {
  const subject = subjectWith(peer, { ipv4_pool: '10.86.0.0/24', ipv6_pool: null, ...network });
  return clientConf(joined({ ...subject, network: { ...subject.network, host } }, known), keys);
}
const line = (conf: string, key: string): string | undefined => new RegExp(`^${key} = (.*)$`, 'm').exec(conf)?.[1];

const everything = ['0.0.0.0/0', '::/0'];

t.test('files of a network that a host serves lead to the tenant network', async (t) => {
  for (const [routes, own] of [
    [everything, ['192.0.2.0/24']],
    [['192.0.2.0/24'], everything],
    [['::/0'], null],
  ] as const) {
    const conf = confOf({ routes: [...routes], dns: ['1.1.1.1'], proxy }, { routes: own === null ? null : [...own] });
    t.equal(line(conf, 'AllowedIPs'), '10.200.0.0/16, 10.86.0.0/24');
    t.equal(line(conf, 'DNS'), '10.200.0.53, 10.200.0.54, internal');
  }
});

t.test('and to the internet, where the routes of network and peer do', async (t) => {
  for (const own of [null, ['0.0.0.0/0', '::/0', '10.0.0.0/8']]) {
    const conf = confOf({ routes: [...everything, '192.0.2.0/24'], dns: ['1.1.1.1'] }, { routes: own });
    t.equal(line(conf, 'AllowedIPs'), '0.0.0.0/0, ::/0');
    t.equal(line(conf, 'DNS'), '10.200.0.53, 10.200.0.54, internal');
  }
  t.equal(line(confOf({ routes: ['0.0.0.0/0'] }), 'AllowedIPs'), '0.0.0.0/0');
});

t.test('with IPv6 where the network has it, and without IPv4 where the cluster has none', async (t) => {
  const split = { routes: ['192.0.2.0/24'], ipv6_pool: 'fd86::/64' };
  const conf = confOf(split);
  t.equal(line(conf, 'AllowedIPs'), '10.200.0.0/16, fd5e:1:2::/48, 10.86.0.0/24, fd86::/64');
  t.equal(line(conf, 'DNS'), '10.200.0.53, fd5e:1:2::53, 10.200.0.54, fd5e:1:2::54, internal');
  const without = { ...ranges, ipv4: null } as unknown as typeof ranges;
  t.equal(line(confOf(split, {}, without), 'AllowedIPs'), 'fd5e:1:2::/48, 10.86.0.0/24, fd86::/64');
});

t.test('resolvers that a peer names itself stay, and so does a network that reaches nothing', async (t) => {
  t.equal(line(confOf({}, { dns: ['9.9.9.9'] }), 'DNS'), '9.9.9.9, internal');
  const subject = subjectWith();
  t.equal(joined(subject, ranges), subject, 'no host serves it');
});
