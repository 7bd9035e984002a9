/**
 * Reads a stream without a consumer, by batched direct reads (NATS ADR-31). These are plain
 * requests that any replica answers, so a read may be stale. A caller that needs a current read
 * looks for something in it that was written last.
 */
import type { MsgHdrs, NatsConnection, Subscription } from '@nats-io/transport-node';
import { DeadlineError, within } from '../time/backoff.ts';
import { inboxOf } from './inbox.ts';
import { headOf, type MessageHead } from './message-head.ts';

export interface ReadMessage {
  readonly subject: string;
  /** Sequence in the stream. */
  readonly sequence: number;
  /** The operation of a KV bucket on the key: `DEL`, `PURGE` or nothing. */
  readonly operation: string;
  readonly head: Pick<MessageHead, 'get'>;
  readonly data: Uint8Array;
}

export class StreamReadError extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'StreamReadError';
  }
}

/**
 * A page arrived without one of its messages, or without its end. The next attempt may get all of
 * it.
 */
export class PageGapError extends StreamReadError {
  constructor(what: string) {
    super(what);
    this.name = 'PageGapError';
  }
}

/**
 * The beginning of a read: a sequence (1 is the oldest), or the first message since a time (RFC
 * 3339).
 */
export type ReadFrom = { readonly seq: number } | { readonly start_time: string };

export interface Reading {
  readonly stream: string;
  /** Subject filter; wildcards allowed. */
  readonly filter: string;
  /** The subject to ask, if it is not JetStream's own. */
  readonly api?: string;
  /** Time-out of each request. */
  readonly timeoutMs: number;
  /**
   * Number of times that a request is sent if its answer does not arrive or has a gap; 1 if absent.
   * The server picks a replica at random for each attempt, and may not know yet that one is away.
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
  /** Number of messages that follow these. */
  readonly pending: number;
}

/** A request for the newest message of each subject that a filter matches has too many answers. */
export class TooManySubjects extends StreamReadError {
  constructor(stream: string) {
    super(`${stream}: too many subjects match`);
    this.name = 'TooManySubjects';
  }
}

const status = { endOfBatch: 204, nothing: 404, tooMany: 413 } as const;

/**
 * The oldest messages from a place on, as many as the bounds of one request allow, but at least
 * one. The client's own call treats "nothing there" as an error, so this one exists.
 * @throws StreamReadError if the server refuses, PageGapError if messages of the page are missing,
 * DeadlineError if the page does not end in time.
 */
export function readBatch(nc: NatsConnection, read: StreamRead, headers?: MsgHdrs): Promise<Batch> {
  const bounds = { batch: read.batchMessages, max_bytes: read.batchBytes };
  return ask(nc, read, { ...read.from, next_by_subj: read.filter, ...bounds }, headers);
}

/** The newest message; `undefined` if there is none. Throws as `readBatch` does. */
export async function readLast(nc: NatsConnection, reading: Reading): Promise<ReadMessage | undefined> {
  return (await ask(nc, reading, { last_by_subj: reading.filter })).messages[0];
}

/**
 * The newest message of each subject that has one, in one request. Throws as `readBatch` does.
 * @param filters at most 1,024 subjects
 */
export async function readLasts(
  nc: NatsConnection,
  reading: Omit<Reading, 'filter'>,
  filters: readonly string[],
): Promise<readonly ReadMessage[]> {
  // The server refuses a request for none.
  if (filters.length === 0) return [];
  return (await ask(nc, reading, { multi_last: filters, batch: filters.length })).messages;
}

/**
 * The newest message of each subject that a filter matches, page by page. A subject that gets
 * another message meanwhile may come twice, the newer one later.
 * @throws TooManySubjects if there are more than 1,024
 */
export async function* readLastPages(
  nc: NatsConnection,
  { filter, batchMessages: batch, batchBytes, ...reading }: Omit<StreamRead, 'from'>,
): AsyncGenerator<readonly ReadMessage[], void, void> {
  let seq = 1;
  for (;;) {
    const { messages, pending } = await ask(nc, reading, { multi_last: [filter], batch, max_bytes: batchBytes, seq });
    yield messages;
    const last = messages.at(-1);
    if (pending === 0 || last === undefined) return;
    seq = last.sequence + 1;
  }
}

/** Messages and an end answer a request for a batch; one message answers any other. */
type Request =
  | { readonly last_by_subj: string }
  | {
      readonly multi_last: readonly string[];
      readonly batch: number;
      readonly max_bytes?: number;
      readonly seq?: number;
    }
  | (ReadFrom & { readonly next_by_subj: string; readonly batch: number });

async function ask(
  nc: NatsConnection,
  reading: Omit<Reading, 'filter'>,
  request: Request,
  headers?: MsgHdrs,
): Promise<Batch> {
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
  { stream, api = `$JS.API.DIRECT.GET.${stream}`, timeoutMs }: Omit<Reading, 'filter'>,
  request: Request,
  requestHeaders?: MsgHdrs,
): Promise<Batch> {
  const messages: ReadMessage[] = [];
  let pending = 0;
  const inbox = inboxOf(nc);
  let subscription: Subscription | undefined;
  const ended = new Promise<void>((resolve, reject) => {
    subscription = nc.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null) return reject(error);
        const head = headOf(message);
        const code = head?.code ?? 0;
        if (code === status.tooMany) return reject(new TooManySubjects(stream));
        if (head === undefined || (code !== 0 && code !== status.endOfBatch && code !== status.nothing)) {
          return reject(new StreamReadError(`${stream}: ${code} ${head?.description ?? 'without headers'}`));
        }
        if ('batch' in request) {
          const gap = gapBefore(head, messages.at(-1)?.sequence ?? 0);
          if (gap !== undefined) return reject(new PageGapError(`${stream}: ${gap}`));
          // The server counts pending messages once for a page, and again at its end if the stream
          // has grown meanwhile.
          pending = Number(head.get('Nats-Num-Pending'));
        }
        if (code !== 0) return resolve();
        messages.push({
          subject: head.get('Nats-Subject'),
          sequence: Number(head.get('Nats-Sequence')),
          operation: head.get('KV-Operation'),
          head,
          data: message.data,
        });
        if (!('batch' in request)) resolve();
        return undefined;
      },
    });
  });
  // The function awaits this below, unless the connection is closed and publishing throws first.
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
 * lost message shows. `Nats-Num-Pending` cannot serve for this: the server counts it at the start
 * of the page and lets it stop at 0.
 */
function gapBefore(head: MessageHead, previous: number): string | undefined {
  // A page without any message: the server found none, or it sent some that did not arrive.
  if (head.code === status.nothing) return previous === 0 ? undefined : 'a page ended as if it were empty';
  const stated = head.get('Nats-Last-Sequence');
  if (stated === String(previous)) return undefined;
  return `a page has a gap: after sequence ${previous} came what follows ${stated === '' ? 'an unknown one' : stated}`;
}

/**
 * Every retained message from a place on, oldest first, in as many requests as needed; the caller
 * may stop at any time.
 */
export async function* readStream(nc: NatsConnection, read: StreamRead): AsyncGenerator<ReadMessage, void, void> {
  for await (const messages of readPages(nc, read)) yield* messages;
}

/** The same, page by page: a long read spends less on each message. */
export async function* readPages(
  nc: NatsConnection,
  read: StreamRead,
): AsyncGenerator<readonly ReadMessage[], void, void> {
  let { from } = read;
  for (;;) {
    const { messages, pending } = await readBatch(nc, { ...read, from });
    yield messages;
    const last = messages.at(-1);
    if (pending === 0 || last === undefined) return;
    from = { seq: last.sequence + 1 };
  }
}
