import { chmodSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount, createUser } from '@nats-io/nkeys';
import t from 'tap';
import { judgeCredentials, seeCredentials, type CredentialFacts } from '../../../host-agent/doctor/credentials.ts';
import { lockHost, lockStateDir } from '../../../host-agent/lock.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { mintHostUserJwt } from '../../support/host-user.ts';

const account = createAccount();
const hosts = { hostsAccount: account.getPublicKey(), hostsSigningSeed: new TextDecoder().decode(account.getSeed()) };
const user = createUser();
const seed = user.getSeed();
const nowMs = Math.floor(Date.now() / 1000) * 1000;
const day = 24 * 3600_000;

const identityFor = async (publicKey = user.getPublicKey(), leftMs = 20 * day) => ({
  host: 'h1' as HostKey,
  region: 'eu',
  cluster: `c ${publicKey}`,
  natsUrls: [],
  jwt: await mintHostUserJwt({ hostKey: 'h1', publicKey, ...hosts, expiresAtS: (nowMs + leftMs) / 1000 }),
});

const facts = (more: Partial<CredentialFacts>): CredentialFacts => ({
  identity: undefined,
  seed,
  fault: undefined,
  isKeyOpen: false,
  isFolderLocked: true,
  isHostLocked: true,
  ...more,
});
const said = (more: Partial<CredentialFacts>, atMs = nowMs) =>
  judgeCredentials(facts(more), '/s', atMs).map(({ verdict, check, says }) => `${verdict} ${check}: ${says}`);

t.test('an enrolled host with a running agent', async (t) => {
  t.match(said({ identity: await identityFor() }), [
    /^ok credentials: of host h1/,
    /^ok expiry: in 20 days/,
    /^ok agent: runs on \/s/,
  ]);
});

t.test('a host that has not joined', (t) => {
  t.match(said({ seed: undefined, isFolderLocked: false, isHostLocked: false }), [
    /^fail credentials: .*has not joined/,
    /^warn agent/,
  ]);
  t.end();
});

t.test('faults of credentials', async (t) => {
  const identity = await identityFor();
  t.match(said({ identity, seed: undefined }), [/^fail credentials: .*agent\.nk\) is gone/]);
  const before = { ...identity, jwt: 'a.e30.c' };
  t.match(said({ identity: before })[0], /^fail credentials: .*from release 0\.1\.0 or an older one/);
  t.match(said({ identity: await identityFor(createUser().getPublicKey()) }), [
    /^fail credentials: .*another key than agent\.nk/,
  ]);
  t.match(said({ identity }, nowMs + 20 * day), [/^ok/, /^fail expiry: the credentials expired/]);
  t.match(said({ identity }, nowMs + 17 * day), [/^ok/, /^warn expiry: .*have not been renewed/]);
  t.match(said({ identity, isKeyOpen: true }), [/^ok/, /^ok/, /^warn key file/, /^ok/]);
  t.match(said({ identity, isFolderLocked: false }).at(-1), /^fail agent: another agent runs .* as host h1, on a copy/);
  t.match(said({ identity, isFolderLocked: false, isHostLocked: false }).at(-1), /^warn agent: no agent runs/);
  t.match(said({ fault: 'identity.json: EACCES' }), [/^fail credentials: cannot be read: identity\.json: EACCES/]);
});

t.test('reads the folder, and changes nothing there', async (t) => {
  const dir = temporaryFolder(t);
  t.match(await seeCredentials(join(dir, 'none')), { identity: undefined, seed: undefined, isFolderLocked: false });

  const identity = await identityFor();
  writeFileSync(join(dir, 'agent.nk'), seed, { mode: 0o600 });
  writeFileSync(join(dir, 'identity.json'), JSON.stringify(identity));
  const free = await seeCredentials(dir);
  t.match(free, { identity, fault: undefined, isKeyOpen: false, isFolderLocked: false, isHostLocked: false });
  t.same(free.seed, seed);

  const locks = [await lockStateDir(dir), await lockHost(identity)];
  t.match(await seeCredentials(dir), { isFolderLocked: true, isHostLocked: true });
  t.match(await seeCredentials(dir), { isFolderLocked: true, isHostLocked: true }, 'looking takes no lock');
  for (const lock of locks) await lock.stop();
  t.match(await seeCredentials(dir), { isFolderLocked: false, isHostLocked: false });

  chmodSync(join(dir, 'agent.nk'), 0o644);
  writeFileSync(join(dir, 'identity.json'), 'damaged');
  t.match(await seeCredentials(dir), { identity: undefined, fault: /identity\.json/, isKeyOpen: true });
  t.equal(readFileSync(join(dir, 'identity.json'), 'utf8'), 'damaged');
  t.same(readdirSync(dir).sort(), ['agent.nk', 'identity.json']);
});
