/** Backup and restore on a real NATS server. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { jetstreamManager } from '@nats-io/jetstream';
import t, { type Test } from 'tap';
import { joinCluster } from '../../../actors/cluster.ts';
import { compareAndSet } from '../../../lib/nats/kv-keys.ts';
import { records } from '../../../actors/domain/domain.ts';
import { batchWrites } from '../../../actors/runtime/journal/checkpoint.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import { RecordsDigest } from '../../../actors/runtime/journal/digest.ts';
import { backUpCluster } from '../../../cli/backup/cluster.ts';
import { readBackup, savedStreams, type Manifest } from '../../../cli/backup/folder.ts';
import { api, restoreStream, saveStream, streamInfo } from '../../../cli/backup/stream.ts';
import { startNatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { repositoryRoot } from '../../../dev/paths.ts';
import { restoreCluster, type Restored, type RestoreOptions } from '../../../cli/restore/cluster.ts';
import { run } from '../../../dev/process/run.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { bucketStream, buckets, journalBuckets, keys } from '../../../schemas/records/buckets.ts';
import { restoredCluster, announcedEpoch, type Cluster } from '../../../schemas/records/cluster.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { controlPlane } from '../actors/support.ts';
import { skipWithoutPrivateEngine } from '../../support/servers.ts';
import { tenantCommit } from '../../actors/support/commits.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { connectTo } from '../../e2e/support/programs.ts';

const natsFolder = temporaryFolder(t);
const nats = await startNats({ dir: natsFolder });
t.teardown(() => nats.stop());
const nc = await controlPlane(nats);
t.teardown(() => nc.close());

const dayMs = 24 * 3600 * 1000;
const partitions = 2;
const stateKey = (partition: number, key: string): string => `$KV.${buckets.state.bucket(partition)}.${key}`;

async function put(subject: string, value: string, head: Record<string, string> = {}): Promise<number> {
  const given = headers();
  for (const [name, text] of Object.entries(head)) given.set(name, text);
  const ack = (await nc.request(subject, value, { headers: given, timeout: 5000 })).json<{
    seq?: number;
    error?: object;
  }>();
  if (ack.seq === undefined) throw new Error(`${subject}: ${JSON.stringify(ack.error)}`);
  return ack.seq;
}

interface Stored {
  readonly subject: string;
  readonly seq: number;
  readonly data?: string;
  readonly hdrs?: string;
  readonly time: string;
}

/** Every message that the server has in a stream. */
async function contentOf(name: string): Promise<Stored[]> {
  const info = await streamInfo(nc, name);
  const messages: Stored[] = [];
  for (let seq = info?.state.first_seq ?? 1; seq <= (info?.state.last_seq ?? 0); seq++) {
    const found = await api<{ message: Stored }>(nc, `STREAM.MSG.GET.${name}`, { seq }).catch(() => undefined);
    if (found !== undefined) messages.push(found.message);
  }
  return messages;
}

/** Commits of a partition as a checkpoint leaves them: key and value. */
function checkpointed(commits: number): (readonly [key: string, value: string])[] {
  const all = Array.from({ length: commits }, (_, index) => tenantCommit(index + 1));
  const writes = batchWrites(all, new RecordsDigest(records), (number) => ({ number, journals: [] }));
  return writes.map(({ key, value }) => [key, String(value)]);
}

async function destroy(connection: NatsConnection = nc): Promise<void> {
  const jsm = await jetstreamManager(connection);
  for await (const name of jsm.streams.names()) await jsm.streams.delete(name);
  if (connection === nc) await waitForRemovedStreams();
}

/**
 * Waits until the server has removed deleted streams from its disk. It renames the folder of a
 * deleted stream to `.<stream>`, answers, and removes the folder later (nats-server 2.15). If a
 * stream of the same name is created and deleted meanwhile, the server refuses to create a third.
 */
async function waitForRemovedStreams(): Promise<void> {
  const accounts = join(natsFolder, 'jetstream', 'jetstream');
  const leftovers = (): string[] =>
    namesIn(accounts).flatMap((account) =>
      namesIn(join(accounts, account, 'streams')).filter((name) => name.startsWith('.')),
    );
  const deadlineMs = performance.now() + 60_000;
  while (leftovers().length > 0) {
    if (performance.now() > deadlineMs) throw new Error(`still on the disk: ${leftovers().join()}`);
    await sleep(10);
  }
}

/** The names in a folder; none if the server removes the folder meanwhile. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** A cluster of two partitions; the first had an owner, which made two commits. */
async function freshCluster(): Promise<Cluster> {
  await destroy();
  const cluster = await joinCluster(nc, { partitions, replicas: 1, newId: randomUUID });
  await put(stateKey(0, keys.epoch), encodeValue({ token: 'a', owner: 'former', takenAtMs: 1 }));
  for (const [key, value] of checkpointed(2)) await put(stateKey(0, key), value);
  await put('event.acme.c', JSON.stringify([{ id: '0-1-0' }]));
  await put('event.acme.c', JSON.stringify([{ id: '0-2-0' }]));
  await put('host.h1.log.acme.c', 'a line');
  return cluster;
}

const backUp = (folder: string, onSaved: () => void = () => {}): Promise<Manifest> =>
  backUpCluster(nc, { folder, withLogs: true, clock: systemClock, onSaved });

const restore = (folder: string, more: Partial<RestoreOptions> = {}): Promise<Restored> =>
  restoreCluster(nc, {
    folder,
    replace: false,
    replicas: undefined,
    clock: systemClock,
    onChecked: () => {},
    onRestored: () => {},
    ...more,
  });

const joinRestored = (): Promise<Cluster> => joinCluster(nc, { partitions, replicas: 1, newId: randomUUID });
const newFolder = (t: Test): string => join(temporaryFolder(t), 'backup');

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

const journals = Array.from({ length: journalBuckets }, (_, number) => buckets.journal.bucket(number));

t.test('a cluster is restored to an empty server, twice', async (t) => {
  const folder = newFolder(t);
  const cluster = await freshCluster();
  const before = await contentOf('KV_state-0');
  const manifest = await backUp(folder);
  t.same(
    savedStreams(manifest).map(({ config }) => config.name),
    [...journals.map(bucketStream), 'KV_state-0', 'KV_state-1', 'EVENTS', 'AUDIT', 'USAGE', 'LOGS'],
  );
  t.same(readdirSync(folder).sort(), [
    'AUDIT.snapshot',
    'EVENTS.snapshot',
    ...journals.map((bucket) => `${bucketStream(bucket)}.snapshot`),
    'KV_state-0.snapshot',
    'KV_state-1.snapshot',
    'LOGS.snapshot',
    'USAGE.snapshot',
    'manifest.json',
    'manifest.sha256',
  ]);
  await destroy();
  const first = await restore(folder);
  t.match(await joinRestored(), { id: cluster.id, partitions });
  t.match(first.partitions, [
    { kind: 'loads', lastEntry: 2 },
    { kind: 'loads', lastEntry: 0 },
  ]);
  const after = await contentOf('KV_state-0');
  const isEpoch = ({ subject }: Stored): boolean => subject === stateKey(0, keys.epoch);
  t.same(
    after.filter((message) => !isEpoch(message)),
    before.filter((message) => !isEpoch(message)),
  );
  const epochs = [before, after].map((content) => content.find(isEpoch));
  t.equal(epochs[1]?.data, epochs[0]?.data, 'the epoch record still names the former owner');
  t.ok((epochs[1]?.seq ?? 0) > (before.at(-1)?.seq ?? 0), 'the former owner is fenced off');

  await destroy();
  const second = await restore(folder);
  t.ok((second.cluster.incarnation ?? 0) > (first.cluster.incarnation ?? 0), 'a later incarnation');
});

t.test('announced epochs rise, in whatever order backups are restored', (t) => {
  const fresh: Cluster = { id: 'c', partitions: 1, format: 1, incarnation: 0 };
  const atMs = Date.parse('2026-06-01');
  const announced: number[] = [announcedEpoch(fresh, 0, 5_000_000_000)];
  const late = restoredCluster(fresh, undefined, [4_000_000_000], atMs);
  announced.push(announcedEpoch(late, 0, 4_000_000_001), announcedEpoch(late, 0, 4_000_900_000));
  // Ten seconds later, an older backup that does not know of the restore before.
  const early = restoredCluster(fresh, undefined, [17], atMs + 10_000);
  announced.push(announcedEpoch(early, 0, 18));
  // A backup of the result, restored on a machine whose clock is a day behind.
  const behind = restoredCluster(early, undefined, [17], atMs - dayMs);
  announced.push(announcedEpoch(behind, 0, 18));
  t.same(
    announced,
    [...announced].sort((left, right) => left - right),
  );
  t.equal(new Set(announced).size, announced.length);
  const last = restoredCluster(fresh, undefined, [0], Date.parse('2100-01-01'));
  t.ok(Number.isSafeInteger(announcedEpoch(last, 0, 2 ** 46)));
  t.end();
});

t.test('a restore deletes events and lines that no restored partition knows', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  let saved = 0;
  // Published after the first partition is saved and before the events are.
  const published: Promise<number>[] = [];
  await backUp(folder, () => {
    if (saved++ > 0) return;
    published.push(put('event.acme.c', JSON.stringify([{ id: '0-3-0' }, { id: '0-3-1' }])));
    published.push(put('event.acme.c', JSON.stringify([{ id: '0-2-0' }])));
    published.push(put('audit.tenant.acme', JSON.stringify([{ id: '0-2-0' }])));
    published.push(put('audit.tenant.acme', JSON.stringify([{ id: '0-2-1' }, { id: '0-3-0' }])));
  });
  await Promise.all(published);
  await destroy();
  t.match(await restore(folder), { eventsDropped: 1, linesDropped: 1 });
  const ids = async (stream: string): Promise<string[]> =>
    (await contentOf(stream)).map(({ data }) => Buffer.from(data ?? '', 'base64').toString());
  t.same(await ids('AUDIT'), ['[{"id":"0-2-0"}]']);
  t.same(await ids('EVENTS'), ['[{"id":"0-1-0"}]', '[{"id":"0-2-0"}]', '[{"id":"0-2-0"}]']);
});

t.test('a restore replaces an existing cluster only with --replace', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await put(stateKey(1, 'tenant.later'), 'made after the backup');
  const before = await contentOf('KV_state-1');
  await t.rejects(restore(folder), { message: /KV_cluster.*KV_state-0.*--replace/ });
  t.same(await contentOf('KV_state-1'), before);
  await restore(folder, { replace: true });
  t.same(await contentOf('KV_state-1'), []);
  t.match(await joinRestored(), { partitions });
});

t.test('a restore deletes partitions that the restored cluster does not have', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await destroy();
  await joinCluster(nc, { partitions: 4, replicas: 1, newId: randomUUID });
  await t.rejects(restore(folder, { replace: true }), { message: /the backup is of cluster .*--other-cluster/ });
  t.not(await streamInfo(nc, 'KV_state-3'), undefined, 'another cluster is left as it is');
  await restore(folder, { replace: true, otherCluster: true });
  t.equal(await streamInfo(nc, 'KV_state-3'), undefined);
});

t.test('what the servers cannot take is refused before anything is deleted', async (t) => {
  const folder = newFolder(t);
  const cluster = await freshCluster();
  await backUp(folder);
  const before = await contentOf('KV_state-0');
  await t.rejects(restore(folder, { replace: true, replicas: 3 }), {
    message: /can't keep 3 replicas.*nothing was changed.*--replicas 1/,
  });
  replaceInManifest(folder, /"max_bytes": \d+/, `"max_bytes": ${2 ** 52}`);
  await t.rejects(restore(folder, { replace: true }), { message: /lack storage.*restart nats-server/ });
  t.same(await contentOf('KV_state-0'), before);
  t.match(await joinRestored(), { id: cluster.id }, 'and the cluster serves on');
});

t.test('a manifest is under a checksum; one of the last release is restored without', async (t) => {
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

t.test('a restore is refused while an actors process runs', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  const before = await contentOf('KV_state-0');

  t.test('seen by its subscription', async (t) => {
    const other = await controlPlane(nats);
    t.teardown(() => other.close());
    other.subscribe(subjects.directoryRefresh, { callback: () => {} });
    await other.flush();
    await t.rejects(restore(folder, { replace: true }), { message: /an actors process is running/ });
  });

  t.test('seen by the renewals of its lease', async (t) => {
    const renewing = setInterval(() => nc.publish(`$KV.${buckets.members.bucket}.member.m`, 'live'), 250);
    t.teardown(() => clearInterval(renewing));
    await t.rejects(restore(folder, { replace: true }), { message: /renews its lease/ });
  });

  t.same(await contentOf('KV_state-0'), before);
});

function replaceInManifest(folder: string, found: string | RegExp, by: string): void {
  const path = join(folder, 'manifest.json');
  writeFileSync(path, readFileSync(path, 'utf8').replace(found, by));
  // As by the program that wrote it; without, the damage is found by the checksum alone.
  const sum = createHash('sha256').update(readFileSync(path)).digest('hex');
  writeFileSync(join(folder, 'manifest.sha256'), `${sum}  manifest.json\n`);
}

t.test('a damaged backup is refused before the restore changes anything', async (t) => {
  const damage: Record<string, { readonly how: (folder: string) => void; readonly message: RegExp }> = {
    'a truncated file': {
      how: (folder) => truncateSync(join(folder, 'KV_state-0.snapshot'), 100),
      message: /KV_state-0.snapshot has 100 bytes/,
    },
    'a flipped bit': {
      how: (folder) => {
        const path = join(folder, 'EVENTS.snapshot');
        const bytes = readFileSync(path);
        bytes[20] = (bytes[20] ?? 0) ^ 1;
        writeFileSync(path, bytes);
      },
      message: /EVENTS.snapshot is damaged/,
    },
    'a manifest of a later format': {
      how: (folder) => replaceInManifest(folder, '"format": 2', '"format": 3'),
      message: /has format 3; this release reads format 2: restore it with the release that made it/,
    },
    'a manifest of the format of release 0.1.0': {
      how: (folder) => replaceInManifest(folder, '"format": 2', '"format": 1'),
      message: /has format 1; this release reads format 2: restore it with the release that made it/,
    },
    'a backup of a cluster that release 0.1.0 made': {
      how: (folder) => replaceInManifest(folder, /,\s*"journals": true/, ''),
      message: /^release 0\.1\.0 or an older one made this cluster, and this release reads clusters that 0\.2\.0 made/,
    },
    'a manifest that names a file outside the folder': {
      how: (folder) => replaceInManifest(folder, '"LOGS.snapshot"', '"../LOGS.snapshot"'),
      message: /manifest.json can't be read/,
    },
    'an empty manifest': {
      how: (folder) => truncateSync(join(folder, 'manifest.json'), 0),
      message: /manifest.json can't be read/,
    },
  };
  for (const [what, { how, message }] of Object.entries(damage)) {
    const folder = newFolder(t);
    await freshCluster();
    await backUp(folder);
    how(folder);
    await t.rejects(restore(folder, { replace: true }), { message }, what);
    t.match(await contentOf('KV_state-0'), { length: 5 }, what);
  }
});

t.test('an interrupted restore is run again', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await destroy();
  let restored = 0;
  const breaking = restore(folder, {
    onRestored: () => {
      if (++restored === 2) throw new Error('the power went');
    },
  });
  await t.rejects(breaking, { message: 'the power went' });
  await t.rejects(joinRestored(), { message: /is being restored/ }, 'no program serves a half-restored cluster');
  await t.rejects(backUp(newFolder(t)), { message: /this cluster is being restored/ });
  await restore(folder);
  t.match(await joinRestored(), { partitions });
  t.match(await contentOf('KV_state-0'), { length: 5 });
});

t.test('one of two concurrent restores is refused', async (t) => {
  const folder = newFolder(t);
  await freshCluster();
  await backUp(folder);
  await destroy();
  let secondEnds: Promise<unknown> = Promise.resolve();
  const isSlow = new Promise<void>((resolve) => {
    secondEnds = restore(folder, {
      onChecked: () => resolve(),
    }).catch((error: unknown) => error);
  });
  const first = restore(folder).catch((error: unknown) => error);
  await isSlow;
  const outcomes = await Promise.all([first, secondEnds]);
  const refused = outcomes.filter((outcome) => outcome instanceof Error);
  t.equal(refused.length, 1, String(refused));
  t.match(await joinRestored(), { partitions });
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
  run(process.execPath, [join(repositoryRoot, 'dist', 'cli', name), ...args], {
    deadlineMs: 60_000,
    env: { PATH: process.env['PATH'], NATS_URLS: url, NATS_CREDS_FILE: credsFile },
  });

t.test('the commands print and exit as an operator expects', async (t) => {
  await freshCluster();
  const folder = newFolder(t);
  const backup = await program(nats, 'backup/backup.js', [folder, '--without-logs']);
  t.match(backup, { code: 0, stdout: /LOGS: left out/ });
  t.notOk(existsSync(join(folder, 'LOGS.snapshot')));
  t.equal((await readBackup(folder)).manifest.logs, undefined);
  const refused = await program(nats, 'restore/restore.js', [folder]);
  t.match(refused, { code: 1, stdout: /restore failed: .*--replace/ });
  const restored = await program(nats, 'restore/restore.js', [folder, '--replace', '--replicas', '1']);
  t.match(restored, { code: 0, stdout: /Restored cluster/ });
  t.match(await contentOf('LOGS'), { length: 1 }, 'a stream that the backup does not hold stays');
  t.match(await program(nats, 'restore/restore.js', [folder, '--replicas', '2']), { code: 2, stdout: /usage/ });
  const absent = await program({ ...nats, url: 'nats://127.0.0.1:1' }, 'backup/backup.js', [`${folder}-2`]);
  t.match(absent, { code: 1, stdout: /backup failed: cannot connect to NATS at nats:\/\/127.0.0.1:1/ });
});

t.test('a cluster of three servers is restored with three replicas, and with one', async (t) => {
  const folder = newFolder(t);
  const three = await startNatsCluster({ dir: temporaryFolder(t) });
  t.teardown(() => three.stop());
  const cp = await connectTo(three);
  t.teardown(() => cp.close());
  const cluster = await joinCluster(cp, { partitions, replicas: 3, newId: randomUUID });
  const epoch = encodeValue({ token: 'a', owner: 'former', takenAtMs: 1 });
  await compareAndSet(cp, stateKey(1, keys.epoch), epoch, 0, { timeoutMs: 5_000 });
  for (const [key, value] of checkpointed(1)) await compareAndSet(cp, stateKey(1, key), value, 0, { timeoutMs: 5_000 });
  const options = { folder, withLogs: true, replace: true, clock: systemClock, onSaved: () => {} };
  await backUpCluster(cp, options);
  for (const replicas of [undefined, 1]) {
    const restored = await restoreCluster(cp, { ...options, replicas, onChecked: () => {}, onRestored: () => {} });
    t.equal(restored.cluster.id, cluster.id);
    t.match(restored.partitions, [{}, { kind: 'loads', lastEntry: 1 }]);
    t.match(await streamInfo(cp, 'KV_state-1'), { config: { num_replicas: replicas ?? 3 } });
  }
});
