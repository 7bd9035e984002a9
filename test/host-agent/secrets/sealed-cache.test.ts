import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { sealedFileName, openSealedCache, type SealedKey } from '../../../host-agent/secrets/sealed-cache.ts';
import { neededSealed } from '../../../host-agent/secrets/needed.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { container, tenant } from '../support/decisions.ts';

const secret = (name: string, version: number): SealedKey => ({ tenant, secret: { name, version } });
const login = (registry: string): SealedKey => ({ tenant, registry });

t.test('boxes outlive the agent, and each has a name of its own', async (t) => {
  const folder = temporaryFolder(t);
  const boxes = await openSealedCache(folder, quietLog);
  const keys = [secret('a', 1), secret('a', 2), secret('b', 1), login('a'), login(`${'x'.repeat(250)}:5000`)];
  for (const [index, key] of keys.entries()) await boxes.put(key, `box ${index}`);
  const again = await openSealedCache(folder, quietLog);
  t.same(
    await Promise.all(keys.map(again.get)),
    keys.map((_, index) => `box ${index}`),
  );
  const other = { tenant: 'other' as typeof tenant, secret: { name: 'a', version: 1 } };
  t.equal(await again.get(other), undefined, 'of another tenant');
  await again.drop(secret('a', 1));
  await again.drop(secret('a', 1));
  t.equal(await again.get(secret('a', 1)), undefined);
});

t.test('values that no version needs are dropped, once it is known what they need', async (t) => {
  const folder = temporaryFolder(t);
  const boxes = await openSealedCache(folder, quietLog);
  const uses = {
    env: { A: { name: 'a', version: 2 } },
    files: { '/f': { name: 'f', version: 1, mode: 0o400, uid: 0, gid: 0 } },
  };
  const needed = neededSealed([container({ secrets: uses }), container({ registry: 'r.example' })]);
  const unneeded = [secret('a', 1), login('s.example')];
  for (const key of [...needed, ...unneeded]) await boxes.put(key, 'box');
  await boxes.prune(undefined);
  t.equal(readdirSync(join(folder, 'boxes')).length, needed.length + unneeded.length);
  const later = await openSealedCache(folder, quietLog);
  await later.prune(needed);
  t.same(readdirSync(join(folder, 'boxes')).sort(), [...new Set(needed.map(sealedFileName))].sort());
});

t.test('one box that is kept twice at once, as where a container uses a secret twice', async (t) => {
  const warnings: string[] = [];
  const log = { ...quietLog, warn: (event: string) => void warnings.push(event) };
  const boxes = await openSealedCache(temporaryFolder(t), log);
  await Promise.all(Array.from({ length: 20 }, (_, index) => boxes.put(secret('a', 1), `box ${index}`)));
  t.equal(await boxes.get(secret('a', 1)), 'box 19');
  await Promise.all([boxes.put(secret('a', 1), 'box'), boxes.drop(secret('a', 1))]);
  t.equal(await boxes.get(secret('a', 1)), undefined, 'in the order of the calls');
  t.same(warnings, []);
});

t.test('they are bounded: what has no room is not kept', async (t) => {
  const folder = temporaryFolder(t);
  const warnings: string[] = [];
  const log = { ...quietLog, warn: (event: string) => void warnings.push(event) };
  const boxes = await openSealedCache(folder, log, 10);
  await boxes.put(secret('a', 1), '12345678');
  await boxes.put(secret('b', 1), '123');
  t.equal(await boxes.get(secret('b', 1)), undefined);
  t.same(warnings, ['sealed_value_write_failed']);
  await boxes.put(secret('a', 1), '1234567890');
  t.equal(await boxes.get(secret('a', 1)), '1234567890', 'one that takes the place of another');
  const again = await openSealedCache(folder, log, 10);
  await again.put(secret('b', 1), '1');
  t.equal(await again.get(secret('b', 1)), undefined, 'those from before count');
  await again.drop(secret('a', 1));
  await again.put(secret('b', 1), '1');
  t.equal(await again.get(secret('b', 1)), '1');
});

t.test('a disk that fails costs the boxes alone', async (t) => {
  const folder = temporaryFolder(t);
  const boxes = await openSealedCache(folder, quietLog);
  mkdirSync(join(folder, 'boxes', sealedFileName(secret('a', 1))));
  t.equal(await boxes.get(secret('a', 1)), undefined, 'what cannot be read');
  rmSync(join(folder, 'boxes'), { recursive: true });
  await boxes.put(secret('a', 1), 'box');
  t.equal(
    readFileSync(join(folder, 'boxes', sealedFileName(secret('a', 1))), 'utf8'),
    'box',
    'a folder that went is made again',
  );
});
