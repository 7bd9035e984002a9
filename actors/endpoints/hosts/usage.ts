/**
 * Takes a host's report of the usage of its containers and the traffic of its VPN peers. It needs
 * no turn and no commit: the stream USAGE is the only place that has it (ADR 40). The last report
 * about a peer is in memory.
 */
import type { Capacity } from '../../../schemas/api/host.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { dayOf, hasHour, hasPeer, isInTime, type OwnedItem } from '../../../schemas/records/usage.ts';
import type { UsageAnswer, UsageReport } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects, type Sender } from '../../../schemas/wire/subjects.ts';
import { judgePeer, judgeUsage } from '../../domain/host/usage.ts';
import type { Partition } from '../../partition.ts';
import type { PeersSeen } from '../../usage/peers-seen.ts';
import type { UsageStore } from '../../usage/store.ts';
import type { Fleet } from '../fleet.ts';
import { countRefused, isFromEnrolled, ownedPartition, type HostServerOptions } from './server.ts';

export interface UsageOptions extends HostServerOptions {
  readonly usage: UsageStore;
  readonly peersSeen: PeersSeen;
}

/** A fenced host changes nothing; only the enrolled agent speaks for its host (invariant A7). */
function isHeard(options: HostServerOptions, partition: Partition, sender: Sender): boolean {
  const { fleet } = options;
  if (fleet.condition(sender.host) === 'fenced' || !fleet.isSynced(sender.host)) return false;
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
  recordPeers(options, sender.host, report, partition);
  try {
    return await store(options, sender.host, report, partition);
  } catch (error) {
    options.refusals.warn('usage_not_stored', { host: sender.host, error });
    return { ok: false, error: 'unavailable' };
  }
}

/** Leaves out peers of networks that the host does not serve. */
function recordPeers(
  { cluster, fleet, peersSeen }: UsageOptions,
  host: HostKey,
  { seen = [] }: UsageReport,
  { number, view }: Partition,
): void {
  for (const peer of seen) {
    if (partitionOf(peer.tenant, cluster.partitions) !== number) continue;
    if (judgePeer({ state: view, fleet }, host, peer).kind === 'accepted') peersSeen.record(peer);
  }
}

/** The platform's ceiling, or a higher one that the operator set for the host. */
function mostOf(fleet: Fleet, host: HostKey): Capacity {
  const { ceiling } = fleet;
  const own = fleet.host(host)?.capacity ?? ceiling;
  return {
    ...ceiling,
    cpu_millis: Math.max(ceiling.cpu_millis, own.cpu_millis),
    mem_bytes: Math.max(ceiling.mem_bytes, own.mem_bytes),
  };
}

interface Due extends OwnedItem {
  /** The index in the report. */
  readonly place: number;
  /** Taken only if the day has more of this peer by this host. */
  readonly isFormer: boolean;
}

async function store(
  { cluster, fleet, usage, peersSeen, clock, refusals }: UsageOptions,
  host: HostKey,
  { items, source }: UsageReport,
  partition: Partition,
): Promise<UsageAnswer> {
  const { number, view } = partition;
  const nowMs = clock.nowMs();
  const most = mostOf(fleet, host);
  const refused: number[] = [];
  const later: number[] = [];
  const outOfTime: number[] = [];
  const messages = new Map<string, Due[]>();
  for (const [place, item] of items.entries()) {
    const { tenant, hour, part } = item;
    const isOfOurs = partitionOf(tenant, cluster.partitions) === number;
    const verdict = isOfOurs ? judgeUsage({ state: view, fleet }, host, item, most) : { kind: 'refused' as const };
    if (verdict.kind === 'refused') refused.push(place);
    if (verdict.kind === 'unreadable') later.push(place);
    if (verdict.kind !== 'accepted' && verdict.kind !== 'served before') continue;
    const subject = subjects.usage({ tenant, day: dayOf(hour), host, source, part });
    const ofMessage = messages.get(subject) ?? [];
    messages.set(subject, ofMessage);
    const isFormer = verdict.kind === 'served before';
    ofMessage.push({ ...item, name: isFormer ? undefined : verdict.name, place, isFormer });
  }
  await Promise.all(
    Array.from(messages, async ([subject, ofMessage]) => {
      // An owner whose clock was wrong may have taken the hour: then this one goes on with it.
      const isAllInTime = ofMessage.every(({ hour }) => isInTime(hour, nowMs));
      const isAllOfNow = ofMessage.every(({ isFormer }) => !isFormer);
      const day = isAllInTime && isAllOfNow ? undefined : await usage.read(subject);
      const isOwn = ({ isFormer, id }: Due): boolean => !isFormer || (day !== undefined && hasPeer(day, id));
      const isDue = (item: Due): boolean => day === undefined || isInTime(item.hour, nowMs) || hasHour(day, item);
      const own = ofMessage.filter(isOwn);
      const due = own.filter(isDue);
      refused.push(...ofMessage.filter((item) => !isOwn(item)).map(({ place }) => place));
      outOfTime.push(...own.filter((item) => !isDue(item)).map(({ place }) => place));
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
    memory: peersSeen.memoryOf(partition),
    ...(refused.length === 0 ? {} : { refused }),
    ...(later.length === 0 ? {} : { later }),
    ...(outOfTime.length === 0 ? {} : { outOfTime }),
  };
}
