/**
 * One stream to a file and back, by JetStream's own protocol of snapshots, which keeps sequences,
 * times, headers and TTLs. The client has no call for it. A snapshot: the server sends chunks and
 * counts their acknowledgements, so that no more than a window is under way; an empty message is
 * the end, with a status where it gave up. A restore: each chunk is a request; an empty one is the
 * end, and its answer says what the stream is now.
 */
import { createHash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import {
  createInbox,
  NoRespondersError,
  RequestError,
  type Msg,
  type NatsConnection,
  type Subscription,
} from '@nats-io/transport-node';
import Type, { type Static } from 'typebox';
import { sleep, within } from '../../lib/backoff.ts';
import { BackupError, reasonOf } from './error.ts';
import { limits } from '../../schemas/limits.ts';

/** Of what the server says of a stream, that which is looked at here. */
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

/** @throws ApiRefusal where the server answers with an error. */
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

interface StreamInfo {
  readonly config: StreamConfig;
  readonly state: StreamState;
  /** Absent on a server that stands alone. */
  readonly cluster?: { readonly leader?: string };
}

/** Undefined where there is no such stream. */
export async function streamInfo(nc: NatsConnection, name: string): Promise<StreamInfo | undefined> {
  try {
    return await api<StreamInfo>(nc, `STREAM.INFO.${name}`);
  } catch (error) {
    if (error instanceof ApiRefusal && error.error.err_code === streamNotFound) return undefined;
    throw error;
  }
}

/** Whatever goes wrong with a file is told with its path. */
async function onFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new BackupError(`${path}: ${reasonOf(error)}`, error);
  }
}

/**
 * Writes the stream as it is at one moment; it may be written to meanwhile. The file is on the disk
 * when this resolves.
 */
export async function saveStream(nc: NatsConnection, name: string, path: string): Promise<Snapshot> {
  const file = await onFile(path, () => open(path, 'wx', 0o600));
  const chunks = nc.subscribe(createInbox());
  try {
    const { config, state } = await api<StreamInfo>(
      nc,
      `STREAM.SNAPSHOT.${name}`,
      {
        deliver_subject: chunks.getSubject(),
        chunk_size: limits.backupChunkBytes,
        window_size: limits.backupWindowBytes,
        no_consumers: true,
        jsck: true,
      },
      limits.backupWholeMs,
    );
    const written = await writeChunks(name, chunks, (chunk) => onFile(path, () => file.appendFile(chunk)));
    await onFile(path, () => file.sync());
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
    const next = await within(arriving.next(), limits.backupChunkMs, `chunk ${index} of ${name}`);
    if (next.done === true) throw new BackupError(`${name}: the connection ended before the snapshot did`);
    const { data, reply, headers } = next.value;
    if (data.length === 0) {
      if (headers !== undefined && headers.code >= 300) {
        throw new BackupError(`${name}: the server ended the snapshot: ${headers.code} ${headers.description}`);
      }
      return { bytes, sha256: hash.digest('hex') };
    }
    // Where acknowledgements go ends with the number of the chunk; the last has nowhere to go.
    const number = reply === undefined || reply === '' ? index : Number(reply.split('.').at(-1));
    if (number !== index) throw new BackupError(`${name}: chunk ${index} did not arrive, but ${number}`);
    await write(data);
    hash.update(data);
    bytes += data.length;
    next.value.respond();
  }
}

async function* chunksOf(path: string): AsyncGenerator<Buffer, void, void> {
  let file: FileHandle | undefined;
  try {
    file = await onFile(path, () => open(path, 'r'));
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(limits.backupChunkBytes), 0, limits.backupChunkBytes);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file?.close();
  }
}

/** What a file holds, as `saveStream` counted it. */
export async function digestOf(path: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of chunksOf(path)) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}

/**
 * Of several servers, the one that restores may be another than ours, which may not have heard yet
 * of where it takes chunks. No responders: it was not delivered.
 */
async function sendChunk(nc: NatsConnection, target: string, chunk: Buffer): Promise<Msg> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await nc.request(target, chunk, { timeout: limits.backupChunkMs });
    } catch (error) {
      if (attempt === limits.restoreChunkAttempts || !isUnheard(error)) throw error;
      await sleep(limits.restoreChunkPauseMs);
    }
  }
}

/** Whether a request was refused because nobody subscribes to its subject. */
export const isUnheard = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());

/** Makes the stream out of the file; there must be none of its name. */
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
    // Empty, or why it can't go on.
    if (answer.data.length > 0) throw new BackupError(`${name}: the server ended the restore: ${answer.string()}`);
  }
  const end = answerOf<StreamInfo>(subject, await nc.request(target, '', { timeout: limits.backupWholeMs }));
  await untilLed(nc, name);
  return end.state;
}

/**
 * On several servers a stream that is new answers nothing until its replicas have chosen a leader.
 */
async function untilLed(nc: NatsConnection, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { cluster } = await api<StreamInfo>(nc, `STREAM.INFO.${name}`, undefined, limits.restoreLeaderPauseMs);
      if (cluster === undefined || (cluster.leader ?? '') !== '') return;
    } catch (error) {
      if (attempt >= limits.restoreLeaderAttempts) throw error;
    }
    if (attempt >= limits.restoreLeaderAttempts)
      throw new BackupError(
        `${name} is restored but has no leader: check the NATS servers, then restore again with --replace`,
      );
    await sleep(limits.restoreLeaderPauseMs);
  }
}
