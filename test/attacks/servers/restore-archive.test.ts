/**
 * Somebody has changed a backup before it is restored: files that never end or wait for ever,
 * manifests that fill the memory, paths out of the folder, streams in the place of others, and
 * configurations that copy what programs say to where the attacker reads it. The restore refuses it
 * before it changes anything.
 */
import { createHash } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { manifestBytesMax, readBackup } from '../../../ops/backup/folder.ts';
import { within } from '../../../lib/time/backoff.ts';
import { bucketPrefix, buckets, bucketStream, journalBuckets, streams } from '../../../schemas/records/buckets.ts';
import { temporaryFolder } from '../../support/folder.ts';

const content = 'a snapshot';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const saved = (name: string, subjects: readonly string[]) => ({
  file: `${name}.snapshot`,
  config: { name, num_replicas: 1, subjects: [...subjects] } as Record<string, unknown>,
  state: { messages: 0, bytes: 0, first_seq: 0, last_seq: 0 },
  bytes: content.length,
  sha256: sha256(content),
});
const ofBucket = (bucket: string) => saved(bucketStream(bucket), [`${bucketPrefix(bucket)}>`]);
const ofStream = ({ name, subjects }: { readonly name: string; readonly subjects: readonly string[] }) =>
  saved(name, subjects);

const whole = () => ({
  format: 2,
  version: '0.2.0',
  takenAt: '2026-11-26T00:00:00Z',
  cluster: { id: 'c', partitions: 2, format: 1, journals: true } as Record<string, unknown>,
  bucket: ofBucket(buckets.cluster.bucket).config,
  journals: Array.from({ length: journalBuckets }, (_, number) => ofBucket(buckets.journal.bucket(number))),
  partitions: [0, 1].map((number) => ofBucket(buckets.state.bucket(number))),
  events: ofStream(streams.events),
  eventsKnown: 0,
  audit: ofStream(streams.audit),
  auditKnown: 0,
  usage: ofStream(streams.usage),
  logs: ofStream(streams.logs),
});
type Manifest = ReturnType<typeof whole>;

/** A backup with a manifest whose checksum fits: the attacker writes both. */
function backup(t: Test, change: (manifest: Manifest) => void = () => {}): string {
  const folder = temporaryFolder(t);
  const manifest = whole();
  for (const { file } of [...manifest.journals, ...manifest.partitions]) writeFileSync(join(folder, file), content);
  for (const { name } of Object.values(streams)) writeFileSync(join(folder, `${name}.snapshot`), content);
  change(manifest);
  write(folder, JSON.stringify(manifest));
  return folder;
}
function write(folder: string, text: string): void {
  writeFileSync(join(folder, 'manifest.json'), text);
  writeFileSync(join(folder, 'manifest.sha256'), `${sha256(text)}  manifest.json\n`);
}
const read = (folder: string) => within(readBackup(folder), 20_000, 'the look at the backup');

t.test('a backup as it was made is read', async (t) => {
  t.match(await read(backup(t)), { isChecked: true });
});

t.test('files that are none, or too large', async (t) => {
  const refused: Record<string, [change: (path: string) => void, file: string, why: RegExp]> = {
    'a device without an end': [(path) => symlinkSync('/dev/zero', path), 'KV_state-0.snapshot', /no regular file/],
    'a pipe without a writer': [(path) => execFileSync('mkfifo', [path]), 'KV_state-1.snapshot', /no regular file/],
    'a folder': [(path) => mkdirSync(path), 'EVENTS.snapshot', /no regular file/],
    'a link to a secret': [(path) => symlinkSync('/etc/hostname', path), 'AUDIT.snapshot', /bytes instead|damaged/],
    'a file with holes': [
      (path) => {
        writeFileSync(path, content);
        truncateSync(path, 2 ** 40);
      },
      'LOGS.snapshot',
      /bytes instead/,
    ],
    'a manifest that fills the memory': [
      (path) => {
        writeFileSync(path, '{');
        truncateSync(path, manifestBytesMax + 1);
      },
      'manifest.json',
      /bytes: use another copy/,
    ],
    'a manifest that is a device': [(path) => symlinkSync('/dev/zero', path), 'manifest.json', /no regular file/],
    'a checksum that is a device': [(path) => symlinkSync('/dev/zero', path), 'manifest.sha256', /no regular file/],
  };
  for (const [name, [change, file, why]] of Object.entries(refused)) {
    const folder = backup(t);
    rmSync(join(folder, file));
    change(join(folder, file));
    await t.rejects(read(folder), { name: 'BackupError', message: why }, name);
  }
});

t.test('paths out of the folder', async (t) => {
  for (const file of ['../../etc/shadow', '/etc/shadow', 'a/../b.snapshot', 'x\u0000.snapshot', 'x.snapshot\n']) {
    await t.rejects(
      read(backup(t, ({ partitions }) => (partitions[0]!.file = file))),
      { name: 'BackupError', message: /manifest\.json can't be read/ },
      JSON.stringify(file),
    );
  }
});

t.test('streams in the place of others, and configurations that reach beyond theirs', async (t) => {
  const refused: Record<string, (manifest: Manifest) => void> = {
    'another name': ({ partitions }) => (partitions[0]!.config['name'] = 'KV_members'),
    'a partition twice': ({ partitions }) => (partitions[1] = partitions[0]!),
    'events as the audit': (manifest) => (manifest.audit = manifest.events),
    'all subjects': ({ logs }) => (logs.config['subjects'] = ['>']),
    'sessions of hosts, too': ({ usage }) => (usage.config['subjects'] = ['usage.>', 'agent.>']),
    'no subjects': ({ events }) => delete events.config['subjects'],
    'a copy elsewhere': ({ events }) => (events.config['republish'] = { src: '>', dest: 'host.h.log.{{wildcard(1)}}' }),
    'a mirror': ({ partitions }) => (partitions[0]!.config['mirror'] = { name: 'KV_state-1' }),
    'other sources': ({ audit }) => (audit.config['sources'] = [{ name: 'EVENTS' }]),
    'other subjects inside': ({ logs }) => (logs.config['subject_transform'] = { src: '>', dest: 'audit.>' }),
    'another bucket of the cluster': ({ bucket }) => (bucket['name'] = 'KV_state-0'),
    'journals without end': ({ journals }) => {
      journals.push(...Array.from({ length: 100 }, () => journals[0]!));
    },
  };
  for (const [name, change] of Object.entries(refused)) {
    await t.rejects(read(backup(t, change)), { name: 'BackupError', message: /use another backup/ }, name);
  }
});

t.test('claims of the manifest about itself', async (t) => {
  const folder = backup(t);
  write(folder, JSON.stringify({ ...whole(), __proto__: null, constructor: { prototype: { polluted: true } } }));
  await t.rejects(read(folder), { name: 'BackupError' }, 'a field that is not known');
  write(folder, JSON.stringify(whole()).replace('{', '{"__proto__":{"polluted":true},'));
  await read(folder).catch(() => undefined);
  t.notOk('polluted' in {}, 'prototypes stay as they are');
  write(folder, '['.repeat(100_000));
  await t.rejects(read(folder), { name: 'BackupError' }, 'levels without end');
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ ...whole(), takenAt: 'later' }));
  await t.rejects(read(folder), { name: 'BackupError', message: /damaged/ }, 'a checksum of another manifest');
});
