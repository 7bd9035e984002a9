/**
 * Loads a partition: the values under their own keys in its bucket, then the commits above the mark
 * from the journals that the mark names, in order and without a gap. A load fails closed: it
 * refuses a journal that may have lost a commit, and records that differ from those of the
 * checkpoint (docs/runbook.md, "Partition that refuses to load"). A single damaged value is
 * quarantined by its key, and the rest is served. A load is long work, so it is a generator that
 * yields after every value (lib/time/slices.ts).
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { keys } from '../../../schemas/records/buckets.ts';
import { OperationRecord } from '../../../schemas/records/operation.ts';
import { runAtOnce, sorting } from '../../../lib/time/slices.ts';
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import { clockShape, type StoredClock } from './checkpoint.ts';
import { anyShape, decodeValue, type Commit, type Encoded } from './codec.ts';
import { digestShape, type RecordsDigest, type StoredDigest } from './digest.ts';
import { LoadError } from './load-error.ts';
import { decodeMark, type Mark } from './mark.ts';
import { inOrder } from './order.ts';
import type { RecordFormat } from '../domain.ts';
import { Reading } from '../reading.ts';
import type { AuditLine } from '../../../schemas/api/audit/line.ts';
import { eventsShape, linesShape, type ParkedEvents } from '../events/event-outbox.ts';
import type { StoredValue } from '../store/store.ts';

export interface Loaded<R> {
  /** In the order in which memory takes them. */
  readonly records: readonly R[];
  /** Keys whose value is damaged, or not a record. */
  readonly quarantined: readonly string[];
  /** The digest of the records under their own keys, below the mark. */
  readonly digest: RecordsDigest;
  /** `true` if an operator has deleted the digest, so that the records are served as they are. */
  readonly isOverridden: boolean;
  readonly operations: readonly { readonly record: OperationRecord; readonly commit: number }[];
  /** Commits above the mark, oldest first, to be checkpointed. */
  readonly pending: readonly Commit[];
  /** Commits at or below the mark that were read too, oldest first. */
  readonly checkpointed: readonly Commit[];
  readonly parked: readonly ParkedEvents[];
  readonly parkedLines: readonly ParkedEvents<AuditLine>[];
  /** Keys of parked events and lines that can't be read. */
  readonly damagedEvents: readonly string[];
  readonly mark: number;
  /** As the mark names them. */
  readonly journals: Mark['journals'];
  readonly last: number;
  /** The clock of the last entry; `undefined` if there is none, or if it is damaged. */
  readonly clock: ClockReading | undefined;
}

const operationsShape = Compile(Type.Array(OperationRecord));

/**
 * The checkpoint mark of a partition.
 * @throws LoadError
 */
export function readMark(values: readonly StoredValue[]): Mark {
  const stored = values.find(({ key }) => key === keys.checkpoint)?.value;
  // The mark is written before the first commit.
  if (stored == null) return { number: 0, journals: [] };
  const decoded = decodeMark(stored);
  if (!decoded.ok) throw new LoadError(`the checkpoint mark is damaged (${decoded.fault})`);
  return decoded.value;
}

/** The time that the last checkpoint kept. */
function readClock(values: readonly StoredValue[]): StoredClock | undefined {
  const stored = values.find(({ key }) => key === keys.clock)?.value;
  const decoded = stored == null ? undefined : decodeValue(stored, clockShape);
  return decoded?.ok === true ? decoded.value : undefined;
}

/** The stored digest of the records; `null` if it was deleted, `undefined` if there is none yet. */
function readDigest(values: readonly StoredValue[], mark: number): StoredDigest | null | undefined {
  const stored = values.find(({ key }) => key === keys.digest);
  const hasClock = values.some(({ key, value }) => key === keys.clock && value !== null);
  if (stored === undefined && (mark > 0 || hasClock)) {
    throw new LoadError(`the digest of the checkpoint at entry ${mark} is missing; ${whatToDo}`);
  }
  if (stored === undefined) return undefined;
  if (stored.value === null) return null;
  const decoded = decodeValue(stored.value, digestShape);
  if (!decoded.ok) throw new LoadError(`the digest of the checkpoint is damaged (${decoded.fault})`);
  if (decoded.value.mark > mark) {
    throw new LoadError(`the checkpoint mark ${mark} is older than the digest of entry ${decoded.value.mark}`);
  }
  if (decoded.value.mark < mark) {
    throw new LoadError(
      `the digest of entry ${decoded.value.mark} is older than the checkpoint at entry ${mark}; ${whatToDo}`,
    );
  }
  return decoded.value;
}

const whatToDo = 'docs/runbook.md, "Partition that refuses to load", says what to do';

const isUndamaged = (value: Encoded): boolean => decodeValue(value, anyShape).ok;

const noSums = { count: 0, keys: 0, values: 0 };
/** @param like a stored digest: what it does not count is left out */
const partsOf = ({ added, newest = noSums, ...others }: StoredDigest, like: StoredDigest) =>
  like.newest === undefined ? [others, added] : [others, added, newest];

/** @throws LoadError where the records are not those that the checkpoint counted. */
function* verifying(reading: Reading<unknown>, stored: StoredDigest): Generator<void, void, void> {
  const read = reading.digest.at(stored.mark);
  const others = partsOf(read, stored);
  const pairs = partsOf(stored, stored).map((part, index) => [part, others[index]] as const);
  const isSameSet = pairs.every(([one, other]) => one.count === other?.count && one.keys === other.keys);
  if (isSameSet && pairs.every(([one, other]) => one.values === other?.values)) return;
  let damaged = 0;
  for (const value of reading.unreadable.values()) {
    if (!isUndamaged(value)) damaged++;
    yield;
  }
  // No record is missing, and the damaged ones fail their checksum: the quarantine takes them.
  if (isSameSet && damaged > 0) return;
  const what = (digest: StoredDigest): string =>
    partsOf(digest, stored)
      .map(({ count, keys, values }) => `${count} records (keys ${keys}, values ${values})`)
      .join(' and ');
  throw new LoadError(
    `records are missing or differ: the checkpoint at entry ${stored.mark} has ${what(stored)}, and ${what(read)} were ` +
      `read; ${whatToDo}`,
  );
}

/** Events and lines at or below the mark that their stream had not taken. */
function* readParked(
  values: readonly StoredValue[],
): Generator<void, Pick<Loaded<unknown>, 'parked' | 'parkedLines' | 'damagedEvents'>, void> {
  const parked: ParkedEvents[] = [];
  const parkedLines: ParkedEvents<AuditLine>[] = [];
  const damagedEvents: string[] = [];
  for (const { key, value } of values) {
    if (value === null || !/^(?:events|audit)\./.test(key)) continue;
    yield;
    if (key.startsWith('audit.')) {
      const decoded = decodeValue(value, linesShape);
      if (decoded.ok) parkedLines.push({ key, entries: decoded.value });
      else damagedEvents.push(key);
      continue;
    }
    const decoded = decodeValue(value, eventsShape);
    if (decoded.ok) parked.push({ key, entries: decoded.value });
    else damagedEvents.push(key);
  }
  return { parked, parkedLines, damagedEvents };
}

/**
 * @param reading of the whole bucket; it is not used again
 * @param at the mark among the values
 * @param commits of the partition, from the journals that its mark names
 * @throws LoadError where acknowledged writes may be missing.
 */
export function* loading<R>(
  reading: Reading<R>,
  at: Mark,
  commits: readonly Commit[],
  format: RecordFormat<R>,
): Generator<void, Loaded<R>, void> {
  const { number: mark, journals } = at;
  const values = reading.others();
  const stored = readDigest(values, mark);
  const { pending, checkpointed } = inOrder(commits, mark);
  const operations: { record: OperationRecord; commit: number }[] = [];

  for (const { key, value } of values) {
    if (value === null) continue;
    yield;
    if (!key.startsWith('ops.')) continue;
    const decoded = decodeValue(value, operationsShape);
    // A lost outcome makes a retry within two minutes an ordinary request; names and quota still
    // hold.
    if (decoded.ok) for (const record of decoded.value) operations.push({ record, commit: mark });
  }
  if (stored != null) yield* verifying(reading, stored);
  const changed = new Map<string, Encoded | null>();
  for (const entry of pending) {
    for (const [key, value] of entry.changes) changed.set(key, value);
    for (const record of entry.operations) operations.push({ record, commit: entry.number });
    yield;
  }

  const told = yield* readParked(values);

  const records: R[] = [];
  for (const [key, record] of reading.records) {
    if (!changed.has(key)) records.push(record);
    yield;
  }
  const quarantined = [...reading.unreadable.keys()].filter((key) => !changed.has(key));
  for (const [key, value] of changed) {
    yield;
    if (value === null) continue;
    const record = reading.decode(key, value);
    if (record === undefined) quarantined.push(key);
    else records.push(record);
  }
  return {
    records: yield* sorting(records, (one, other) => format.compare(one, other)),
    quarantined,
    digest: reading.digest,
    isOverridden: stored === null,
    operations: yield* sorting(operations, (a, b) => a.record.atMs - b.record.atMs),
    pending,
    checkpointed,
    ...told,
    mark,
    journals,
    last: mark + pending.length,
    clock: pending.length > 0 ? pending.at(-1)?.clock : readClock(values),
  };
}

/** A load in one go, for tools. @throws LoadError as `loading` does. */
export const readPartition = <R>(
  values: readonly StoredValue[],
  commits: readonly Commit[],
  format: RecordFormat<R>,
): Loaded<R> => {
  const reading = new Reading(format);
  runAtOnce(reading.taking(values));
  return runAtOnce(loading(reading, readMark(values), commits, format));
};
