/** Files of documents on a host: written once for a version, completed, and removed with it. */
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { openDeclaredFiles, type DeclaredFilesParts } from '../../../host-agent/secrets/declared-files.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { quietLog } from '../../actors/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { container, id } from '../support/decisions.ts';

const spec = '1-aa';
const use = (sha256: string, mode = 0o444) => ({ sha256, bytes: `of ${sha256}`.length, mode });

async function filesOn(t: Test, parts: Partial<DeclaredFilesParts> = {}) {
  const stateDir = parts.stateDir ?? temporaryFolder(t);
  const asked: string[] = [];
  const open = () =>
    openDeclaredFiles({
      stateDir,
      isEngineHere: true,
      values: {
        file: (_who, sha256) => {
          asked.push(sha256);
          return Promise.resolve({ kind: 'value', bytes: Buffer.from(`of ${sha256}`) });
        },
      },
      log: quietLog,
      ...parts,
    });
  return { home: join(stateDir, 'files'), open, files: await open(), asked };
}
const two = container({ files: { '/etc/b': use('b', 0o400), '/etc/a': use('a') } });

t.test('each has its content and mode, and is mounted read-only', async (t) => {
  const { files } = await filesOn(t);
  const prepared = await files.prepare(two, spec);
  if (prepared.kind !== 'prepared') throw new Error(prepared.why);
  t.match(prepared.mounts, [
    { Type: 'bind', Target: '/etc/a', ReadOnly: true },
    { Type: 'bind', Target: '/etc/b', ReadOnly: true },
  ]);
  const [a = '', b = ''] = prepared.mounts.map(({ Source }) => Source);
  t.equal(readFileSync(a, 'utf8'), 'of a');
  t.same([statSync(a).mode & 0o777, statSync(b).mode & 0o777], [0o444, 0o400]);
  t.equal(statSync(join(a, '..')).mode & 0o777, 0o700);
  t.same(await files.prepare(container({}), spec), { kind: 'prepared', mounts: [] });
});

t.test('files stay without the control plane; those that a crash left are made again', async (t) => {
  const { open, files, home, asked } = await filesOn(t);
  await files.prepare(two, spec);
  t.same(asked, ['a', 'b']);
  const again = await open();
  t.same(again.ids(), [id]);
  t.match(await again.prepare(two, spec), { kind: 'prepared' });
  t.same(asked, ['a', 'b']);
  const folder = join(home, `${id}.${spec}`);
  truncateSync(join(folder, '1'), 0);
  writeFileSync(join(folder, '1.part'), 'half');
  await again.prepare(two, spec);
  t.same(asked, ['a', 'b', 'b']);
  t.same(readdirSync(folder).sort(), ['0', '1']);
});

t.test('they go with their version, and those of other containers stay', async (t) => {
  const { files, home } = await filesOn(t);
  const other = '0190a000-0000-7000-8000-000000000002' as ContainerId;
  await files.prepare(two, '1-old');
  await files.prepare(two, '1-new');
  await files.prepare({ ...two, id: other }, spec);
  await files.keep(id, ['1-old', '1-new']);
  t.equal(readdirSync(home).length, 3);
  await files.keep(id, ['1-new']);
  t.same(readdirSync(home).sort(), [`${id}.1-new`, `${other}.${spec}`]);
  await files.keep(id, []);
  t.same(readdirSync(home), [`${other}.${spec}`]);
  t.same(files.ids(), [other]);
});

t.test('a file that is missing is named, and why', async (t) => {
  const away = await filesOn(t, { values: { file: () => Promise.resolve({ kind: 'missing', why: 'away' }) } });
  t.same(await away.files.prepare(two, spec), { kind: 'missing', path: '/etc/a', why: 'away' });
  const elsewhere = await filesOn(t, { isEngineHere: false });
  t.match(await elsewhere.files.prepare(two, spec), { kind: 'missing', why: /own machine/ });
  t.notOk(existsSync(elsewhere.home));
  const stateDir = join(temporaryFolder(t), 'file');
  writeFileSync(stateDir, '');
  const broken = await filesOn(t, { stateDir });
  t.match(await broken.files.prepare(two, spec), { kind: 'missing', path: '/etc/a', why: /STATE_DIR/ });
});
