/**
 * Sends what containers have used to the owners of their tenants: the hours that are still open
 * every few minutes, and soon after a run has ended; each closed hour until its owners have taken
 * all of it.
 */
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { toStored, type Amounts, type UsageItem } from '../../schemas/records/usage.ts';
import { UsageAnswer, type UsageReport } from '../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { spoken } from '../../schemas/wire/version.ts';
import type { Request } from '../control-plane/line.ts';
import type { HourEntries } from './ledger.ts';
import type { UsageStore } from './store.ts';

const decodeAnswer = messageDecoder(UsageAnswer);

export interface UsageReportsParts {
  readonly store: UsageStore;
  /** Undefined before the first session. */
  readonly partitions: () => number | undefined;
  readonly sender: Sender;
  readonly request: Request;
  readonly everyMs: number;
  readonly onReport: (result: 'acknowledged' | 'failed') => void;
  /** Items that an owner refuses for good. */
  readonly onRefused: (items: number) => void;
  readonly log: Log;
}

export interface UsageReports {
  /** A run has ended. */
  ended(): void;
  /** Once; whether all of it was taken. */
  report(): Promise<boolean>;
  /** Resolves when the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

type Item = UsageItem & { readonly sum: Amounts };

function* itemsOf(hour: number, entries: HourEntries): Generator<Item, void, void> {
  for (const [id, { tenant, part, used }] of entries) {
    yield { tenant, id, hour, part, used: toStored(used), sum: used };
  }
}

export function createUsageReports(parts: UsageReportsParts): UsageReports {
  const { store, log } = parts;
  const news = createNotify();
  /** Sums of open hours that owners have. A sum that grows is another one. */
  const taken = new Map<number, Map<ContainerId, Amounts>>();

  /** @returns the items that need not be sent again; undefined: none was taken */
  const send = async (partition: number, source: string, items: readonly Item[]): Promise<Item[] | undefined> => {
    const wired = items.map(({ tenant, id, hour, part, used }): UsageItem => ({ tenant, id, hour, part, used }));
    const message: UsageReport = { v: 1, ...spoken, partition, source, items: wired };
    const subject = subjects.hostUsage(parts.sender);
    try {
      const answer = decodeAnswer(await parts.request(subject, JSON.stringify(message), limits.usageReportTimeoutMs));
      if (!answer.ok) throw new Error(`the owner answered ${answer.error}`);
      parts.onReport('acknowledged');
      if (answer.refused !== undefined) parts.onRefused(answer.refused.length);
      const later = new Set(answer.later);
      return items.filter((_, place) => !later.has(place));
    } catch (error) {
      parts.onReport('failed');
      log.debug('usage_not_reported', { partition, error });
      return undefined;
    }
  };

  /** Partition by partition. One that does not answer holds up no other. */
  const sendAll = async (source: string, items: Iterable<Item>, partitions: number): Promise<Item[]> => {
    const byPartition = new Map<number, Item[]>();
    for (const item of items) {
      const partition = partitionOf(item.tenant, partitions);
      const ofPartition = byPartition.get(partition) ?? [];
      byPartition.set(partition, ofPartition);
      ofPartition.push(item);
    }
    const done: Item[] = [];
    for (const [partition, ofPartition] of byPartition) {
      for (let from = 0; from < ofPartition.length; from += limits.usageReportItems) {
        const settled = await send(partition, source, ofPartition.slice(from, from + limits.usageReportItems));
        if (settled === undefined) break;
        done.push(...settled);
      }
    }
    return done;
  };

  const reportOpen = async (partitions: number): Promise<boolean> => {
    const { hours } = store.ledger.state();
    for (const hour of taken.keys()) if (!hours.has(hour)) taken.delete(hour);
    const due = [...hours]
      .flatMap(([hour, entries]) => [...itemsOf(hour, entries)])
      .filter(({ hour, id, sum }) => taken.get(hour)?.get(id) !== sum);
    if (due.length === 0) return true;
    // What owners have must be on the disk, or an agent that is killed would count it again.
    await store.flush();
    const done = await sendAll(store.source, due, partitions);
    for (const { hour, id, sum } of done)
      taken.set(hour, (taken.get(hour) ?? new Map<ContainerId, Amounts>()).set(id, sum));
    return done.length === due.length;
  };

  const reportClosed = async (hour: number, partitions: number): Promise<boolean> => {
    const closed = await store.read(hour);
    const items = closed === undefined ? [] : [...itemsOf(hour, closed.entries)];
    const done = closed === undefined ? [] : await sendAll(closed.source, items, partitions);
    if (done.length < items.length) return false;
    await store.drop(hour);
    return true;
  };

  const report = async (): Promise<boolean> => {
    const partitions = parts.partitions();
    if (partitions === undefined) return false;
    let isWhole = await reportOpen(partitions);
    for (const hour of store.kept()) {
      if (!isWhole) break;
      isWhole = await reportClosed(hour, partitions);
    }
    return isWhole;
  };

  let hasEnded = false;
  /** Between two reports, and from the end of a run to its report. */
  const soonMs = Math.min(limits.usageReportSoonMs, parts.everyMs);
  return {
    ended: () => {
      hasEnded = true;
      news.notify();
    },
    report,
    run: async (signal) => {
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
