/**
 * Usage of containers and traffic of VPN peers, by UTC hour: the form in which agents send it, the
 * form in which the stream USAGE holds it, and how both are merged. Pure.
 *
 * A message of the stream has the sums of one day, of the containers of one tenant on one host, and
 * of its peers in the VPN networks that the host serves, as one state folder of its agent counted
 * them (`source`): an agent whose folder was lost begins another message, and never overwrites what
 * it can't know. A report has absolute sums, so that one that comes twice, or late, changes
 * nothing: each sum only grows (ADR 40).
 */
import Type, { type Static } from 'typebox';
import { ContainerId, PeerId, TenantId } from '../ids.ts';
import type { Capacity } from '../api/host.ts';
import { limits } from '../limits.ts';
import { hours } from '../limits/units.ts';

/** Runs of one container at a time, at most. */
const usageRunsAtOnce = 2;
/** Greatest lead of the hour of a report over the owner's clock. */
const usageAheadMs = 1 * hours;

export const { usageHourMs: hourMs } = limits;

/** Usage of one hour. Memory: bytes × milliseconds, which don't fit a double. */
export interface Amounts {
  readonly runMs: number;
  readonly cpuMs: number;
  readonly memByteMs: bigint;
}

export const noAmounts: Amounts = { runMs: 0, cpuMs: 0, memByteMs: 0n };

export const added = (one: Amounts, other: Amounts): Amounts => ({
  runMs: one.runMs + other.runMs,
  cpuMs: one.cpuMs + other.cpuMs,
  memByteMs: one.memByteMs + other.memByteMs,
});

const larger = (one: Amounts, other: Amounts): Amounts => ({
  runMs: Math.max(one.runMs, other.runMs),
  cpuMs: Math.max(one.cpuMs, other.cpuMs),
  memByteMs: one.memByteMs > other.memByteMs ? one.memByteMs : other.memByteMs,
});

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** Milliseconds that it ran, of CPU time, and bytes × milliseconds of memory. */
export const StoredAmounts = Type.Tuple([Count, Count, Type.String({ pattern: '^\\d{1,30}$' })]);
export type StoredAmounts = Static<typeof StoredAmounts>;

export const toStored = ({ runMs, cpuMs, memByteMs }: Amounts): StoredAmounts => [runMs, cpuMs, String(memByteMs)];
export const fromStored = ([runMs, cpuMs, memByteMs]: StoredAmounts): Amounts => ({
  runMs,
  cpuMs,
  memByteMs: BigInt(memByteMs),
});

/** Bytes of a VPN peer in one hour, as its server sees them: from it, and to it. */
export interface Traffic {
  readonly rxBytes: number;
  readonly txBytes: number;
}
export const noTraffic: Traffic = { rxBytes: 0, txBytes: 0 };

/** A petabyte in an hour is more than any interface carries, and a sum of many is still exact. */
const TrafficCount = Type.Integer({ minimum: 0, maximum: 10 ** 15 });
export const StoredTraffic = Type.Tuple([TrafficCount, TrafficCount]);
export type StoredTraffic = Static<typeof StoredTraffic>;

/** Of a container, or of a VPN peer. */
export type Used = Amounts | Traffic;

export const storedOf = (used: Used): StoredAmounts | StoredTraffic =>
  'rxBytes' in used ? [used.rxBytes, used.txBytes] : toStored(used);
export const usedOf = (stored: StoredAmounts | StoredTraffic): Used =>
  isTraffic(stored) ? { rxBytes: stored[0], txBytes: stored[1] } : fromStored(stored);

/** @param before of the same container or peer; `undefined` if there is none */
export function sumOf(before: Used | undefined, used: Used): Used {
  if (!('rxBytes' in used)) return added(before !== undefined && 'runMs' in before ? before : noAmounts, used);
  const { rxBytes, txBytes } = before !== undefined && 'rxBytes' in before ? before : noTraffic;
  return { rxBytes: rxBytes + used.rxBytes, txBytes: txBytes + used.txBytes };
}

export const isTraffic = (used: StoredAmounts | StoredTraffic): used is StoredTraffic => used.length === 2;

/** Of one container in an hour: the versions of an update overlap. */
export const mostRunMs = usageRunsAtOnce * hourMs;

/** True if a container can have used this in an hour on a host that offers `most`. */
export function isPossible(used: StoredAmounts, { cpu_millis: cpuMillis, mem_bytes: memBytes }: Capacity): boolean {
  const { runMs, cpuMs, memByteMs } = fromStored(used);
  return (
    runMs <= mostRunMs &&
    cpuMs * 1000 <= mostRunMs * cpuMillis &&
    memByteMs <= BigInt(mostRunMs) * BigInt(Math.ceil(memBytes))
  );
}

/** One container or one VPN peer in one hour, counted from 1970. */
export const UsageItem = Type.Object({
  tenant: TenantId,
  /** Of a peer if `used` is traffic. */
  id: Type.Union([ContainerId, PeerId]),
  hour: Type.Integer({ minimum: 0, maximum: 10_000_000 }),
  /** The message of its day that it is in: the agent bounds how many containers each has. */
  part: Type.Integer({ minimum: 0, maximum: limits.usageParts - 1 }),
  used: Type.Union([StoredAmounts, StoredTraffic]),
});
export type UsageItem = Static<typeof UsageItem>;

const hourOfDayPattern = '^(?:1?\\d|2[0-3])$';
const byHourOfDay = <T extends Type.TSchema>(schema: T) =>
  Type.Record(Type.String(), Type.Record(Type.String({ pattern: hourOfDayPattern }), schema));

/** Of a state folder of an agent. */
export const UsageSource = Type.String({ pattern: '^[0-9a-f]{32}$' });

/** A message of the stream USAGE: by container or peer, and by hour of the day. */
export const UsageDay = Type.Object({
  v: Type.Literal(1),
  /** The owner adds them from its records. */
  names: Type.Record(Type.String(), Type.String()),
  containers: byHourOfDay(StoredAmounts),
  /** Absent without peers. */
  peers: Type.Optional(byHourOfDay(StoredTraffic)),
});
export type UsageDay = Static<typeof UsageDay>;

export const noUsage: UsageDay = { v: 1, names: {}, containers: {} };

/** An item as its owner has checked it. */
export interface OwnedItem extends Pick<UsageItem, 'id' | 'hour' | 'used'> {
  /** `undefined` if it is a peer, or if a release before 0.2.0 removed it. */
  readonly name: string | undefined;
}

export const hourOf = (ms: number): number => Math.floor(ms / hourMs);
/** `2026-11-24`, UTC. */
export const dayOf = (hour: number): string => new Date(hour * hourMs).toISOString().slice(0, 10);
const hourOfDay = (hour: number): number => hour % 24;
/** The first hour of a day. */
export const firstHourOf = (day: string): number => hourOf(Date.parse(`${day}T00:00:00Z`));

/** True if an owner whose clock shows this takes sums of the hour. */
export const isInTime = (hour: number, nowMs: number): boolean =>
  hour * hourMs <= nowMs + usageAheadMs && hour * hourMs > nowMs - limits.usageAgeMs;

/** The days that the hours from one to before another are in. */
export function daysBetween(from: number, to: number): string[] {
  const days: string[] = [];
  for (let hour = from - hourOfDay(from); hour < to; hour += 24) days.push(dayOf(hour));
  return days;
}

/**
 * The day with these items, all of which are of this day.
 * @returns the same day if it has all of that already
 */
export function merged(day: UsageDay, items: readonly OwnedItem[]): UsageDay {
  const names = { ...day.names };
  const containers = { ...day.containers };
  const peers = { ...day.peers };
  let isNews = false;
  const put = <T extends readonly unknown[]>(
    all: Record<string, Record<string, T>>,
    { id, hour }: Pick<OwnedItem, 'id' | 'hour'>,
    used: T,
    largerOf: (one: T, other: T) => T,
  ): boolean => {
    const before = all[id]?.[hourOfDay(hour)];
    const after = before === undefined ? used : largerOf(before, used);
    if (before !== undefined && after.every((value, index) => value === before[index])) return false;
    all[id] = { ...all[id], [hourOfDay(hour)]: after };
    isNews = true;
    return true;
  };
  for (const item of items) {
    const { id, used, name } = item;
    if (isTraffic(used)) put(peers, item, used, largerTraffic);
    else if (put(containers, item, used, largerStored) && name !== undefined) names[id] = name;
  }
  return isNews ? { v: 1, names, containers, ...(Object.keys(peers).length === 0 ? {} : { peers }) } : day;
}

const largerStored = (one: StoredAmounts, other: StoredAmounts): StoredAmounts =>
  toStored(larger(fromStored(one), fromStored(other)));
const largerTraffic = (one: StoredTraffic, other: StoredTraffic): StoredTraffic => [
  Math.max(one[0], other[0]),
  Math.max(one[1], other[1]),
];

/** True if the day has a sum of this hour of the container or peer. */
export const hasHour = ({ containers, peers }: UsageDay, { id, hour }: Pick<OwnedItem, 'id' | 'hour'>): boolean =>
  containers[id]?.[hourOfDay(hour)] !== undefined || peers?.[id]?.[hourOfDay(hour)] !== undefined;

/** True if the day has any hour of the peer. */
export const hasPeer = ({ peers }: UsageDay, id: string): boolean => peers?.[id] !== undefined;

/** Usage of one container, and its name if that is known. */
export interface Sum extends Amounts {
  readonly name: string | undefined;
}

/** Hours from 1970: from one to before the other. */
export interface Hours {
  readonly from: number;
  readonly to: number;
}

/** The values of these hours in a day that begins with `firstHour`. */
function* within<T>(byHour: Readonly<Record<string, T>>, firstHour: number, { from, to }: Hours) {
  for (const [hour, used] of Object.entries(byHour)) {
    const at = firstHour + Number(hour);
    if (at >= from && at < to) yield { at, used };
  }
}

/** The usage of each container of a day in each of these hours. */
function* usedIn({ containers }: UsageDay, firstHour: number, hours: Hours) {
  for (const [id, byHour] of Object.entries(containers))
    for (const { at, used } of within(byHour, firstHour, hours)) yield { id, at, used: fromStored(used) };
}

/** Adds these hours of a day to the sums of its containers. */
export function addHours(sums: Map<string, Sum>, day: UsageDay, firstHour: number, hours: Hours): void {
  for (const { id, used } of usedIn(day, firstHour, hours)) {
    const before = sums.get(id);
    sums.set(id, { ...added(before ?? noAmounts, used), name: day.names[id] ?? before?.name });
  }
}

/** Adds these hours of a day to the sums of all containers by hour. */
export function addToHours(sums: Map<number, Amounts>, day: UsageDay, firstHour: number, hours: Hours): void {
  for (const { at, used } of usedIn(day, firstHour, hours)) sums.set(at, added(sums.get(at) ?? noAmounts, used));
}

/** Adds these hours of a day to the traffic of one peer by hour. */
export function addTraffic(
  sums: Map<number, Traffic>,
  { peers }: UsageDay,
  peer: PeerId,
  firstHour: number,
  hours: Hours,
): void {
  for (const { at, used } of within(peers?.[peer] ?? {}, firstHour, hours)) {
    const { rxBytes, txBytes } = sums.get(at) ?? noTraffic;
    sums.set(at, { rxBytes: rxBytes + used[0], txBytes: txBytes + used[1] });
  }
}
