/**
 * Sends the use of containers, and the traffic of VPN peers, to the owners of their tenants: the
 * hours that are still open every few minutes, and soon after a run has ended; each closed hour
 * until its owners have taken all of it. The last handshakes of peers go more often, and again to
 * each new owner.
 */
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { every } from '../../lib/time/every.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { storedOf, type UsageItem, type Used } from '../../schemas/records/usage.ts';
import { UsageAnswer, type PeerSeen, type UsageReport } from '../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { protocolFields } from '../../schemas/wire/version.ts';
import type { Request } from '../link/connection.ts';
import type { HourEntries, PeerCounted, UsedBy } from './ledger.ts';
import type { KeptHour, UsageStore } from './store.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Deadline of a report. */
const usageReportTimeoutMs = 5 * seconds;

/** Ends of runs, and of an hour, wait for others. */
const usageReportSoonMs = 10_000;

const decodeAnswer = messageDecoder(UsageAnswer);

interface UsageReportsParts {
  readonly store: UsageStore;
  /** `undefined` before the first session. */
  readonly partitions: () => number | undefined;
  readonly sender: Sender;
  readonly request: Request;
  readonly everyMs: number;
  readonly peersEveryMs: number;
  readonly onReport: (result: 'acknowledged' | 'failed') => void;
  /** Items that an owner refuses for good. */
  readonly onRefused: (items: number) => void;
  readonly log: Log;
}

export interface UsageReports {
  /** A run has ended. */
  ended(): void;
  /** Sends all once. @returns `true` if all of it was taken */
  report(): Promise<boolean>;
  /** Sends once the peers that are new to their owners, or have changed since. */
  reportPeers(): Promise<void>;
  /** Resolves when the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

const seenOf = ({ tenant, id, handshakeAtMs, rxBytes, txBytes, endpoint }: PeerCounted): PeerSeen => ({
  tenant,
  id,
  handshake_at_ms: handshakeAtMs,
  rx_bytes: rxBytes,
  tx_bytes: txBytes,
  endpoint,
});

/** The items by the partition of their tenant. */
function byPartition<T>(
  items: Iterable<T>,
  tenantOf: (item: T) => TenantId,
  partitions: number,
): ReadonlyMap<number, readonly T[]> {
  const groups = new Map<number, T[]>();
  for (const item of items) {
    const partition = partitionOf(tenantOf(item), partitions);
    const group = groups.get(partition) ?? [];
    groups.set(partition, group);
    group.push(item);
  }
  return groups;
}

/** An owner's answer about an item; `outOfTime` is a case of `later`. */
type Outcome = 'taken' | 'refused' | 'later' | 'outOfTime';

/** By item; items without an outcome got no answer. */
type Outcomes = ReadonlyMap<Item, Outcome>;

const isSettled = (outcome: Outcome | undefined): boolean => outcome === 'taken' || outcome === 'refused';

type Item = UsageItem & { readonly sum: Used };

function* itemsOf(hour: number, entries: HourEntries): Generator<Item, void, void> {
  for (const [id, { tenant, part, used }] of entries) {
    yield { tenant, id, hour, part, used: storedOf(used), sum: used };
  }
}

/** `waits`: owners cannot take some of it now. Later items may still be sent. */
type Progress = 'whole' | 'waits' | 'unanswered';

function progressOf(items: readonly Item[], outcomes: Outcomes): Progress {
  if (items.some((item) => !outcomes.has(item))) return 'unanswered';
  return items.every((item) => isSettled(outcomes.get(item))) ? 'whole' : 'waits';
}

export function createUsageReports(parts: UsageReportsParts): UsageReports {
  const { store, log } = parts;
  const news = createNotify();
  /** Sums of open hours that owners have. A sum that grows is sent again. */
  const taken = new Map<number, Map<UsedBy, Used>>();

  /** Rejects without an answer. */
  const ask = async (message: Omit<UsageReport, 'v' | 'protocol'>) => {
    const text = JSON.stringify({ v: 1, ...protocolFields, ...message } satisfies UsageReport);
    return decodeAnswer(await parts.request(subjects.hostUsage(parts.sender), text, usageReportTimeoutMs));
  };

  /** @returns `undefined` if there was no answer */
  const send = async (partition: number, source: string, items: readonly Item[]): Promise<Outcomes | undefined> => {
    const wired = items.map(({ tenant, id, hour, part, used }): UsageItem => ({ tenant, id, hour, part, used }));
    try {
      const answer = await ask({ partition, source, items: wired });
      if (!answer.ok) throw new Error(`the owner answered ${answer.error}`);
      parts.onReport('acknowledged');
      if (answer.refused !== undefined) parts.onRefused(answer.refused.length);
      const [refused, later, outOfTime] = [answer.refused, answer.later, answer.outOfTime].map((of) => new Set(of));
      return new Map(
        items.map((item, place) => {
          if (outOfTime?.has(place) === true) return [item, 'outOfTime'];
          if (later?.has(place) === true) return [item, 'later'];
          return [item, refused?.has(place) === true ? 'refused' : 'taken'];
        }),
      );
    } catch (error) {
      parts.onReport('failed');
      log.debug('usage_report_failed', { partition, error });
      return undefined;
    }
  };

  /** Sends one partition after another. A partition that does not answer holds up no other. */
  const sendAll = async (source: string, items: Iterable<Item>, partitions: number): Promise<Outcomes> => {
    const outcomes = new Map<Item, Outcome>();
    for (const [partition, ofPartition] of byPartition(items, ({ tenant }) => tenant, partitions)) {
      for (let from = 0; from < ofPartition.length; from += limits.usageReportItems) {
        const answered = await send(partition, source, ofPartition.slice(from, from + limits.usageReportItems));
        if (answered === undefined) break;
        for (const [item, outcome] of answered) outcomes.set(item, outcome);
      }
    }
    return outcomes;
  };

  const reportOpen = async (partitions: number): Promise<Progress> => {
    const source = store.source();
    const { hours } = store.ledger.state();
    for (const hour of taken.keys()) if (!hours.has(hour)) taken.delete(hour);
    const due = [...hours]
      .flatMap(([hour, entries]) => [...itemsOf(hour, entries)])
      .filter(({ hour, id, sum }) => taken.get(hour)?.get(id) !== sum);
    if (due.length === 0) return 'whole';
    // Sums that owners have must be on disk, or an agent that is killed would count them again.
    await store.flush();
    const outcomes = await sendAll(source, due, partitions);
    for (const [{ hour, id, sum }, outcome] of outcomes) {
      if (!isSettled(outcome)) continue;
      taken.set(hour, (taken.get(hour) ?? new Map<UsedBy, Used>()).set(id, sum));
    }
    return progressOf(due, outcomes);
  };

  const reportClosed = async (kept: KeptHour, partitions: number): Promise<Progress> => {
    const closed = await store.read(kept);
    const items = closed === undefined ? [] : [...itemsOf(kept.hour, closed.entries)];
    const outcomes = closed === undefined ? new Map<Item, Outcome>() : await sendAll(closed.source, items, partitions);
    const progress = progressOf(items, outcomes);
    if (progress === 'whole') await store.drop(kept);
    const said = new Set(items.map((item) => outcomes.get(item)));
    const hasNone = said.has('outOfTime') && [...said].every((one) => one === 'outOfTime' || one === 'refused');
    if (closed !== undefined && hasNone) await store.redate(closed, kept);
    return progress;
  };

  const report = async (): Promise<boolean> => {
    const partitions = parts.partitions();
    if (partitions === undefined) return false;
    let progress = await reportOpen(partitions);
    const kept = store.kept();
    // As for open hours: the content of a file is on disk before it is sent.
    if (kept.length > 0) await store.flush();
    for (const each of kept) {
      if (progress === 'unanswered') break;
      const next = await reportClosed(each, partitions);
      if (next !== 'whole') progress = next;
    }
    return progress === 'whole';
  };

  /** By public key: the state that the owner of the peer's tenant has. */
  const heard = new Map<string, PeerCounted>();
  /** The memory of the owner, by partition. */
  const memories = new Map<number, string | undefined>();

  /** @returns the memory of the owner; `undefined` if there was no answer */
  const sendPeers = async (partition: number, seen: readonly PeerSeen[]): Promise<string | undefined> => {
    const answer = await ask({ partition, source: store.source(), items: [], seen: [...seen] });
    return answer.ok ? answer.memory : undefined;
  };

  const reportPeersOf = async (
    partition: number,
    peers: readonly (readonly [string, PeerCounted])[],
  ): Promise<void> => {
    for (;;) {
      const due = peers.filter(([key, peer]) => heard.get(key) !== peer);
      let memory: string | undefined;
      for (let from = 0; from === 0 || from < due.length; from += limits.usageReportItems) {
        const batch = due.slice(from, from + limits.usageReportItems);
        memory = await sendPeers(
          partition,
          batch.map(([, peer]) => seenOf(peer)),
        );
        if (memory === undefined) return;
        for (const [key, peer] of batch) heard.set(key, peer);
      }
      const isKnown = memories.get(partition) === memory;
      memories.set(partition, memory);
      if (isKnown || due.length === peers.length) return;
      // The owner is new, and knows only the peers of this report.
      for (const [key] of peers) heard.delete(key);
    }
  };

  const reportPeers = async (): Promise<void> => {
    const partitions = parts.partitions();
    if (partitions === undefined) return;
    const { peers = new Map<string, PeerCounted>() } = store.ledger.state();
    for (const key of heard.keys()) if (!peers.has(key)) heard.delete(key);
    for (const [partition, ofPartition] of byPartition(peers, ([, { tenant }]) => tenant, partitions)) {
      await reportPeersOf(partition, ofPartition).catch((error: unknown) =>
        log.debug('peers_report_failed', { partition, error }),
      );
    }
  };

  let hasEnded = false;
  /** The time between two reports, and from the end of a run to its report. */
  const soonMs = Math.min(usageReportSoonMs, parts.everyMs);
  return {
    ended: () => {
      hasEnded = true;
      news.notify();
    },
    report,
    reportPeers,
    run: async (signal) => {
      void every(() => parts.peersEveryMs, reportPeers, signal);
      // Not in step with other hosts.
      for (let pauseMs = parts.everyMs * Math.random(); ; pauseMs = parts.everyMs * (0.9 + Math.random() / 5)) {
        if (!hasEnded) await news.wait(pauseMs, signal);
        await sleep(soonMs, signal);
        if (signal.aborted) return;
        hasEnded = false;
        await report().catch((error: unknown) => log.warn('usage_report_failed', { error }));
      }
    },
  };
}
