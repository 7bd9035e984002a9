import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount } from '@nats-io/nkeys';
import t from 'tap';
import { settings } from '../../actors/settings.ts';
import { repositoryRoot } from '../../dev/paths.ts';
import { readSettings } from '../../lib/config.ts';

const sample = readFileSync(join(repositoryRoot, 'deploy/systemd/actors.env'), 'utf8');
const env = Object.fromEntries(
  sample
    .split('\n')
    .flatMap((line) => [/^(\w+)=(.*)$/.exec(line)?.slice(1) ?? []])
    .filter(({ length }) => length > 0),
) as Record<string, string>;

t.test('the sample starts with a key of its own, and with no other', (t) => {
  const refused = /^configuration: HOSTS_ACCOUNT[^;]*the public key that nats-keys prints as HOSTS_ACCOUNT[^;]*$/;
  t.throws(() => readSettings(settings, env), { message: refused }, 'as it is in the repository');
  // Of the sample of earlier builds, of a user, misspelt, empty.
  for (const HOSTS_ACCOUNT of [
    'ABJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA',
    'UBJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA',
    `A${'B'.repeat(55)}`,
    '',
  ])
    t.throws(() => readSettings(settings, { ...env, HOSTS_ACCOUNT }), { message: refused }, HOSTS_ACCOUNT);
  const HOSTS_ACCOUNT = createAccount().getPublicKey();
  t.match(readSettings(settings, { ...env, HOSTS_ACCOUNT }), { HOSTS_ACCOUNT });
  t.end();
});
