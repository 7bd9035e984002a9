/**
 * Reads of a stream that find out which replica answered. Any replica may answer a direct read; but
 * with NATS message tracing each server that the request passes reports it, and the last of them is
 * the one that answered.
 */
import { createHash } from 'node:crypto';
import { headers, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import { within } from '../../lib/time/backoff.ts';
import { inboxOf } from '../../lib/nats/inbox.ts';
import { readBatch, type ReadMessage, type StreamRead } from '../../lib/nats/direct-reads.ts';
import { limits } from '../../schemas/limits.ts';
import type { ReplicaRead } from './scrub-compare.ts';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { MiB } from '../../schemas/limits/units.ts';

/** The messages and the bytes of one page of a stream. */
const scrubPageMessages = 256;
const scrubPageBytes = 1 * MiB;

/** The part that matters here of a server's report on a traced message. */
const decodeTrace = decoder(
  Type.Object({
    server: Type.Object({ name: Type.String() }),
    /** The number of servers to which it forwarded the message. */
    hops: Type.Optional(Type.Integer()),
  }),
);

/** The server that forwarded the message to no other. */
async function lastServer(nc: NatsConnection, subject: string, begin: () => Promise<void>): Promise<string> {
  let subscription: Subscription | undefined;
  const told = new Promise<string>((resolve, reject) => {
    subscription = nc.subscribe(subject, {
      callback: (error, message) => {
        if (error !== null) return reject(error);
        try {
          const { server, hops = 0 } = decodeTrace(message.data);
          if (hops === 0) resolve(server.name);
        } catch (cause) {
          reject(new Error('a trace of the NATS server is malformed', { cause }));
        }
        return undefined;
      },
    });
  });
  try {
    await Promise.all([begin(), within(told, limits.scrubReadMs, 'who answered')]);
    return await told;
  } finally {
    subscription?.unsubscribe();
  }
}

const digest = ({ subject, operation, data }: ReadMessage): string =>
  createHash('sha256').update(`${subject}\n${operation}\n`).update(data).digest('base64');

/** Reads one page from a sequence on, from whichever replica answers. */
export async function readReplica(nc: NatsConnection, stream: string, from: number): Promise<ReplicaRead> {
  const trace = inboxOf(nc);
  const traced = headers();
  traced.set('Nats-Trace-Dest', trace);
  const read: StreamRead = {
    stream,
    filter: '>',
    from: { seq: from },
    batchMessages: scrubPageMessages,
    batchBytes: scrubPageBytes,
    timeoutMs: limits.scrubReadMs,
  };
  const held = new Map<number, string>();
  let to = Infinity;
  const server = await lastServer(nc, trace, async () => {
    const { messages, pending } = await readBatch(nc, read, traced);
    for (const message of messages) held.set(message.sequence, digest(message));
    if (pending > 0) to = messages.at(-1)?.sequence ?? Infinity;
  });
  return { server, held, to };
}
