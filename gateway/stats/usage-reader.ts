/** The stream USAGE, as a gateway reads it: what containers used, and VPN peers sent (ADR 40). */
import type { NatsConnection } from '@nats-io/transport-node';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { readLastPages, readPages, TooManySubjects, type ReadMessage } from '../../lib/nats/direct-reads.ts';
import { readSubjects, subjectsOfPage } from '../../lib/nats/stream-subjects.ts';
import { createSemaphore } from '../../lib/semaphore.ts';
import { within } from '../../lib/time/backoff.ts';
import type { PeerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { streams } from '../../schemas/records/buckets.ts';
import {
  addHours,
  addToHours,
  addTraffic,
  daysBetween,
  firstHourOf,
  UsageDay,
  type Amounts,
  type Hours,
  type Sum,
  type Traffic,
} from '../../schemas/records/usage.ts';
import { subjects, tenantOfUsageSubject } from '../../schemas/wire/subjects.ts';

/** Days that a gateway reads at a time, and messages of one page of a day. */
const usageDaysAtOnce = 4;
const usageReadMessages = 64;

const decodeDay = decoder(UsageDay);

export class UsageReader {
  readonly #nc: Promise<NatsConnection>;
  readonly #onMalformed: () => void;
  /** Over all requests: a day of a large tenant may be megabytes. */
  readonly #semaphore = createSemaphore(usageDaysAtOnce);

  constructor(nc: Promise<NatsConnection>, onMalformed: () => void) {
    this.#nc = nc;
    this.#onMalformed = onMalformed;
  }

  /**
   * By container, over the hours from one to before another.
   * @param days in which the tenant used anything, if they are known
   */
  async sums(
    tenant: TenantId,
    hours: Hours,
    days: readonly string[] = daysBetween(hours.from, hours.to),
  ): Promise<ReadonlyMap<string, Sum>> {
    const sums = new Map<string, Sum>();
    await this.#each(tenant, days, (day, firstHour) => addHours(sums, day, firstHour, hours));
    return sums;
  }

  /** Of all containers of a tenant, by hour. */
  async byHour(tenant: TenantId, hours: Hours): Promise<ReadonlyMap<number, Amounts>> {
    const sums = new Map<number, Amounts>();
    const days = daysBetween(hours.from, hours.to);
    await this.#each(tenant, days, (day, firstHour) => addToHours(sums, day, firstHour, hours));
    return sums;
  }

  /** Of one VPN peer, by hour. */
  async traffic(tenant: TenantId, peer: PeerId, hours: Hours): Promise<ReadonlyMap<number, Traffic>> {
    const sums = new Map<number, Traffic>();
    const days = daysBetween(hours.from, hours.to);
    await this.#each(tenant, days, (day, firstHour) => addTraffic(sums, day, peer, firstHour, hours));
    return sums;
  }

  /** The days of these hours in which each tenant used anything. */
  async tenants(hours: Hours): Promise<ReadonlyMap<TenantId, readonly string[]>> {
    const found = new Map<TenantId, string[]>();
    await Promise.all(
      daysBetween(hours.from, hours.to).map((day) =>
        this.#semaphore.run(async () => {
          for (const tenant of await this.#tenantsOf(day)) found.set(tenant, [...(found.get(tenant) ?? []), day]);
        }),
      ),
    );
    return found;
  }

  async #tenantsOf(day: string): Promise<ReadonlySet<TenantId>> {
    const nc = await within(this.#nc, limits.streamReadMs, 'NATS');
    const ask = {
      stream: streams.usage.name,
      api: subjects.read('usage_subjects'),
      filter: subjects.usageOfDay('*', day),
      timeoutMs: limits.streamReadMs,
    };
    const tenants = new Set<TenantId>();
    for (let offset = 0; ;) {
      const { text, total } = await readSubjects(nc, { ...ask, offset });
      const before = offset;
      for (const [subject] of subjectsOfPage(text)) {
        tenants.add(tenantOfUsageSubject(subject));
        offset += 1;
      }
      if (offset === before || offset >= total) return tenants;
    }
  }

  /** @param take gets the content of one message */
  async #each(tenant: TenantId, days: readonly string[], take: (day: UsageDay, firstHour: number) => void) {
    await Promise.all(
      days.map((day) =>
        this.#semaphore.run(async () => {
          const firstHour = firstHourOf(day);
          for (const { data } of await this.#ofDay(tenant, day)) {
            const used = this.#decoded(data);
            if (used !== undefined) take(used, firstHour);
          }
        }),
      ),
    );
  }

  #decoded(data: Uint8Array): UsageDay | undefined {
    try {
      return decodeDay(data);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#onMalformed();
      return undefined;
    }
  }

  /** One message of each subject: those that are put again meanwhile come twice. */
  async #ofDay(tenant: TenantId, day: string): Promise<Iterable<ReadMessage>> {
    const nc = await within(this.#nc, limits.streamReadMs, 'NATS');
    const read = {
      stream: streams.usage.name,
      api: subjects.read('usage'),
      filter: subjects.usageOfDay(tenant, day),
      timeoutMs: limits.streamReadMs,
      attempts: limits.streamReadAttempts,
      batchMessages: usageReadMessages,
      batchBytes: limits.streamBufferBytes,
    };
    const messages = new Map<string, ReadMessage>();
    const take = async (pages: AsyncIterable<readonly ReadMessage[]>): Promise<void> => {
      for await (const page of pages) for (const message of page) messages.set(message.subject, message);
    };
    try {
      await take(readLastPages(nc, read));
    } catch (error) {
      // The tenant is on so many hosts that the server does not list them at once.
      if (!(error instanceof TooManySubjects)) throw error;
      await take(readPages(nc, { ...read, from: { seq: 1 } }));
    }
    return messages.values();
  }
}
