/** Key pairs are those that `wg` would make. */
import { spawnSync } from 'node:child_process';
import t from 'tap';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { newWireguardKeys } from '../../../../lib/wireguard-keys.ts';
import { skipWithoutTools } from '../../../support/tools.ts';
t.test('wg derives the same public keys', { skip: await skipWithoutTools('wg') }, async (t) => {
  const { path, env } = await toolHere('wg');
  for (const { publicKey, privateKey } of Array.from({ length: 20 }, newWireguardKeys)) {
    t.equal(spawnSync(path, ['pubkey'], { env, input: privateKey, encoding: 'utf8' }).stdout.trim(), publicKey);
  }
});
