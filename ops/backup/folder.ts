/**
 * A backup on disk: a folder with one file for each stream, and `manifest.json`, which describes
 * them. The folder gets its name only after everything in it is on disk.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import Type, { type Static } from 'typebox';
import { messageOf } from '../../lib/error-message.ts';
import { decodeJson, decoder } from '../../lib/decode.ts';
import { Cluster, refusalOf } from '../../schemas/records/cluster.ts';
import { MiB } from '../../schemas/limits/units.ts';
import { bucketPrefix, buckets, bucketStream, journalBuckets, streams } from '../../schemas/records/buckets.ts';
import { BackupError } from './error.ts';
import { StreamConfig, StreamState, digestOf, openRegular } from './stream.ts';

/** A manifest of 256 partitions has less than a tenth of it. */
export const manifestBytesMax = 8 * MiB;

export const SavedStream = Type.Object({
  /** A file name in the folder of the manifest. */
  file: Type.String({ pattern: '^[A-Za-z0-9_-]+\\.snapshot$' }),
  config: StreamConfig,
  state: StreamState,
  bytes: Type.Integer({ minimum: 0 }),
  sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
});
export type SavedStream = Static<typeof SavedStream>;

const backupFormat = 2;

const manifestFields = {
  format: Type.Literal(backupFormat),
  /** Version of the program that wrote the backup. */
  version: Type.String(),
  takenAt: Type.String(),
  /** The only record in the bucket `cluster`; `bucket` is the configuration of its stream. */
  cluster: Cluster,
  bucket: StreamConfig,
  /** The buckets of members' journals, saved before the partitions. */
  journals: Type.Array(SavedStream),
  /** One bucket for each partition, ordered by the partition's number. */
  partitions: Type.Array(SavedStream),
  events: SavedStream,
  /**
   * The last sequence of `EVENTS` before the first journal was saved. The saved journals and
   * partitions know every event up to here.
   */
  eventsKnown: Type.Integer({ minimum: 0 }),
  audit: SavedStream,
  /** The same of `AUDIT`. */
  auditKnown: Type.Integer({ minimum: 0 }),
  usage: SavedStream,
  /** Absent when the operator asked for a backup without log lines. */
  logs: Type.Optional(SavedStream),
};
/** A field that is not known may be one whose name was damaged. */
export const Manifest = Type.Object(manifestFields, { additionalProperties: false });
export type Manifest = Static<typeof Manifest>;

const manifestName = 'manifest.json';
/** In the form of `sha256sum`. */
const checksumName = 'manifest.sha256';
const checksumOf = (manifest: string | Uint8Array): string =>
  `${createHash('sha256').update(manifest).digest('hex')}  ${manifestName}\n`;
const decodeManifest = decoder(Manifest);

/** Streams that are only read, and come last in a restore. */
export const historyOf = ({ events, audit, usage, logs }: Manifest): SavedStream[] => [
  events,
  audit,
  usage,
  ...(logs === undefined ? [] : [logs]),
];

export const savedStreams = (manifest: Manifest): SavedStream[] => [
  ...manifest.journals,
  ...manifest.partitions,
  ...historyOf(manifest),
];

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Calls `fill` with a temporary folder for the streams' files, writes the manifest that `fill`
 * resolves to, and renames the folder to `path`. On failure it removes the temporary folder.
 * @throws BackupError if `path` exists and is not an empty folder.
 */
export async function writeBackup(path: string, fill: (folder: string) => Promise<Manifest>): Promise<Manifest> {
  const target = resolve(path);
  const present = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new BackupError(`${target}: ${error.message}`, error);
  });
  if (present.length > 0) throw new BackupError(`${target} is not empty: name a new or empty folder`);
  const unfinished = `${target}.unfinished-${process.pid}`;
  try {
    await mkdir(unfinished, { recursive: true, mode: 0o700 });
    const manifest = await fill(unfinished);
    const content = `${JSON.stringify(manifest, undefined, 2)}\n`;
    const how = { mode: 0o600, flush: true };
    await writeFile(join(unfinished, checksumName), checksumOf(content), how);
    await writeFile(join(unfinished, manifestName), content, how);
    await syncFolder(unfinished);
    await rename(unfinished, target);
    await syncFolder(dirname(target));
    return manifest;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error instanceof BackupError ? error : new BackupError(`${target}: ${messageOf(error)}`, error);
  }
}

/**
 * Reads the manifest, and checks the size and the SHA-256 of every file that it names.
 * `withoutHistory`: but for those of the history, which may be missing.
 * @throws BackupError if anything is missing or differs from what was written.
 */
export async function readBackup(
  path: string,
  { withoutHistory = false }: { readonly withoutHistory?: boolean } = {},
): Promise<{ readonly manifest: Manifest; /** True if the manifest has a checksum. */ readonly isChecked: boolean }> {
  const { manifest, isChecked } = await readManifest(path);
  const { cluster, partitions } = manifest;
  const refusal = refusalOf(cluster);
  if (refusal !== undefined) throw new BackupError(refusal);
  if (partitions.length !== cluster.partitions) {
    throw new BackupError(
      `the manifest in ${path} names ${partitions.length} of ${cluster.partitions} partitions: use another backup`,
    );
  }
  requirePlaces(path, manifest);
  const unread = new Set(withoutHistory ? historyOf(manifest) : []);
  for (const saved of savedStreams(manifest)) {
    if (unread.has(saved)) continue;
    const { file, bytes, sha256 } = saved;
    const found = await digestOf(join(path, file), bytes);
    if (found.bytes !== bytes)
      throw new BackupError(`${file} has ${found.bytes} bytes instead of ${bytes}: use another copy of the backup`);
    if (found.sha256 !== sha256)
      throw new BackupError(`${file} is damaged (wrong SHA-256): use another copy of the backup`);
  }
  return { manifest, isChecked };
}

/** Settings that a stream may not have: they copy to, or from, subjects of others. */
const reaching = ['mirror', 'sources', 'republish', 'subject_transform'] as const;

/**
 * Each stream must be the one of its place, with the subjects of that: restored under another name
 * it would replace what it does not belong to, and with other subjects it would collect what
 * programs say to each other.
 * @throws BackupError
 */
function requirePlaces(path: string, { bucket, journals, partitions, ...history }: Manifest): void {
  const ofBucket = (name: string) => ({ name: bucketStream(name), subjects: [`${bucketPrefix(name)}>`] });
  if (journals.length > journalBuckets) {
    throw new BackupError(`the manifest in ${path} names ${journals.length} journals: use another backup`);
  }
  const places: [StreamConfig, { readonly name: string; readonly subjects: readonly string[] }][] = [
    [bucket, ofBucket(buckets.cluster.bucket)],
    ...journals.map(({ config }, number) => [config, ofBucket(buckets.journal.bucket(number))] as (typeof places)[0]),
    ...partitions.map(({ config }, number) => [config, ofBucket(buckets.state.bucket(number))] as (typeof places)[0]),
    ...(['events', 'audit', 'usage'] as const).map(
      (name) => [history[name].config, streams[name]] as (typeof places)[0],
    ),
    ...(history.logs === undefined ? [] : [[history.logs.config, streams.logs] as (typeof places)[0]]),
  ];
  for (const [config, place] of places) {
    const isThere = config.name === place.name && JSON.stringify(config['subjects']) === JSON.stringify(place.subjects);
    const more = reaching.find((name) => config[name] !== undefined && config[name] !== null);
    if (isThere && more === undefined) continue;
    const what = more === undefined ? `another stream in the place of ${place.name}` : `${place.name} with ${more}`;
    throw new BackupError(`the manifest in ${path} has ${what}: use another backup`);
  }
}

/** @throws Error if it is no regular file, or a larger one */
async function readSmall(path: string): Promise<Buffer> {
  const file = await openRegular(path);
  try {
    const { size } = await file.stat();
    if (size > manifestBytesMax) throw new Error(`it has ${size} bytes: use another copy of the backup`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

async function readManifest(folder: string): Promise<{ readonly manifest: Manifest; readonly isChecked: boolean }> {
  const path = join(folder, manifestName);
  let bytes: Buffer;
  let checksum: string | undefined;
  try {
    bytes = await readSmall(path);
    checksum = await readSmall(join(folder, checksumName)).then(
      (text) => text.toString(),
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined;
        throw error;
      },
    );
  } catch (error) {
    throw new BackupError(`${path}: ${messageOf(error)}`, error);
  }
  try {
    const { format } = decodeJson(bytes) as { format?: unknown };
    if (format !== backupFormat)
      throw new BackupError(
        `the backup has format ${JSON.stringify(format)}; this release reads format ${backupFormat}: ` +
          'restore it with the release that made it',
      );
    if (checksum !== undefined && checksum !== checksumOf(bytes))
      throw new BackupError(`it is damaged (wrong SHA-256 in ${checksumName}): use another copy of the backup`);
    return { manifest: decodeManifest(bytes), isChecked: checksum !== undefined };
  } catch (error) {
    throw new BackupError(`${path} can't be read: ${messageOf(error)}`, error);
  }
}
