/**
 * The outboxes of a partition, one for each stream: while one stream is away, the other is still
 * written. The checkpoint sees them as one.
 */
import type { AuditLine } from '../../../schemas/api/audit/line.ts';
import type { EventBody } from '../../../schemas/api/event.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys, streams } from '../../../schemas/records/buckets.ts';
import type { RecentEvents, RecentLines } from '../../../schemas/wire/answers.ts';
import type { RecentAsk, RecentLinesAsk } from '../../../schemas/wire/asks.ts';
import { subjects, tenantOfEventSubject } from '../../../schemas/wire/subjects.ts';
import { eventBytes, lineBytes, type Commit, type OutgoingEvent } from '../journal/codec.ts';
import type { StoreWrite } from '../store/store.ts';
import type { EventOutbox } from './event-outbox.ts';
import type { OutboxKind } from './recent-events.ts';

/** A reader of events asks for those of a tenant. */
export const eventKind: OutboxKind<EventBody> = {
  keyOf: keys.events,
  readerOf: tenantOfEventSubject,
  bytesOf: eventBytes,
};

export const lineKind: OutboxKind<AuditLine> = {
  keyOf: keys.audit,
  readerOf: (subject) => subject,
  bytesOf: lineBytes,
};

const all = (): boolean => true;

export class Outboxes {
  readonly events: EventOutbox;
  readonly audit: EventOutbox<AuditLine>;

  constructor(events: EventOutbox, audit: EventOutbox<AuditLine>) {
    this.events = events;
    this.audit = audit;
  }

  /** Events and lines of entries up to this one are all in their streams. */
  get publishedTo(): number {
    return Math.min(this.events.publishedTo, this.audit.publishedTo);
  }
  get isFailing(): boolean {
    return this.events.isFailing || this.audit.isFailing;
  }
  /** The stream for which no more can be parked, so that the mark does not move. */
  get full(): string | undefined {
    if (this.events.isFull) return streams.events.name;
    return this.audit.isFull ? streams.audit.name : undefined;
  }
  /** The stream that is away and for which this tenant's share of waiting items is full. */
  fullFor(tenant: TenantId): string | undefined {
    if (!this.events.hasShare(tenant)) return streams.events.name;
    return this.audit.hasShare(subjects.auditOfTenant(tenant)) ? undefined : streams.audit.name;
  }
  /** `true` if more events of all these tenants may wait for a stream that is away. */
  haveShare(events: readonly OutgoingEvent[]): boolean {
    return events.every(({ subject }) => this.events.hasShare(eventKind.readerOf(subject)));
  }
  get parkedEvents(): number {
    return this.events.parkedEvents + this.audit.parkedEvents;
  }
  /** The newest entry that was offered, or loaded. */
  get last(): number {
    return this.events.last;
  }
  get hasFreed(): boolean {
    return this.events.hasFreed || this.audit.hasFreed;
  }

  onFreed(call: () => void): void {
    this.events.onFreed(call);
    this.audit.onFreed(call);
  }

  offer({ number, events, lines = [] }: Pick<Commit, 'number' | 'events' | 'lines'>): void {
    this.events.offer({ number, events });
    this.audit.offer({ number, events: lines });
  }

  async publishTo(entry: number, ms: number): Promise<void> {
    await Promise.all([this.events.publishTo(entry, ms), this.audit.publishTo(entry, ms)]);
  }

  /**
   * The writes of both outboxes (`EventOutbox.park`); `undefined` if those of either do not fit.
   */
  park(entry: number): readonly StoreWrite[] | undefined {
    const fit = [this.events.fits(entry), this.audit.fits(entry)];
    if (fit.includes(false)) return undefined;
    const events = this.events.park(entry) ?? [];
    const freed = events.filter(({ value }) => value === null).length;
    return [...events, ...(this.audit.park(entry, limits.eventsFreedPerBatch - freed) ?? [])];
  }

  parkPublished(): readonly StoreWrite[] {
    return [...this.events.parkPublished(), ...this.audit.parkPublished()];
  }

  parkAll(): readonly StoreWrite[] {
    return [...this.events.parkAll(), ...this.audit.parkAll()];
  }

  recentEvents({ tenant, container, from, limit }: RecentAsk): RecentEvents {
    const matches = container === null ? all : (event: EventBody): boolean => event.container_id === container;
    const { found, more, last } = this.events.recent({ reader: tenant, matches, from, limit });
    const by = found.map(({ by }) => by ?? null);
    return { events: found.map(({ event }) => event), by, more, last };
  }

  recentLines({ tenant, before, limit }: RecentLinesAsk): RecentLines {
    const asked = { reader: subjects.auditOfTenant(tenant), matches: all, from: { before }, limit };
    const { found, more } = this.audit.recent(asked);
    return { lines: found.map(({ event }) => event), more };
  }

  async stop(): Promise<void> {
    await Promise.all([this.events.stop(), this.audit.stop()]);
  }
}
