/**
 * Events, or lines of the audit, that a reader of their stream may not see yet: those that are not
 * published, and those that were published a moment ago, since any replica answers a read and one
 * may lag (ADR 12).
 */
import { fill } from '../../../lib/fill.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { compareEvents } from '../../../schemas/event-id.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Identified, Outgoing } from '../journal/codec.ts';
import { Shares } from '../shares.ts';
import { KiB } from '../../../schemas/limits/units.ts';

/** Bytes of one page of recent events between gateway and actor. */
export const recentEventsBytes = 512 * KiB;

/** A kind of items in an outbox: their keys, readers and sizes. */
export interface OutboxKind<Item extends Identified> {
  /** The key in the bucket for parked items, by the number of their first commit. */
  readonly keyOf: (commit: number) => string;
  /** The name of the reader that may ask for the items on this subject. */
  readonly readerOf: (subject: string) => string;
  readonly bytesOf: (outgoing: Outgoing<Item>) => number;
}

export const bytesOfAll = <Item extends Identified>(
  { bytesOf }: Pick<OutboxKind<Item>, 'bytesOf'>,
  events: readonly Outgoing<Item>[],
): number => events.reduce((sum, event) => sum + bytesOf(event), 0);

/**
 * A request for events: those before an id, newest first (`null`: the newest), or those after an
 * id.
 */
export interface Asked<Item> {
  readonly reader: string;
  readonly matches: (event: Item) => boolean;
  readonly from: { readonly before: string | null } | { readonly after: string };
  readonly limit: number;
}

/** The newest of the published entries: as many as are still shown (`eventsSettlingBytes`). */
export function settlingOf<Item extends Identified, E extends { readonly events: readonly Outgoing<Item>[] }>(
  kind: OutboxKind<Item>,
  published: readonly E[],
): readonly E[] {
  let bytes = 0;
  const last = published.findLastIndex(
    ({ events }) => (bytes += bytesOfAll(kind, events)) > limits.eventsSettlingBytes,
  );
  return published.slice(last + 1);
}

/** A publication that readers may not see yet. */
interface Publication {
  readonly atMs: number;
  readonly bytes: number;
  /** The number of the oldest events of each reader that it holds. */
  readonly counts: ReadonlyMap<string, number>;
}

export class RecentEvents<Item extends Identified> {
  readonly #kind: OutboxKind<Item>;
  readonly #clock: Clock;
  /** By reader, oldest first. */
  readonly #shown = new Map<string, Outgoing<Item>[]>();
  #publications: Publication[] = [];
  #publishedBytes = 0;
  /** Bytes that are not published, by reader. */
  readonly #waiting = new Shares();

  constructor(kind: OutboxKind<Item>, clock: Clock) {
    this.#kind = kind;
    this.#clock = clock;
  }

  show(events: readonly Outgoing<Item>[]): void {
    for (const event of events) {
      const reader = this.#kind.readerOf(event.subject);
      const shown = this.#shown.get(reader);
      if (shown === undefined) this.#shown.set(reader, [event]);
      else shown.push(event);
      this.#waiting.add(reader, this.#kind.bytesOf(event));
    }
  }

  /** `true` if a reader may add to the bytes that are not published. */
  hasShare(reader: string, room: number): boolean {
    return this.#waiting.has(reader, room);
  }

  /**
   * Notes that the oldest unpublished events are published: they are dropped once every replica has
   * them.
   */
  published(events: readonly Outgoing<Item>[]): void {
    if (events.length === 0) return;
    const counts = new Map<string, number>();
    for (const event of events) {
      const reader = this.#kind.readerOf(event.subject);
      counts.set(reader, (counts.get(reader) ?? 0) + 1);
      this.#waiting.add(reader, -this.#kind.bytesOf(event));
    }
    const bytes = bytesOfAll(this.#kind, events);
    this.#publications.push({ atMs: this.#clock.monotonicMs(), bytes, counts });
    this.#publishedBytes += bytes;
    this.#forget();
  }

  /** The events that were published a moment ago; the oldest of each reader first. */
  *settling(): Generator<Outgoing<Item>, void, void> {
    this.#forget();
    for (const [reader, shown] of this.#shown) {
      const published = this.#publications.reduce((sum, { counts }) => sum + (counts.get(reader) ?? 0), 0);
      yield* shown.slice(0, published);
    }
  }

  /** Events, oldest first. `more`: `true` if there are more on the requested side. */
  page({ reader, matches, from, limit }: Asked<Item>): {
    readonly found: readonly Outgoing<Item>[];
    readonly more: boolean;
  } {
    this.#forget();
    const all = this.#shown.get(reader) ?? [];
    const matching = all.filter(({ event }) => matches(event));
    const side =
      'after' in from
        ? matching.filter(({ event: { id } }) => compareEvents(id, from.after) > 0)
        : matching.filter(({ event: { id } }) => from.before === null || compareEvents(id, from.before) < 0).reverse();
    const { values, next } = fill(side, { bytes: recentEventsBytes, items: limit }, (outgoing) => ({
      value: outgoing,
      bytes: Buffer.byteLength(JSON.stringify(outgoing)),
    }));
    return { found: 'after' in from ? values : values.reverse(), more: next !== undefined };
  }

  #forget(): void {
    const untilMs = this.#clock.monotonicMs() - limits.eventsSettledMs;
    for (;;) {
      const [oldest] = this.#publications;
      if (oldest === undefined) return;
      if (oldest.atMs > untilMs && this.#publishedBytes <= limits.eventsSettlingBytes) return;
      this.#publications.shift();
      this.#publishedBytes -= oldest.bytes;
      for (const [reader, count] of oldest.counts) {
        const shown = this.#shown.get(reader);
        shown?.splice(0, count);
        if (shown?.length === 0) this.#shown.delete(reader);
      }
    }
  }
}
