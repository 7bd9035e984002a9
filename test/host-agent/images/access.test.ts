import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { loadImageAccess, type Who, imageProofs, imageProvers } from '../../../host-agent/images/access.ts';
import { repositoryOf } from '../../../host-agent/docker/image-names.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { quietDisk } from '../support/disk.ts';

const [a, b] = ['a', 'b'] as [TenantId, TenantId];
const of = (tenant: TenantId): Who => ({ tenant, isPublic: false });
const toAll: Who = { tenant: b, isPublic: true };
const digest = `sha256:${'d'.repeat(64)}`;
const reference = 'r.example:5000/team/web:1';

async function accessIn(t: Test, folder = temporaryFolder(t)) {
  const access = await loadImageAccess(folder, quietDisk(), quietLog);
  t.teardown(() => access.flush());
  return { folder, access };
}

t.test('the repository of a reference', (t) => {
  t.equal(repositoryOf(reference), 'r.example:5000/team/web');
  t.equal(repositoryOf(`r.example:5000/team/web@${digest}`), 'r.example:5000/team/web');
  t.equal(repositoryOf('docker.io/library/nginx:latest'), 'docker.io/library/nginx');
  t.end();
});

t.test('an image is for those who have pulled it from that repository', async (t) => {
  const { access } = await accessIn(t);
  t.notOk(access.isProved(a, 'i1', reference), 'what nobody has pulled');
  access.prove(of(a), 'i1', reference, true);
  t.ok(access.isProved(a, 'i1', reference));
  t.ok(access.isProved(a, 'i1', `r.example:5000/team/web@${digest}`), 'by digest');
  t.ok(access.isProved(a, 'i1', 'r.example:5000/team/web:2'), 'another tag of the same image');
  t.notOk(access.isProved(b, 'i1', reference));
  t.notOk(access.isProved(b, 'i1', `r.example:5000/team/web@${digest}`), 'the other name opens nothing');
  t.notOk(access.isProved(a, 'i1', 's.example/web:1'), 'the same image of another registry');
  t.notOk(access.isProved(a, 'i2', reference), 'another image of the repository');
  access.prove(of(b), 'i1', 's.example/web:1', true);
  t.notOk(access.isProved(b, 'i1', reference), 'a copy in another registry proves nothing for this one');
  access.prove(of(b), 'i1', reference, true);
  t.ok(access.isProved(a, 'i1', reference) && access.isProved(b, 'i1', reference));
});

t.test('an image that was pulled without a login is for all', async (t) => {
  const { access } = await accessIn(t);
  access.prove(of(a), 'i1', reference, true);
  t.ok(access.isPrivate('i1'));
  t.notOk(access.isPrivate('i2'), 'of what is not known, nobody says that');
  access.prove(toAll, 'i1', reference, true);
  access.prove(of(b), 'i1', reference, true);
  t.ok(access.isProved(a, 'i1', reference) && access.isProved(b, 'i1', reference));
  t.notOk(access.isPrivate('i1'));
});

t.test('a registry that names a private image without having it proves nothing', async (t) => {
  const { access } = await accessIn(t);
  const elsewhere = 's.example/x:1';
  t.ok(access.prove(of(a), 'i1', reference, false), 'the first to bring it');
  t.notOk(access.prove(of(b), 'i1', elsewhere, false));
  t.notOk(access.prove(toAll, 'i1', elsewhere, false), 'nor without a login');
  t.notOk(access.isProved(b, 'i1', elsewhere) || access.isPrivate('i2'));
  t.ok(access.prove(of(a), 'i1', elsewhere, false), 'who has it may name it as they like');
  t.ok(access.prove(of(b), 'i1', 't.example/x:1', true), 'a registry that the operator vouches for');
  t.ok(access.isProved(b, 'i1', 't.example/x:1'));
  t.ok(access.prove(toAll, 'i2', reference, false));
  t.ok(access.prove(of(b), 'i2', elsewhere, false), 'a public image is no secret');
});

t.test('it is kept over restarts, and forgotten with the image', async (t) => {
  const { folder, access } = await accessIn(t);
  access.prove(of(a), 'i1', reference, true);
  access.prove(toAll, 'i2', reference, true);
  await access.flush();
  const { access: again } = await accessIn(t, folder);
  t.ok(again.isProved(a, 'i1', reference) && again.isProved(b, 'i2', reference));
  t.notOk(again.isProved(b, 'i1', reference));
  t.same([...again.images()], ['i1', 'i2']);
  again.forget('i1');
  await again.flush();
  const { access: later } = await accessIn(t, folder);
  t.same([...later.images()], ['i2']);
});

t.test('a record that is lost or damaged gives nothing away', async (t) => {
  for (const damage of [
    (folder: string) => rmSync(join(folder, 'image-access.json')),
    (folder: string) => writeFileSync(join(folder, 'image-access.json'), '{"v":1,"proofs":[{}]}'),
  ]) {
    const { folder, access } = await accessIn(t);
    access.prove(of(a), 'i1', reference, true);
    access.prove(toAll, 'i2', reference, true);
    await access.flush();
    damage(folder);
    const { access: again } = await accessIn(t, folder);
    t.notOk(again.isProved(a, 'i1', reference) || again.isProved(a, 'i2', reference));
  }
});

t.test('it is bounded; what falls out must be proved again', async (t) => {
  const { access } = await accessIn(t);
  access.prove(of(a), 'i1', reference, true);
  const tenants = Array.from({ length: imageProvers + 1 }, (_, index) => `t${index}` as TenantId);
  for (const tenant of tenants) access.prove(of(tenant), 'i1', reference, true);
  t.notOk(access.isProved(tenants[0] as TenantId, 'i1', reference));
  t.ok(access.isProved(tenants.at(-1) as TenantId, 'i1', reference));
});

t.test('a tenant that proves without end pushes out its own proofs alone, and no privacy', async (t) => {
  const { folder, access } = await accessIn(t);
  const evil = 'evil' as TenantId;
  access.prove(of(a), 'victim', reference, false);
  access.prove(of(a), 'second', reference, false);
  access.prove(of(a), 'second', 's.example/web:1', false);
  access.prove({ tenant: a, isPublic: true }, 'public', reference, false);
  // One image under ever more names, with a login and without.
  const isPublic = (index: number): boolean => index % 2 === 0;
  for (let index = 0; index < imageProofs + 10; index++) {
    access.prove({ tenant: evil, isPublic: isPublic(index) }, `own${index % 2}`, `r.evil/x${index}:1`, true);
  }
  t.notOk(access.isProved(evil, 'own0', 'r.evil/x0:1'), 'the oldest of its own');
  t.ok(access.isProved(evil, 'own1', `r.evil/x${imageProofs + 9}:1`));
  const attack = () => access.prove(of(evil), 'victim', 'r.evil/victim:1', false);
  t.ok(access.isPrivate('victim'));
  t.notOk(attack(), 'the image is still of others');
  t.ok(access.isProved(a, 'victim', reference) && access.isProved(a, 'second', 's.example/web:1'));
  t.ok(access.isProved(a, 'public', reference));
  await access.flush();
  const { access: again } = await accessIn(t, folder);
  t.ok(again.isPrivate('victim') && again.isProved(evil, 'public', reference));
});

t.test('the last proof of a private image stays, whichever tenant has the most', async (t) => {
  const { access } = await accessIn(t);
  const own = imageProofs / 2 + 10;
  for (let index = 0; index < own; index++) access.prove(of(a), `a${index}`, reference, false);
  for (let index = 0; index < own; index++) access.prove(of(b), `b${index % 2}`, `r.evil/x${index}:1`, true);
  for (let index = 0; index < own; index++) if (!access.isPrivate(`a${index}`)) t.fail(`a${index}`);
  t.ok(access.isPrivate('b0') && access.isPrivate('b1'));
  t.notOk(access.hasRoom(a), 'and no more are pulled for it');
  t.ok(access.hasRoom(b));
  for (let index = 0; index < own; index++) access.forget(`a${index}`);
  t.ok(access.hasRoom(a), 'once unused ones are gone');
});

t.test('a record of the release before, which does not say who proved a public image', async (t) => {
  const folder = temporaryFolder(t);
  const proofs = [{ image: 'i1', repository: repositoryOf(reference), provers: 'all' }];
  writeFileSync(join(folder, 'image-access.json'), JSON.stringify({ v: 1, log: 0, proofs }));
  const { access } = await accessIn(t, folder);
  t.ok(access.isProved(a, 'i1', reference));
});
