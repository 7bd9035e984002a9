/**
 * What one turn puts into a commit: the records that it changed, its events, the lines of the audit
 * and its outcome. Its size is known before a group takes it, because the commit that holds it has
 * to fit one message of the journal.
 */
import type { OperationRecord } from '../../schemas/records/operation.ts';
import { limits } from '../../schemas/limits.ts';
import type { Changes, Domain, DomainTypes, EventHead, LineDraft } from './domain.ts';
import {
  bytesOf,
  encodeValue,
  eventBytes,
  lineBytes,
  operationBytes,
  type Change,
  type OutgoingEvent,
  type OutgoingLine,
} from './journal/codec.ts';
import { changeBytes, type Group } from './journal/group.ts';

export interface DraftOptions<D extends DomainTypes> {
  readonly changes: Changes<D>;
  /** Of its events. */
  readonly head: Omit<EventHead, 'id'>;
  readonly lines: readonly LineDraft[];
  /** Undefined: it is not kept. */
  readonly outcome: OperationRecord | undefined;
}

export interface Draft {
  readonly changes: readonly Change[];
  /** Their ids name the commit, which is not known yet. */
  readonly events: readonly OutgoingEvent[];
  readonly lines: readonly OutgoingLine[];
  readonly outcome: OperationRecord | undefined;
  /** In the section of an entry, at most. */
  readonly bytes: number;
}

/** As long as any. */
const someId = `${2 ** 16}-${Number.MAX_SAFE_INTEGER}-${2 ** 16}`;

export function draftOf<D extends DomainTypes>(
  domain: Pick<Domain<D>, 'records' | 'event'>,
  { changes: { records, deletes, events: drafts }, head, lines: lineDrafts, outcome }: DraftOptions<D>,
): Draft {
  const changes = [
    ...records.map((record): Change => [domain.records.keyOf(record), encodeValue(record)]),
    ...deletes.map((key): Change => [key, null]),
  ];
  const events = drafts.map((event) => domain.event(event, { ...head, id: someId }));
  const lines = lineDrafts.map(({ subject, line }): OutgoingLine => ({ subject, event: { id: someId, ...line } }));
  let bytes = outcome === undefined ? 0 : operationBytes(outcome);
  for (const [key, value] of changes) bytes += changeBytes(key, value);
  for (const event of events) bytes += eventBytes(event);
  for (const line of lines) bytes += lineBytes(line);
  return { changes, events, lines, outcome, bytes };
}

/** No message holds one of its records, or no entry of the journal all of it. */
export function isTooLarge({ changes, bytes }: Draft): boolean {
  const values = changes.map(([, value]) => (value === null ? 0 : bytesOf(value)));
  return (
    values.some((each) => each > limits.recordBytes) ||
    values.reduce((sum, each) => sum + each, 0) > limits.turnBytes ||
    bytes > limits.journalEntryBytes
  );
}

/** @param group one with room for it */
export function addTo(group: Group<object>, { changes, events, lines, outcome }: Draft, partition: number): void {
  for (const [key, value] of changes) group.change(key, value);
  for (const { event, ...rest } of events) {
    group.event({ ...rest, event: { ...event, id: `${partition}-${group.number}-${group.events}` } });
  }
  for (const { subject, event } of lines) {
    group.line({ subject, event: { ...event, id: `${partition}-${group.number}-${group.lines}` } });
  }
  if (outcome !== undefined) group.operation(outcome);
}
