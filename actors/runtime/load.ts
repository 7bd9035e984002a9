/**
 * A partition as its bucket has it: the values under their own keys, and above the mark the journal, entry by entry, with
 * no gap. Fails closed: a journal that may have lost an entry is not served (docs/runbook.md, "A partition refuses to
 * load"); a single damaged value is quarantined by its key, and the rest serves.
 */
import { keys } from '../../schemas/buckets.ts';
import type { OperationRecord } from '../../schemas/container.ts';
import { limits } from '../../schemas/limits.ts';
import { recordKey, type StateRecord } from '../state.ts';
import { decodeEntry, decodeValue, type JournalEntry } from './codec.ts';
import type { EntryEvents, ParkedEvents } from './outbox.ts';
import type { StoredValue } from './store.ts';

export interface Loaded {
  /** In the order of creation, so that a tenant's list keeps it. */
  readonly records: readonly StateRecord[];
  /** Keys whose value is damaged. */
  readonly quarantined: readonly string[];
  readonly operations: readonly { readonly record: OperationRecord; readonly commit: number }[];
  /** Entries above the mark, oldest first: they still have to be checkpointed. */
  readonly pending: readonly JournalEntry[];
  /** Entries at or below the mark that are still in the ring, oldest first: their events were published. */
  readonly checkpointed: readonly JournalEntry[];
  readonly parked: readonly ParkedEvents[];
  /** Keys of parked events that can't be read. */
  readonly damagedEvents: readonly string[];
  readonly mark: number;
  readonly last: number;
}

export class LoadError extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'LoadError';
  }
}

const isRecordKey = (key: string): boolean => /^(?:tenant|container|host|peer|network|lease|revoked)\./.test(key);
function createdMs(record: StateRecord): number {
  switch (record.kind) {
    case 'container':
    case 'peer':
      return record.insertedAtMs;
    case 'tombstone':
    case 'peer_tombstone':
      return record.goneAtMs;
    // By their index, so that a network goes on lending after the highest.
    case 'lease':
      return record.index;
    default:
      return 0;
  }
}
const idOf = (record: StateRecord): string => ('id' in record ? record.id : recordKey(record));

function readMark(values: readonly StoredValue[]): number {
  const stored = values.find(({ key }) => key === keys.checkpoint)?.value;
  if (stored == null) return 0;
  const decoded = decodeValue<number>(stored);
  if (!decoded.ok) throw new LoadError(`the checkpoint mark is damaged (${decoded.fault})`);
  return decoded.value;
}

/** Entries above the mark in order, and what the ring still has of those below. */
function readJournal(values: readonly StoredValue[], mark: number) {
  const entries: JournalEntry[] = [];
  const checkpointed: JournalEntry[] = [];
  const found = new Set<number>();
  const damaged = new Set<number>();
  for (const { key, value } of values) {
    if (value === null || !key.startsWith('journal.')) continue;
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
  // The slot where the next entry would be: if what is in it can't be read, it may be an acknowledged one.
  const next = mark + entries.length + 1;
  if (damaged.has(next % limits.journalSlots)) throw new LoadError(`journal entry ${next} may be damaged`);
  // And from the second round on it holds the entry of the round before, unless a later one was there and is lost.
  const replaced = next - limits.journalSlots;
  if (replaced > 0 && !found.has(replaced)) throw new LoadError(`journal entry ${next} may be lost`);
  return { pending: entries, checkpointed };
}

/** Events at or below the mark that the stream had not taken. */
function readParked(values: readonly StoredValue[]) {
  const parked: ParkedEvents[] = [];
  const damagedEvents: string[] = [];
  for (const { key, value } of values) {
    if (value === null || !key.startsWith('events.')) continue;
    const decoded = decodeValue<EntryEvents[]>(value);
    if (decoded.ok) parked.push({ key, entries: decoded.value });
    else damagedEvents.push(key);
  }
  return { parked, damagedEvents };
}

/** @throws LoadError where acknowledged writes may be missing. */
export function readPartition(values: readonly StoredValue[]): Loaded {
  const mark = readMark(values);
  const { pending, checkpointed } = readJournal(values, mark);
  const current = new Map<string, string>();
  const operations: { record: OperationRecord; commit: number }[] = [];

  for (const { key, value } of values) {
    if (value === null) continue;
    if (isRecordKey(key)) current.set(key, value);
    if (!key.startsWith('ops.')) continue;
    const decoded = decodeValue<OperationRecord[]>(value);
    // A lost outcome makes a retry within two minutes an ordinary request; names and quota still hold.
    if (decoded.ok) for (const record of decoded.value) operations.push({ record, commit: mark });
  }
  for (const entry of pending) {
    for (const [key, value] of entry.changes) {
      if (value === null) current.delete(key);
      else current.set(key, value);
    }
    for (const record of entry.operations) operations.push({ record, commit: entry.number });
  }

  const { parked, damagedEvents } = readParked(values);

  const records: StateRecord[] = [];
  const quarantined: string[] = [];
  for (const [key, value] of current) {
    const decoded = decodeValue<StateRecord>(value);
    if (decoded.ok && recordKey(decoded.value) === key) records.push(decoded.value);
    else quarantined.push(key);
  }
  records.sort((a, b) => createdMs(a) - createdMs(b) || (idOf(a) < idOf(b) ? -1 : 1));
  operations.sort((a, b) => a.record.atMs - b.record.atMs);
  return {
    records,
    quarantined,
    operations,
    pending,
    checkpointed,
    parked,
    damagedEvents,
    mark,
    last: mark + pending.length,
  };
}
