import { BlockList } from 'node:net';
import t from 'tap';
import { ClientAddresses, clientOf, forwardedHopChars } from '../../../gateway/auth/client-address.ts';
import { limits } from '../../../schemas/limits.ts';
import { recordingLog } from '../support.ts';

t.test('the client is the last hop that is not a trusted proxy', async (t) => {
  const networks = new BlockList();
  networks.addSubnet('10.0.0.0', 8, 'ipv4');
  networks.addSubnet('fd00::', 8, 'ipv6');
  const log = recordingLog();
  let nowMs = 0;
  const clients = new ClientAddresses(networks, { clock: { nowMs: () => nowMs, monotonicMs: () => nowMs }, log });
  const addressOf = (address: string, forwardedFor?: string): string =>
    clients.addressOf({ address, headers: forwardedFor === undefined ? {} : { forwardedFor } });
  t.equal(addressOf('192.0.2.1'), '192.0.2.1');
  t.equal(addressOf('192.0.2.1', '198.51.100.1'), '192.0.2.1', 'not from a proxy of ours');
  t.equal(addressOf('10.0.0.1', '198.51.100.1'), '198.51.100.1');
  t.equal(
    addressOf('10.0.0.1', '203.0.113.9, 198.51.100.1, 10.0.0.2'),
    '198.51.100.1',
    'the last that is none of ours',
  );
  t.equal(addressOf('fd00::1', '2001:db8::1'), '2001:db8::1');
  t.equal(addressOf('10.0.0.1', '10.0.0.2'), '10.0.0.1');
  t.equal(addressOf('::1'), '::1');
  t.equal(addressOf('10.0.0.1', '::ffff:198.51.100.1'), '198.51.100.1');
  t.equal(addressOf('10.0.0.1', Array(8000).fill('10.0.0.3').join(',')), '10.0.0.1', 'a list of proxies alone');

  t.same(
    log.events.map(({ event, fields }) => [event, fields['address']]),
    [['forwarded_for_untrusted', '192.0.2.1']],
  );
  addressOf('192.0.2.9', '198.51.100.1');
  t.equal(log.events.length, 1, 'not said again so soon');
  nowMs += limits.forwardedWarnMs;
  addressOf('192.0.2.9', '198.51.100.1');
  t.match(log.events.at(-1), { event: 'forwarded_for_untrusted', fields: { address: '192.0.2.9' } });
  addressOf('192.0.2.9');
  t.equal(log.events.length, 2);

  for (const [address, client] of [
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ] as const) {
    t.equal(clientOf(address), client, address);
  }
});

t.test('hops may have ports and brackets; a malformed hop counts as its proxy', async (t) => {
  const networks = new BlockList();
  networks.addSubnet('10.0.0.0', 8, 'ipv4');
  networks.addSubnet('2001:db8:ffff::', 48, 'ipv6');
  const log = recordingLog();
  let nowMs = 0;
  const clients = new ClientAddresses(networks, { clock: { nowMs: () => nowMs, monotonicMs: () => nowMs }, log });
  const addressOf = (forwardedFor: string, address = '10.0.0.1'): string =>
    clients.addressOf({ address, headers: { forwardedFor } });
  for (const [forwardedFor, client] of [
    ['203.0.113.7:4711', '203.0.113.7'],
    ['198.51.100.1, 203.0.113.7:65535 , 10.0.0.2:80', '203.0.113.7'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['203.0.113.7, [2001:db8:ffff::2]:443', '203.0.113.7'],
    ['[::ffff:198.51.100.1]:9', '198.51.100.1'],
    ['2001:db8::1:4711', '2001:db8::1:4711'],
  ] as const) {
    t.equal(addressOf(forwardedFor), client, forwardedFor);
  }
  t.same(log.events, []);

  for (const hop of [
    'rubbish',
    'unknown',
    '',
    '_hidden',
    '203.0.113.7:',
    '203.0.113.7:471100',
    '203.0.113.7:http',
    '203.0.113.256',
    '[203.0.113.7]:80',
    '[2001:db8::1',
    '2001:db8::1]:80',
    '[2001:db8::1]:',
    '"[2001:db8::1]"',
  ]) {
    t.equal(addressOf(hop), '10.0.0.1', hop);
    t.equal(addressOf(`203.0.113.7, ${hop}, 10.0.0.9`), '10.0.0.9', `${hop}: nothing before it counts`);
  }
  t.equal(addressOf('x'.repeat(8000)), '10.0.0.1');
  t.equal(addressOf('rubbish', '192.0.2.1'), '192.0.2.1', 'not from a proxy of ours');
  t.match(log.events, [
    { event: 'forwarded_for_malformed', fields: { address: '10.0.0.1', hop: 'rubbish' } },
    { event: 'forwarded_for_untrusted', fields: { address: '192.0.2.1' } },
  ]);
  nowMs += limits.forwardedWarnMs;
  addressOf('x'.repeat(8000));
  t.match(log.events.at(-1), { fields: { hop: 'x'.repeat(forwardedHopChars) } }, 'in no more than a few words');
  t.equal(log.events.length, 3);
});
