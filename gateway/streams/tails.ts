/**
 * The newest items (log lines, events) of subjects that were read lately. A subject only grows at
 * its end, so a reader that has the last items asks only what came after them, which is mostly
 * nothing. Purges and a restore of the stream break that rule, so after a few seconds a tail is
 * read from the stream again.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/time/clock.ts';
import type { ReadMessage } from '../../lib/nats/direct-reads.ts';
import { limits } from '../../schemas/limits.ts';
import { SharedReads } from './shared-reads.ts';
import type { SubjectReader } from './subject-reader.ts';
import { MiB, seconds } from '../../schemas/limits/units.ts';

/** A tail is read from the stream again after this time. */
export const tailFreshMs = 10 * seconds;
/** Memory for the newest log lines that a gateway keeps, and again for the newest events. */
const tailBytes = 32 * MiB;
/** Subjects whose newest items a gateway keeps. */
const tailsMax = 10_000;

export interface Tail<T> {
  /** Oldest first, each once. */
  readonly items: readonly T[];
  /** True if no older items are in the stream. */
  readonly isWhole: boolean;
  /** Position in the stream to read from next. */
  readonly next: number;
}

/** The content of a stream's messages. */
export interface ItemKind<T> {
  /** The newest items of these messages, at least `limit` if there are as many. */
  newestIn(messages: readonly ReadMessage[], limit: number): readonly T[];
  /** The newest `limit` items, oldest first, each once. */
  newestOf(items: readonly T[], limit: number): readonly T[];
  /** In memory, estimated. */
  bytesOf(item: T): number;
  /** The most items that a page has. */
  readonly most: number;
}

interface Kept<T> extends Tail<T> {
  /** The time of the last full read from the stream, by the monotonic clock. */
  readonly readAtMs: number;
}

/** The tail with items that were read after it. Pure. */
export function longer<T>(tail: Tail<T>, items: readonly T[], next: number, kind: ItemKind<T>): Tail<T> {
  const all = kind.newestOf([...tail.items, ...items], Infinity);
  const kept = kind.newestOf(all, kind.most);
  return { items: kept, isWhole: tail.isWhole && kept.length === all.length, next };
}

export class Tails<T> {
  readonly #clock: Clock;
  readonly #kept: LRUCache<string, Kept<T>>;

  constructor(clock: Clock, { bytesOf }: Pick<ItemKind<T>, 'bytesOf'>) {
    this.#clock = clock;
    this.#kept = new LRUCache({
      max: tailsMax,
      maxSize: tailBytes,
      sizeCalculation: ({ items }) => items.reduce<number>((sum, item) => sum + bytesOf(item), limits.tailItemBytes),
    });
  }

  /** A tail with the newest `limit` items as of a few seconds ago. */
  of(subject: string, limit: number): Tail<T> | undefined {
    const kept = this.#kept.get(subject);
    if (kept === undefined || this.#clock.monotonicMs() - kept.readAtMs >= tailFreshMs) return undefined;
    return kept.isWhole || kept.items.length >= limit ? kept : undefined;
  }

  /** Keeps a tail that was read from the stream from `startMs` on. */
  keep(subject: string, tail: Tail<T>, startMs: number): void {
    this.#kept.set(subject, { ...tail, readAtMs: startMs });
  }

  /** Keeps a tail in place of another; it is no fresher than that one. */
  replace(subject: string, before: Tail<T>, tail: Tail<T>): void {
    const kept = this.#kept.get(subject);
    if (kept === before) this.#kept.set(subject, { ...tail, readAtMs: kept.readAtMs });
  }
}

export class TailReader<T> {
  readonly #reader: SubjectReader;
  readonly #clock: Clock;
  readonly #kind: ItemKind<T>;
  readonly #tails: Tails<T>;
  readonly #shared = new SharedReads<Tail<T>>();

  constructor(reader: SubjectReader, clock: Clock, kind: ItemKind<T>) {
    this.#reader = reader;
    this.#clock = clock;
    this.#kind = kind;
    this.#tails = new Tails(clock, kind);
  }

  /**
   * The newest items, at most `limit`, and where a follower continues. Readers of one subject share
   * reads, because a message may have 64 KiB.
   */
  async newest(subject: string, limit: number): Promise<Tail<T>> {
    const tail = await this.#shared.of(`${limit} ${subject}`, async () => {
      const known = this.#tails.of(subject, limit);
      return (known === undefined ? undefined : await this.#continued(subject, known)) ?? this.#read(subject, limit);
    });
    return tail.items.length <= limit ? tail : { items: tail.items.slice(-limit), isWhole: false, next: tail.next };
  }

  /**
   * A tail with what came after it; undefined if that is more than a page, or the stream does not
   * have its end. Asks for the newest message, not for what follows the tail: where nothing does,
   * nats-server 2.15 searches for long (ADR 23).
   */
  async #continued(subject: string, known: Tail<T>): Promise<Tail<T> | undefined> {
    const end = (await this.#reader.last(subject))?.sequence ?? 0;
    if (end === known.next - 1) return known;
    if (end < known.next) return undefined;
    const { messages, pending } = await this.#reader.page(subject, known.next);
    const last = messages.at(-1);
    if (pending > 0 || last === undefined) return undefined;
    const items = this.#kind.newestIn(messages, this.#kind.most);
    const tail = longer(known, items, last.sequence + 1, this.#kind);
    this.#tails.replace(subject, known, tail);
    return tail;
  }

  async #read(subject: string, limit: number): Promise<Tail<T>> {
    const startMs = this.#clock.monotonicMs();
    const take = async (pages: AsyncIterable<readonly ReadMessage[]>): Promise<Omit<Tail<T>, 'isWhole'>> => {
      let items: readonly T[] = [];
      let next = 1;
      for await (const messages of pages) {
        // Only what could still be among the newest is kept: memory is bounded by the limit, not by
        // the subject.
        items = this.#kind.newestOf([...items, ...this.#kind.newestIn(messages, limit)], limit);
        next = (messages.at(-1)?.sequence ?? next - 1) + 1;
      }
      return { items, next };
    };
    const read = await this.#reader.newest(subject, take, ({ items }) => items.length / limit);
    const tail = { ...read, isWhole: read.items.length < limit };
    this.#tails.keep(subject, tail, startMs);
    return tail;
  }
}
