/** Keys that issue the credentials of hosts, by the file of the account HOSTS. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeAccount } from '@nats-io/jwt';
import { createAccount, createOperator } from '@nats-io/nkeys';
import t from 'tap';
import { hostIssuersOf } from '../../../gateway/secrets/host-issuers.ts';
import { limits } from '../../../schemas/limits.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { recordingLog } from '../support.ts';

const [account, one, two] = [createAccount(), createAccount(), createAccount()];
const key = account.getPublicKey();

t.test('the account and its signing keys, as the file has them now', async (t) => {
  const path = join(temporaryFolder(t), 'hosts.jwt');
  const write = async (...signing_keys: string[]) =>
    writeFileSync(path, await encodeAccount('HOSTS', account, { signing_keys }, { signer: createOperator() }));
  await write(one.getPublicKey());
  let nowMs = 0;
  const log = recordingLog();
  const issuers = hostIssuersOf(path, { monotonicMs: () => nowMs }, log);
  t.ok(issuers.has(one.getPublicKey(), key));
  t.ok(issuers.has(key, undefined), 'the account signs without another’s name');
  t.notOk(issuers.has(one.getPublicKey(), undefined));
  t.notOk(issuers.has(one.getPublicKey(), two.getPublicKey()), 'for another account');
  t.notOk(issuers.has(two.getPublicKey(), key));

  await write(two.getPublicKey());
  nowMs += limits.hostsAccountFreshMs;
  t.ok(issuers.has(two.getPublicKey(), key), 'a key that was added');
  t.notOk(issuers.has(one.getPublicKey(), key), 'and one that was taken away');

  writeFileSync(path, '');
  nowMs += limits.hostsAccountFreshMs;
  t.ok(issuers.has(two.getPublicKey(), key), 'a file that is being written');
  t.match(log.events, [{ event: 'hosts_account_unreadable' }]);
});

t.test('a text that is no account is refused, with what to give', (t) => {
  const path = join(temporaryFolder(t), 'hosts.jwt');
  const read = () => hostIssuersOf(path, { monotonicMs: () => 0 }, recordingLog());
  t.throws(read, /HOSTS_ACCOUNT_FILE: .*cannot be read/);
  for (const text of ['', 'a.b.c', `a.${Buffer.from('{"sub":"U","nats":{}}').toString('base64url')}.c`]) {
    writeFileSync(path, text);
    t.throws(read, /no JWT of a NATS account: give it hosts\.jwt/);
  }
  t.end();
});
