/**
 * Reading a stream without a consumer: batched direct reads (NATS ADR-31). Plain requests that any replica answers, so a
 * read may be stale; who needs to know that it is not looks for something in it that was written last.
 */
import { createInbox, type Msg, type NatsConnection } from '@nats-io/transport-node';

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

export interface StreamRead {
  readonly stream: string;
  /** Subject filter; wildcards allowed. */
  readonly filter: string;
  /** Sequence to begin at; 1 is the oldest. */
  readonly from: number;
  /** Bounds of one request to the server. */
  readonly batchMessages: number;
  readonly batchBytes: number;
  /** For each request. */
  readonly timeoutMs: number;
}

/**
 * Every retained message under the filter, oldest first, as many requests as it takes. The caller may stop at any time.
 * @throws StreamReadError where the server refuses, or does not answer in time.
 */
export async function* readStream(nc: NatsConnection, read: StreamRead): AsyncGenerator<ReadMessage, void, void> {
  let from = read.from;
  for (;;) {
    let hasMore = false;
    for await (const message of request(nc, read, from)) {
      const head = message.headers;
      if (head === undefined) throw new StreamReadError('a message without headers');
      if (head.code === 404) return;
      if (head.code === 204) {
        hasMore = Number(head.get('Nats-Num-Pending')) > 0;
        break;
      }
      if (head.code !== 0) throw new StreamReadError(`${head.code} ${head.description}`);
      const sequence = Number(head.get('Nats-Sequence'));
      from = sequence + 1;
      yield { subject: head.get('Nats-Subject'), sequence, operation: head.get('KV-Operation'), data: message.data };
    }
    if (!hasMore) return;
  }
}

/** The answers to one request; the last of them bears the status 204 (or 404: there is nothing). */
async function* request(nc: NatsConnection, read: StreamRead, from: number): AsyncGenerator<Msg, void, void> {
  const inbox = createInbox();
  const answers = nc.subscribe(inbox);
  let isLate = false;
  const deadline = setTimeout(() => {
    isLate = true;
    answers.unsubscribe();
  }, read.timeoutMs);
  try {
    nc.publish(
      `$JS.API.DIRECT.GET.${read.stream}`,
      JSON.stringify({
        seq: from,
        next_by_subj: read.filter,
        batch: read.batchMessages,
        max_bytes: read.batchBytes,
      }),
      { reply: inbox },
    );
    yield* answers;
    throw new StreamReadError(isLate ? `no end of an answer within ${read.timeoutMs} ms` : 'the connection closed');
  } finally {
    clearTimeout(deadline);
    answers.unsubscribe();
  }
}
