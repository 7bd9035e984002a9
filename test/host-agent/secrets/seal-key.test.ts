import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createCurve } from '@nats-io/nkeys';
import t from 'tap';
import { loadSealKey, sealKeyOf, sealKeyPath } from '../../../host-agent/secrets/seal-key.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { seal } from '../support/secrets/sealing.ts';

const textIn = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined ? undefined : Buffer.from(bytes).toString();

t.test('the key is made once, for the agent alone, and opens what is sealed to it', async (t) => {
  const folder = temporaryFolder(t);
  const key = await loadSealKey(folder, quietLog);
  t.match(key.publicKey, /^X[A-Z2-7]{55}$/);
  t.equal(statSync(sealKeyPath(folder)).mode & 0o777, 0o600);
  const again = await loadSealKey(folder, quietLog);
  t.equal(again.publicKey, key.publicKey);
  t.equal(textIn(again.open(seal({ a: 1 }, key.publicKey))), '{"a":1}');
});

t.test('a box for another key, a damaged one and what is no box do not open', (t) => {
  const key = sealKeyOf(createCurve());
  const box = seal({ a: 1 }, key.publicKey);
  t.equal(key.open(seal({ a: 1 }, createCurve().getPublicKey())), undefined);
  for (const damaged of [
    '',
    'x',
    box.slice(0, 60),
    box.slice(0, -2),
    `${box.slice(0, 90)}A${box.slice(91)}`,
    `A${box}`,
  ]) {
    t.equal(key.open(damaged), undefined, damaged.slice(0, 20));
  }
  t.end();
});

t.test('a key that cannot be read is set aside, and another made', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(sealKeyPath(folder), 'no key');
  const key = await loadSealKey(folder, quietLog);
  t.equal(readFileSync(`${sealKeyPath(folder)}.unreadable`, 'utf8'), 'no key');
  t.equal((await loadSealKey(folder, quietLog)).publicKey, key.publicKey);
});

t.test('without a disk, the key is good while the agent runs', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(`${folder}/file`, '');
  const warnings: string[] = [];
  const log = { ...quietLog, warn: (event: string) => void warnings.push(event) };
  const key = await loadSealKey(`${folder}/file/below`, log).catch((error: unknown) => error);
  t.match(key, { code: 'ENOTDIR' }, 'what keeps it from being read is no missing key');
  t.same(warnings, []);
});
