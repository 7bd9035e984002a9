/** The stream USAGE, as a gateway reads it: what a tenant's containers used (ADR 40). */
import type { NatsConnection } from '@nats-io/transport-node';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { readLastPages, readPages, TooManySubjects, type ReadMessage } from '../../lib/nats/direct-reads.ts';
import { createPlaces } from '../../lib/places.ts';
import { within } from '../../lib/time/backoff.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { addHours, daysBetween, firstHourOf, UsageDay, type Sum } from '../../schemas/records/usage.ts';
import { subjects } from '../../schemas/wire/subjects.ts';

/** Days that a gateway reads at a time, and messages of one page of a day. */
const usageDaysAtOnce = 4;
const usageReadMessages = 64;

const decodeDay = decoder(UsageDay);

export class UsageReader {
  readonly #nc: Promise<NatsConnection>;
  readonly #onMalformed: () => void;
  /** Over all requests: a day of a large tenant may be megabytes. */
  readonly #places = createPlaces(usageDaysAtOnce);

  constructor(nc: Promise<NatsConnection>, onMalformed: () => void) {
    this.#nc = nc;
    this.#onMalformed = onMalformed;
  }

  /** By container, over the hours from one to before another. */
  async sums(
    tenant: TenantId,
    hours: { readonly from: number; readonly to: number },
  ): Promise<ReadonlyMap<string, Sum>> {
    const sums = new Map<string, Sum>();
    const add = (firstHour: number, { data }: ReadMessage): void => {
      try {
        addHours(sums, decodeDay(data), firstHour, hours);
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error;
        this.#onMalformed();
      }
    };
    await Promise.all(
      daysBetween(hours.from, hours.to).map((day) =>
        this.#places.run(async () => {
          const firstHour = firstHourOf(day);
          for (const message of await this.#ofDay(tenant, day)) add(firstHour, message);
        }),
      ),
    );
    return sums;
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
