/**
 * Loads a partition from its bucket: the values under their own keys, then the journal entries
 * above the mark, in order and without a gap. A load fails closed: it refuses a journal that may
 * have lost an entry, and records that differ from those of the checkpoint (docs/runbook.md,
 * "Partition that refuses to load"). A single damaged value is quarantined by its key, and the rest
 * is served. A load is long work, so it is a generator that yields after every value
 * (lib/time/slices.ts).
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { keys } from '../../../schemas/records/buckets.ts';
import { OperationRecord } from '../../../schemas/records/operation.ts';
import { limits } from '../../../schemas/limits.ts';
import { runAtOnce, sorting } from '../../../lib/time/slices.ts';
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import { clockShape, type StoredClock } from './checkpoint.ts';
import { anyShape, decodeEntry, decodeValue, type JournalEntry, type Shape } from './codec.ts';
import { digestShape, RecordsDigest, type StoredDigest } from './digest.ts';
import type { RecordFormat } from '../domain.ts';
import { eventsShape, type ParkedEvents } from '../events/event-outbox.ts';
import type { StoredValue } from '../store/store.ts';

export interface Loaded<R> {
  /** In the order in which memory takes them. */
  readonly records: readonly R[];
  /** Keys whose value is damaged, or not a record. */
  readonly quarantined: readonly string[];
  /** Of the records under their own keys, below the mark. */
  readonly digest: RecordsDigest;
  /** Whether the records are those of the checkpoint; if that is unknown, why. */
  readonly verified: Verified;
  readonly operations: readonly { readonly record: OperationRecord; readonly commit: number }[];
  /** Entries above the mark, oldest first, to be checkpointed. */
  readonly pending: readonly JournalEntry[];
  /** Entries at or below the mark that the ring still has, oldest first. */
  readonly checkpointed: readonly JournalEntry[];
  readonly parked: readonly ParkedEvents[];
  /** Keys of parked events that can't be read. */
  readonly damagedEvents: readonly string[];
  readonly mark: number;
  readonly last: number;
  /** Of the last entry; undefined where a release before 0.1.0 wrote it. */
  readonly clock: ClockReading | undefined;
}

export type Verified =
  | 'verified'
  /** A release before 0.1.0 wrote the checkpoint: it kept no digest. */
  | 'no digest'
  /** An operator has deleted the digest, so that the records are served as they are. */
  | 'overridden';

export class LoadError extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'LoadError';
  }
}

const markShape = Compile(Type.Integer());
const operationsShape = Compile(Type.Array(OperationRecord));

function readMark(values: readonly StoredValue[]): number {
  const stored = values.find(({ key }) => key === keys.checkpoint)?.value;
  if (stored == null) return 0;
  const decoded = decodeValue(stored, markShape);
  if (!decoded.ok) throw new LoadError(`the checkpoint mark is damaged (${decoded.fault})`);
  return decoded.value;
}

/** The time that the last checkpoint of this release kept. */
function readClock(values: readonly StoredValue[]): StoredClock | undefined {
  const stored = values.find(({ key }) => key === keys.clock)?.value;
  const decoded = stored == null ? undefined : decodeValue(stored, clockShape);
  return decoded?.ok === true ? decoded.value : undefined;
}

/** What the checkpoint says of its records. */
function readDigest(values: readonly StoredValue[], mark: number): StoredDigest | Exclude<Verified, 'verified'> {
  const stored = values.find(({ key }) => key === keys.digest);
  const hasClock = values.some(({ key, value }) => key === keys.clock && value !== null);
  if (stored === undefined && hasClock) {
    throw new LoadError(`the digest of the checkpoint at entry ${mark} is missing; ${whatToDo}`);
  }
  if (stored === undefined) return 'no digest';
  if (stored.value === null) return 'overridden';
  const decoded = decodeValue(stored.value, digestShape);
  if (!decoded.ok) throw new LoadError(`the digest of the checkpoint is damaged (${decoded.fault})`);
  if (decoded.value.mark > mark) {
    throw new LoadError(`the checkpoint mark ${mark} is older than the digest of entry ${decoded.value.mark}`);
  }
  if (decoded.value.mark === mark) return decoded.value;
  if (readClock(values)?.mark === mark) {
    throw new LoadError(
      `the digest of entry ${decoded.value.mark} is older than the checkpoint at entry ${mark}; ${whatToDo}`,
    );
  }
  return 'no digest';
}

const whatToDo = 'docs/runbook.md, "Partition that refuses to load", says what to do';

const isUndamaged = (value: string | null): boolean => value === null || decodeValue(value, anyShape).ok;

/** @throws LoadError where the records are not those that the checkpoint counted. */
function* verifying(
  values: readonly StoredValue[],
  isRecordKey: (key: string) => boolean,
  digest: RecordsDigest,
  stored: StoredDigest,
): Generator<void, void, void> {
  const read = digest.at(stored.mark);
  const isSameSet = read.count === stored.count && read.keys === stored.keys;
  if (isSameSet && read.values === stored.values) return;
  let damaged = 0;
  for (const { key, value } of values) {
    if (isRecordKey(key) && !isUndamaged(value)) damaged++;
    yield;
  }
  // No record is missing, and the damaged ones fail their checksum: the quarantine takes them.
  if (isSameSet && damaged > 0) return;
  const what = ({ count, keys, values }: StoredDigest): string => `${count} records (keys ${keys}, values ${values})`;
  throw new LoadError(
    `records are missing or differ: the checkpoint at entry ${stored.mark} has ${what(stored)}, and ${what(read)} were ` +
      `read; ${whatToDo}`,
  );
}

interface Journal {
  readonly pending: JournalEntry[];
  readonly checkpointed: JournalEntry[];
}

/** Entries above the mark in order, and what the ring still has of those below. */
function* readJournal(values: readonly StoredValue[], mark: number): Generator<void, Journal, void> {
  const entries: JournalEntry[] = [];
  const checkpointed: JournalEntry[] = [];
  const found = new Set<number>();
  const damaged = new Set<number>();
  for (const { key, value } of values) {
    if (value === null || !key.startsWith('journal.')) continue;
    yield;
    const decoded = decodeEntry(value);
    if (!decoded.ok) {
      damaged.add(Number(key.slice('journal.'.length)));
      continue;
    }
    found.add(decoded.value.number);
    (decoded.value.number > mark ? entries : checkpointed).push(decoded.value);
  }
  for (const list of [entries, checkpointed]) list.sort((a, b) => a.number - b.number);
  for (const [index, { number }] of entries.entries()) {
    if (number !== mark + 1 + index) throw new LoadError(`journal entry ${mark + 1 + index} is missing or damaged`);
  }
  // If the slot of the next entry cannot be read, it may hold an acknowledged entry.
  const next = mark + entries.length + 1;
  if (damaged.has(next % limits.journalSlots)) throw new LoadError(`journal entry ${next} may be damaged`);
  // From the second round on it holds the entry of the round before, unless a later one is lost.
  const replaced = next - limits.journalSlots;
  if (replaced > 0 && !found.has(replaced)) throw new LoadError(`journal entry ${next} may be lost`);
  return { pending: entries, checkpointed };
}

/** Events at or below the mark that the stream had not taken. */
function* readParked(
  values: readonly StoredValue[],
): Generator<void, Pick<Loaded<unknown>, 'parked' | 'damagedEvents'>, void> {
  const parked: ParkedEvents[] = [];
  const damagedEvents: string[] = [];
  for (const { key, value } of values) {
    if (value === null || !key.startsWith('events.')) continue;
    yield;
    const decoded = decodeValue(value, eventsShape);
    if (decoded.ok) parked.push({ key, entries: decoded.value });
    else damagedEvents.push(key);
  }
  return { parked, damagedEvents };
}

/** @throws LoadError where acknowledged writes may be missing. */
export function* loading<R>(values: readonly StoredValue[], format: RecordFormat<R>): Generator<void, Loaded<R>, void> {
  const mark = readMark(values);
  const stored = readDigest(values, mark);
  const { pending, checkpointed } = yield* readJournal(values, mark);
  const current = new Map<string, string>();
  const digest = new RecordsDigest((key) => format.isKey(key));
  const operations: { record: OperationRecord; commit: number }[] = [];

  for (const { key, value } of values) {
    if (value === null) continue;
    yield;
    if (format.isKey(key)) {
      current.set(key, value);
      digest.set(key, value);
    }
    if (!key.startsWith('ops.')) continue;
    const decoded = decodeValue(value, operationsShape);
    // A lost outcome makes a retry within two minutes an ordinary request; names and quota still
    // hold.
    if (decoded.ok) for (const record of decoded.value) operations.push({ record, commit: mark });
  }
  if (typeof stored === 'object') yield* verifying(values, (key) => format.isKey(key), digest, stored);
  for (const entry of pending) {
    for (const [key, value] of entry.changes) {
      if (value === null) current.delete(key);
      else current.set(key, value);
    }
    for (const record of entry.operations) operations.push({ record, commit: entry.number });
    yield;
  }

  const { parked, damagedEvents } = yield* readParked(values);

  const recordShape: Shape<R> = { Check: (value) => format.isRecord(value) };
  const records: R[] = [];
  const quarantined: string[] = [];
  for (const [key, value] of current) {
    const decoded = decodeValue(value, recordShape);
    if (decoded.ok && format.keyOf(decoded.value) === key) records.push(decoded.value);
    else quarantined.push(key);
    yield;
  }
  return {
    records: yield* sorting(records, (one, other) => format.compare(one, other)),
    quarantined,
    digest,
    verified: typeof stored === 'object' ? 'verified' : stored,
    operations: yield* sorting(operations, (a, b) => a.record.atMs - b.record.atMs),
    pending,
    checkpointed,
    parked,
    damagedEvents,
    mark,
    last: mark + pending.length,
    clock: pending.length > 0 ? pending.at(-1)?.clock : readClock(values),
  };
}

/** A load in one go, for tools. @throws LoadError as `loading` does. */
export const readPartition = <R>(values: readonly StoredValue[], format: RecordFormat<R>): Loaded<R> =>
  runAtOnce(loading(values, format));
