/** Backups on a real NATS server, and the commands. */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readBackup } from '../../../ops/backup/folder.ts';
import { api, restoreStream, saveStream } from '../../../ops/backup/stream.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run } from '../../../dev/process/run.ts';
import type { Nats } from '../../../dev/servers/nats.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutPrivateEngine } from '../../support/servers.ts';
import { newFolder, startGround, stateKey } from './backup-ground.ts';

const { nats, nc, put, contentOf, freshCluster, backUp } = await startGround(t);

t.test('a restored stream has its sequences, headers, deletions and TTLs', async (t) => {
  const path = join(temporaryFolder(t), 'stream');
  await api(nc, 'STREAM.CREATE.S', {
    name: 'S',
    subjects: ['s.>'],
    storage: 'file',
    num_replicas: 1,
    max_msgs_per_subject: 1,
    allow_msg_ttl: true,
    allow_direct: true,
  });
  t.teardown(() => api(nc, 'STREAM.DELETE.S'));
  for (let index = 0; index < 400; index++) await put(`s.${index % 300}`, `${index} `.repeat(2000));
  const short = await put('s.short', 'gone soon', { 'Nats-TTL': '20s' });
  const long = await put('s.long', 'stays', { 'Nats-TTL': '1h', 'X-Header': 'kept' });
  await put('s.7', '', { 'KV-Operation': 'DEL' });
  await api(nc, 'STREAM.MSG.DELETE.S', { seq: 250, no_erase: true });
  const before = await contentOf('S');

  const saved = await saveStream(nc, 'S', path);
  await put('s.later', 'after the moment of the snapshot');
  await api(nc, 'STREAM.DELETE.S');
  const state = await restoreStream(nc, saved, path);
  t.equal(state.last_seq, saved.state.last_seq);
  const after = await contentOf('S');
  t.same(after, before);
  t.notOk(after.some(({ seq }) => seq === 250));
  t.ok(after.some(({ seq }) => seq === short));
  // The TTL still runs: the message expires, or this test times out.
  let kept = after;
  while (kept.some(({ seq }) => seq === short)) {
    await sleep(500);
    kept = await contentOf('S');
  }
  t.ok(kept.some(({ seq }) => seq === long));
  t.equal(await put('s.next', 'x'), saved.state.last_seq + 1, 'the next message gets the next sequence');
});

t.test('a stream is saved as it is at one moment while a publisher writes to it', async (t) => {
  const path = join(temporaryFolder(t), 'stream');
  await api(nc, 'STREAM.CREATE.W', { name: 'W', subjects: ['w'], storage: 'file', num_replicas: 1 });
  t.teardown(() => api(nc, 'STREAM.DELETE.W'));
  let isWriting = true;
  let written = 0;
  const writing = (async () => {
    while (isWriting) written = await put('w', `${written + 1} `.repeat(500));
  })();
  while (written < 200) await sleep(10);
  const known = written;
  const saved = await saveStream(nc, 'W', path);
  isWriting = false;
  await writing;
  t.ok(saved.state.last_seq >= known, 'the backup holds every message acknowledged before it began');
  await api(nc, 'STREAM.DELETE.W');
  await restoreStream(nc, saved, path);
  const numbers = (await contentOf('W')).map(({ data }) => parseInt(Buffer.from(data ?? '', 'base64').toString(), 10));
  t.same(
    numbers,
    Array.from({ length: saved.state.last_seq }, (_, index) => index + 1),
  );
});

t.test('a manifest is under a checksum; one of before 0.2.0 is restored without', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  const path = join(folder, 'manifest.json');
  const content = readFileSync(path);
  for (let index = 0; index < content.length; index += 97) {
    const damaged = Buffer.from(content);
    damaged[index] = damaged[index]! ^ 1;
    writeFileSync(path, damaged);
    await t.rejects(readBackup(folder), `byte ${index}`);
  }
  writeFileSync(path, content);
  t.match(await readBackup(folder), { isChecked: true });
  rmSync(join(folder, 'manifest.sha256'));
  t.match(await readBackup(folder), { isChecked: false });
  writeFileSync(path, content.toString().replace('"logs"', '"mogs"'));
  await t.rejects(readBackup(folder), { message: /can't be read/ }, 'a stream that is left out silently');
});

t.test('a failed backup leaves nothing behind', async (t) => {
  await freshCluster();
  const parent = temporaryFolder(t);

  t.test('the folder is not empty, and keeps its content', async (t) => {
    const folder = join(parent, 'full');
    await backUp(folder);
    const before = readFileSync(join(folder, 'manifest.json'), 'utf8');
    await t.rejects(backUp(folder), { message: /is not empty/ });
    t.equal(readFileSync(join(folder, 'manifest.json'), 'utf8'), before);
  });

  t.test('the folder cannot be created', async (t) => {
    const file = join(parent, 'file');
    writeFileSync(file, '');
    await t.rejects(backUp(join(file, 'backup')), { message: /ENOTDIR/ });
  });

  t.test('the disk is full', { skip: skipWithoutPrivateEngine && 'a small disk needs Linux and root' }, async (t) => {
    const disk = temporaryFolder(t);
    t.match(await run('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'none', disk], { deadlineMs: 5_000 }), { code: 0 });
    t.teardown(() => run('umount', [disk], { deadlineMs: 5_000 }));
    for (let index = 0; index < 40; index++) {
      await put(stateKey(1, `tenant.t${index}`), randomBytes(15_000).toString('base64'));
    }
    await t.rejects(backUp(join(disk, 'backup')), { message: /KV_state-1\.snapshot: ENOSPC/ });
    t.same(readdirSync(disk), [], 'the disk is empty again');
  });
});

const program = ({ url, credsFile }: Nats, name: string, args: readonly string[]) =>
  run(process.execPath, [join(repositoryRoot, 'dist/ops/longshore.js'), name, ...args], {
    deadlineMs: 60_000,
    env: { PATH: process.env['PATH'], NATS_URLS: url, NATS_CREDS_FILE: credsFile },
  });

t.test('the commands print and exit as an operator expects', async (t) => {
  await freshCluster();
  const folder = newFolder(t);
  const backup = await program(nats, 'backup', [folder, '--without-logs']);
  t.match(backup, { code: 0, stdout: /LOGS: left out/ });
  t.notOk(existsSync(join(folder, 'LOGS.snapshot')));
  t.equal((await readBackup(folder)).manifest.logs, undefined);
  const refused = await program(nats, 'restore', [folder]);
  t.match(refused, { code: 1, stderr: /--replace/ });
  const restored = await program(nats, 'restore', [folder, '--replace', '--replicas', '1']);
  t.match(restored, { code: 0, stdout: /Restored cluster/ });
  t.match(await contentOf('LOGS'), { length: 1 }, 'a stream that the backup does not hold stays');
  t.match(await program(nats, 'restore', [folder, '--replicas', '2']), {
    code: 2,
    stderr: /Allowed choices are 1, 3, 5/,
  });
  const absent = await program({ ...nats, url: 'nats://127.0.0.1:1' }, 'backup', [`${folder}-2`]);
  t.match(absent, { code: 1, stderr: /^cannot connect to NATS at nats:\/\/127.0.0.1:1/ });
});
