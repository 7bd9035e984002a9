/**
 * Reads one subject of a JetStream stream without a consumer, by direct batch gets: from a position
 * on, or the newest of it. A consumer per reader would cost the server more than all the reading.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { within } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import { readBatch, readLast, type Batch, type ReadFrom, type ReadMessage } from '../../lib/nats/direct-reads.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { limits } from '../../schemas/limits.ts';
import { subjects, type Readable } from '../../schemas/wire/subjects.ts';

/**
 * A look reaches back so many times as far as the one before: what that one found tells how far it
 * should.
 */
const growth = { min: 2, max: 8, margin: 1.25 } as const;
/**
 * A look may read so many times as many messages as it should: the fewer, the more questions where
 * it begins.
 */
const slack = 3;

/** A place in the stream, and how many of the subject's messages there are from it on. */
interface Mark {
  readonly seq: number;
  readonly count: number;
}

export class SubjectReader {
  readonly #nc: Promise<NatsConnection>;
  readonly #stream: string;
  readonly #api: string;
  readonly #clock: Clock;

  constructor(nc: Promise<NatsConnection>, what: Exclude<Readable, 'cluster'>, clock: Clock) {
    this.#nc = nc;
    this.#stream = streams[what].name;
    this.#api = subjects.read(what);
    this.#clock = clock;
  }

  /** The next messages from a position on. */
  page(subject: string, seq: number): Promise<Batch> {
    return this.#batch(subject, { seq }, limits.streamReadMessages);
  }

  /**
   * Hands the newest messages to `take`, oldest first, until they are enough or there are no more:
   * the last one, then a few before it, and so on, since a subject can't be read backwards. `take`
   * is called anew for each look, with a function that reads it page by page; `share` tells how
   * much of what is wanted was taken, 1 being all of it. Each look is one unbroken run of messages,
   * so a follower may go on after it; a stale replica makes it end earlier.
   */
  async newest<T>(
    subject: string,
    take: (pages: AsyncIterable<readonly ReadMessage[]>) => Promise<T>,
    share: (taken: T) => number,
  ): Promise<T> {
    const last = await readLast(await this.#connection(), this.#reading(subject));
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
   * The oldest position that is certain to have nothing wanted before it: `before(message)` is true
   * of it, or it is the first.
   */
  async positionBefore(subject: string, before: (message: ReadMessage) => boolean): Promise<number> {
    const nowMs = this.#clock.nowMs();
    for (let windowMs = limits.tailWindowMs; windowMs < limits.logAgeMs; windowMs *= limits.tailWindowGrowth) {
      const from = { start_time: new Date(nowMs - windowMs).toISOString() };
      const [message] = (await this.#batch(subject, from, 1)).messages;
      if (message !== undefined && before(message)) return message.sequence;
    }
    return 1;
  }

  /**
   * A place with `wanted` messages from it on, up to `slack` times as many; `far` where there is
   * none. Messages may come and go meanwhile, and replicas differ: what is between `far` and `near`
   * shrinks whatever they answer.
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

  /** From one place to another, which is that of a message. */
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

/** Where the place would be if the messages lay evenly. */
function proportional(low: Mark, high: Mark, wanted: number): number {
  const middle = (wanted * (1 + slack)) / 2;
  const part = (middle - high.count) / (low.count - high.count);
  return between(low, high, high.seq - (high.seq - low.seq) * part);
}

/**
 * Halves the orders of magnitude of the distance from the newest message: bursts and silences
 * mislead the other.
 */
function geometric(low: Mark, high: Mark, lastSeq: number): number {
  const distance = Math.sqrt(Math.max(lastSeq - high.seq, 1) * (lastSeq - low.seq));
  return between(low, high, lastSeq - distance);
}

async function* only(messages: readonly ReadMessage[]): AsyncGenerator<readonly ReadMessage[]> {
  yield messages;
}
