/**
 * Reads one subject of a JetStream stream without a consumer, by direct batch gets: from a position
 * on, or its newest messages. A consumer for each reader would cost the server more than all the
 * reads.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { readBatch, readLast, type Batch, type ReadFrom, type ReadMessage } from '../../lib/nats/direct-reads.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects, type ReadableStream } from '../../schemas/wire/subjects.ts';

/** Messages of one read. */
export const streamReadMessages = 64;

/**
 * A search for the last lines begins with a window of this length, which grows by this factor.
 */
const tailWindowMs = 4000;
const tailWindowGrowth = 8;

/**
 * The factor by which a read reaches further back than the one before, and its limits; the factor
 * follows from how much the read before found.
 */
const growth = { min: 2, max: 8, margin: 1.25 } as const;
/**
 * Ratio of messages that a read may return to those that are needed: with a smaller one, finding
 * its start takes more requests.
 */
const slack = 3;

/** A position in the stream, and how many messages the subject has from there on. */
interface Mark {
  readonly seq: number;
  readonly count: number;
}

export class SubjectReader {
  readonly #nc: Promise<NatsConnection>;
  readonly #stream: string;
  readonly #api: string;
  readonly #clock: Clock;

  constructor(nc: Promise<NatsConnection>, what: ReadableStream, clock: Clock) {
    this.#nc = nc;
    this.#stream = streams[what].name;
    this.#api = subjects.read(what);
    this.#clock = clock;
  }

  /** The newest message. */
  async last(subject: string): Promise<ReadMessage | undefined> {
    return readLast(await this.#connection(), this.#reading(subject));
  }

  /** The next messages from a position on. */
  page(subject: string, seq: number): Promise<Batch> {
    return this.#batch(subject, { seq }, streamReadMessages);
  }

  /** Number of messages from a position on. */
  async countFrom(subject: string, seq: number): Promise<number> {
    const { messages, pending } = await this.#batch(subject, { seq }, 1);
    return messages.length + pending;
  }

  /** The position of the oldest message, or infinite. */
  async firstOf(subject: string): Promise<number> {
    return (await this.firstFrom(subject, 1))?.sequence ?? Infinity;
  }

  /** The first message from a position on. */
  async firstFrom(subject: string, seq: number): Promise<ReadMessage | undefined> {
    return (await this.#batch(subject, { seq }, 1)).messages[0];
  }

  /** The position of the first message that was stored at this time or later, or infinite. */
  async firstSince(subject: string, ms: number): Promise<number> {
    const from = { start_time: new Date(ms).toISOString() };
    return (await this.#batch(subject, from, 1)).messages[0]?.sequence ?? Infinity;
  }

  /**
   * Hands the newest messages to `take`, oldest first, until they suffice or there are no more. A
   * subject cannot be read backwards, so each attempt reaches further back: the last message, then
   * a few before it, and so on. Each attempt calls `take` again, with its pages; `share` says how
   * much of the wanted amount it took, 1 for all. An attempt is one unbroken run of messages, so a
   * follower may continue after it; a stale replica makes it end earlier.
   */
  async newest<T>(
    subject: string,
    take: (pages: AsyncIterable<readonly ReadMessage[]>) => Promise<T>,
    share: (taken: T) => number,
  ): Promise<T> {
    const last = await this.last(subject);
    let taken = await take(only(last === undefined ? [] : [last]));
    if (last === undefined || share(taken) >= 1) return taken;
    const { messages, pending } = await this.#batch(subject, { seq: 1 }, 1);
    const oldest: Mark = { seq: messages[0]?.sequence ?? 1, count: messages.length + pending };
    let from: Mark = { seq: last.sequence, count: 1 };
    while (from.seq > oldest.seq && share(taken) < 1) {
      const times = Math.min(Math.max(growth.margin / share(taken), growth.min), growth.max);
      from = await this.#markOf(subject, Math.ceil(from.count * times), oldest, from, last.sequence);
      taken = await take(this.#pages(subject, from.seq, last.sequence));
    }
    return taken;
  }

  /**
   * A position from which to read without missing anything: that of a message for which `before` is
   * true, or the first.
   */
  async positionBefore(subject: string, before: (message: ReadMessage) => boolean): Promise<number> {
    const nowMs = this.#clock.nowMs();
    for (let windowMs = tailWindowMs; windowMs < limits.logAgeMs; windowMs *= tailWindowGrowth) {
      const from = { start_time: new Date(nowMs - windowMs).toISOString() };
      const [message] = (await this.#batch(subject, from, 1)).messages;
      if (message !== undefined && before(message)) return message.sequence;
    }
    return 1;
  }

  /**
   * A position with at least `wanted` messages after it, and at most `slack` times as many; `far`
   * if there is none. Messages come and go meanwhile, and replicas differ, but the range between
   * `far` and `near` shrinks with every answer.
   */
  async #markOf(subject: string, wanted: number, far: Mark, near: Mark, lastSeq: number): Promise<Mark> {
    let [low, high] = [far, near];
    for (let turn = 0; low.count > wanted * slack && high.seq - low.seq > 1; turn++) {
      const seq = turn % 2 === 0 ? proportional(low, high, wanted) : geometric(low, high, lastSeq);
      const { messages, pending } = await this.#batch(subject, { seq }, 1);
      const mark = { seq, count: messages.length + pending };
      if (mark.count < wanted) high = mark;
      else low = mark;
    }
    return low;
  }

  /** The messages from one position to another, page by page. */
  async *#pages(subject: string, from: number, to: number): AsyncGenerator<readonly ReadMessage[]> {
    for (let seq = from; seq <= to;) {
      const { messages, pending } = await this.page(subject, seq);
      yield messages;
      const last = messages.at(-1);
      if (pending === 0 || last === undefined) return;
      seq = last.sequence + 1;
    }
  }

  async #batch(subject: string, from: ReadFrom, batch: number): Promise<Batch> {
    const bounds = { batchMessages: batch, batchBytes: limits.streamBufferBytes };
    return readBatch(await this.#connection(), { ...this.#reading(subject), from, ...bounds });
  }

  #connection(): Promise<NatsConnection> {
    return within(this.#nc, limits.streamReadMs, 'NATS');
  }

  #reading(filter: string) {
    const { streamReadMs: timeoutMs, streamReadAttempts: attempts } = limits;
    return { stream: this.#stream, api: this.#api, filter, timeoutMs, attempts };
  }
}

const between = (low: Mark, high: Mark, seq: number): number =>
  Math.min(Math.max(Math.round(seq), low.seq + 1), high.seq - 1);

/** Guesses the position as if the messages were evenly spread. */
function proportional(low: Mark, high: Mark, wanted: number): number {
  const middle = (wanted * (1 + slack)) / 2;
  const part = (middle - high.count) / (low.count - high.count);
  return between(low, high, high.seq - (high.seq - low.seq) * part);
}

/**
 * Halves the distance from the newest message on a logarithmic scale, because bursts and silences
 * mislead the proportional guess.
 */
function geometric(low: Mark, high: Mark, lastSeq: number): number {
  const distance = Math.sqrt(Math.max(lastSeq - high.seq, 1) * (lastSeq - low.seq));
  return between(low, high, lastSeq - distance);
}

async function* only(messages: readonly ReadMessage[]): AsyncGenerator<readonly ReadMessage[]> {
  yield messages;
}
