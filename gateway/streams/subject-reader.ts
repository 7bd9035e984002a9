/**
 * Reads one subject of a JetStream stream without a consumer, by direct batch gets: from a position on, or the newest of
 * it. A consumer per reader would cost the server more than all the reading.
 */
import { createInbox, type NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { limits } from '../../schemas/limits.ts';

export interface StoredMessage {
  /** Position in the stream. */
  readonly seq: number;
  readonly data: Uint8Array;
}

export interface Page {
  readonly messages: readonly StoredMessage[];
  /** Whether the subject has more after them. */
  readonly more: boolean;
}

type From = { readonly seq: number } | { readonly start_time: string };

const firstWindowMs = 4_000;
const windowGrowth = 8;

export class SubjectReader {
  readonly #nc: Promise<NatsConnection>;
  readonly #stream: string;
  readonly #clock: Clock;

  constructor(nc: Promise<NatsConnection>, stream: string, clock: Clock) {
    this.#nc = nc;
    this.#stream = stream;
    this.#clock = clock;
  }

  /** The next messages from a position on. */
  page(subject: string, seq: number): Promise<Page> {
    return this.#batch(subject, { seq }, limits.streamReadMessages);
  }

  /**
   * Hands the newest messages to `take`, oldest first, until it has enough or there are no more: looks a few seconds
   * back, then eight times as far, and so on, since a subject can't be read backwards. `take` is called anew for each
   * look, with a function that reads it page by page.
   */
  async newest<T>(
    subject: string,
    take: (pages: AsyncIterable<readonly StoredMessage[]>) => Promise<T>,
    enough: (taken: T) => boolean,
  ): Promise<T> {
    const first = await this.#batch(subject, { seq: 1 }, 1);
    const [oldest] = first.messages;
    if (oldest === undefined) return take(none());
    const nowMs = this.#clock.nowMs();
    for (let windowMs = firstWindowMs; windowMs < limits.logAgeMs; windowMs *= windowGrowth) {
      const taken = await take(this.#pages(subject, { start_time: new Date(nowMs - windowMs).toISOString() }));
      if (enough(taken)) return taken;
      if (!first.more) break;
    }
    return take(this.#pages(subject, { seq: oldest.seq }));
  }

  /** The oldest position that is certain to have nothing wanted before it: `before(message)` is true of it, or it is the first. */
  async positionBefore(subject: string, before: (message: StoredMessage) => boolean): Promise<number> {
    const nowMs = this.#clock.nowMs();
    for (let windowMs = firstWindowMs; windowMs < limits.logAgeMs; windowMs *= windowGrowth) {
      const from = { start_time: new Date(nowMs - windowMs).toISOString() };
      const [message] = (await this.#batch(subject, from, 1)).messages;
      if (message !== undefined && before(message)) return message.seq;
    }
    return 1;
  }

  async *#pages(subject: string, from: From): AsyncGenerator<readonly StoredMessage[]> {
    let next: From = from;
    for (;;) {
      const { messages, more } = await this.#batch(subject, next, limits.streamReadMessages);
      yield messages;
      const last = messages.at(-1);
      if (!more || last === undefined) return;
      next = { seq: last.seq + 1 };
    }
  }

  async #batch(subject: string, from: From, batch: number): Promise<Page> {
    const request = { ...from, next_by_subj: subject, batch, max_bytes: limits.streamBufferBytes };
    const nc = await within(this.#nc, limits.streamReadMs, 'NATS');
    return directBatch(nc, this.#stream, JSON.stringify(request));
  }
}

const status = { endOfBatch: 204, noResults: 404 } as const;

/** A direct batch get (NATS ADR-31). The client's own call treats "nothing there" as an error, hence this one. */
async function directBatch(nc: NatsConnection, stream: string, request: string): Promise<Page> {
  const messages: StoredMessage[] = [];
  let pending = 0;
  const inbox = createInbox();
  const { promise, resolve, reject } = withResolvers();
  const subscription = nc.subscribe(inbox, {
    callback: (error, { headers, data }) => {
      if (error !== null) return reject(error);
      const code = headers?.code ?? 0;
      if (code === status.endOfBatch || code === status.noResults) return resolve();
      if (headers === undefined || code !== 0) return reject(new Error(`${stream}: ${code} ${headers?.description}`));
      messages.push({ seq: Number(headers.get('Nats-Sequence')), data });
      pending = Number(headers.get('Nats-Num-Pending'));
      return undefined;
    },
  });
  try {
    nc.publish(`$JS.API.DIRECT.GET.${stream}`, request, { reply: inbox });
    await within(promise, limits.streamReadMs, `reading ${stream}`);
    return { messages, more: pending > 0 };
  } finally {
    subscription.unsubscribe();
  }
}

function withResolvers() {
  let resolve = (): void => {};
  let reject = (_error: Error): void => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

async function* none(): AsyncGenerator<readonly StoredMessage[]> {
  yield [];
}
