/**
 * Budgets of tenants in the shared streams LOGS and EVENTS. A full stream discards its oldest messages, of whichever tenant.
 * Before it is full, this purges the oldest messages of the tenants that have more than their fair share (ADR 12).
 */
import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Log } from '../lib/log.ts';
import { createRounds } from '../lib/rounds.ts';
import { sorting, type Slices } from '../lib/slices.ts';
import { readBatch, readLast, type ReadMessage } from '../lib/stream-read.ts';
import { streams } from '../schemas/buckets.ts';
import { isTenantId, type TenantId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { trimsOf, type TenantUse, type Trim } from './budgets-decide.ts';

export interface BudgetsOptions {
  readonly nc: NatsConnection;
  /** The partitions that this process serves. The owner of partition 0 looks after the budgets. */
  readonly owned: () => Iterable<number>;
  readonly slices: Slices;
  readonly log: Log;
  readonly onTrimmed: (stream: string, messages: number) => void;
}

export interface Budgets {
  start(): void;
  stop(): Promise<void>;
  /** One look at both streams. Logs what fails; the next look tries again. */
  look(): Promise<void>;
}

interface Shared {
  readonly stream: string;
  /** Subjects of one tenant, or of all (`*`). */
  readonly filterOf: (tenant: TenantId | '*') => string;
}

const shared: readonly Shared[] = [
  { stream: streams.logs.name, filterOf: (tenant) => `host.*.log.${tenant}.>` },
  { stream: streams.events.name, filterOf: (tenant) => `event.${tenant}.>` },
];

/** A subject with its count, as STREAM.INFO lists them. */
const countedSubject = /"(?:host\.[^".]+\.log|event)\.([^".]+)\.[^"]+":(\d+)/g;

interface Page {
  readonly text: string;
  readonly counts: Map<string, number>;
}

/** Adds up a page by tenant and returns its number of subjects. JSON.parse of a full page would block the event loop. */
function* countPage({ text, counts }: Page): Generator<void, number, void> {
  let subjects = 0;
  for (const [, tenant = '', count] of text.matchAll(countedSubject)) {
    counts.set(tenant, (counts.get(tenant) ?? 0) + Number(count));
    if (++subjects % 64 === 0) yield;
  }
  return subjects;
}

/** The tenants that are sampled, those with most messages first; and how many messages name no tenant. */
function* largestOf(counts: ReadonlyMap<string, number>) {
  const tenants: { readonly tenant: TenantId; readonly messages: number }[] = [];
  let nameless = 0;
  for (const [tenant, messages] of counts) {
    // A host can write any subject of its own; one that is no tenant's may hold a wildcard, and is not purged.
    if (isTenantId(tenant)) tenants.push({ tenant, messages });
    else nameless += messages;
    yield;
  }
  const sorted = yield* sorting(tenants, (one, other) => other.messages - one.messages);
  return { largest: sorted.slice(0, limits.budgetTenantsSampled), nameless };
}

/** What the store adds to a message, about. */
const overheadBytes = 30;
const sizeOf = ({ subject, data }: ReadMessage): number => subject.length + data.length + overheadBytes;

export function createBudgets({ nc, owned, slices, log, onTrimmed }: BudgetsOptions): Budgets {
  const rounds = createRounds(limits.budgetIntervalMs);
  const { signal } = rounds;
  const timeoutMs = limits.budgetRequestMs;

  async function countMessages({ stream, filterOf }: Shared): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    let offset = 0;
    for (let page = 0; page < limits.budgetSubjectPages; page++) {
      signal.throwIfAborted();
      const request = JSON.stringify({ subjects_filter: filterOf('*'), offset });
      const answer = await nc.request(`$JS.API.STREAM.INFO.${stream}`, request, { timeout: timeoutMs });
      const text = answer.string();
      if (text.includes('"error":{')) throw new Error(`${stream}: STREAM.INFO answered ${text.slice(0, 300)}`);
      const subjects = await slices.run('budgets', countPage({ text, counts }), signal);
      offset += subjects;
      const total = Number(/"total":(\d+)/.exec(text)?.[1] ?? 0);
      if (subjects === 0 || offset >= total) break;
    }
    return counts;
  }

  /** The mean size of the tenant's oldest few and its newest message; undefined where none is left. */
  async function sampleSize({ stream, filterOf }: Shared, tenant: TenantId): Promise<number | undefined> {
    const reading = { stream, filter: filterOf(tenant), timeoutMs, attempts: 2 };
    const bounds = { batchMessages: limits.budgetSampleMessages, batchBytes: limits.budgetSampleBytes };
    const [oldest, newest] = await Promise.all([
      readBatch(nc, { ...reading, ...bounds, from: { seq: 1 } }),
      readLast(nc, reading),
    ]);
    const sizes = [...oldest.messages, ...(newest === undefined ? [] : [newest])].map(sizeOf);
    return sizes.length === 0 ? undefined : sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  }

  async function usesOf(one: Shared, streamBytes: number): Promise<TenantUse[]> {
    const counts = await countMessages(one);
    const { largest, nameless } = await slices.run('budgets', largestOf(counts), signal);
    const uses: TenantUse[] = [];
    for (const { tenant, messages } of largest) {
      signal.throwIfAborted();
      const size = await sampleSize(one, tenant);
      if (size !== undefined) uses.push({ tenant, messages, bytes: messages * size });
    }
    if (nameless > 0) {
      // The rest of the stream: it must not be counted as the tenants', who would be trimmed for it.
      const bytes = Math.max(0, streamBytes - uses.reduce((sum, use) => sum + use.bytes, 0));
      uses.push({ tenant: null, messages: nameless, bytes });
    }
    return uses;
  }

  /** In steps, for the server takes no messages of the stream while it purges. */
  async function trim(manager: JetStreamManager, one: Shared, use: TenantUse, { tenant, keep }: Trim): Promise<void> {
    let removed = 0;
    for (let left = use.messages; left > keep;) {
      signal.throwIfAborted();
      left = Math.max(keep, left - limits.budgetPurgeMessages);
      removed += (await manager.streams.purge(one.stream, { filter: one.filterOf(tenant), keep: left })).purged;
    }
    onTrimmed(one.stream, removed);
    log.warn('tenant_over_budget', { stream: one.stream, tenant, removed, kept: keep });
  }

  async function lookAt(manager: JetStreamManager, one: Shared): Promise<void> {
    const { config, state } = await manager.streams.info(one.stream);
    // -1: without a limit, so nothing is discarded.
    if (config.max_bytes <= 0 || state.bytes <= config.max_bytes * limits.budgetFrom) return;
    const uses = await usesOf(one, state.bytes);
    for (const found of trimsOf(uses, state.bytes, config.max_bytes * limits.budgetTo)) {
      const use = uses.find(({ tenant }) => tenant === found.tenant);
      if (use !== undefined) await trim(manager, one, use, found);
    }
  }

  async function look(): Promise<void> {
    for (const one of shared) {
      try {
        const manager = await jetstreamManager(nc, { checkAPI: false, timeout: timeoutMs });
        await lookAt(manager, one);
      } catch (error) {
        if (signal.aborted) return;
        log.warn('budgets_failed', { stream: one.stream, error });
      }
    }
  }

  return {
    look,
    start: () =>
      rounds.start(async () => {
        if ([...owned()].includes(0)) await look();
      }),
    stop: rounds.stop,
  };
}
