import t from 'tap';
import { settingsIn } from '../../../host-agent/tenant-network/wireguard.ts';

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

t.test('the same settings have one form, in whatever order they are written', (t) => {
  t.equal(settingsIn(printed, true), settingsIn(ours, true));
  const moved = printed.replace('192.0.2.1:9', '192.0.2.9:1');
  t.not(settingsIn(moved, true), settingsIn(ours, true));
  t.equal(settingsIn(moved, false), settingsIn(ours, false), 'an end that moves');
  for (const [from, to] of [
    ['PresharedKey = p', 'PresharedKey = q'],
    ['10.0.0.3/32', '10.0.0.4/32'],
    ['10.0.0.3/32', '10.0.0.3/31'],
    ['ListenPort = 7', 'ListenPort = 8'],
  ] as const)
    t.not(settingsIn(printed.replace(from, to), false), settingsIn(ours, false), to);
  t.not(settingsIn('', false), settingsIn(ours, false));
  t.end();
});
