import t from 'tap';
import { isConfigured, peersChange } from '../../../host-agent/tenant-network/wireguard.ts';

const ours = [
  '[Interface]\nPrivateKey = secret\nListenPort = 7',
  '[Peer]\nPublicKey = a\nPresharedKey = p\nAllowedIPs = 10.0.0.2/32, fd00:0:0::2/128',
  '[Peer]\nPublicKey = b\nEndpoint = 192.0.2.1:9\nAllowedIPs = 10.0.0.3/32\n',
].join('\n');
/** The same, as `wg showconf` prints it. */
const printed = [
  '[Interface]\nListenPort = 7\nPrivateKey = secret',
  '',
  '[Peer]\nPublicKey = b\nAllowedIPs = 10.0.0.3/32\nEndpoint = 192.0.2.1:9',
  '',
  '[Peer]\nPublicKey = a\nPresharedKey = p\nAllowedIPs = fd00::2/128, 10.0.0.2/32\n',
].join('\n');

t.test('an interface has what a configuration sets, in whatever order and form it is written', (t) => {
  t.ok(isConfigured(printed, ours, true));
  const moved = printed.replace('192.0.2.1:9', '192.0.2.9:1');
  t.notOk(isConfigured(moved, ours, true));
  t.ok(isConfigured(moved, ours, false), 'an end that moves');
  for (const [from, to] of [
    ['PresharedKey = p', 'PresharedKey = q'],
    ['10.0.0.3/32', '10.0.0.4/32'],
    ['10.0.0.3/32', '10.0.0.3/31'],
    ['ListenPort = 7', 'ListenPort = 8'],
  ] as const)
    t.notOk(isConfigured(printed.replace(from, to), ours, false), to);
  t.notOk(isConfigured('', ours, false));
  t.end();
});

t.test('the peers that differ between two configurations', async (t) => {
  const own = '[Interface]\nPrivateKey = own\nListenPort = 7\n';
  const peer = (key: string, ranges: string): string => `[Peer]\nPublicKey = ${key}\nAllowedIPs = ${ranges}\n`;
  const before = own + peer('a', '10.0.0.1/32') + peer('b', '10.0.0.2/32') + peer('c', '10.0.0.3/32');
  t.same(peersChange(before, before), { added: '', removed: [] });
  t.same(peersChange(before, own + peer('c', '10.0.0.3/32') + peer('b', '10.0.0.9/32') + peer('d', '10.0.0.1/32')), {
    added: peer('b', '10.0.0.9/32') + peer('d', '10.0.0.1/32'),
    removed: ['a'],
  });
  t.same(peersChange(before, own), { added: '', removed: ['a', 'b', 'c'] });
  t.equal(peersChange(before, before.replace('ListenPort = 7', 'ListenPort = 8')), undefined);
});
