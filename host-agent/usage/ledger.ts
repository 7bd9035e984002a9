/**
 * What the containers of this host have used, by hour: the sums, and how far each run is counted.
 * Both change together and are written together, so that an agent that goes on from any earlier
 * state counts nothing twice: the engine's counter of a run only grows, and what came since is
 * counted then. It reads no clock (ADR 40).
 *
 * A run is one start of one of the engine's containers; its counter begins at 0.
 */
import type { ContainerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { added, dayOf, hourMs, hourOf, noAmounts, type Amounts } from '../../schemas/records/usage.ts';

export interface Run {
  readonly tenant: TenantId;
  readonly id: ContainerId;
  /** As the engine says it: another start is another run. */
  readonly startedAt: string;
  readonly upToMs: number;
  /** Of the engine's counter; null: a run from before this ledger, which the next sample begins. */
  readonly cpuMs: number | null;
  readonly memBytes: number;
  readonly isOver: boolean;
}

/** When a run was counted, by a clock that never steps. Not on disk. */
type SteadyMs = number;

export interface Entry {
  readonly tenant: TenantId;
  /** See UsageItem. */
  readonly part: number;
  readonly used: Amounts;
}

export type HourEntries = ReadonlyMap<ContainerId, Entry>;

/** What the engine says of a run. */
export interface RunSeen {
  readonly dockerId: string;
  readonly tenant: TenantId;
  readonly id: ContainerId;
  readonly startedAt: string;
  /** Undefined: it runs. */
  readonly finishedAt: string | undefined;
}

export interface Counters {
  readonly cpuMs: number;
  readonly memBytes: number;
}

/** By the wall clock, and by one that never steps. */
export interface Moment {
  readonly nowMs: number;
  readonly steadyMs: number;
}

export interface LedgerState {
  /** When the ledger was begun: what was used before is in none, or in an earlier one. */
  readonly sinceMs: number;
  /** The first hour that is not closed. */
  readonly openFrom: number;
  readonly runs: ReadonlyMap<string, Run>;
  readonly hours: ReadonlyMap<number, HourEntries>;
  /** How many containers of each tenant the newest day has had, for their parts. */
  readonly counted: { readonly day: string; readonly tenants: ReadonlyMap<TenantId, number> };
}

/** What has changed since the last call of `changes`. */
export interface LedgerChanges {
  readonly runs: ReadonlySet<string>;
  /** By hour. */
  readonly entries: ReadonlyMap<number, ReadonlySet<ContainerId>>;
}

export const beginLedger = (nowMs: number): LedgerState => ({
  sinceMs: nowMs,
  openFrom: hourOf(nowMs),
  runs: new Map(),
  hours: new Map(),
  counted: { day: dayOf(hourOf(nowMs)), tenants: new Map() },
});

/** Splits what was used evenly over a time into its hours. The parts add up to the whole. */
export function spread(
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  { cpuMs, memBytes }: Counters,
): [hour: number, used: Amounts][] {
  if (toMs <= fromMs) return cpuMs > 0 ? [[hourOf(fromMs), { ...noAmounts, cpuMs }]] : [];
  // The product may exceed 2^53: then the end of an hour is rounded, and the whole is still exact.
  const cpuUntil = (ms: number): number =>
    ms === toMs ? cpuMs : Math.floor((cpuMs * (ms - fromMs)) / (toMs - fromMs));
  const parts: [number, Amounts][] = [];
  for (let startMs = fromMs; startMs < toMs;) {
    const hour = hourOf(startMs);
    const endMs = Math.min(toMs, (hour + 1) * hourMs);
    const runMs = endMs - startMs;
    const cpu = cpuUntil(endMs) - cpuUntil(startMs);
    parts.push([hour, { runMs, cpuMs: cpu, memByteMs: BigInt(runMs) * BigInt(memBytes) }]);
    startMs = endMs;
  }
  return parts;
}

export class Ledger {
  readonly sinceMs: number;
  readonly #runs: Map<string, Run>;
  readonly #hours: Map<number, Map<ContainerId, Entry>>;
  readonly #counted: { day: string; tenants: Map<TenantId, number> };
  readonly #countedAt = new Map<string, SteadyMs>();
  #openFrom: number;
  #changedRuns = new Set<string>();
  #changedEntries = new Map<number, Set<ContainerId>>();

  constructor({ sinceMs, openFrom, runs, hours, counted }: LedgerState) {
    this.sinceMs = sinceMs;
    this.#openFrom = openFrom;
    this.#runs = new Map(runs);
    this.#hours = new Map(Array.from(hours, ([hour, entries]) => [hour, new Map(entries)]));
    this.#counted = { day: counted.day, tenants: new Map(counted.tenants) };
  }

  state(): LedgerState {
    const { sinceMs } = this;
    return { sinceMs, openFrom: this.#openFrom, runs: this.#runs, hours: this.#hours, counted: this.#counted };
  }

  changes(): LedgerChanges {
    const changes = { runs: this.#changedRuns, entries: this.#changedEntries };
    this.#changedRuns = new Set();
    this.#changedEntries = new Map();
    return changes;
  }

  get hasChanged(): boolean {
    return this.#changedRuns.size > 0 || this.#changedEntries.size > 0;
  }

  /** The run that goes on, if it is this one. */
  #current(dockerId: string, startedAt: string): Run | undefined {
    const run = this.#runs.get(dockerId);
    return run?.startedAt === startedAt && !run.isOver ? run : undefined;
  }

  /** @returns whether a run has ended by this */
  see({ dockerId, tenant, id, startedAt, finishedAt }: RunSeen, moment: Moment): boolean {
    const startedMs = Date.parse(startedAt);
    const finishedMs = finishedAt === undefined ? undefined : Date.parse(finishedAt);
    if (Number.isNaN(startedMs) || Number.isNaN(finishedMs ?? 0)) return false;
    if (this.#runs.get(dockerId)?.startedAt !== startedAt) {
      const isOurs = startedMs >= this.sinceMs;
      const begun = { tenant, id, startedAt, memBytes: 0, isOver: !isOurs && finishedMs !== undefined };
      this.#countedAt.delete(dockerId);
      this.#put(dockerId, { ...begun, upToMs: isOurs ? startedMs : moment.nowMs, cpuMs: isOurs ? 0 : null });
    }
    const run = this.#current(dockerId, startedAt);
    if (run === undefined || finishedMs === undefined) return false;
    this.#advance(dockerId, run, { ...moment, nowMs: finishedMs }, { cpuMs: run.cpuMs ?? 0, memBytes: run.memBytes });
    this.#put(dockerId, { ...(this.#runs.get(dockerId) ?? run), isOver: true });
    return true;
  }

  /** @param counters undefined: unknown now, so only its time counts */
  sample(dockerId: string, startedAt: string, moment: Moment, counters: Counters | undefined): void {
    const run = this.#current(dockerId, startedAt);
    if (run === undefined) return;
    // Less than was counted: of another run, whose start is not known yet.
    if (counters !== undefined && counters.cpuMs < (run.cpuMs ?? 0)) return;
    if (run.cpuMs !== null) {
      this.#advance(dockerId, run, moment, counters ?? { cpuMs: run.cpuMs, memBytes: run.memBytes });
    } else if (counters !== undefined) {
      this.#put(dockerId, { ...run, ...counters, upToMs: moment.nowMs });
    }
  }

  /** The runs that it knows of: ids of the engine's containers. */
  dockerIds(): ReadonlySet<string> {
    return new Set(this.#runs.keys());
  }

  /** The engine has these containers no more. */
  forget(dockerIds: Iterable<string>): void {
    for (const dockerId of dockerIds) {
      if (!this.#runs.delete(dockerId)) continue;
      this.#countedAt.delete(dockerId);
      this.#changedRuns.add(dockerId);
    }
  }

  /**
   * The hours that are over and to which nothing is added any more, until `forgetHour`. What is
   * heard of them later counts for the first hour that is open.
   */
  close(nowMs: number): [hour: number, entries: HourEntries][] {
    const open = [...this.#runs.values()].filter(({ isOver, cpuMs }) => !isOver && cpuMs !== null);
    const counted = Math.min(...open.map(({ upToMs }) => hourOf(upToMs)));
    this.#openFrom = Math.max(this.#openFrom, Math.min(hourOf(nowMs - limits.usageHourGraceMs), counted));
    return [...this.#hours].filter(([hour]) => hour < this.#openFrom).sort(([one], [other]) => one - other);
  }

  forgetHour(hour: number): void {
    const entries = this.#hours.get(hour);
    if (entries === undefined) return;
    this.#hours.delete(hour);
    this.#changedEntries.set(hour, new Set(entries.keys()));
  }

  #advance(dockerId: string, run: Run, { nowMs, steadyMs }: Moment, counters: Counters): void {
    const countedAt = this.#countedAt.get(dockerId);
    const fromMs = countedFrom(run.upToMs, nowMs, countedAt === undefined ? undefined : steadyMs - countedAt);
    const cpuMs = counters.cpuMs - (run.cpuMs ?? 0);
    const span = { fromMs, toMs: Math.max(fromMs, nowMs) };
    for (const [hour, used] of spread(span, { ...counters, cpuMs })) {
      this.#add(run, Math.max(hour, this.#openFrom), used);
    }
    this.#countedAt.set(dockerId, steadyMs);
    this.#put(dockerId, { ...run, ...counters, upToMs: span.toMs });
  }

  #put(dockerId: string, run: Run): void {
    this.#runs.set(dockerId, run);
    this.#changedRuns.add(dockerId);
  }

  #add({ tenant, id }: Run, hour: number, used: Amounts): void {
    const entries = this.#hours.get(hour) ?? new Map<ContainerId, Entry>();
    this.#hours.set(hour, entries);
    const before = entries.get(id);
    const part = before?.part ?? this.#partOf(tenant, id, hour);
    entries.set(id, { tenant, part, used: added(before?.used ?? noAmounts, used) });
    const changed = this.#changedEntries.get(hour) ?? new Set();
    this.#changedEntries.set(hour, changed.add(id));
  }

  /** A container stays in one message of its day, and a message has so many containers at most. */
  #partOf(tenant: TenantId, id: ContainerId, hour: number): number {
    const day = dayOf(hour);
    const known = dayOf(hour - 1) === day ? this.#hours.get(hour - 1)?.get(id) : undefined;
    if (known !== undefined) return known.part;
    if (day > this.#counted.day) {
      this.#counted.day = day;
      this.#counted.tenants.clear();
    }
    const count = this.#counted.tenants.get(tenant) ?? 0;
    this.#counted.tenants.set(tenant, count + 1);
    return Math.min(Math.floor(count / limits.usagePartContainers), limits.usageParts - 1);
  }
}

/**
 * Where the time begins that is counted now. The wall clock may have been set meanwhile: then as
 * much is counted as the other clock says.
 */
function countedFrom(upToMs: number, nowMs: number, elapsedMs: number | undefined): number {
  if (upToMs - nowMs > limits.usageClockStepMs) return nowMs;
  if (elapsedMs === undefined || nowMs - upToMs - elapsedMs <= limits.usageClockStepMs) return upToMs;
  return Math.round(nowMs - elapsedMs);
}
