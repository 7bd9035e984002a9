/**
 * Takes what a host says that its containers have used. It needs no turn and no commit: the stream
 * USAGE is the only place that has it (ADR 40).
 */
import type { Capacity } from '../../../schemas/api/host.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { dayOf, hasHour, isInTime, type OwnedItem } from '../../../schemas/records/usage.ts';
import type { UsageAnswer, UsageReport } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { judgeUsage } from '../../domain/host/usage.ts';
import type { Partition } from '../../partition.ts';
import type { UsageStore } from '../../usage/store.ts';
import type { Fleet } from '../fleet.ts';
import { countRefused, isFromEnrolled, ownedPartition, type HostServerOptions } from './server.ts';

export interface UsageOptions extends HostServerOptions {
  readonly usage: UsageStore;
}

/** A fenced host changes nothing; only the enrolled agent speaks for its host (invariant A7). */
function isHeard(options: HostServerOptions, partition: Partition, sender: Sender): boolean {
  const { fleet } = options;
  if (fleet.standing(sender.host) === 'fenced' || !fleet.isSynced(sender.host)) return false;
  if (isFromEnrolled(options, partition, sender)) return true;
  countRefused(options, 'usage', sender);
  return false;
}

export async function takeUsage(
  options: UsageOptions,
  sender: Sender,
  report: UsageReport,
): Promise<UsageAnswer | undefined> {
  const partition = ownedPartition(options, report.partition);
  // Another process owns it, and answers.
  if (partition === undefined) return undefined;
  if (!isHeard(options, partition, sender)) return { ok: false, error: 'unavailable' };
  try {
    return await store(options, sender.host, report, partition);
  } catch (error) {
    options.refusals.warn('usage_not_stored', { host: sender.host, error });
    return { ok: false, error: 'unavailable' };
  }
}

/** The platform's ceiling, or what the operator lets the host offer beyond it. */
function mostOf(fleet: Fleet, host: HostKey): Capacity {
  const { ceiling } = fleet;
  const own = fleet.host(host)?.capacity ?? ceiling;
  return {
    ...ceiling,
    cpu_millis: Math.max(ceiling.cpu_millis, own.cpu_millis),
    mem_bytes: Math.max(ceiling.mem_bytes, own.mem_bytes),
  };
}

async function store(
  { cluster, fleet, usage, clock, refusals }: UsageOptions,
  host: HostKey,
  { items, source }: UsageReport,
  { number, view }: Partition,
): Promise<UsageAnswer> {
  const nowMs = clock.nowMs();
  const most = mostOf(fleet, host);
  const refused: number[] = [];
  const later: number[] = [];
  const outOfTime: number[] = [];
  const messages = new Map<string, (OwnedItem & { readonly place: number })[]>();
  for (const [place, item] of items.entries()) {
    const { tenant, hour, part } = item;
    const isOfOurs = partitionOf(tenant, cluster.partitions) === number;
    const verdict = isOfOurs ? judgeUsage(view, host, item, most) : { kind: 'refused' as const };
    if (verdict.kind === 'refused') refused.push(place);
    if (verdict.kind === 'unreadable') later.push(place);
    if (verdict.kind !== 'accepted') continue;
    const subject = subjects.usage({ tenant, day: dayOf(hour), host, source, part });
    const ofMessage = messages.get(subject) ?? [];
    messages.set(subject, ofMessage);
    ofMessage.push({ ...item, name: verdict.name, place });
  }
  await Promise.all(
    Array.from(messages, async ([subject, ofMessage]) => {
      // An owner whose clock was wrong may have taken the hour: then this one goes on with it.
      const isAllInTime = ofMessage.every(({ hour }) => isInTime(hour, nowMs));
      const day = isAllInTime ? undefined : await usage.read(subject);
      const isDue = (item: OwnedItem): boolean => day === undefined || isInTime(item.hour, nowMs) || hasHour(day, item);
      const due = ofMessage.filter(isDue);
      for (const item of ofMessage) if (!isDue(item)) outOfTime.push(item.place);
      if (due.length === 0) return;
      const outcome = await usage.put(subject, due);
      if (outcome === 'too large') refused.push(...due.map(({ place }) => place));
    }),
  );
  if (refused.length > 0) refusals.warn('usage_refused', { host, items: refused.length, of: items.length });
  if (outOfTime.length > 0) refusals.warn('usage_out_of_time', { host, items: outOfTime.length, of: items.length });
  later.push(...outOfTime);
  return {
    ok: true,
    ...(refused.length === 0 ? {} : { refused }),
    ...(later.length === 0 ? {} : { later }),
    ...(outOfTime.length === 0 ? {} : { outOfTime }),
  };
}
