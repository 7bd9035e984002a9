/**
 * A partition's bucket in JetStream, spoken to in the server's own protocol: a KV bucket is the
 * stream `KV_<bucket>` with subjects `$KV.<bucket>.<key>` (NATS ADR-8), batches are those of
 * ADR-50, batched direct reads those of ADR-31. The client's own BatchPublisher hides the server's
 * error, which tells a fenced write from an unknown one.
 */
import { headers, InvalidArgumentError, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { readPages, readStream, type ReadMessage, type StreamRead } from '../../../lib/nats/direct-reads.ts';
import { limits } from '../../../schemas/limits.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import { bucketPrefix, bucketStream, buckets, journalBuckets, keys } from '../../../schemas/records/buckets.ts';
import { authorsHeader } from '../../../schemas/records/event-authors.ts';
import { hashOf } from '../../../schemas/wire/subjects.ts';
import { backoffMs, sleep } from '../../../lib/time/backoff.ts';
import {
  StoreError,
  checkInFlight,
  compareAndSet,
  expectedSequence,
  readLast,
  tooLarge,
  ttl,
  wrongLastSequence,
  decodeAck,
  type PublishAck,
} from '../../../lib/nats/kv-keys.ts';
import type { EventSink, Store, StoreWrite, StoredEvent, StoredValue, WriteOutcome } from './store.ts';
import { hours, seconds } from '../../../schemas/limits/units.ts';

/** Time for which a deleted key keeps its marker. */
export const deleteMarkerTtlMs = 1 * hours;
/**
 * Retries of a write that a replicated stream refuses because another write with the same fence
 * is in flight.
 */
const checkInFlightRetries = 100;
/** The time between two batches of events of a process. */
const eventsPaceMs = 250;
/** The deadline of a batch of a checkpoint, or of events. */
export const checkpointTimeoutMs = 5 * seconds;

/**
 * The deadline of one page of a load: a replica that is away does not answer, and the next
 * attempt may reach another.
 */
const loadReadMs = 1500;
const loadReadAttempts = 6;
/** The wait between two of `checkInFlightRetries`. */
const checkInFlightMinMs = 1;
const checkInFlightMaxMs = 16;

const expectedSequenceSubject = 'Nats-Expected-Last-Subject-Sequence-Subject';

/** Makes a message one of an atomic batch, which the last one commits (NATS ADR-50). */
function joinBatch(head: MsgHdrs, batch: string, place: { readonly index: number; readonly of: number }): void {
  head.set('Nats-Batch-Id', batch);
  head.set('Nats-Batch-Sequence', String(place.index + 1));
  if (place.index + 1 === place.of) head.set('Nats-Batch-Commit', '1');
}

function outcomeOf({ error, seq }: PublishAck): WriteOutcome {
  if (error === undefined && seq !== undefined) return { kind: 'written', sequence: seq };
  if (error === undefined) return { kind: 'unknown', cause: new StoreError('an acknowledgement without a sequence') };
  if (error.err_code === wrongLastSequence) return { kind: 'fenced' };
  const cause = new StoreError(`${error.err_code} ${error.description ?? ''}`);
  return { kind: tooLarge.has(error.err_code) ? 'refused' : 'unknown', cause };
}

/**
 * Sends a write, and again while the server refuses to look at its fence: a replicated stream
 * checks one write with the same fence at a time, and a commit may meet a checkpoint there.
 */
async function acknowledged(send: () => Promise<Msg>): Promise<WriteOutcome> {
  for (let attempt = 0; ; attempt++) {
    try {
      const ack = decodeAck((await send()).data);
      const isRefused = ack.error?.err_code === checkInFlight;
      if (!isRefused || attempt === checkInFlightRetries) return outcomeOf(ack);
    } catch (cause) {
      // The client itself refuses a message above the server's `max_payload`.
      return { kind: cause instanceof InvalidArgumentError ? 'refused' : 'unknown', cause };
    }
    await sleep(backoffMs(attempt, { minMs: checkInFlightMinMs, maxMs: checkInFlightMaxMs }));
  }
}

/** `place`: the beginning of all keys, where a bucket holds several stores. */
export function createJetStreamStore(nc: NatsConnection, bucket: string, newBatchId: () => string, place = ''): Store {
  const stream = bucketStream(bucket);
  const prefix = bucketPrefix(bucket) + place;
  const epochSubject = prefix + keys.epoch;

  const request = async (
    subject: string,
    payload: string | Uint8Array,
    head: MsgHdrs | undefined,
    timeoutMs: number,
  ): Promise<Msg> =>
    nc.request(subject, payload, { timeout: timeoutMs, ...(head === undefined ? {} : { headers: head }) });

  function headersOf(write: StoreWrite): MsgHdrs {
    const head = headers();
    if (write.value === null) head.set('KV-Operation', 'DEL');
    const ttlMs = write.ttlMs ?? (write.value === null ? deleteMarkerTtlMs : undefined);
    if (ttlMs !== undefined) head.set('Nats-TTL', ttl(ttlMs));
    return head;
  }

  function fence(head: MsgHdrs, epoch: number): MsgHdrs {
    head.set(expectedSequence, String(epoch));
    head.set(expectedSequenceSubject, epochSubject);
    return head;
  }

  const readFrom = (sequence: number): StreamRead => ({
    stream,
    filter: `${prefix}>`,
    from: { seq: sequence },
    batchMessages: limits.loadReadMessages,
    batchBytes: limits.loadReadBytes,
    timeoutMs: loadReadMs,
    attempts: loadReadAttempts,
  });

  function storedIn({ subject, sequence, operation, data }: ReadMessage): StoredValue {
    // A slice would keep the whole head of the message for as long as the key is kept.
    const key = Buffer.from(subject).toString('utf8', prefix.length);
    const isDeleted = operation === 'DEL' || operation === 'PURGE';
    return { key, value: isDeleted ? null : data, revision: sequence };
  }

  /** One atomic batch; the answer is that of its last message. */
  function sendBatch(writes: readonly StoreWrite[], epoch: number): Promise<Msg> {
    const batch = newBatchId();
    const numbered = writes.map((write, index) => {
      const head = headersOf(write);
      joinBatch(head, batch, { index, of: writes.length });
      if (index === 0) fence(head, epoch);
      return { subject: prefix + write.key, payload: write.value ?? '', head };
    });
    const last = numbered.pop();
    if (last === undefined) throw new StoreError('an empty batch');
    for (const { subject, payload, head } of numbered) nc.publish(subject, payload, { headers: head });
    return request(last.subject, last.payload, last.head, checkpointTimeoutMs);
  }

  return {
    readEpoch: () => readLast(nc, stream, epochSubject, limits.commitTimeoutMs),

    takeEpoch: (value, expected) =>
      compareAndSet(nc, epochSubject, value, expected, { timeoutMs: limits.commitTimeoutMs }),

    put: (write, epoch) =>
      acknowledged(async () =>
        request(prefix + write.key, write.value ?? '', fence(headersOf(write), epoch), limits.commitTimeoutMs),
      ),

    async putBatch(writes, epoch) {
      const [only] = writes;
      if (only === undefined) return { kind: 'written', sequence: 0 };
      if (writes.length === 1) return this.put(only, epoch);
      const outcome = await acknowledged(async () => sendBatch(writes, epoch));
      if (outcome.kind !== 'written') return outcome;
      // A server stores a batch at sequences without a gap.
      return { ...outcome, first: outcome.sequence - writes.length + 1 };
    },

    async read(key) {
      const { value } = await readLast(nc, stream, prefix + key, loadReadMs);
      return value === null ? null : Buffer.from(value);
    },

    async load(epoch, fromSequence = 1, untilSequence = Infinity) {
      const values = new Map<string, StoredValue>();
      let newest = 0;
      for await (const page of this.pages(fromSequence)) {
        newest = page.at(-1)?.revision ?? newest;
        for (const stored of page) {
          if (stored.revision >= untilSequence) break;
          values.set(stored.key, stored);
        }
        if (newest >= untilSequence) return [...values.values()];
      }
      if (values.get(keys.epoch)?.revision !== epoch) {
        throw new StoreError(`a load of ${bucket} did not see epoch ${epoch}: stale replica, or the epoch has moved`);
      }
      return [...values.values()];
    },

    async *pages(fromSequence) {
      for await (const messages of readPages(nc, readFrom(fromSequence))) yield messages.map(storedIn);
    },
  };
}

export const journalBucketOf = (member: MemberId): string => buckets.journal.bucket(hashOf(member) % journalBuckets);

/** The journal of a member. */
export const createJournalStore = (nc: NatsConnection, member: MemberId, newBatchId: () => string): Store =>
  createJetStreamStore(nc, journalBucketOf(member), newBatchId, `${member}.`);

/** Members whose journals are there, open or sealed; the answer may be stale. */
export async function membersWithJournals(nc: NatsConnection): Promise<MemberId[]> {
  const members: MemberId[] = [];
  for (let number = 0; number < journalBuckets; number++) {
    const bucket = buckets.journal.bucket(number);
    const read = {
      stream: bucketStream(bucket),
      filter: `${bucketPrefix(bucket)}*.${keys.epoch}`,
      from: { seq: 1 },
      batchMessages: limits.membersPerRead,
      batchBytes: limits.answerPartBytes,
      timeoutMs: loadReadMs,
    };
    for await (const { subject } of readStream(nc, read)) {
      members.push(subject.slice(bucketPrefix(bucket).length, -`.${keys.epoch}`.length) as MemberId);
    }
  }
  return members;
}

interface Publication {
  readonly events: readonly StoredEvent[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Events go out as paced atomic batches, so that one fsync serves many: meanwhile the events of all
 * partitions of this process collect for the next. Each has at most one publication waiting.
 */
export function createEventSink(nc: NatsConnection, newBatchId: () => string): EventSink {
  let waiting: Publication[] = [];
  let isSending = false;

  async function publishBatch(events: readonly StoredEvent[]): Promise<void> {
    const batch = newBatchId();
    for (const [index, { subject, payload, by }] of events.entries()) {
      const head = headers();
      if (by !== undefined) head.set(authorsHeader, by);
      if (events.length > 1) joinBatch(head, batch, { index, of: events.length });
      if (index + 1 < events.length) {
        nc.publish(subject, payload, { headers: head });
        continue;
      }
      const answer = await nc.request(subject, payload, { headers: head, timeout: checkpointTimeoutMs });
      const ack = decodeAck(answer.data);
      if (ack.error !== undefined) throw new StoreError(`events: ${ack.error.description}`);
    }
  }

  async function publishAll(events: readonly StoredEvent[]): Promise<void> {
    for (let from = 0; from < events.length; from += limits.checkpointBatchMessages) {
      await publishBatch(events.slice(from, from + limits.checkpointBatchMessages));
    }
  }

  /**
   * After a failure each partition's publication is sent by itself: one that is refused must not
   * hold up the others.
   */
  async function settle(publications: readonly Publication[]): Promise<void> {
    try {
      await publishAll(publications.flatMap(({ events }) => events));
      for (const { resolve } of publications) resolve();
    } catch (error) {
      const [only, ...others] = publications;
      if (others.length === 0) only?.reject(error);
      else await Promise.all(publications.map(async (one) => settle([one])));
    }
  }

  async function send(): Promise<void> {
    isSending = true;
    while (waiting.length > 0) {
      const publications = waiting;
      waiting = [];
      await settle(publications);
      await sleep(eventsPaceMs);
    }
    isSending = false;
  }

  return {
    publish: (events) =>
      new Promise((resolve, reject) => {
        waiting.push({ events, resolve, reject });
        if (!isSending) void send();
      }),
  };
}
