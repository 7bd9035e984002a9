/** Actors start with the seed of a signing key of the account HOSTS, and with no other. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount } from '@nats-io/nkeys';
import t from 'tap';
import { startNats } from '../../../../dev/servers/nats.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';
import { spawnActors } from '../support.ts';

t.setTimeout(240_000);

t.test('a seed of another account is refused at the start, by name', async (t) => {
  const dir = temporaryFolder(t);
  const nats = await startNats({ dir: join(dir, 'nats') });
  t.teardown(() => nats.stop());
  const foreign = createAccount();
  const foreignFile = join(dir, 'foreign.seed');
  writeFileSync(foreignFile, foreign.getSeed());
  const start = (seedFile: string) => {
    const env = {
      NATS_SYSTEM_CREDS_FILE: nats.sysCredsFile,
      OPERATOR_SIGNING_SEED_FILE: nats.operatorSigningSeedFile,
      HOSTS_SIGNING_SEED_FILE: seedFile,
    };
    const child = spawnActors(nats, 2, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    const exit = once(child, 'exit');
    t.teardown(async () => {
      child.kill('SIGKILL');
      await exit;
    });
    let log = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (log += text));
    return { exit, log: () => log };
  };
  const refused = start(foreignFile);
  t.not((await refused.exit)[0], 0);
  t.match(
    refused.log(),
    new RegExp(`HOSTS_SIGNING_SEED_FILE: it has the seed of ${foreign.getPublicKey()}, which is no`),
  );
  const taken = start(nats.hostsSigningSeedFile);
  await until('the partitions', () => taken.log().includes('"event":"serving"'));
  t.notMatch(taken.log(), /signing_seed_unchecked/);
});
