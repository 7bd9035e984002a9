/**
 * The ledger on disk: `usage.json` with its log of changes, and a file in `usage/` for each closed
 * hour that no owner has taken yet. What was sent is on disk before, so that an agent that was
 * killed goes on from there and never says less, or the same in another hour.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { nullable } from '../../schemas/api/nullable.ts';
import { ContainerId, TenantId, isContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { StoredAmounts, UsageSource, fromStored, toStored } from '../../schemas/records/usage.ts';
import { fileMarks, lineMarks, readContinuedFile } from '../disk/continued-file.ts';
import { readDecoded, removeFile, writeAtomically } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import { Ledger, beginLedger, type Entry, type HourEntries, type LedgerState, type Run } from './ledger.ts';

const Count = Type.Integer({ minimum: 0 });
const byHour = <T extends Type.TSchema>(schema: T) => Type.Record(Type.String({ pattern: '^\\d+$' }), schema);

const RunStored = Type.Object({
  tenant: TenantId,
  id: ContainerId,
  startedAt: Type.String(),
  upToMs: Count,
  cpuMs: nullable(Count),
  memBytes: Count,
  isOver: Type.Boolean(),
});
const EntryStored = Type.Tuple([TenantId, Count, StoredAmounts]);
const EntriesStored = Type.Record(Type.String(), EntryStored);
const CountedStored = Type.Object({ day: Type.String(), tenants: Type.Record(Type.String(), Count) });
const heads = { openFrom: Count, counted: CountedStored };

const decodeFile = decoder(
  Type.Object({
    ...fileMarks,
    source: UsageSource,
    sinceMs: Count,
    ...heads,
    runs: Type.Record(Type.String(), RunStored),
    hours: byHour(EntriesStored),
  }),
);
const decodeLine = decoder(
  Type.Object({
    ...lineMarks,
    ...heads,
    /** Null: gone. */
    runs: Type.Record(Type.String(), nullable(RunStored)),
    hours: byHour(Type.Record(Type.String(), nullable(EntryStored))),
  }),
);
const decodeHour = decoder(Type.Object({ v: Type.Literal(1), source: UsageSource, entries: EntriesStored }));

const entryStored = ({ tenant, part, used }: Entry): Static<typeof EntryStored> => [tenant, part, toStored(used)];
const entryOf = ([tenant, part, used]: Static<typeof EntryStored>): Entry => ({
  tenant,
  part,
  used: fromStored(used),
});

function* entriesOf(stored: Static<typeof EntriesStored>): Generator<[ContainerId, Entry], void, void> {
  for (const [id, entry] of Object.entries(stored)) if (isContainerId(id)) yield [id, entryOf(entry)];
}
const entriesStored = (entries: HourEntries): Static<typeof EntriesStored> =>
  Object.fromEntries(Array.from(entries, ([id, entry]) => [id, entryStored(entry)]));

/** A closed hour. Its sums don't change any more. */
export interface ClosedHour {
  readonly hour: number;
  readonly source: string;
  readonly entries: HourEntries;
}

export interface UsageStore {
  readonly ledger: Ledger;
  readonly source: string;
  /** Something of the ledger has changed. */
  touch(): void;
  /** Resolves when the ledger is on disk, or when the disk refused it. */
  flush(): Promise<void>;
  /** Puts a closed hour beside the ledger, before the ledger forgets it on disk. */
  keep(hour: number, entries: HourEntries): Promise<void>;
  /** The closed hours that are kept, oldest first. */
  kept(): readonly number[];
  /** Undefined: it can't be read. */
  read(hour: number): Promise<ClosedHour | undefined>;
  /** An owner has it. */
  drop(hour: number): Promise<void>;
}

export interface UsageStoreParts {
  readonly stateDir: string;
  readonly nowMs: () => number;
  /** 16 random bytes, hexadecimal. */
  readonly newSource: () => string;
  readonly onDropped: (hours: number) => void;
  readonly disk: StateDisk;
  readonly log: Log;
}

const hourFile = /^(\d+)\.json$/;

export async function loadUsageStore(parts: UsageStoreParts): Promise<UsageStore> {
  const { stateDir, disk, log } = parts;
  const folder = join(stateDir, 'usage');
  const pathOf = (hour: number): string => join(folder, `${hour}.json`);
  const { file, lines, follow } = await readContinuedFile({
    stateDir,
    name: 'usage',
    decodeFile,
    decodeLine,
    intervalMs: limits.usageFlushMs,
    disk,
    log,
  });
  const source = file?.source ?? parts.newSource();
  const ledger = new Ledger(file === undefined ? beginLedger(parts.nowMs()) : stateIn(file, lines));
  const kept = new Set(await hoursIn(folder));

  const headsNow = () => {
    const { openFrom, counted } = ledger.state();
    return { openFrom, counted: { day: counted.day, tenants: Object.fromEntries(counted.tenants) } };
  };
  const changes = () => {
    if (!ledger.hasChanged) return undefined;
    const { runs, hours } = ledger.state();
    const changed = ledger.changes();
    return {
      ...headsNow(),
      runs: Object.fromEntries([...changed.runs].map((dockerId) => [dockerId, runs.get(dockerId) ?? null])),
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
    const { sinceMs, runs, hours } = ledger.state();
    return {
      source,
      sinceMs,
      ...headsNow(),
      runs: Object.fromEntries(runs),
      hours: Object.fromEntries(Array.from(hours, ([hour, entries]) => [hour, entriesStored(entries)])),
    };
  };
  const writer = follow({ whole, changes });
  // Of a source that is not on disk nothing may be sent.
  if (file === undefined) {
    writer.touch();
    await writer.flush();
  }

  const drop = async (hour: number): Promise<void> => {
    kept.delete(hour);
    await removeFile(pathOf(hour)).catch((error: unknown) => log.warn('usage_hour_not_removed', { hour, error }));
  };
  const oldestFirst = (): number[] => [...kept].sort((one, other) => one - other);
  return {
    ledger,
    source,
    touch: () => writer.touch(),
    flush: () => writer.flush(),
    keep: async (hour, entries) => {
      const content = JSON.stringify({ v: 1, source, entries: entriesStored(entries) });
      try {
        await writeAtomically(pathOf(hour), content);
        disk.written(pathOf(hour));
        kept.add(hour);
      } catch (error) {
        disk.failed(pathOf(hour), error);
        parts.onDropped(1);
        return;
      }
      const excess = oldestFirst().slice(0, Math.max(0, kept.size - limits.usageHoursKept));
      for (const old of excess) await drop(old);
      if (excess.length > 0) parts.onDropped(excess.length);
    },
    kept: oldestFirst,
    read: async (hour) => {
      const read = await readDecoded(pathOf(hour), decodeHour, log);
      return read === undefined ? undefined : { hour, source: read.source, entries: new Map(entriesOf(read.entries)) };
    },
    drop,
  };
}

function stateIn(file: ReturnType<typeof decodeFile>, lines: readonly ReturnType<typeof decodeLine>[]): LedgerState {
  const { openFrom, counted } = lines.at(-1) ?? file;
  const runs = new Map<string, Run>();
  const hours = new Map<number, Map<ContainerId, Entry>>();
  for (const read of [file, ...lines]) {
    for (const [dockerId, run] of Object.entries(read.runs)) {
      if (run === null) runs.delete(dockerId);
      else runs.set(dockerId, run);
    }
    for (const [hour, entries] of Object.entries(read.hours)) {
      const known = hours.get(Number(hour)) ?? new Map<ContainerId, Entry>();
      hours.set(Number(hour), known);
      for (const [id, entry] of Object.entries(entries)) {
        if (!isContainerId(id)) continue;
        if (entry === null) known.delete(id);
        else known.set(id, entryOf(entry));
      }
    }
  }
  for (const [hour, entries] of hours) if (entries.size === 0) hours.delete(hour);
  const tenants = new Map(Object.entries(counted.tenants) as [TenantId, number][]);
  return { sinceMs: file.sinceMs, openFrom, runs, hours, counted: { day: counted.day, tenants } };
}

async function hoursIn(folder: string): Promise<number[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return names.flatMap((name) => hourFile.exec(name)?.[1] ?? []).map(Number);
}
