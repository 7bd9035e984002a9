/**
 * Reads one subject of a JetStream stream without a consumer, by direct batch gets: from a position on, or the newest of
 * it. A consumer per reader would cost the server more than all the reading.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { readBatch, type Batch, type ReadFrom, type ReadMessage } from '../../lib/stream-read.ts';
import { limits } from '../../schemas/limits.ts';

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
  page(subject: string, seq: number): Promise<Batch> {
    return this.#batch(subject, { seq }, limits.streamReadMessages);
  }

  /**
   * Hands the newest messages to `take`, oldest first, until it has enough or there are no more: looks a few seconds
   * back, then eight times as far, and so on, since a subject can't be read backwards. `take` is called anew for each
   * look, with a function that reads it page by page.
   */
  async newest<T>(
    subject: string,
    take: (pages: AsyncIterable<readonly ReadMessage[]>) => Promise<T>,
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
    return take(this.#pages(subject, { seq: oldest.sequence }));
  }

  /** The oldest position that is certain to have nothing wanted before it: `before(message)` is true of it, or it is the first. */
  async positionBefore(subject: string, before: (message: ReadMessage) => boolean): Promise<number> {
    const nowMs = this.#clock.nowMs();
    for (let windowMs = firstWindowMs; windowMs < limits.logAgeMs; windowMs *= windowGrowth) {
      const from = { start_time: new Date(nowMs - windowMs).toISOString() };
      const [message] = (await this.#batch(subject, from, 1)).messages;
      if (message !== undefined && before(message)) return message.sequence;
    }
    return 1;
  }

  async *#pages(subject: string, from: ReadFrom): AsyncGenerator<readonly ReadMessage[]> {
    let next: ReadFrom = from;
    for (;;) {
      const { messages, more } = await this.#batch(subject, next, limits.streamReadMessages);
      yield messages;
      const last = messages.at(-1);
      if (!more || last === undefined) return;
      next = { seq: last.sequence + 1 };
    }
  }

  async #batch(subject: string, from: ReadFrom, batch: number): Promise<Batch> {
    const nc = await within(this.#nc, limits.streamReadMs, 'NATS');
    return readBatch(nc, {
      stream: this.#stream,
      filter: subject,
      from,
      batchMessages: batch,
      batchBytes: limits.streamBufferBytes,
      timeoutMs: limits.streamReadMs,
      attempts: limits.streamReadAttempts,
    });
  }
}

async function* none(): AsyncGenerator<readonly ReadMessage[]> {
  yield [];
}
