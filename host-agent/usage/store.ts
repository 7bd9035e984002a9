/**
 * The ledger on disk: `usage.json` with its log of changes, and a file in `usage/` for each closed
 * hour that no owner has taken yet. An hour whose file the disk refuses waits in memory, and in the
 * ledger's own file as soon as that can be written, until it has a file or its owners. Sums are on
 * disk before they are sent, so that an agent that was killed continues from there and never
 * reports less, or the same in another hour.
 *
 * Owners keep the larger of two sums of one source and hour. So if an hour is begun again after the
 * wall clock was set back, or an hour of a wrong clock gets another date, the sums have another
 * source; readers add up all sources.
 */
import { createHash } from 'node:crypto';
import { readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { nullable } from '../../schemas/api/nullable.ts';
import { ContainerId, PeerId, TenantId, isContainerId, isPeerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { minutes } from '../../schemas/limits/units.ts';
import {
  StoredAmounts,
  StoredTraffic,
  UsageSource,
  hourOf,
  isInTime,
  storedOf,
  usedOf,
} from '../../schemas/records/usage.ts';
import type { MachineTime } from '../link/machine-time.ts';
import { fileMarks, lineMarks, readContinuedFile } from '../disk/continued-file.ts';
import { readDecoded, removeFile, syncFolder, writeAtomically } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import {
  Ledger,
  beginLedger,
  type Entry,
  type HourEntries,
  type LedgerState,
  type PeerCounted,
  type Run,
  type UsedBy,
} from './ledger.ts';
import type { Moment } from './wall-clock.ts';

/**
 * Delay with which the sums are written to the disk after a change; always before they are sent.
 */
const usageFlushMs = 1 * minutes;

const Count = Type.Integer({ minimum: 0 });
const byHour = <T extends Type.TSchema>(schema: T) => Type.Record(Type.String({ pattern: '^\\d+$' }), schema);

const RunStored = Type.Object({
  tenant: TenantId,
  id: ContainerId,
  startedAt: Type.String(),
  upToMs: Count,
  countedAtMs: Type.Optional(nullable(Type.Number())),
  cpuMs: nullable(Count),
  memBytes: Count,
  isOver: Type.Boolean(),
});
const PeerStored = Type.Object({
  tenant: TenantId,
  id: PeerId,
  link: Type.String(),
  rxBytes: Count,
  txBytes: Count,
  handshakeAtMs: nullable(Count),
  endpoint: nullable(Type.String()),
});
const EntryStored = Type.Tuple([TenantId, Count, Type.Union([StoredAmounts, StoredTraffic])]);
const EntriesStored = Type.Record(Type.String(), EntryStored);
const CountedStored = Type.Object({ day: Type.String(), tenants: Type.Record(Type.String(), Count) });
const ClockStored = Type.Array(Type.Object({ offsetMs: Type.Number(), fromMs: Type.Number(), untilMs: Type.Number() }));
const HourStored = Type.Object({ v: Type.Literal(1), source: UsageSource, entries: EntriesStored });
const heads = {
  openFrom: Count,
  counted: CountedStored,
  clock: Type.Optional(ClockStored),
  /**
   * Closed hours without a file, by the name that the file is to have. Absent if there are none.
   */
  unwritten: Type.Optional(Type.Record(Type.String(), HourStored)),
};

const decodeFile = decoder(
  Type.Object({
    ...fileMarks,
    source: UsageSource,
    sinceMs: Count,
    boot: Type.Optional(nullable(Type.String())),
    sinceAtMs: Type.Optional(Type.Number()),
    ...heads,
    runs: Type.Record(Type.String(), RunStored),
    /** Absent if no peers were counted yet. */
    peers: Type.Optional(Type.Record(Type.String(), PeerStored)),
    hours: byHour(EntriesStored),
  }),
);
const decodeLine = decoder(
  Type.Object({
    ...lineMarks,
    /** Absent if it is that of the file. */
    source: Type.Optional(UsageSource),
    ...heads,
    /** `null` for a run that is gone. */
    runs: Type.Record(Type.String(), nullable(RunStored)),
    /** Absent if unchanged. */
    peers: Type.Optional(Type.Record(Type.String(), nullable(PeerStored))),
    hours: byHour(Type.Record(Type.String(), nullable(EntryStored))),
  }),
);
const decodeHour = decoder(HourStored);

const entryStored = ({ tenant, part, used }: Entry): Static<typeof EntryStored> => [tenant, part, storedOf(used)];
const entryOf = ([tenant, part, used]: Static<typeof EntryStored>): Entry => ({
  tenant,
  part,
  used: usedOf(used),
});

const isUsedBy = (id: string): id is UsedBy => isContainerId(id) || isPeerId(id);

function* entriesOf(stored: Static<typeof EntriesStored>): Generator<[UsedBy, Entry], void, void> {
  for (const [id, entry] of Object.entries(stored)) if (isUsedBy(id)) yield [id, entryOf(entry)];
}
const entriesStored = (entries: HourEntries): Static<typeof EntriesStored> =>
  Object.fromEntries(Array.from(entries, ([id, entry]) => [id, entryStored(entry)]));

const hourStored = ({ source, entries }: ClosedHour): Static<typeof HourStored> => ({
  v: 1,
  source,
  entries: entriesStored(entries),
});

/** A closed hour. Its sums don't change any more. */
export interface ClosedHour {
  readonly hour: number;
  readonly source: string;
  readonly entries: HourEntries;
}

/** A closed hour, and its file, which may still be missing. */
export interface KeptHour {
  readonly hour: number;
  readonly name: string;
}

export interface UsageStore {
  readonly ledger: Ledger;
  /** The source under which the ledger's sums are reported now. */
  source(): string;
  /** The time now. */
  moment(): Moment;
  /** The ledger has changed. */
  touch(): void;
  /** Resolves when the ledger is on disk, or when the disk refused it. */
  flush(): Promise<void>;
  /**
   * Puts each hour that is over beside the ledger, before the ledger forgets it on disk; if the
   * wall clock was set back, each hour that was begun.
   */
  close(): Promise<void>;
  /** The closed hours that are kept, oldest first. */
  kept(): readonly KeptHour[];
  /** `undefined` if it cannot be read. */
  read(kept: KeptHour): Promise<ClosedHour | undefined>;
  /** An owner has it. */
  drop(kept: KeptHour): Promise<void>;
  /**
   * Gives an hour that was counted while the wall clock was wrong today's date, if no owner has any
   * of it.
   */
  redate(closed: ClosedHour, kept: KeptHour): Promise<void>;
}

interface UsageStoreParts {
  readonly stateDir: string;
  readonly nowMs: () => number;
  readonly machineTime: MachineTime;
  /** 16 random bytes, hexadecimal. */
  readonly newSource: () => string;
  readonly onDropped: (hours: number) => void;
  readonly disk: StateDisk;
  readonly log: Log;
}

/** In a name without a source, the file contains it. */
const hourFile = /^(\d+)(?:-([0-9a-f]{32}))?\.json$/;

const keptOf = (name: string): KeptHour[] => {
  const hour = hourFile.exec(name)?.[1];
  return hour === undefined ? [] : [{ hour: Number(hour), name }];
};

const closedAs = (name: string, { source, entries }: Static<typeof HourStored>): ClosedHour => ({
  hour: keptOf(name)[0]?.hour ?? 0,
  source: hourFile.exec(name)?.[2] ?? source,
  entries: new Map(entriesOf(entries)),
});

/** Always the same source, whenever the hour is given another date. */
const sourceOfRedated = ({ source, hour }: ClosedHour): string =>
  createHash('sha256').update(`${source} ${hour}`).digest('hex').slice(0, 32);

export async function loadUsageStore(parts: UsageStoreParts): Promise<UsageStore> {
  const { stateDir, machineTime, disk, log } = parts;
  const folder = join(stateDir, 'usage');
  const pathOf = (name: string): string => join(folder, name);
  const moment = (): Moment => ({ nowMs: parts.nowMs(), steadyMs: machineTime.nowMs() });
  const { file, lines, follow } = await readContinuedFile({
    stateDir,
    name: 'usage',
    decodeFile,
    decodeLine,
    intervalMs: usageFlushMs,
    disk,
    log,
  });
  let source = lines.findLast((line) => line.source !== undefined)?.source ?? file?.source ?? parts.newSource();
  const { boot } = machineTime;
  const ledger = new Ledger(file === undefined ? beginLedger(moment(), boot) : stateIn(file, lines), boot);
  const unwritten = new Map(
    Object.entries((lines.at(-1) ?? file)?.unwritten ?? {}).map(([name, stored]) => [name, closedAs(name, stored)]),
  );
  const names = [...(await namesIn(folder)), ...unwritten.keys()];
  const kept = new Map(names.flatMap(keptOf).map((each) => [each.name, each]));

  const headsNow = () => {
    const { openFrom, counted, clock = [] } = ledger.state();
    return {
      openFrom,
      counted: { day: counted.day, tenants: Object.fromEntries(counted.tenants) },
      clock,
      ...(unwritten.size === 0
        ? {}
        : { unwritten: Object.fromEntries(Array.from(unwritten, ([name, closed]) => [name, hourStored(closed)])) }),
    };
  };
  /**
   * `true` if the head is to be written: at once at the ledger's begin, because a begin that is
   * only in memory would be repeated after a kill; and at the first start in a boot, as the times
   * in a file are all of one boot. Later: if the hours without a file have changed.
   */
  let isHeadDue = file === undefined || file.boot !== boot;
  const changes = () => {
    if (!ledger.hasChanged && !isHeadDue) return undefined;
    isHeadDue = false;
    const { runs, peers, hours } = ledger.state();
    const changed = ledger.changes();
    return {
      source,
      ...headsNow(),
      runs: Object.fromEntries([...changed.runs].map((dockerId) => [dockerId, runs.get(dockerId) ?? null])),
      ...(changed.peers.size === 0
        ? {}
        : { peers: Object.fromEntries([...changed.peers].map((key) => [key, peers?.get(key) ?? null])) }),
      hours: Object.fromEntries(
        Array.from(changed.entries, ([hour, ids]) => [
          hour,
          Object.fromEntries(
            [...ids].map((id) => {
              const entry = hours.get(hour)?.get(id);
              return [id, entry === undefined ? null : entryStored(entry)];
            }),
          ),
        ]),
      ),
    };
  };
  const whole = () => {
    const { sinceMs, sinceAtMs, runs, peers, hours } = ledger.state();
    return {
      source,
      sinceMs,
      boot,
      ...(sinceAtMs === undefined ? {} : { sinceAtMs }),
      ...headsNow(),
      runs: Object.fromEntries(runs),
      ...(peers === undefined ? {} : { peers: Object.fromEntries(peers) }),
      hours: Object.fromEntries(Array.from(hours, ([hour, entries]) => [hour, entriesStored(entries)])),
    };
  };
  const writer = follow({ whole, changes });
  // Nothing may be sent under a source that is not on disk.
  if (isHeadDue) {
    writer.touch();
    await writer.flush();
  }

  const unwrittenChanged = (): void => {
    isHeadDue = true;
    writer.touch();
  };
  const drop = async ({ hour, name }: KeptHour): Promise<void> => {
    kept.delete(name);
    if (unwritten.delete(name)) unwrittenChanged();
    await removeFile(pathOf(name)).catch((error: unknown) => log.warn('usage_hour_remove_failed', { hour, error }));
  };
  const oldestFirst = (): KeptHour[] => [...kept.values()].sort((one, other) => one.hour - other.hour);
  const read = async ({ name }: KeptHour): Promise<ClosedHour | undefined> => {
    const inMemory = unwritten.get(name);
    if (inMemory !== undefined) return inMemory;
    const stored = await readDecoded(pathOf(name), decodeHour, log);
    return stored === undefined ? undefined : closedAs(name, stored);
  };
  /** A name that no file of another source has. */
  const nameFor = async ({ hour, source }: Omit<ClosedHour, 'entries'>): Promise<string> => {
    const plain = kept.get(`${hour}.json`);
    const isOthers = plain !== undefined && (await read(plain))?.source !== source;
    return isOthers ? `${hour}-${source}.json` : `${hour}.json`;
  };
  const writeHour = async (name: string, closed: ClosedHour): Promise<void> => {
    try {
      await writeAtomically(pathOf(name), JSON.stringify(hourStored(closed)));
      disk.written(pathOf(name));
      if (unwritten.delete(name)) unwrittenChanged();
    } catch (error) {
      disk.failed(pathOf(name), error);
      unwritten.set(name, closed);
      unwrittenChanged();
    }
  };
  const keep = async (closed: ClosedHour): Promise<void> => {
    const name = await nameFor(closed);
    await writeHour(name, closed);
    kept.set(name, { hour: closed.hour, name });
    const inMemory = oldestFirst().filter((each) => unwritten.has(each.name));
    const excess = new Set([
      ...oldestFirst().slice(0, Math.max(0, kept.size - limits.usageHoursKept)),
      ...inMemory.slice(0, Math.max(0, inMemory.length - limits.usageHoursUnwritten)),
    ]);
    for (const old of excess) await drop(old);
    if (excess.size > 0) parts.onDropped(excess.size);
  };
  /** Tries again, because the disk may take them now. */
  const writeAgain = async (): Promise<void> => {
    for (const [name, closed] of [...unwritten]) await writeHour(name, closed);
  };
  const goBack = async (nowMs: number): Promise<void> => {
    const former = source;
    // Before the ledger forgets them on disk, and with the amounts that were counted meanwhile.
    for (const [hour, entries] of [...ledger.state().hours]) await keep({ hour, source: former, entries });
    source = parts.newSource();
    log.warn('usage_clock_set_back', { now: new Date(nowMs).toISOString() });
    for (const [hour, entries] of ledger.goBack(nowMs)) await keep({ hour, source: former, entries });
    writer.touch();
    await writer.flush();
  };
  return {
    ledger,
    source: () => source,
    moment,
    touch: () => writer.touch(),
    flush: () => writer.flush(),
    close: async () => {
      const { nowMs } = moment();
      await writeAgain();
      if (ledger.isAheadOf(nowMs)) return goBack(nowMs);
      for (const [hour, entries] of ledger.close(nowMs)) {
        await keep({ hour, source, entries });
        ledger.forgetHour(hour);
      }
      if (ledger.hasChanged) writer.touch();
    },
    kept: oldestFirst,
    read,
    drop,
    redate: async (closed, { name }) => {
      const nowMs = parts.nowMs();
      if (isInTime(closed.hour, nowMs)) return;
      const hour = hourOf(nowMs);
      const source = sourceOfRedated(closed);
      const next = `${hour}-${source}.json`;
      if (unwritten.delete(name)) {
        unwritten.set(next, { ...closed, hour, source });
        unwrittenChanged();
      } else {
        await rename(pathOf(name), pathOf(next));
        await syncFolder(folder);
      }
      kept.delete(name);
      kept.set(next, { hour, name: next });
      log.warn('usage_hour_redated', { from: closed.hour, to: hour });
    },
  };
}

function stateIn(file: ReturnType<typeof decodeFile>, lines: readonly ReturnType<typeof decodeLine>[]): LedgerState {
  const { openFrom, counted, clock } = lines.at(-1) ?? file;
  const runs = new Map<string, Run>();
  let peers: Map<string, PeerCounted> | undefined;
  const hours = new Map<number, Map<UsedBy, Entry>>();
  for (const read of [file, ...lines]) {
    for (const [dockerId, run] of Object.entries(read.runs)) {
      if (run === null) runs.delete(dockerId);
      else runs.set(dockerId, run);
    }
    if (read.peers !== undefined) peers ??= new Map();
    for (const [key, peer] of Object.entries(read.peers ?? {})) {
      if (peer === null) peers?.delete(key);
      else peers?.set(key, peer);
    }
    for (const [hour, entries] of Object.entries(read.hours)) {
      const known = hours.get(Number(hour)) ?? new Map<UsedBy, Entry>();
      hours.set(Number(hour), known);
      for (const [id, entry] of Object.entries(entries)) {
        if (!isUsedBy(id)) continue;
        if (entry === null) known.delete(id);
        else known.set(id, entryOf(entry));
      }
    }
  }
  for (const [hour, entries] of hours) if (entries.size === 0) hours.delete(hour);
  const tenants = new Map(Object.entries(counted.tenants) as [TenantId, number][]);
  const { sinceMs, sinceAtMs, boot } = file;
  // Without a boot, machine times belong to a process that has ended.
  const machine = typeof boot === 'string' ? { boot, sinceAtMs, clock } : {};
  return { sinceMs, ...machine, openFrom, runs, peers, hours, counted: { day: counted.day, tenants } };
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
}
