import t from 'tap';
import { hostNetworks, overlapOf, type HostNetworks } from '../../../host-agent/network/range-overlap.ts';
import { parseRoutes, type Route } from '../../../host-agent/network/routes.ts';
import { parseCidr } from '../../../schemas/cidr.ts';

const range = parseCidr('10.192.0.0/10');
if (range === undefined) throw new Error('no range');

const route = (device: string, text: string): Route => {
  const network = parseCidr(text);
  if (network === undefined) throw new Error(`no network: ${text}`);
  return { device, network };
};
const nothing: HostNetworks = {
  interfaces: { lo: [{ cidr: '127.0.0.1/8' }, { cidr: '::1/128' }], eth0: [{ cidr: '192.0.2.7/24' }, { cidr: null }] },
  routes: [route('eth0', '192.0.2.0/24')],
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
  const routes = [...nothing.routes, route('wg0', '10.200.0.0/16')];
  t.equal(overlapOf(range, { ...nothing, routes }), 'wg0 leads to 10.200.0.0/16');
  const nameservers = ['10.255.255.53'];
  t.equal(overlapOf(range, { ...nothing, nameservers }), '10.255.255.53 is a name server of this host');
});

t.test('the routes of the kernel, without the default route', async (t) => {
  const text = [
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'br-1\t0000A80A\t00000000\t0001\t0\t0\t0\tC0FFFFFF\t0\t0\t0',
    'wg0\t070200C0\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0',
    '',
  ].join('\n');
  t.same(parseRoutes(text), [route('br-1', '10.168.0.0/26'), route('wg0', '192.0.2.7/32')]);
});

t.test('this machine can be looked at', async (t) => {
  t.ok(Object.keys(hostNetworks().interfaces).length > 0);
});
