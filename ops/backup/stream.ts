/**
 * Saves one stream to a file and restores it, by JetStream's snapshot protocol, which keeps
 * sequences, times, headers and TTLs. The client library has no call for it.
 * - Snapshot: the server sends chunks and waits for acknowledgements, so that at most a window is
 *   in flight. An empty message ends the snapshot; it carries a status if the server gave up.
 * - Restore: each chunk is a request. An empty request ends the restore, and its answer holds the
 *   state of the new stream.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { createInbox, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import Type, { type Static } from 'typebox';
import { messageOf } from '../../lib/error-message.ts';
import { isNoResponders } from '../../lib/nats/kv-keys.ts';
import { within } from '../../lib/time/backoff.ts';
import { retry } from '../../lib/time/retry.ts';
import { BackupError } from './error.ts';
import { limits } from '../../schemas/limits.ts';
import { KiB, MiB, minutes, seconds } from '../../schemas/limits/units.ts';

/** Bytes of one message of a stream that is saved or restored. */
const backupChunkBytes = 128 * KiB;
/** Unacknowledged bytes of a stream that is being saved, in flight and in memory. */
const backupWindowBytes = 4 * MiB;
/** The wait for the next chunk, or its acknowledgement. */
const backupChunkMs = 30 * seconds;
/**
 * The wait for the first answer, before which the server reads the whole stream (`jsck`), and for
 * that after a restore.
 */
const backupWholeMs = 10 * minutes;
/**
 * Attempts to send a chunk that no server accepts yet. With the pauses they take less than the 5
 * s after which a server gives up an idle restore.
 */
const restoreChunkAttempts = 80;
const restoreChunkPauseMs = 50;
/** Attempts to find the leader of a restored stream. */
const restoreLeaderAttempts = 60;
const restoreLeaderPauseMs = 500;

/** The fields of a stream's state that backup and restore read. */
export const StreamState = Type.Object({
  messages: Type.Integer({ minimum: 0 }),
  bytes: Type.Integer({ minimum: 0 }),
  first_seq: Type.Integer({ minimum: 0 }),
  last_seq: Type.Integer({ minimum: 0 }),
});
export type StreamState = Static<typeof StreamState>;

export const StreamConfig = Type.Intersect([
  Type.Object({ name: Type.String({ minLength: 1 }), num_replicas: Type.Integer({ minimum: 1 }) }),
  Type.Record(Type.String(), Type.Unknown()),
]);
export type StreamConfig = Static<typeof StreamConfig>;

export interface Snapshot {
  readonly config: StreamConfig;
  readonly state: StreamState;
  readonly bytes: number;
  readonly sha256: string;
}

interface ApiError {
  readonly code: number;
  readonly err_code?: number;
  readonly description: string;
}

const streamNotFound = 10059;

export class ApiRefusal extends BackupError {
  readonly error: ApiError;

  constructor(subject: string, error: ApiError) {
    super(`${subject}: ${error.description}`);
    this.error = error;
  }
}

/** @throws ApiRefusal if the server answers with an error. */
export async function api<T>(
  nc: NatsConnection,
  subject: string,
  request?: object,
  timeoutMs: number = limits.backupRequestMs,
): Promise<T> {
  const payload = request === undefined ? '' : JSON.stringify(request);
  const answer = await nc.request(`$JS.API.${subject}`, payload, { timeout: timeoutMs });
  return answerOf<T>(subject, answer);
}

function answerOf<T>(subject: string, message: Msg): T {
  const answer = message.json<T & { error?: ApiError }>();
  if (answer.error !== undefined) throw new ApiRefusal(subject, answer.error);
  return answer;
}

export interface StreamInfo {
  /** Another stream of the same name has another one. */
  readonly created: string;
  readonly config: StreamConfig;
  readonly state: StreamState;
  /** Absent on a server that is not clustered. */
  readonly cluster?: { readonly leader?: string; readonly replicas?: readonly { readonly name: string }[] };
}

export const isNotFound = (error: unknown): boolean =>
  error instanceof ApiRefusal && error.error.err_code === streamNotFound;

/** Returns undefined if the stream does not exist. */
export async function streamInfo(nc: NatsConnection, name: string): Promise<StreamInfo | undefined> {
  try {
    return await api<StreamInfo>(nc, `STREAM.INFO.${name}`);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Adds the path to the message of any error that `work` throws. */
async function withPath<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new BackupError(`${path}: ${messageOf(error)}`, error);
  }
}

/**
 * Writes the stream to a file as the stream is at one moment; publishers may go on. Resolves after
 * the file is synced to disk.
 */
export async function saveStream(nc: NatsConnection, name: string, path: string): Promise<Snapshot> {
  const file = await withPath(path, () => open(path, 'wx', 0o600));
  const chunks = nc.subscribe(createInbox());
  try {
    const { config, state } = await api<StreamInfo>(
      nc,
      `STREAM.SNAPSHOT.${name}`,
      {
        deliver_subject: chunks.getSubject(),
        chunk_size: backupChunkBytes,
        window_size: backupWindowBytes,
        no_consumers: true,
        jsck: true,
      },
      backupWholeMs,
    );
    const written = await writeChunks(name, chunks, (chunk) => withPath(path, () => file.appendFile(chunk)));
    await withPath(path, () => file.sync());
    return { config, state, ...written };
  } finally {
    chunks.unsubscribe();
    await file.close();
  }
}

async function writeChunks(
  name: string,
  chunks: Subscription,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  const arriving = chunks[Symbol.asyncIterator]();
  let bytes = 0;
  for (let index = 1; ; index++) {
    const next = await within(arriving.next(), backupChunkMs, `chunk ${index} of ${name}`);
    if (next.done === true)
      throw new BackupError(`${name}: the connection to NATS closed before the snapshot was complete`);
    const { data, reply, headers } = next.value;
    if (data.length === 0) {
      if (headers !== undefined && headers.code >= 300) {
        throw new BackupError(`${name}: the server ended the snapshot: ${headers.code} ${headers.description}`);
      }
      return { bytes, sha256: hash.digest('hex') };
    }
    // The reply subject ends with the number of the chunk. The last chunk has no reply subject.
    const number = reply === undefined || reply === '' ? index : Number(reply.split('.').at(-1));
    if (number !== index) throw new BackupError(`${name}: got chunk ${number} instead of ${index}: back up again`);
    await write(data);
    hash.update(data);
    bytes += data.length;
    next.value.respond();
  }
}

/**
 * Opens a file of a backup. A pipe would wait for a writer, and a device never ends.
 * @throws Error if it is no regular file
 */
export async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Error('it is no regular file: use another copy of the backup');
}

async function* chunksOf(path: string): AsyncGenerator<Buffer, void, void> {
  let file: FileHandle | undefined;
  try {
    file = await withPath(path, () => openRegular(path));
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(backupChunkBytes), 0, backupChunkBytes);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file?.close();
  }
}

/**
 * The size and the digest of a file, computed as `saveStream` computes them. One of more than
 * `most` bytes is read no further.
 */
export async function digestOf(
  path: string,
  most: number,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunksOf(path)) {
    hash.update(chunk);
    bytes += chunk.length;
    if (bytes > most) break;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/**
 * In a cluster of NATS servers another server may do the restore, and ours may not know yet that it
 * subscribes to `target`. "No responders" means that the chunk was not delivered, so sending it
 * again is safe.
 */
const sendChunk = (nc: NatsConnection, target: string, chunk: Buffer): Promise<Msg> =>
  retry(() => nc.request(target, chunk, { timeout: backupChunkMs }), {
    pauseMs: () => restoreChunkPauseMs,
    onFailure: (error, attempt) => {
      if (attempt + 1 === restoreChunkAttempts || !isNoResponders(error)) throw error;
    },
  });

/** Advice for a server that gives up because it syncs each message that it restores. */
export const slowDisk =
  'start nats-server without "sync_interval: always", restore, and start it with it again (docs/backup.md, ' +
  '"Restore time")';

/** Creates the stream from the file. No stream of that name may exist. */
export async function restoreStream(
  nc: NatsConnection,
  { config, state }: Pick<Snapshot, 'config' | 'state'>,
  path: string,
): Promise<StreamState> {
  const { name } = config;
  const subject = `STREAM.RESTORE.${name}`;
  const { deliver_subject: target } = await api<{ deliver_subject: string }>(nc, subject, { config, state });
  for await (const chunk of chunksOf(path)) {
    const answer = await sendChunk(nc, target, chunk);
    // An answer with content says why the server can't continue.
    if (answer.data.length > 0) {
      const hint = answer.string().includes('closed pipe') ? `; if its disk is slow: ${slowDisk}` : '';
      throw new BackupError(`${name}: the server ended the restore: ${answer.string()}${hint}`);
    }
  }
  const end = answerOf<StreamInfo>(subject, await nc.request(target, '', { timeout: backupWholeMs }));
  await waitForLeader(nc, name);
  return end.state;
}

/** In a cluster of NATS servers a new stream answers only after its replicas elect a leader. */
async function waitForLeader(nc: NatsConnection, name: string): Promise<void> {
  const look = async (attempt: number): Promise<true | undefined> => {
    const { cluster } = await api<StreamInfo>(nc, `STREAM.INFO.${name}`, undefined, restoreLeaderPauseMs);
    if (cluster === undefined || (cluster.leader ?? '') !== '') return true;
    if (attempt + 1 < restoreLeaderAttempts) return undefined;
    throw new BackupError(`${name} is restored but has no leader: check the NATS servers, then restore again`);
  };
  await retry(look, {
    pauseMs: () => restoreLeaderPauseMs,
    onFailure: (error, attempt) => {
      if (attempt + 1 >= restoreLeaderAttempts) throw error;
    },
  });
}
