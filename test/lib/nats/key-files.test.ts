/** Files with keys that are missing, empty or cut off. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount, createOperator, createUser } from '@nats-io/nkeys';
import t from 'tap';
import { loadSeed } from '../../../host-agent/link/identity/identity.ts';
import { ConfigurationError } from '../../../lib/config.ts';
import { readCredentials, readSeedFile } from '../../../lib/nats/key-files.ts';
import { temporaryFolder } from '../../support/folder.ts';

const text = (seed: Uint8Array): string => new TextDecoder().decode(seed);
const credentials = (seed: string): string =>
  `-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n\n` +
  `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;

t.test('each is named, with what to do and without its content', async (t) => {
  const folder = temporaryFolder(t);
  const path = join(folder, 'agent.nk');
  const user = text(createUser().getSeed());
  const account = text(createAccount().getSeed());
  const operator = text(createOperator().getSeed());
  const readers: readonly [string, string, () => unknown][] = [
    ['credentials', credentials(user), () => readCredentials(path)],
    ['the seed of an account', account, () => readSeedFile('HOSTS_SIGNING_SEED_FILE', path, 'SA')],
    ['the seed of an operator', operator, () => readSeedFile('OPERATOR_SIGNING_SEED_FILE', path, 'SO')],
    ['the key of an agent', user, () => loadSeed(folder)],
  ];
  for (const [name, whole, read] of readers) {
    writeFileSync(path, whole);
    await t.resolves(Promise.resolve(read()), name);
    for (const content of ['', '\n', whole.slice(0, whole.length / 2), whole.slice(0, -45)]) {
      writeFileSync(path, content);
      const error = await Promise.resolve()
        .then(read)
        .then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
      t.ok(error instanceof ConfigurationError, `${name}: ${content.length} characters`);
      const [fault = ''] = (error as ConfigurationError).faults;
      t.ok(fault.includes(path), 'its name');
      t.match(fault, /restore it/);
      t.notOk(content.length > 20 && fault.includes(content.slice(0, 20)), 'no key');
    }
  }
  t.throws(() => readSeedFile('HOSTS_SIGNING_SEED_FILE', path, 'SA'), ConfigurationError, 'another kind');
  t.throws(() => readCredentials(join(folder, 'none')), /none cannot be read \(ENOENT\)/);
});
