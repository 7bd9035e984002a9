import { createPrivateKey, createPublicKey } from 'node:crypto';
import t from 'tap';
import { newWireguardKeys } from '../../lib/wireguard-keys.ts';

/** RFC 8410 section 7: a raw X25519 key in PKCS#8. */
const pkcs8Head = Buffer.from('302e020100300506032b656e04220420', 'hex');

t.test('two hundred WireGuard pairs', (t) => {
  const pairs = Array.from({ length: 200 }, newWireguardKeys);
  for (const { publicKey, privateKey } of pairs) {
    const raw = Buffer.from(privateKey, 'base64');
    if (raw.length !== 32 || raw.toString('base64') !== privateKey) t.fail('not 32 bytes in base64');
    const [first = 0, last = 0] = [raw[0], raw[31]];
    if ((first & 7) !== 0 || (last & 0xc0) !== 0x40) t.fail('not clamped');
    const key = createPrivateKey({ key: Buffer.concat([pkcs8Head, raw]), format: 'der', type: 'pkcs8' });
    const derived = createPublicKey(key).export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64');
    if (derived !== publicKey) t.fail(`the public key is ${publicKey}, derived is ${derived}`);
  }
  t.equal(new Set(pairs.map(({ privateKey }) => privateKey)).size, 200);
  t.end();
});
