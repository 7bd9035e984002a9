/**
 * Reading a stream without a consumer: batched direct reads (NATS ADR-31). Plain requests that any replica answers, so a
 * read may be stale; who needs to know that it is not looks for something in it that was written last.
 */
import { createInbox, type MsgHdrs, type NatsConnection, type Subscription } from '@nats-io/transport-node';
import { DeadlineError, within } from './backoff.ts';

export interface ReadMessage {
  readonly subject: string;
  /** Sequence in the stream. */
  readonly sequence: number;
  /** What a KV bucket says of the key: `DEL`, `PURGE` or nothing. */
  readonly operation: string;
  readonly data: Uint8Array;
}

export class StreamReadError extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'StreamReadError';
  }
}

/** Where a read begins: at a sequence (1 is the oldest), or at the first message of a time on (RFC 3339). */
export type ReadFrom = { readonly seq: number } | { readonly start_time: string };

export interface StreamRead {
  readonly stream: string;
  /** Subject filter; wildcards allowed. */
  readonly filter: string;
  readonly from: ReadFrom;
  /** Bounds of one request to the server. */
  readonly batchMessages: number;
  readonly batchBytes: number;
  /** For each request. */
  readonly timeoutMs: number;
  /**
   * So often a request without an answer is made again; 1 where absent. The server gives each to a replica by chance, and may not
   * know yet that one of them is away.
   */
  readonly attempts?: number;
}

export interface Batch {
  readonly messages: readonly ReadMessage[];
  /** There is more after them. */
  readonly more: boolean;
}

const status = { endOfBatch: 204, nothing: 404 } as const;

/**
 * The oldest messages from a place on, as many as the bounds of one request hold, one at least. The client's own call
 * treats "nothing there" as an error, hence this one.
 * @throws StreamReadError where the server refuses, DeadlineError where it does not answer in time.
 */
export async function readBatch(nc: NatsConnection, read: StreamRead, headers?: MsgHdrs): Promise<Batch> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await askOnce(nc, read, headers);
    } catch (error) {
      if (!(error instanceof DeadlineError) || attempt >= (read.attempts ?? 1)) throw error;
    }
  }
}

async function askOnce(nc: NatsConnection, read: StreamRead, headers?: MsgHdrs): Promise<Batch> {
  const messages: ReadMessage[] = [];
  let pending = 0;
  const inbox = createInbox();
  let subscription: Subscription | undefined;
  const ended = new Promise<void>((resolve, reject) => {
    subscription = nc.subscribe(inbox, {
      callback: (error, { headers, data }) => {
        if (error !== null) return reject(error);
        const code = headers?.code ?? 0;
        if (code === status.endOfBatch || code === status.nothing) return resolve();
        if (headers === undefined || code !== 0) {
          return reject(new StreamReadError(`${read.stream}: ${code} ${headers?.description ?? 'without headers'}`));
        }
        pending = Number(headers.get('Nats-Num-Pending'));
        messages.push({
          subject: headers.get('Nats-Subject'),
          sequence: Number(headers.get('Nats-Sequence')),
          operation: headers.get('KV-Operation'),
          data,
        });
        return undefined;
      },
    });
  });
  try {
    const request = { ...read.from, next_by_subj: read.filter, batch: read.batchMessages, max_bytes: read.batchBytes };
    const more = headers === undefined ? {} : { headers };
    nc.publish(`$JS.API.DIRECT.GET.${read.stream}`, JSON.stringify(request), { reply: inbox, ...more });
    await within(ended, read.timeoutMs, `reading ${read.stream}`);
    return { messages, more: pending > 0 };
  } finally {
    subscription?.unsubscribe();
  }
}

/** Every retained message from a place on, oldest first, in as many requests as it takes; the caller may stop at any time. */
export async function* readStream(nc: NatsConnection, read: StreamRead): AsyncGenerator<ReadMessage, void, void> {
  let { from } = read;
  for (;;) {
    const { messages, more } = await readBatch(nc, { ...read, from });
    yield* messages;
    const last = messages.at(-1);
    if (!more || last === undefined) return;
    from = { seq: last.sequence + 1 };
  }
}
