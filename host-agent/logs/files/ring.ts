/**
 * The files of one log: the engine appends to the first, and renames all of them when it is full,
 * `…-json.log` to `…-json.log.1` and so on. The oldest goes.
 */
import { open, stat, type FileHandle } from 'node:fs/promises';
import { sleep } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { beginning, type FilePlace } from './place.ts';
import { RecordReader, timeAtEnd } from './records.ts';

/** There are no files at this path that this program can read. */
class NoLogFiles extends Error {}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** `true` if the files cannot be read, now or on this host; the engine may still give the log. */
export const isUnreadable = (error: unknown): boolean =>
  error instanceof NoLogFiles || codeOf(error) === 'EACCES' || codeOf(error) === 'EPERM';

interface Named {
  readonly path: string;
  readonly file: string;
  readonly size: number;
}

export interface OpenFile {
  readonly file: string;
  readonly handle: Pick<FileHandle, 'stat' | 'read' | 'close'>;
}

/** The path of a container's log, below the engine's data folder. */
export const logPathOf = (rootDir: string, dockerId: string): string =>
  `${rootDir}/containers/${dockerId}/${dockerId}-json.log`;

/** `undefined` while the engine renames it. */
export const newestOf = (path: string): Promise<Named | undefined> => named(path);

async function named(path: string): Promise<Named | undefined> {
  try {
    const { dev, ino, size } = await stat(path, { bigint: true });
    return { path, file: `${dev}:${ino}`, size: Number(size) };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function look(path: string): Promise<Named[]> {
  const names = Array.from({ length: limits.engineLogFiles }, (_, at) => (at === 0 ? path : `${path}.${at}`));
  const found = await Promise.all(names.map(named));
  return found.flatMap((one) => one ?? []);
}

const key = (files: readonly Named[]): string => files.map(({ path, file }) => `${path} ${file}`).join('\n');

/**
 * The files, the newest first; at least one. The names are read twice until both agree, so no
 * rotation was under way.
 * @throws NoLogFiles, also if the engine compresses rotated files
 */
export async function filesOf(path: string): Promise<Named[]> {
  if ((await named(`${path}.1.gz`)) !== undefined) throw new NoLogFiles(`${path}.1.gz is compressed`);
  const files = await agreed(path);
  if (files.length === 0) throw new NoLogFiles(`there is no ${path}`);
  return files;
}

async function agreed(path: string): Promise<Named[]> {
  let before = await look(path);
  for (let attempt = 0; attempt < limits.logFileAttempts; attempt++) {
    const now = await look(path);
    if (key(now) === key(before)) return now;
    before = now;
  }
  return before;
}

/** `undefined` if the name stands for another file by now. */
export async function openNamed({ path, file }: Pick<Named, 'path' | 'file'>): Promise<OpenFile | undefined> {
  try {
    const handle = await open(path, 'r');
    return await keptIf(handle, async () => {
      const { dev, ino } = await handle.stat({ bigint: true });
      return `${dev}:${ino}` === file ? { file, handle } : undefined;
    });
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

export async function readAt({ handle }: OpenFile, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  const { bytesRead } = await handle.read(bytes, 0, length, offset);
  return bytes.subarray(0, bytesRead);
}

export interface Found {
  readonly own: OpenFile;
  readonly place: FilePlace;
  /** `true` if the place is right behind the line in question. */
  readonly isExact: boolean;
}

/**
 * Opens the file of a place, and otherwise the file in which `fromTs` lies, at a record before it:
 * all records of that time and later are behind it. Without both, the oldest file at its beginning.
 */
export async function find(path: string, place: FilePlace | undefined, fromTs: string | undefined): Promise<Found> {
  for (let attempt = 0; attempt < limits.logFileAttempts; attempt++) {
    const files = await filesOf(path);
    const found = (await findPlace(files, place)) ?? (await findTime(files, fromTs));
    if (found !== undefined) return found;
    await sleep(limits.logFilePauseMs);
  }
  throw changing(path);
}

/** The error for more rotations than can be followed. */
export const changing = (path: string): Error => new Error(`the files of ${path} change all the time`);

async function findPlace(files: readonly Named[], place: FilePlace | undefined): Promise<Found | undefined> {
  if (place === undefined || place.offset === 0) return undefined;
  // A device's number may change when its machine starts again, so a file is known by its content.
  const likely = [...files].sort((one, other) => Number(other.file === place.file) - Number(one.file === place.file));
  for (const each of likely) {
    const own = each.size < place.offset ? undefined : await openNamed(each);
    if (own === undefined) continue;
    const from = Math.max(0, place.offset - limits.logRecordTimeBytes);
    const found = await keptIf(own.handle, async () =>
      timeAtEnd(await readAt(own, from, place.offset - from)) === place.ts
        ? { own, place: { ...place, file: own.file }, isExact: true }
        : undefined,
    );
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Closes the file unless something is found in it, also where it cannot be read. */
async function keptIf<T>(
  handle: Pick<FileHandle, 'close'>,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  let found: T | undefined;
  try {
    return (found = await look());
  } finally {
    if (found === undefined) await handle.close();
  }
}

async function findTime(files: readonly Named[], fromTs: string | undefined): Promise<Found | undefined> {
  for (const [index, each] of files.entries()) {
    const own = await openNamed(each);
    if (own === undefined) return undefined;
    const found = await keptIf<Found>(own.handle, async () => {
      const offset = fromTs === undefined ? undefined : await offsetBefore(own, each.size, fromTs);
      if (offset !== undefined) return { own, place: beginning(own.file, offset), isExact: false };
      return index === files.length - 1 ? { own, place: beginning(own.file), isExact: false } : undefined;
    });
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The beginning of a record before that time; `undefined` if this file has none. */
async function offsetBefore(own: OpenFile, size: number, ts: string): Promise<number | undefined> {
  for (let to = size; to > 0; to -= limits.logFileReadBytes) {
    const from = Math.max(0, to - limits.logFileReadBytes);
    const bytes = await readAt(own, from, to - from);
    const start = from === 0 ? 0 : bytes.indexOf(0x0a) + 1;
    if (from > 0 && start === 0) continue;
    const [line] = new RecordReader(beginning(own.file)).push(bytes.subarray(start));
    if (line !== undefined && line.ts < ts) return from + start;
  }
  return undefined;
}
