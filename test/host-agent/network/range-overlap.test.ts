import t from 'tap';
import { hostNetworks, overlapOf, type HostNetworks } from '../../../host-agent/network/range-overlap.ts';
import { parseCidr } from '../../../schemas/cidr.ts';

const range = parseCidr('10.192.0.0/10');
if (range === undefined) throw new Error('no range');

const head = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT';
const route = (by: string, destination: string, mask: string): string =>
  [by, destination, '00000000', '0001', '0', '0', '0', mask, '0', '0', '0'].join('\t');
const nothing: HostNetworks = {
  interfaces: { lo: [{ cidr: '127.0.0.1/8' }, { cidr: '::1/128' }], eth0: [{ cidr: '192.0.2.7/24' }, { cidr: null }] },
  routes: [head, route('eth0', '00000000', '00000000'), route('eth0', '000200C0', '00FFFFFF'), ''].join('\n'),
  nameservers: ['192.0.2.53', '2001:db8::53'],
};

t.test('a host that uses none of it', async (t) => {
  t.equal(overlapOf(range, nothing), undefined);
});

t.test('each that a host uses is said by name', async (t) => {
  const docker = { ...nothing, interfaces: { docker0: [{ cidr: '10.249.64.1/22' }] } };
  t.equal(overlapOf(range, docker), 'docker0 has 10.249.64.1/22');
  const wide = { ...nothing, interfaces: { eth1: [{ cidr: '10.1.2.3/8' }] } };
  t.equal(overlapOf(range, wide), 'eth1 has 10.1.2.3/8', 'a network around it');
  const routes = [nothing.routes, route('wg0', '0000C80A', '0000FFFF')].join('\n');
  t.equal(overlapOf(range, { ...nothing, routes }), 'wg0 leads to 10.200.0.0/16');
  const nameservers = ['10.255.255.53'];
  t.equal(overlapOf(range, { ...nothing, nameservers }), '10.255.255.53 is a name server of this host');
});

t.test('this machine can be looked at', async (t) => {
  t.ok(Object.keys(hostNetworks().interfaces).length > 0);
});
