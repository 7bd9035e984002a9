/**
 * Reading a stream without a consumer: batched direct reads (NATS ADR-31). Plain requests that any
 * replica answers, so a read may be stale; who needs to know that it is not looks for something in
 * it that was written last.
 */
import type { MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import { DeadlineError, within } from '../backoff.ts';
import { inboxOf } from './inbox.ts';

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

/**
 * A page arrived without one of its messages, or without its end. The next attempt may bring it
 * whole.
 */
export class PageGapError extends StreamReadError {
  constructor(what: string) {
    super(what);
    this.name = 'PageGapError';
  }
}

/**
 * Where a read begins: at a sequence (1 is the oldest), or at the first message of a time on (RFC
 * 3339).
 */
export type ReadFrom = { readonly seq: number } | { readonly start_time: string };

export interface Reading {
  readonly stream: string;
  /** Subject filter; wildcards allowed. */
  readonly filter: string;
  /** The subject that takes the questions, where it is not JetStream's own. */
  readonly api?: string;
  /** For each request. */
  readonly timeoutMs: number;
  /**
   * How often a request is made, if its answer does not arrive or arrives with a gap; 1 where
   * absent. The server gives each to a replica by chance, and may not know yet that one of them is
   * away.
   */
  readonly attempts?: number;
}

export interface StreamRead extends Reading {
  readonly from: ReadFrom;
  /** Bounds of one request to the server. */
  readonly batchMessages: number;
  readonly batchBytes: number;
}

export interface Batch {
  readonly messages: readonly ReadMessage[];
  /** How many there are after them. */
  readonly pending: number;
}

const status = { endOfBatch: 204, nothing: 404 } as const;

/**
 * The oldest messages from a place on, as many as the bounds of one request hold, one at least. The
 * client's own call treats "nothing there" as an error, hence this one.
 * @throws StreamReadError where the server refuses, PageGapError where messages of the page are
 * missing, DeadlineError where the page has no end in time.
 */
export function readBatch(nc: NatsConnection, read: StreamRead, headers?: MsgHdrs): Promise<Batch> {
  const bounds = { batch: read.batchMessages, max_bytes: read.batchBytes };
  return ask(nc, read, { ...read.from, next_by_subj: read.filter, ...bounds }, headers);
}

/** The newest message; undefined where there is none. Throws as `readBatch` does. */
export async function readLast(nc: NatsConnection, reading: Reading): Promise<ReadMessage | undefined> {
  return (await ask(nc, reading, { last_by_subj: reading.filter })).messages[0];
}

/** A request for a batch is answered by messages and an end, any other by one message. */
type Request =
  { readonly last_by_subj: string } | (ReadFrom & { readonly next_by_subj: string; readonly batch: number });

async function ask(nc: NatsConnection, reading: Reading, request: Request, headers?: MsgHdrs): Promise<Batch> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await askOnce(nc, reading, request, headers);
    } catch (error) {
      const mayRetry = error instanceof DeadlineError || error instanceof PageGapError;
      if (!mayRetry || attempt >= (reading.attempts ?? 1)) throw error;
    }
  }
}

async function askOnce(
  nc: NatsConnection,
  { stream, api = `$JS.API.DIRECT.GET.${stream}`, timeoutMs }: Reading,
  request: Request,
  requestHeaders?: MsgHdrs,
): Promise<Batch> {
  const messages: ReadMessage[] = [];
  let pending = 0;
  const inbox = inboxOf(nc);
  let subscription: Subscription | undefined;
  const ended = new Promise<void>((resolve, reject) => {
    subscription = nc.subscribe(inbox, {
      callback: (error, { headers, data }) => {
        if (error !== null) return reject(error);
        const code = headers?.code ?? 0;
        if (headers === undefined || (code !== 0 && code !== status.endOfBatch && code !== status.nothing)) {
          return reject(new StreamReadError(`${stream}: ${code} ${headers?.description ?? 'without headers'}`));
        }
        if ('batch' in request) {
          const gap = gapBefore(headers, messages.at(-1)?.sequence ?? 0);
          if (gap !== undefined) return reject(new PageGapError(`${stream}: ${gap}`));
          // The server counts what is pending once for a page, and again for its end if the stream
          // has grown meanwhile.
          pending = Number(headers.get('Nats-Num-Pending'));
        }
        if (code !== 0) return resolve();
        messages.push({
          subject: headers.get('Nats-Subject'),
          sequence: Number(headers.get('Nats-Sequence')),
          operation: headers.get('KV-Operation'),
          data,
        });
        if (!('batch' in request)) resolve();
        return undefined;
      },
    });
  });
  // It is awaited below, unless the connection is closed and publishing throws first.
  ended.catch(() => undefined);
  try {
    const more = requestHeaders === undefined ? {} : { headers: requestHeaders };
    nc.publish(api, JSON.stringify(request), { reply: inbox, ...more });
    await within(ended, timeoutMs, `reading ${stream}`);
    return { messages, pending };
  } finally {
    subscription?.unsubscribe();
  }
}

/**
 * Each message of a page, and its end, names the sequence of the message that was sent before it in
 * this page (0 for the first), whatever is written to the stream or deleted from it meanwhile. So a
 * message that is lost on its way shows. `Nats-Num-Pending` can't serve for this: the server counts
 * it at the start of the page and lets it stop at 0.
 */
function gapBefore(headers: MsgHdrs, previous: number): string | undefined {
  // Nothing was found, so nothing was sent; or an answer to a page was, and it begins before the
  // end.
  if (headers.code === status.nothing) return previous === 0 ? undefined : 'a page ended as if it were empty';
  const stated = headers.get('Nats-Last-Sequence');
  if (stated === String(previous)) return undefined;
  return `a page has a gap: after sequence ${previous} came what follows ${stated === '' ? 'an unknown one' : stated}`;
}

/**
 * Every retained message from a place on, oldest first, in as many requests as it takes; the caller
 * may stop at any time.
 */
export async function* readStream(nc: NatsConnection, read: StreamRead): AsyncGenerator<ReadMessage, void, void> {
  let { from } = read;
  for (;;) {
    const { messages, pending } = await readBatch(nc, { ...read, from });
    yield* messages;
    const last = messages.at(-1);
    if (pending === 0 || last === undefined) return;
    from = { seq: last.sequence + 1 };
  }
}
