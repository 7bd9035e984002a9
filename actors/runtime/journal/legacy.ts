/**
 * The journal of release 0.1.0: a ring of entries in the partition's own bucket, one for each
 * commit. It is read when a partition comes from a process of that release. When such a process may
 * have to take the partition next, its bucket is left as that process expects it
 * (docs/upgrades.md).
 */
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { OperationRecord } from '../../../schemas/records/operation.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { StoreWrite, StoredValue } from '../store/store.ts';
import { clockFields, encodeValue, openSealed, OutgoingEvent, parseAs } from './codec.ts';
import type { Change, Commit, Decoded, Encoded } from './codec.ts';
import { LoadError } from './load-error.ts';
import { inOrder, type JournalledCommits } from './order.ts';
import type { EntryEvents } from '../events/event-outbox.ts';

/** Slots of the ring; an entry is in slot `number mod slots`. */
const slots = 1024;
const slotKey = (number: number): string => keys.journal(number % slots);

const headShape = Compile(
  Type.Object({
    number: Type.Integer(),
    keys: Type.Array(Type.String()),
    operations: Type.Array(OperationRecord),
    events: Type.Array(OutgoingEvent),
    clock: Type.Optional(Type.Object(clockFields)),
  }),
);

/** The head as JSON, then a line for each change: its value, or `-` for a deletion. */
export function decodeLegacyEntry(stored: Encoded): Decoded<Commit> {
  const opened = openSealed(stored);
  if (!opened.ok) return opened;
  const [first = '', ...values] = opened.value.toString().split('\n');
  const head = parseAs(first, headShape);
  if (!head.ok) return head;
  const { keys, ...rest } = head.value;
  if (values.length !== keys.length) return { ok: false, fault: 'length' };
  const changes = keys.map((key, index): Change => {
    const value = values[index];
    return [key, value === undefined || value === '-' ? null : Buffer.from(value)];
  });
  return { ok: true, value: { ...rest, changes } };
}

export const hasLegacyRing = (values: readonly StoredValue[]): boolean =>
  values.some(({ key, value }) => value !== null && key.startsWith('journal.'));

/**
 * @throws LoadError where an entry above the mark is missing or damaged, or may be: the ring must
 * still have the entry that the next one replaces.
 */
export function* readLegacyJournal(
  values: readonly StoredValue[],
  mark: number,
): Generator<void, JournalledCommits, void> {
  const found: Commit[] = [];
  const damaged = new Set<string>();
  for (const { key, value } of values) {
    if (value === null || !key.startsWith('journal.')) continue;
    yield;
    const decoded = decodeLegacyEntry(value);
    if (decoded.ok) found.push(decoded.value);
    else damaged.add(key);
  }
  const commits = inOrder(found, mark, 'journal entry');
  // If the slot of the next entry cannot be read, it may hold an acknowledged entry.
  const next = mark + commits.pending.length + 1;
  if (damaged.has(slotKey(next))) throw new LoadError(`journal entry ${next} may be damaged`);
  // From the second round on it holds the entry of the round before, unless a later one is lost.
  const replaced = next - slots;
  if (replaced > 0 && !found.some(({ number }) => number === replaced)) {
    throw new LoadError(`journal entry ${next} may be lost`);
  }
  return commits;
}

/**
 * The ring as release 0.1.0 would have left it at this mark, with nothing in it but the events that
 * the next owner publishes. That release takes the next entry for lost where one of the last round
 * is missing, and an entry's events from the ring where they are parked too.
 */
export function legacyRing(mark: number, unsettled: readonly EntryEvents[]): StoreWrite[] {
  const eventsOf = new Map(unsettled.map(({ number, events }) => [number, events]));
  const first = Math.max(1, mark - slots + 1);
  return Array.from({ length: mark - first + 1 }, (_, index) => {
    const number = first + index;
    const events = eventsOf.get(number) ?? [];
    return { key: slotKey(number), value: encodeValue({ number, keys: [], operations: [], events }) };
  });
}
