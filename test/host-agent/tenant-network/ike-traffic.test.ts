import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { IkeSeen } from '../../../host-agent/tenant-network/charon.ts';
import { IkeTraffic } from '../../../host-agent/tenant-network/ike-traffic.ts';
import { createLog } from '../../../lib/log.ts';

const network = 'office';
const seen = (key: string, child: string, rx: number, more: Partial<IkeSeen> = {}): IkeSeen => ({
  ...{ owner: { network, key }, child, rx, tx: 2 * rx, handshake: 100, endpoint: '192.0.2.1:4500' },
  ...more,
});
const wireguard = (link: string, rx = 0, handshake = 0) => ({
  link,
  peers: [{ key: 'a', handshake, rx_bytes: rx, tx_bytes: rx, endpoint: handshake === 0 ? null : '192.0.2.9:1' }],
});
const open = (file: string) => new IkeTraffic(file, createLog('test', 'silent'));
const rxOf = (traffic: IkeTraffic, link = 'first', rx = 0): number | undefined =>
  traffic.addTo(network, wireguard(link, rx)).peers[0]?.rx_bytes;

t.test('each byte is counted once', async (t) => {
  const file = join(t.testdir(), 'traffic.json');
  const traffic = open(file);
  t.equal(rxOf(traffic, 'first', 7), 7, 'of WireGuard alone');
  traffic.note([seen('a', '1 aa', 10)], true);
  t.equal(rxOf(traffic, 'first', 7), 17);
  traffic.note([seen('a', '1 aa', 15)], false);
  traffic.note([seen('a', '2 bb', 1)], true);
  t.equal(rxOf(traffic), 16, 'over associations');
  traffic.note([seen('a', '2 bb', 0)], false);
  t.equal(rxOf(traffic), 16, 'an older count that comes late');
  traffic.store();

  await t.test('over restarts', (t) => {
    const again = open(file);
    t.equal(rxOf(again), 16);
    again.note([seen('a', '2 bb', 4)], true);
    t.equal(rxOf(again), 19);
    t.end();
  });
  await t.test('from 0 beside an interface that is new, and for a peer that was taken out', (t) => {
    const again = open(file);
    again.note([seen('a', '2 bb', 4)], true);
    t.equal(rxOf(again, 'second'), 0);
    again.note([seen('a', '2 bb', 6)], true);
    t.equal(rxOf(again, 'second'), 2);
    again.keep([{ name: network, peers: [{ key: 'b' }] }]);
    t.equal(rxOf(again, 'second'), 0);
    again.note([seen('a', '2 bb', 7)], true);
    t.equal(rxOf(again, 'second'), 1);
    again.keep([]);
    t.equal(rxOf(again, 'second'), 0);
    t.end();
  });
  await t.test('a damaged file begins again', (t) => {
    writeFileSync(file, '{');
    t.equal(rxOf(open(file), 'first', 3), 3);
    t.end();
  });
});

t.test('a peer was there last by the way that it came last', (t) => {
  const traffic = open(join(t.testdir(), 'traffic.json'));
  traffic.note([seen('a', '1 aa', 10)], true);
  t.match(traffic.addTo(network, wireguard('l', 5, 99)).peers, [{ handshake: 100, endpoint: '192.0.2.1:4500' }]);
  t.match(traffic.addTo(network, wireguard('l', 5, 101)).peers, [{ handshake: 101, endpoint: '192.0.2.9:1' }]);
  t.same(traffic.addTo('other', wireguard('l', 5)), wireguard('l', 5));
  t.end();
});

t.test('the file is for its owner', (t) => {
  const file = join(t.testdir(), 'traffic.json');
  const traffic = open(file);
  traffic.note([seen('a', '1 aa', 10)], true);
  traffic.store();
  t.match(readFileSync(file, 'utf8'), /"1 aa":\{"rx":10,"tx":20\}/);
  t.end();
});
