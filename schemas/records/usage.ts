/**
 * What containers used, by UTC hour: as agents send it, as the stream USAGE holds it, and how it is
 * merged. Pure.
 *
 * A message of the stream has the sums of one day, of the containers of one tenant on one host, as
 * one state folder of its agent counted them (`source`): an agent whose folder was lost begins
 * another message, and never overwrites what it can't know. A report has absolute sums, so that one
 * that comes twice, or late, changes nothing: each sum only grows (ADR 40).
 */
import Type, { type Static } from 'typebox';
import { ContainerId, TenantId } from '../ids.ts';
import type { Capacity } from '../api/host.ts';
import { limits } from '../limits.ts';

export const { usageHourMs: hourMs } = limits;

/** What was used in one hour. Memory: bytes × milliseconds, which don't fit a double. */
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

/**
 * Whether a container can have used this in an hour on a host that offers `most`. With
 * `usageRunsAtOnce` runs at a time: the versions of an update overlap.
 */
export function isPossible(used: StoredAmounts, { cpu_millis: cpuMillis, mem_bytes: memBytes }: Capacity): boolean {
  const { runMs, cpuMs, memByteMs } = fromStored(used);
  const mostMs = limits.usageRunsAtOnce * hourMs;
  return (
    runMs <= mostMs && cpuMs * 1000 <= mostMs * cpuMillis && memByteMs <= BigInt(mostMs) * BigInt(Math.ceil(memBytes))
  );
}

/** One container in one hour, counted from 1970. */
export const UsageItem = Type.Object({
  tenant: TenantId,
  id: ContainerId,
  hour: Type.Integer({ minimum: 0, maximum: 10_000_000 }),
  /** Which message of its day it is in: the agent bounds how many containers each has. */
  part: Type.Integer({ minimum: 0, maximum: limits.usageParts - 1 }),
  used: StoredAmounts,
});
export type UsageItem = Static<typeof UsageItem>;

/** Of a state folder of an agent. */
export const UsageSource = Type.String({ pattern: '^[0-9a-f]{32}$' });

/** A message of the stream USAGE: by container and hour of the day. */
export const UsageDay = Type.Object({
  v: Type.Literal(1),
  /** The owner adds them from its records. */
  names: Type.Record(Type.String(), Type.String()),
  containers: Type.Record(Type.String(), Type.Record(Type.String({ pattern: '^(?:1?\\d|2[0-3])$' }), StoredAmounts)),
});
export type UsageDay = Static<typeof UsageDay>;

export const noUsage: UsageDay = { v: 1, names: {}, containers: {} };

/** An item as its owner has checked it. */
export interface OwnedItem extends Pick<UsageItem, 'id' | 'hour' | 'used'> {
  /** Undefined: a release before removed the container. */
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
  hour * hourMs <= nowMs + limits.usageAheadMs && hour * hourMs > nowMs - limits.usageAgeMs;

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
  let isNews = false;
  for (const { id, hour, used, name } of items) {
    const before = containers[id]?.[hourOfDay(hour)];
    const after = before === undefined ? used : toStored(larger(fromStored(before), fromStored(used)));
    if (before !== undefined && after.every((value, index) => value === before[index])) continue;
    isNews = true;
    containers[id] = { ...containers[id], [hourOfDay(hour)]: after };
    if (name !== undefined) names[id] = name;
  }
  return isNews ? { v: 1, names, containers } : day;
}

/** True if the day has a sum of this container's hour. */
export const hasHour = ({ containers }: UsageDay, { id, hour }: Pick<OwnedItem, 'id' | 'hour'>): boolean =>
  containers[id]?.[hourOfDay(hour)] !== undefined;

/** What one container used, and its name if it is known. */
export interface Sum extends Amounts {
  readonly name: string | undefined;
}

/** Hours from 1970: from one to before the other. */
export interface Hours {
  readonly from: number;
  readonly to: number;
}

/** What each container of a day used in each of these hours. */
function* usedIn({ containers }: UsageDay, firstHour: number, { from, to }: Hours) {
  for (const [id, byHour] of Object.entries(containers)) {
    for (const [hour, used] of Object.entries(byHour)) {
      const at = firstHour + Number(hour);
      if (at >= from && at < to) yield { id, at, used: fromStored(used) };
    }
  }
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
