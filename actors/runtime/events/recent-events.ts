/**
 * Events that a reader of the stream EVENTS may not see yet: those that are not published, and
 * those that were published a moment ago, since any replica answers a read and one may lag (ADR
 * 12).
 */
import { fill } from '../../../lib/fill.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { compareEvents } from '../../../schemas/api/event.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { RecentEvents as RecentPage } from '../../../schemas/wire/answers.ts';
import type { RecentAsk } from '../../../schemas/wire/asks.ts';
import { tenantOfEventSubject } from '../../../schemas/wire/subjects.ts';
import { eventBytes, type OutgoingEvent } from '../journal/codec.ts';

export const tenantOf = ({ subject }: OutgoingEvent): TenantId => tenantOfEventSubject(subject);

export const bytesOf = (events: readonly OutgoingEvent[]): number =>
  events.reduce((sum, event) => sum + eventBytes(event), 0);

/** The newest of the published entries: as many as are still shown (`eventsSettlingBytes`). */
export function settlingOf<E extends { readonly events: readonly OutgoingEvent[] }>(
  published: readonly E[],
): readonly E[] {
  let bytes = 0;
  const last = published.findLastIndex(({ events }) => (bytes += bytesOf(events)) > limits.eventsSettlingBytes);
  return published.slice(last + 1);
}

/** A publication that readers may not see yet. */
interface Publication {
  readonly atMs: number;
  readonly bytes: number;
  /** How many of the oldest events of each tenant it holds. */
  readonly counts: ReadonlyMap<TenantId, number>;
}

export class RecentEvents {
  readonly #clock: Clock;
  /** By tenant, oldest first. */
  readonly #shown = new Map<TenantId, OutgoingEvent[]>();
  #publications: Publication[] = [];
  #publishedBytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  show(events: readonly OutgoingEvent[]): void {
    for (const event of events) {
      const tenant = tenantOf(event);
      const shown = this.#shown.get(tenant);
      if (shown === undefined) this.#shown.set(tenant, [event]);
      else shown.push(event);
    }
  }

  /**
   * The oldest that are shown and were not published are published now: they go once every replica
   * has them.
   */
  published(events: readonly OutgoingEvent[]): void {
    if (events.length === 0) return;
    const counts = new Map<TenantId, number>();
    for (const event of events) {
      const tenant = tenantOf(event);
      counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
    }
    const bytes = bytesOf(events);
    this.#publications.push({ atMs: this.#clock.monotonicMs(), bytes, counts });
    this.#publishedBytes += bytes;
    this.#forget();
  }

  /** Published a moment ago; the oldest of each tenant first. */
  *settling(): Generator<OutgoingEvent, void, void> {
    this.#forget();
    for (const [tenant, shown] of this.#shown) {
      const published = this.#publications.reduce((sum, { counts }) => sum + (counts.get(tenant) ?? 0), 0);
      yield* shown.slice(0, published);
    }
  }

  page({ tenant, container, from, limit }: Omit<RecentAsk, 'type'>): Omit<RecentPage, 'last'> {
    this.#forget();
    const all = this.#shown.get(tenant) ?? [];
    const matching = all
      .map(({ event }) => event)
      .filter((event) => container === null || event.container_id === container);
    const side =
      'after' in from
        ? matching.filter(({ id }) => compareEvents(id, from.after) > 0)
        : matching.filter(({ id }) => from.before === null || compareEvents(id, from.before) < 0).reverse();
    const { values, next } = fill(side, { bytes: limits.recentEventsBytes, items: limit }, (event) => ({
      value: event,
      bytes: Buffer.byteLength(JSON.stringify(event)),
    }));
    return { events: 'after' in from ? values : values.reverse(), more: next !== undefined };
  }

  #forget(): void {
    const untilMs = this.#clock.monotonicMs() - limits.eventsSettledMs;
    for (;;) {
      const [oldest] = this.#publications;
      if (oldest === undefined) return;
      if (oldest.atMs > untilMs && this.#publishedBytes <= limits.eventsSettlingBytes) return;
      this.#publications.shift();
      this.#publishedBytes -= oldest.bytes;
      for (const [tenant, count] of oldest.counts) {
        const shown = this.#shown.get(tenant);
        shown?.splice(0, count);
        if (shown?.length === 0) this.#shown.delete(tenant);
      }
    }
  }
}
