/**
 * Budgets in the shared streams LOGS, EVENTS, AUDIT and USAGE. A full stream discards its oldest
 * messages, no matter whose they are. Before it is full, this purges the oldest messages of the
 * hosts, tenants and containers that have more than their fair share (ADR 23).
 */
import { jetstreamManager, type JetStreamManager, type StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Log } from '../../lib/log.ts';
import { createRounds } from '../../lib/time/every.ts';
import type { Slices } from '../../lib/time/slices.ts';
import { readBatch, type ReadMessage } from '../../lib/nats/direct-reads.ts';
import { readSubjects, subjectsOfPage } from '../../lib/nats/stream-subjects.ts';
import { streams } from '../../schemas/records/buckets.ts';
import { limits } from '../../schemas/limits.ts';
import { KiB, seconds } from '../../schemas/limits/units.ts';
import { authorsHeader } from '../../schemas/records/event-authors.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { addTo, ownerOfSubject, type Counts } from './budgets-count.ts';
import { purgeInSteps } from './purge.ts';
import { cutsOf, keptBy, scaledTo, type Cut, type Use } from './budgets-decide.ts';

/** The deadline of a request for the state of a stream. */
const budgetRequestMs = 5 * seconds;

const budgetIntervalMs = 5 * seconds;
/** Pages of STREAM.INFO with subjects; the server puts 100,000 subjects into one. */
const budgetSubjectPages = 20;
/**
 * Subjects of a stream: above the first bound, hosts with more than their share are trimmed,
 * however few bytes they have.
 */
const budgetSubjects = 1_000_000;
const budgetSubjectsPerHost = 100_000;
/**
 * Messages that are read for their sizes, each at a random place of the stream, and how many at a
 * time.
 */
const budgetSamples = 256;
const budgetSamplesAtOnce = 16;
const budgetSampleBytes = 128 * KiB;
/**
 * Parts of a host or tenant that are trimmed separately; if more are over their share, the whole
 * is trimmed.
 */
const budgetCuts = 2000;
/** Messages that one purge removes. */
const budgetPurgeMessages = 10_000;
/** Invalid names of tenants whose messages are purged for one host in one check. */
const budgetNamelessPurges = 100;

/** The owner of removed messages. `nobody`: no agent writes such subjects. */
export type TrimmedOf = 'host' | 'tenant' | 'container' | 'nobody';

export interface BudgetsOptions {
  readonly nc: NatsConnection;
  /** The partitions that this process serves. The owner of partition 0 looks after the budgets. */
  readonly owned: () => Iterable<number>;
  readonly slices: Slices;
  readonly log: Log;
  readonly onTrimmed: (stream: string, of: TrimmedOf, messages: number) => void;
  /** Chooses the places of samples, between 0 and 1. No host may be able to predict them. */
  readonly random: () => number;
}

export interface Budgets {
  start(): void;
  stop(): Promise<void>;
  /** Looks at the streams once. Logs a failure; the next look tries again. */
  look(): Promise<void>;
}

interface Shared {
  readonly stream: string;
  readonly all: string;
  readonly filterOfHost: (host: string) => string;
  readonly filterOfTenant: (host: string, tenant: string) => string;
}

const shared: readonly Shared[] = [
  {
    stream: streams.logs.name,
    all: 'host.*.log.>',
    filterOfHost: (host) => `host.${host}.log.>`,
    filterOfTenant: (host, tenant) => `host.${host}.log.${tenant}.>`,
  },
  {
    stream: streams.events.name,
    all: 'event.>',
    filterOfHost: () => 'event.>',
    filterOfTenant: (_, tenant) => `event.${tenant}.>`,
  },
  {
    stream: streams.audit.name,
    all: subjects.allAudit,
    filterOfHost: () => subjects.allAudit,
    // Lines that concern only operators have a share as a tenant has.
    filterOfTenant: (_, tenant) => (tenant === '' ? subjects.auditOfOperators : `audit.tenant.${tenant}`),
  },
  {
    stream: streams.usage.name,
    all: 'usage.>',
    filterOfHost: (host) => `usage.*.*.${host}.>`,
    filterOfTenant: (host, tenant) => `usage.${tenant}.*.${host}.>`,
  },
];

interface NamedUse extends Use {
  readonly of: 'host' | 'tenant' | 'container';
  readonly host: string;
  readonly tenant?: string;
  readonly parts: readonly NamedUse[];
}

/** About what the store adds to each message. */
const overheadBytes = 30;
const sizeOf = ({ subject, head, data }: ReadMessage): number =>
  subject.length + head.get(authorsHeader).length + data.length + overheadBytes;

/**
 * The mean size for the first of these keys (a subject, a tenant on a host, a host) that occurs in
 * the sample, or else for the whole sample.
 */
type MeanSize = (...keys: string[]) => number;

export function createBudgets({ nc, owned, slices, log, onTrimmed, random }: BudgetsOptions): Budgets {
  const rounds = createRounds(budgetIntervalMs);
  const { signal } = rounds;
  const timeoutMs = budgetRequestMs;

  /** Calls `take` with every subject that the filter matches, on at most `pages` pages. */
  async function list(
    stream: string,
    filter: string,
    pages: number,
    take: (subject: string, messages: number) => void,
  ) {
    let offset = 0;
    for (let page = 0; page < pages; page++) {
      signal.throwIfAborted();
      const { text, total } = await readSubjects(nc, { stream, filter, offset, timeoutMs });
      const counted = await slices.run('budgets', countPage(text, take), signal);
      offset += counted;
      if (counted === 0 || offset >= total) break;
    }
  }

  /**
   * Samples message sizes at random places of the whole stream. If a host could predict the places,
   * it could look small, for example with short messages first and long ones later.
   */
  async function sample({ stream, all }: Shared, { state }: StreamInfo): Promise<MeanSize> {
    const sums = new Map<string, { bytes: number; messages: number }>();
    const note = (key: string, size: number): void => {
      const { bytes, messages } = sums.get(key) ?? { bytes: 0, messages: 0 };
      sums.set(key, { bytes: bytes + size, messages: messages + 1 });
    };
    const one = async (): Promise<void> => {
      const seq = state.first_seq + Math.floor(random() * (state.last_seq - state.first_seq + 1));
      const bounds = { batchMessages: 1, batchBytes: budgetSampleBytes };
      const { messages } = await readBatch(nc, {
        stream,
        filter: all,
        timeoutMs,
        attempts: 2,
        ...bounds,
        from: { seq },
      });
      for (const message of messages) {
        const owner = ownerOfSubject(message.subject);
        const keys = owner === undefined ? [] : [owner.host, `${owner.host} ${owner.tenant ?? ''}`];
        for (const key of new Set(['', message.subject, ...keys])) note(key, sizeOf(message));
      }
    };
    for (let taken = 0; taken < budgetSamples; taken += budgetSamplesAtOnce) {
      signal.throwIfAborted();
      await Promise.all(Array.from({ length: budgetSamplesAtOnce }, one));
    }
    return (...keys) => {
      const known = [...keys, ''].map((key) => sums.get(key)).find((each) => each !== undefined);
      return known === undefined ? overheadBytes : known.bytes / known.messages;
    };
  }

  function usesOf(one: Shared, counts: Counts, meanSize: MeanSize): NamedUse[] {
    return [...counts].map(([host, { tenants, nameless }]) => {
      const parts = [...tenants].map(([tenant, messages]): NamedUse => {
        const bytes = messages * meanSize(`${host} ${tenant}`, host);
        return { of: 'tenant', filter: one.filterOfTenant(host, tenant), host, tenant, messages, bytes, parts: [] };
      });
      const namelessBytes = nameless * meanSize(`${host} `, host);
      return {
        of: 'host',
        filter: one.filterOfHost(host),
        host,
        messages: parts.reduce((sum, { messages }) => sum + messages, nameless),
        bytes: parts.reduce((sum, { bytes }) => sum + bytes, namelessBytes),
        // Messages without a tenant cannot be trimmed apart from the rest of their host: the
        // subject may be a wildcard.
        parts: nameless > 0 ? [] : parts,
      };
    });
  }

  /** Turns a cut of a tenant into cuts of its containers, if they can be told apart. */
  async function cutsOfContainers(one: Shared, cut: Cut<NamedUse>, meanSize: MeanSize): Promise<Cut<NamedUse>[]> {
    const { use, toBytes } = cut;
    const parts: NamedUse[] = [];
    await list(one.stream, use.filter, 1, (filter, messages) => {
      const bytes = messages * meanSize(filter, `${use.host} ${use.tenant}`);
      parts.push({ ...use, of: 'container', filter, messages, bytes, parts: [] });
    });
    if (parts.length > budgetCuts || parts.some(({ filter }) => /[*>]/.test(filter))) return [cut];
    const whole: NamedUse = { ...use, parts: scaledTo(parts, use.bytes) };
    return cutsOf([whole], toBytes, budgetCuts);
  }

  async function trim(manager: JetStreamManager, { stream }: Shared, cut: Cut<NamedUse>): Promise<void> {
    const { of, filter, host, tenant, messages } = cut.use;
    const keep = keptBy(cut);
    const purge = { filter, from: messages, to: keep, step: budgetPurgeMessages };
    const removed = await purgeInSteps(manager, stream, purge, signal);
    if (removed === 0) return;
    onTrimmed(stream, of, removed);
    const whose = { stream, ...(host === '' ? {} : { host }), ...(tenant === undefined ? {} : { tenant }) };
    log.warn(of === 'host' ? 'host_over_budget' : 'tenant_over_budget', { ...whose, filter, removed, kept: keep });
  }

  /**
   * Removes messages under subjects that no agent writes and no reader asks for. Those under a
   * wildcard subject stay; the budget of their host bounds them.
   */
  async function purgeNameless(manager: JetStreamManager, one: Shared, counts: Counts): Promise<boolean> {
    const hosts = [...counts].filter(([host, { nameless }]) => host !== '' && nameless > 0).map(([host]) => host);
    let removed = 0;
    for (const host of hosts) {
      const wrong = new Set<string>([`host.${host}.log.*`, `host.${host}.log.*.*.>`]);
      await list(one.stream, one.filterOfHost(host), budgetSubjectPages, (subject) => {
        const isWrong = ownerOfSubject(subject)?.tenant === undefined;
        // A wildcard subject, used as a filter, matches other subjects too; and the server lists
        // subjects outside ASCII in another form.
        const isPlain = /^[!-~]+$/.test(subject) && !/[*>]/.test(subject);
        if (isWrong && isPlain && wrong.size < budgetNamelessPurges) wrong.add(subject);
      });
      let ofHost = 0;
      for (const filter of wrong) ofHost += (await manager.streams.purge(one.stream, { filter })).purged;
      if (ofHost > 0) log.warn('nameless_logs_removed', { stream: one.stream, host, removed: ofHost });
      removed += ofHost;
    }
    if (removed > 0) onTrimmed(one.stream, 'nobody', removed);
    return removed > 0;
  }

  const count = async (one: Shared): Promise<Counts> => {
    const counts: Counts = new Map();
    await list(one.stream, one.all, budgetSubjectPages, (subject, messages) => addTo(counts, subject, messages));
    return counts;
  };

  const isFilling = ({ config, state }: StreamInfo): boolean =>
    // -1 if the stream has no limit and discards nothing.
    config.max_bytes > 0 && state.bytes > config.max_bytes * limits.budgetFrom;
  /** A server keeps every subject in memory. Hosts choose those of LOGS, and parts of USAGE's. */
  const isCrowded = ({ config, state }: StreamInfo): boolean =>
    config.name !== streams.events.name &&
    config.name !== streams.audit.name &&
    (state.num_subjects ?? 0) > budgetSubjects;

  async function lookAt(manager: JetStreamManager, one: Shared): Promise<void> {
    const before = await manager.streams.info(one.stream);
    if (!isFilling(before) && !isCrowded(before)) return;
    const first = await count(one);
    // Count again, so that the removed messages do not count for the others.
    const wasCleaned = await purgeNameless(manager, one, first);
    const [info, counts] = wasCleaned ? [await manager.streams.info(one.stream), await count(one)] : [before, first];
    const { config, state } = info;
    const meanSize = await sample(one, info);
    const uses = scaledTo(usesOf(one, counts, meanSize), state.bytes);
    for (const use of isCrowded(info) ? uses : []) {
      const isOver = (counts.get(use.host)?.subjects ?? 0) > budgetSubjectsPerHost;
      const toBytes = (use.bytes / use.messages) * budgetSubjectsPerHost;
      if (isOver) await trim(manager, one, { use, toBytes });
    }
    if (!isFilling(info)) return;
    for (const cut of cutsOf(uses, config.max_bytes * limits.budgetTo, budgetCuts)) {
      const cuts = cut.use.of === 'tenant' ? await cutsOfContainers(one, cut, meanSize) : [cut];
      for (const each of cuts) await trim(manager, one, each);
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

/** Calls `take` with each subject of a page; returns how many there are. */
function* countPage(text: string, take: (subject: string, messages: number) => void): Generator<void, number, void> {
  let subjects = 0;
  for (const [subject, messages] of subjectsOfPage(text)) {
    take(subject, messages);
    if (++subjects % 64 === 0) yield;
  }
  return subjects;
}
