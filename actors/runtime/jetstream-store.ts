/**
 * A partition's bucket in JetStream, spoken to in the server's own protocol: a KV bucket is the stream `KV_<bucket>` with
 * subjects `$KV.<bucket>.<key>` (NATS ADR-8), batches are those of ADR-50, batched direct reads those of ADR-31. The
 * client's own BatchPublisher hides the server's error, which tells a fenced write from an unknown one.
 */
import { headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { readStream } from '../../lib/stream-read.ts';
import { limits } from '../../schemas/limits.ts';
import { keys } from '../../schemas/buckets.ts';
import type { EventSink, Store, StoreWrite, StoredValue, WriteOutcome } from './store.ts';

const expectedSequence = 'Nats-Expected-Last-Subject-Sequence';
const expectedSequenceSubject = 'Nats-Expected-Last-Subject-Sequence-Subject';

/** `wrong last sequence`, of the subject that the header names: the fence. */
const wrongLastSequenceCodes: ReadonlySet<number> = new Set([10071, 10164]);
/** 10164: another write with the same check is in flight on a replicated stream; it may be retried. */
const checkInFlightCode = 10164;

interface PublishAck {
  readonly seq?: number;
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description?: string };
}

export class StoreError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = 'StoreError';
  }
}

const utf8 = new TextDecoder();

const ttl = (ms: number): string => `${Math.ceil(ms / 1000)}s`;

function outcomeOf(ack: PublishAck): WriteOutcome {
  if (ack.error === undefined) return { kind: 'written' };
  const code = ack.error.err_code ?? 0;
  if (code === checkInFlightCode) return { kind: 'unknown', cause: new StoreError('another check is in flight') };
  if (wrongLastSequenceCodes.has(code)) return { kind: 'fenced' };
  return { kind: 'unknown', cause: new StoreError(`${code} ${ack.error.description ?? ''}`) };
}

export function createJetStreamStore(nc: NatsConnection, bucket: string, newBatchId: () => string): Store {
  const stream = `KV_${bucket}`;
  const prefix = `$KV.${bucket}.`;
  const epochSubject = prefix + keys.epoch;

  const request = async (
    subject: string,
    payload: string,
    head: MsgHdrs | undefined,
    timeoutMs: number,
  ): Promise<Msg> =>
    nc.request(subject, payload, { timeout: timeoutMs, ...(head === undefined ? {} : { headers: head }) });

  function headersOf(write: StoreWrite): MsgHdrs {
    const head = headers();
    if (write.value === null) head.set('KV-Operation', 'DEL');
    const ttlMs = write.ttlMs ?? (write.value === null ? limits.deleteMarkerTtlMs : undefined);
    if (ttlMs !== undefined) head.set('Nats-TTL', ttl(ttlMs));
    return head;
  }

  function fence(head: MsgHdrs, epoch: number): MsgHdrs {
    head.set(expectedSequence, String(epoch));
    head.set(expectedSequenceSubject, epochSubject);
    return head;
  }

  async function acknowledged(message: Promise<Msg>): Promise<WriteOutcome> {
    try {
      return outcomeOf((await message).json<PublishAck>());
    } catch (cause) {
      return { kind: 'unknown', cause };
    }
  }

  return {
    async readEpoch() {
      const answer = await request(
        `$JS.API.STREAM.MSG.GET.${stream}`,
        JSON.stringify({ last_by_subj: epochSubject }),
        undefined,
        limits.commitTimeoutMs,
      );
      const reply = answer.json<{
        message?: { seq: number; data?: string };
        error?: { code: number; description: string };
      }>();
      if (reply.message !== undefined) {
        return { revision: reply.message.seq, value: Buffer.from(reply.message.data ?? '', 'base64').toString() };
      }
      if (reply.error?.code === 404) return { revision: 0, value: null };
      throw new StoreError(`reading the epoch: ${reply.error?.description ?? 'no answer'}`);
    },

    async takeEpoch(value, expectedRevision) {
      const head = headers();
      head.set(expectedSequence, String(expectedRevision));
      const answer = await request(epochSubject, value, head, limits.commitTimeoutMs);
      const ack = answer.json<PublishAck>();
      if (ack.error === undefined && ack.seq !== undefined) return ack.seq;
      if (ack.error !== undefined && wrongLastSequenceCodes.has(ack.error.err_code ?? 0)) return undefined;
      throw new StoreError(`taking the epoch: ${ack.error?.description ?? 'no sequence'}`);
    },

    put: (write, epoch) =>
      acknowledged(
        request(prefix + write.key, write.value ?? '', fence(headersOf(write), epoch), limits.commitTimeoutMs),
      ),

    async putBatch(writes, epoch) {
      const [only] = writes;
      if (writes.length === 1 && only !== undefined) return this.put(only, epoch);
      const batch = newBatchId();
      const last = writes.length;
      const numbered = writes.map((write, index) => {
        const head = headersOf(write);
        head.set('Nats-Batch-Id', batch);
        head.set('Nats-Batch-Sequence', String(index + 1));
        if (index === 0) fence(head, epoch);
        if (index + 1 === last) head.set('Nats-Batch-Commit', '1');
        return { subject: prefix + write.key, payload: write.value ?? '', head };
      });
      const commit = numbered.pop();
      if (commit === undefined) return { kind: 'written' };
      try {
        for (const { subject, payload, head } of numbered) nc.publish(subject, payload, { headers: head });
      } catch (cause) {
        return { kind: 'unknown', cause };
      }
      return acknowledged(request(commit.subject, commit.payload, commit.head, limits.checkpointTimeoutMs));
    },

    async load(epoch) {
      const values = new Map<string, StoredValue>();
      const read = {
        stream,
        filter: `${prefix}>`,
        from: { seq: 1 },
        batchMessages: readBatchMessages,
        batchBytes: readBatchBytes,
        timeoutMs: limits.checkpointTimeoutMs,
      };
      for await (const { subject, sequence, operation, data } of readStream(nc, read)) {
        const key = subject.slice(prefix.length);
        const isDeleted = operation === 'DEL' || operation === 'PURGE';
        values.set(key, { key, value: isDeleted ? null : utf8.decode(data), revision: sequence });
      }
      if (values.get(keys.epoch)?.revision !== epoch) {
        throw new StoreError(`a load of ${bucket} did not see epoch ${epoch}: stale replica, or the epoch has moved`);
      }
      return [...values.values()];
    },
  };
}

const readBatchMessages = 500;
const readBatchBytes = 4 * 1024 * 1024;

/** Events go out as atomic batches, so that one fsync serves many. */
export function createEventSink(nc: NatsConnection, newBatchId: () => string): EventSink {
  async function publishBatch(events: readonly { subject: string; payload: string }[]): Promise<void> {
    const batch = newBatchId();
    for (const [index, { subject, payload }] of events.entries()) {
      const head = headers();
      if (events.length > 1) {
        head.set('Nats-Batch-Id', batch);
        head.set('Nats-Batch-Sequence', String(index + 1));
      }
      if (index + 1 < events.length) {
        nc.publish(subject, payload, { headers: head });
        continue;
      }
      if (events.length > 1) head.set('Nats-Batch-Commit', '1');
      const ack = (
        await nc.request(subject, payload, { headers: head, timeout: limits.checkpointTimeoutMs })
      ).json<PublishAck>();
      if (ack.error !== undefined) throw new StoreError(`events: ${ack.error.description}`);
    }
  }
  return {
    async publish(events) {
      for (let from = 0; from < events.length; from += limits.checkpointBatchMessages) {
        await publishBatch(events.slice(from, from + limits.checkpointBatchMessages));
      }
    },
  };
}
