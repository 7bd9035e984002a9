/**
 * The use of this host's containers, and the traffic of the VPN peers that it serves, by hour: the
 * sums, and the point up to which each run and each peer is counted. Both change together and are
 * written together, so that an agent that continues from any earlier state counts nothing twice:
 * the engine's counter of a run only grows, and its growth since then is counted. It reads no clock
 * (ADR 40).
 *
 * The length of a run is measured in machine time, which no one sets and which goes on while the
 * agent is away; the wall clock decides into which hour it falls. A run is one start of one of the
 * engine's containers; its counter begins at 0.
 */
import { isDeepStrictEqual } from 'node:util';
import type { ContainerId, PeerId, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import {
  dayOf,
  hourMs,
  hourOf,
  mostRunMs,
  noAmounts,
  noTraffic,
  sumOf,
  type Amounts,
  type Traffic,
  type Used,
} from '../../schemas/records/usage.ts';
import { WallClock, isSameTime, type ClockSpan, type Moment } from './wall-clock.ts';
import { minutes } from '../../schemas/limits/units.ts';

/** An hour is closed so long after its end, when every run was sampled since. */
export const usageHourGraceMs = 2 * minutes;
/** Containers of one message of the stream. With 24 hours each, that is about 300 KiB. */
export const usagePartContainers = 256;

export interface Run {
  readonly tenant: TenantId;
  readonly id: ContainerId;
  /** The engine's time of the start: another start is another run. */
  readonly startedAt: string;
  /** By the wall clock at that time. */
  readonly upToMs: number;
  /**
   * The same by machine time. `null` for a time in an earlier boot; `undefined` if unknown, as in
   * the file of an older agent.
   */
  readonly countedAtMs?: number | null | undefined;
  /**
   * The engine's counter up to there; `null` for a run from before this ledger, which the next
   * sample begins.
   */
  readonly cpuMs: number | null;
  readonly memBytes: number;
  readonly isOver: boolean;
}

export interface Entry {
  readonly tenant: TenantId;
  /** See UsageItem. */
  readonly part: number;
  readonly used: Used;
}

export type UsedBy = ContainerId | PeerId;
export type HourEntries = ReadonlyMap<UsedBy, Entry>;

/** A VPN peer, and the counters of its interface up to which it is counted. */
export interface PeerCounted extends Traffic {
  readonly tenant: TenantId;
  readonly id: PeerId;
  /** The interface: the counters of another one begin at 0. Empty if it is in none now. */
  readonly link: string;
  /** Wall time; `null` if none is known. */
  readonly handshakeAtMs: number | null;
  /** The address and port of its last packet. */
  readonly endpoint: string | null;
}

/** A run as the engine shows it. */
export interface RunSeen {
  readonly dockerId: string;
  readonly tenant: TenantId;
  readonly id: ContainerId;
  readonly startedAt: string;
  /** `undefined` if it runs. */
  readonly finishedAt: string | undefined;
}

export interface Counters {
  readonly cpuMs: number;
  readonly memBytes: number;
}

export interface LedgerState {
  /** The begin of the ledger: earlier use is in none, or in an earlier one. */
  readonly sinceMs: number;
  /**
   * The boot that machine times belong to; `null` if unknown, and they are of this process;
   * `undefined` if such times are unknown.
   */
  readonly boot?: string | null | undefined;
  /** `sinceMs` by machine time, if the ledger was begun in this boot. */
  readonly sinceAtMs?: number | undefined;
  /** The history of the wall clock in this boot. */
  readonly clock?: readonly ClockSpan[] | undefined;
  /** The first hour that is not closed. */
  readonly openFrom: number;
  readonly runs: ReadonlyMap<string, Run>;
  /** By public key; `undefined` if no peers were counted yet. */
  readonly peers?: ReadonlyMap<string, PeerCounted> | undefined;
  readonly hours: ReadonlyMap<number, HourEntries>;
  /** The number of containers and peers of each tenant in the newest day, for their parts. */
  readonly counted: { readonly day: string; readonly tenants: ReadonlyMap<TenantId, number> };
}

/** The changes since the last call of `changes`. */
export interface LedgerChanges {
  readonly runs: ReadonlySet<string>;
  readonly peers: ReadonlySet<string>;
  /** By hour. */
  readonly entries: ReadonlyMap<number, ReadonlySet<UsedBy>>;
}

export const beginLedger = ({ nowMs, steadyMs }: Moment, boot: string | null): LedgerState => ({
  sinceMs: nowMs,
  boot,
  sinceAtMs: steadyMs,
  clock: [{ offsetMs: nowMs - steadyMs, fromMs: steadyMs, untilMs: steadyMs }],
  openFrom: hourOf(nowMs),
  runs: new Map(),
  hours: new Map(),
  counted: { day: dayOf(hourOf(nowMs)), tenants: new Map() },
});

/**
 * Splits an amount that was used evenly over a time into the hours of that time. The parts add up
 * to the whole.
 */
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

/** Splits amounts into those of the first part of a time, and those of the rest. */
function split({ runMs, cpuMs, memByteMs }: Amounts, firstMs: number): [first: Amounts, rest: Amounts] {
  const first = {
    runMs: firstMs,
    cpuMs: Math.floor((cpuMs * firstMs) / runMs),
    memByteMs: (memByteMs * BigInt(firstMs)) / BigInt(runMs),
  };
  return [first, { runMs: runMs - firstMs, cpuMs: cpuMs - first.cpuMs, memByteMs: memByteMs - first.memByteMs }];
}

export class Ledger {
  readonly sinceMs: number;
  readonly #boot: string | null;
  /** The begin in machine time; `undefined` if it was in an earlier boot, or is unknown. */
  readonly #sinceAtMs: number | undefined;
  /** The boot of the machine: no start by its engine can be earlier. */
  readonly #bootedAtMs: number;
  readonly #hasRebooted: boolean;
  readonly #clock: WallClock;
  readonly #runs: Map<string, Run>;
  #peers: Map<string, PeerCounted> | undefined;
  readonly #hours: Map<number, Map<UsedBy, Entry>>;
  readonly #counted: { day: string; tenants: Map<TenantId, number> };
  #openFrom: number;
  #changedRuns = new Set<string>();
  #changedPeers = new Set<string>();
  #changedEntries = new Map<number, Set<UsedBy>>();

  /**
   * @param boot the current boot of the machine; `null` if unknown, so that machine time is that of
   * this process
   */
  constructor(state: LedgerState, boot: string | null) {
    const { sinceMs, openFrom, runs, peers, hours, counted } = state;
    const isSameBoot = state.boot === boot;
    this.#hasRebooted = !isSameBoot && boot !== null && typeof state.boot === 'string';
    this.sinceMs = sinceMs;
    this.#boot = boot;
    this.#sinceAtMs = isSameBoot ? state.sinceAtMs : undefined;
    this.#bootedAtMs = boot === null ? -Infinity : 0;
    this.#clock = new WallClock(isSameBoot ? (state.clock ?? []) : []);
    this.#openFrom = openFrom;
    this.#runs = new Map(isSameBoot ? runs : Array.from(runs, ([id, run]) => [id, this.#ofEarlier(run)]));
    this.#peers = peers === undefined ? undefined : new Map(peers);
    this.#hours = new Map(Array.from(hours, ([hour, entries]) => [hour, new Map(entries)]));
    this.#counted = { day: counted.day, tenants: new Map(counted.tenants) };
  }

  #ofEarlier(run: Run): Run {
    const isKnown = run.countedAtMs !== undefined && this.#boot !== null;
    return { ...run, countedAtMs: isKnown ? null : undefined };
  }

  state(): LedgerState {
    return {
      sinceMs: this.sinceMs,
      boot: this.#boot,
      sinceAtMs: this.#sinceAtMs,
      clock: this.#clock.spans,
      openFrom: this.#openFrom,
      runs: this.#runs,
      peers: this.#peers,
      hours: this.#hours,
      counted: this.#counted,
    };
  }

  changes(): LedgerChanges {
    const changes = { runs: this.#changedRuns, peers: this.#changedPeers, entries: this.#changedEntries };
    this.#changedRuns = new Set();
    this.#changedPeers = new Set();
    this.#changedEntries = new Map();
    return changes;
  }

  get hasChanged(): boolean {
    return this.#changedRuns.size > 0 || this.#changedPeers.size > 0 || this.#changedEntries.size > 0;
  }

  /** The run that goes on, if it is this one. */
  #current(dockerId: string, startedAt: string): Run | undefined {
    const run = this.#runs.get(dockerId);
    return run?.startedAt === startedAt && !run.isOver ? run : undefined;
  }

  /** @returns `true` if a run has ended by this */
  see(seen: RunSeen, moment: Moment): boolean {
    const { dockerId, startedAt, finishedAt } = seen;
    const startedMs = Date.parse(startedAt);
    const finishedMs = finishedAt === undefined ? undefined : Date.parse(finishedAt);
    if (Number.isNaN(startedMs) || Number.isNaN(finishedMs ?? 0)) return false;
    this.#clock.look(moment);
    if (this.#runs.get(dockerId)?.startedAt !== startedAt) {
      this.#put(dockerId, this.#begun(seen, moment, startedMs, finishedMs));
    }
    const run = this.#current(dockerId, startedAt);
    if (run === undefined || finishedMs === undefined) return false;
    const end = this.#endOf(run, finishedMs, moment);
    if (end !== undefined) this.#advance(dockerId, run, end, undefined);
    this.#put(dockerId, { ...(this.#runs.get(dockerId) ?? run), isOver: true });
    return true;
  }

  /** A run that was not known. One from before this ledger counts from the ledger's begin. */
  #begun({ tenant, id, startedAt }: RunSeen, moment: Moment, startedMs: number, finishedMs: number | undefined): Run {
    const startedAtMs = this.#clock.machineTimeOf(startedMs, moment, this.#bootedAtMs);
    const begun = { tenant, id, startedAt, memBytes: 0, isOver: false };
    const sinceAtMs = this.#sinceAtMs;
    // After a restart of the machine with a wrong clock, its boot proves that the start came later.
    const isOfThisBoot = this.#hasRebooted && startedAtMs > this.#bootedAtMs;
    const isOurs = sinceAtMs === undefined ? startedMs >= this.sinceMs || isOfThisBoot : startedAtMs >= sinceAtMs;
    if (isOurs) return { ...begun, upToMs: startedMs, countedAtMs: startedAtMs, cpuMs: 0 };
    const countedAtMs = sinceAtMs ?? moment.steadyMs;
    const upToMs = Math.round(moment.nowMs - (moment.steadyMs - countedAtMs));
    const isOver = finishedMs !== undefined && this.#clock.machineTimeOf(finishedMs, moment, -Infinity) <= countedAtMs;
    return { ...begun, upToMs, countedAtMs, cpuMs: null, isOver };
  }

  /**
   * The end of a run, by today's wall clock. `undefined` if the machine went down with it, so that
   * the engine dates the end by its own next start; only the time that was counted before is known.
   */
  #endOf({ upToMs, countedAtMs }: Run, finishedMs: number, moment: Moment): Moment | undefined {
    const shownNow = finishedMs - (moment.nowMs - moment.steadyMs);
    if (countedAtMs === null && shownNow > this.#bootedAtMs && shownNow <= moment.steadyMs) return undefined;
    if (typeof countedAtMs !== 'number') return { nowMs: Math.max(upToMs, finishedMs), steadyMs: moment.steadyMs };
    const steadyMs = this.#clock.machineTimeOf(finishedMs, moment, countedAtMs);
    return {
      nowMs: isSameTime(shownNow, steadyMs) ? finishedMs : moment.nowMs - (moment.steadyMs - steadyMs),
      steadyMs,
    };
  }

  /** @param counters `undefined` if unknown now, so that only the run's time counts */
  sample(dockerId: string, startedAt: string, moment: Moment, counters: Counters | undefined): void {
    const run = this.#current(dockerId, startedAt);
    if (run === undefined) return;
    // Less than was counted: the counters of another run, whose start is not known yet.
    if (counters !== undefined && counters.cpuMs < (run.cpuMs ?? 0)) return;
    this.#clock.look(moment);
    this.#advance(dockerId, run, moment, counters);
  }

  /**
   * Counts the traffic since the last call, for the current hour. Counters of interfaces from
   * before the first call are in no ledger, or in an earlier one.
   * @param seen all peers that are let in now, by public key
   */
  countPeers(seen: ReadonlyMap<string, PeerCounted>, { nowMs }: Moment): void {
    const isFirst = this.#peers === undefined;
    const peers = (this.#peers ??= new Map());
    const put = (key: string, peer: PeerCounted | undefined): void => {
      if (peer === undefined) peers.delete(key);
      else peers.set(key, peer);
      this.#changedPeers.add(key);
    };
    for (const [key, peer] of peers) {
      if (seen.has(key)) continue;
      const isForgotten = (peer.handshakeAtMs ?? 0) < nowMs - limits.usageAgeMs;
      if (isForgotten || peer.link !== '') put(key, isForgotten ? undefined : { ...peer, link: '', ...noTraffic });
    }
    for (const [key, peer] of seen) {
      const before = peers.get(key);
      const goesOn = before?.link === peer.link && peer.rxBytes >= before.rxBytes && peer.txBytes >= before.txBytes;
      const { rxBytes, txBytes } = goesOn ? before : noTraffic;
      const used = { rxBytes: peer.rxBytes - rxBytes, txBytes: peer.txBytes - txBytes };
      const now = {
        ...peer,
        handshakeAtMs: peer.handshakeAtMs ?? before?.handshakeAtMs ?? null,
        endpoint: peer.endpoint ?? before?.endpoint ?? null,
      };
      if (!isDeepStrictEqual(now, before)) put(key, now);
      if (!isFirst && used.rxBytes + used.txBytes > 0) this.#add(peer, Math.max(hourOf(nowMs), this.#openFrom), used);
    }
    // A first call without peers counts as one, too.
    if (isFirst) this.#changedPeers.add('');
  }

  /** `true` if it knows a run of this one of the engine's containers. */
  knows(dockerId: string): boolean {
    return this.#runs.has(dockerId);
  }

  /** The engine's ids of the containers whose runs it knows. */
  dockerIds(): ReadonlySet<string> {
    return new Set(this.#runs.keys());
  }

  /** The engine no longer has these containers. */
  forget(dockerIds: Iterable<string>): void {
    for (const dockerId of dockerIds) {
      if (this.#runs.delete(dockerId)) this.#changedRuns.add(dockerId);
    }
  }

  /**
   * The hours that are over and do not change any more, until `forgetHour`. Later news about them
   * counts for the first hour that is open.
   */
  close(nowMs: number): [hour: number, entries: HourEntries][] {
    const open = [...this.#runs.values()].filter(({ isOver }) => !isOver);
    const counted = Math.min(...open.map(({ upToMs }) => hourOf(upToMs)));
    this.#openFrom = Math.max(this.#openFrom, Math.min(hourOf(nowMs - usageHourGraceMs), counted));
    return [...this.#hours].filter(([hour]) => hour < this.#openFrom).sort(([one], [other]) => one - other);
  }

  /** `true` if the wall clock was ahead when hours were closed or begun. */
  isAheadOf(nowMs: number): boolean {
    const hour = hourOf(nowMs);
    return hour < this.#openFrom || [...this.#hours.keys()].some((begun) => begun > hour + 1);
  }

  /**
   * Continues from an earlier hour, because the wall clock was set back. The caller reports the
   * hours that were begun, and the use from now on, under another source: sums of one source only
   * grow.
   */
  goBack(nowMs: number): [hour: number, entries: HourEntries][] {
    const hours = [...this.#hours];
    for (const [hour] of hours) this.forgetHour(hour);
    this.#openFrom = hourOf(nowMs);
    this.#counted.day = dayOf(this.#openFrom);
    this.#counted.tenants.clear();
    return hours;
  }

  forgetHour(hour: number): void {
    const entries = this.#hours.get(hour);
    if (entries === undefined) return;
    this.#hours.delete(hour);
    this.#changedEntries.set(hour, new Set(entries.keys()));
  }

  #advance(dockerId: string, run: Run, { nowMs, steadyMs }: Moment, counters: Counters | undefined): void {
    const span = spanOf(run, nowMs, steadyMs);
    const memBytes = counters?.memBytes ?? run.memBytes;
    const cpuMs = counters === undefined ? 0 : counters.cpuMs - (run.cpuMs ?? counters.cpuMs);
    for (const [hour, used] of spread(span, { cpuMs, memBytes })) {
      this.#addTime(run, Math.max(hour, this.#openFrom), used);
    }
    const countedAtMs = Math.max(steadyMs, run.countedAtMs ?? -Infinity);
    this.#put(dockerId, { ...run, memBytes, cpuMs: counters?.cpuMs ?? run.cpuMs, upToMs: span.toMs, countedAtMs });
  }

  /**
   * A clock that is set back within an hour shows it again. Time that the hour cannot hold goes to
   * the next: owners refuse more than a container can have used in one.
   */
  #addTime(run: Run, hour: number, used: Amounts): void {
    const before = this.#hours.get(hour)?.get(run.id)?.used;
    const room = Math.max(0, mostRunMs - (before !== undefined && 'runMs' in before ? before.runMs : 0));
    if (used.runMs <= room) {
      this.#add(run, hour, used);
      return;
    }
    const [now, later] = split(used, room);
    if (room > 0) this.#add(run, hour, now);
    this.#addTime(run, hour + 1, later);
  }

  #put(dockerId: string, run: Run): void {
    this.#runs.set(dockerId, run);
    this.#changedRuns.add(dockerId);
  }

  #add({ tenant, id }: { readonly tenant: TenantId; readonly id: UsedBy }, hour: number, used: Used): void {
    const entries = this.#hours.get(hour) ?? new Map<UsedBy, Entry>();
    this.#hours.set(hour, entries);
    const before = entries.get(id);
    const part = before?.part ?? this.#partOf(tenant, id, hour);
    entries.set(id, { tenant, part, used: sumOf(before?.used, used) });
    const changed = this.#changedEntries.get(hour) ?? new Set();
    this.#changedEntries.set(hour, changed.add(id));
  }

  /** Each container stays in one message of its day, and a message has a bounded number of them. */
  #partOf(tenant: TenantId, id: UsedBy, hour: number): number {
    const day = dayOf(hour);
    const known = dayOf(hour - 1) === day ? this.#hours.get(hour - 1)?.get(id) : undefined;
    if (known !== undefined) return known.part;
    if (day > this.#counted.day) {
      this.#counted.day = day;
      this.#counted.tenants.clear();
    }
    const count = this.#counted.tenants.get(tenant) ?? 0;
    this.#counted.tenants.set(tenant, count + 1);
    return Math.min(Math.floor(count / usagePartContainers), limits.usageParts - 1);
  }
}

/**
 * The time to count now, by today's wall clock. If the clock was set meanwhile, the length follows
 * machine time.
 */
function spanOf({ upToMs, countedAtMs }: Run, nowMs: number, steadyMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.round(nowMs);
  const elapsedMs = typeof countedAtMs === 'number' ? Math.max(0, steadyMs - countedAtMs) : undefined;
  if (isSameTime(toMs - upToMs, elapsedMs ?? Math.max(0, toMs - upToMs))) {
    return { fromMs: upToMs, toMs: Math.max(upToMs, toMs) };
  }
  return { fromMs: Math.round(toMs - (elapsedMs ?? 0)), toMs };
}
