import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openSecretFiles, isInMemory, type SecretFilesParts } from '../../../host-agent/secrets/files.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { container, id, owner, tenant } from '../support/decisions.ts';
import { mountSmall, skipWithoutMounts } from '../support/disk.ts';

const spec = '1-aa';
const file = (secret: string, more: object = {}) => ({
  name: secret,
  version: 1,
  mode: 0o400,
  uid: 0,
  gid: 0,
  ...more,
});
const home = (root: string): string => join(root, `${owner.cluster}.${owner.host}`);

/** Secret files on a tmpfs; the value of a secret is its name, unless the test says otherwise. */
async function filesOn(t: Test, parts: Partial<SecretFilesParts> & { readonly mebibytes?: number } = {}) {
  const { mebibytes = 8, ...more } = parts;
  const root = parts.root ?? join(temporaryFolder(t), 'tmpfs');
  if (parts.root === undefined) mountSmall(t, root, mebibytes);
  const asked: string[] = [];
  const open = () =>
    openSecretFiles({
      root,
      isEngineHere: true,
      owner,
      values: {
        secret: (_who, { name }) => {
          asked.push(name);
          return Promise.resolve({ kind: 'value', bytes: Buffer.from(`value of ${name}`) });
        },
      },
      log: quietLog,
      ...more,
    });
  const files = await open();
  const prepare = (uses: Record<string, ReturnType<typeof file>>, of = files, version = spec) =>
    of.prepare(container({ secrets: { env: {}, files: uses } }), version);
  return { root, files, open, prepare, asked };
}

t.test('file systems in memory', (t) => {
  t.ok(isInMemory({ type: 0x01021994 }), 'tmpfs');
  t.ok(isInMemory({ type: 0x858458f6 }), 'ramfs');
  t.notOk(isInMemory({ type: 0xef53 }), 'ext4');
  t.end();
});

t.test('on tmpfs', { skip: skipWithoutMounts }, async (t) => {
  await t.test('each file has its value, mode and owner, and is mounted read-only', async (t) => {
    const { prepare } = await filesOn(t);
    const prepared = await prepare({ '/run/b': file('b', { mode: 0o440, uid: 1000, gid: 1001 }), '/run/a': file('a') });
    if (prepared.kind !== 'prepared') throw new Error(JSON.stringify(prepared));
    t.match(prepared.mounts, [
      { Type: 'bind', Target: '/run/a', ReadOnly: true },
      { Type: 'bind', Target: '/run/b', ReadOnly: true },
    ]);
    const [a = '', b = ''] = prepared.mounts.map(({ Source }) => Source);
    t.equal(readFileSync(a, 'utf8'), 'value of a');
    t.match(statSync(a), { uid: 0, gid: 0 });
    t.equal(statSync(a).mode & 0o777, 0o400);
    t.match(statSync(b), { uid: 1000, gid: 1001 });
    t.equal(statSync(b).mode & 0o777, 0o440);
    t.equal(statSync(join(a, '..')).mode & 0o777, 0o700);
  });

  await t.test('existing files stay; missing ones are made, also after a crash in the middle', async (t) => {
    const { root, open, prepare, asked } = await filesOn(t);
    const uses = { '/a': file('a'), '/b': file('b') };
    const folder = join(home(root), `${tenant}.${id}.${spec}`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, '0.part'), 'half');
    chownSync(join(folder, '0.part'), 1000, 1000);
    await prepare(uses);
    await prepare(uses);
    t.same(asked.sort(), ['a', 'b']);
    const again = await open();
    t.same(again.ids(), [id]);
    await prepare(uses, again);
    t.same(asked.sort(), ['a', 'b'], 'after a restart of the agent');
    t.same(readdirSync(folder).sort(), ['0', '1']);
  });

  await t.test('they go with their version, and those of other containers stay', async (t) => {
    const { root, files, prepare } = await filesOn(t);
    const uses = { '/a': file('a') };
    const other = '0190a000-0000-7000-8000-000000000002' as ContainerId;
    await prepare(uses, files, '1-old');
    await prepare(uses, files, '1-new');
    await files.prepare(container({ id: other, secrets: { env: {}, files: uses } }), spec);
    await files.keep(id, ['1-old', '1-new']);
    t.equal(readdirSync(home(root)).length, 3);
    await files.keep(id, ['1-new']);
    t.same(readdirSync(home(root)).sort(), [`${tenant}.${id}.1-new`, `${tenant}.${other}.${spec}`]);
    await files.keep(id, []);
    t.same(readdirSync(home(root)), [`${tenant}.${other}.${spec}`]);
    t.same(files.ids(), [other]);
  });

  await t.test('a secret that is missing is named, and what was made is used later', async (t) => {
    const missing = new Set(['b']);
    const { prepare } = await filesOn(t, {
      values: {
        secret: (_who, { name }) =>
          Promise.resolve(
            missing.has(name)
              ? { kind: 'missing', secret: name, why: 'away' }
              : { kind: 'value', bytes: Buffer.from(name) },
          ),
      },
    });
    const uses = { '/a': file('a'), '/b': file('b') };
    t.same(await prepare(uses), { kind: 'missing', secret: 'b', why: 'away' });
    missing.clear();
    t.match(await prepare(uses), { kind: 'prepared' });
  });

  await t.test('a full tmpfs, and the share of a tenant', async (t) => {
    const value = (bytes: number) => ({
      secret: () => Promise.resolve({ kind: 'value' as const, bytes: Buffer.alloc(bytes) }),
    });
    const full = await filesOn(t, { mebibytes: 1, values: value(2 * 1024 ** 2) });
    t.match(await full.prepare({ '/a': file('a') }), { kind: 'missing', why: /is full/ });
    t.same(readdirSync(join(home(full.root), `${tenant}.${id}.${spec}`)), [], 'nothing is left of it');
    const much = await filesOn(t, { mebibytes: 64, values: value(limits.secretFilesOfTenant / 2 + 1) });
    t.match(await much.prepare({ '/a': file('a'), '/b': file('b') }), { kind: 'missing', why: /no room/ });
    const other = container({ tenant: 'other' as TenantId, secrets: { env: {}, files: { '/a': file('a') } } });
    t.match(await much.files.prepare(other, spec), { kind: 'prepared' }, 'another tenant has its own');
  });

  await t.test('a folder that another user made is refused', async (t) => {
    const { root, prepare } = await filesOn(t);
    mkdirSync(home(root));
    chownSync(home(root), 1000, 1000);
    t.match(await prepare({ '/a': file('a') }), { kind: 'missing', why: /another user/ });
    t.same(readdirSync(home(root)), []);
  });
});

t.test('no file is written if it would reach a disk', async (t) => {
  const root = temporaryFolder(t);
  if (isInMemory({ type: 0 })) t.fail('nothing is in memory');
  const { prepare, asked } = await filesOn(t, { root });
  const result = await prepare({ '/a': file('a') });
  t.match(result, { kind: 'missing', secret: 'a', why: /no tmpfs/ });
  t.same(asked, [], 'the value is not even opened');
  t.same(readdirSync(home(root)), []);
  t.same(await prepare({}), { kind: 'prepared', mounts: [] }, 'a container without such files does not care');
});

t.test('an engine on another machine would mount what is there', async (t) => {
  const root = temporaryFolder(t);
  const { prepare } = await filesOn(t, { root, isEngineHere: false });
  t.match(await prepare({ '/a': file('a') }), { kind: 'missing', why: /own machine/ });
  t.notOk(existsSync(home(root)));
});

t.test('a folder that cannot be used is named with the reason', async (t) => {
  const root = join(temporaryFolder(t), 'file');
  writeFileSync(root, '');
  const { prepare } = await filesOn(t, { root });
  t.match(await prepare({ '/a': file('a') }), { kind: 'missing', why: /SECRET_FILES_DIR.*(ENOTDIR|EEXIST)/ });
});
