/**
 * A draft: the part of a commit that one turn makes. A group: the drafts of all turns since the
 * last commit. And the output gate (invariant A3): the dirty keys, each with the commit that
 * settles it.
 */
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import { limits } from '../../../schemas/limits.ts';
import type { OperationRecord } from '../../../schemas/records/operation.ts';
import {
  bytesOf,
  encodeValue,
  eventBytes,
  lineBytes,
  operationBytes,
  type Change,
  type Commit,
  type Encoded,
  type OutgoingEvent,
  type OutgoingLine,
} from './codec.ts';
import type { Changes, DirtyMarks, Domain, DomainTypes, EventHead, LineDraft } from '../domain.ts';

/**
 * Called when a commit is settled, with `false` if it was refused or its outcome is unknown: run
 * the turn again.
 */
export type Waiter = (committed: boolean) => void;

/** An effect with the id of the request that caused it, for the log lines on its way. */
export type OutgoingEffect<E extends object> = E & { readonly requestId: string | null };

/** Quotes, brackets, commas and a length, around a key in the head of a section. */
const headBytesOfKey = 16;

const changeBytes = (key: string, value: Encoded | null): number =>
  key.length + headBytesOfKey + (value === null ? 0 : bytesOf(value));

export interface DraftOptions<D extends DomainTypes> {
  readonly tenant: string;
  readonly changes: Changes<D>;
  /** The head of its events. */
  readonly head: Omit<EventHead, 'id'>;
  readonly lines: readonly LineDraft[];
  /** `undefined` if it is not kept. */
  readonly outcome: OperationRecord | undefined;
}

/** The records that a turn changed, its events, the lines of the audit and its outcome. */
export interface Draft {
  /** The tenant of the write; empty if there is none. */
  readonly tenant: string;
  readonly changes: readonly Change[];
  /** Their ids name the commit, which is not known yet. */
  readonly events: readonly OutgoingEvent[];
  readonly lines: readonly OutgoingLine[];
  readonly outcome: OperationRecord | undefined;
  /** Maximum bytes in the section of an entry: the commit has to fit one message of the journal. */
  readonly bytes: number;
}

/** An id of the maximum length. */
const someId = `${2 ** 16}-${Number.MAX_SAFE_INTEGER}-${2 ** 16}`;

export function draftOf<D extends DomainTypes>(
  domain: Pick<Domain<D>, 'records' | 'event'>,
  { tenant, changes: { records, deletes, events: drafts }, head, lines: lineDrafts, outcome }: DraftOptions<D>,
): Draft {
  const changes = [
    ...records.map((record): Change => [domain.records.keyOf(record), encodeValue(record)]),
    ...deletes.map((key): Change => [key, null]),
  ];
  const events = drafts.map((event) => domain.event(event, { ...head, id: someId }));
  const lines = lineDrafts.map(({ subject, line }): OutgoingLine => ({ subject, event: { id: someId, ...line } }));
  return { tenant, changes, events, lines, outcome, bytes: sectionBytes({ changes, events, lines, outcome }) };
}

/** Sets the id in place: a draft is made for one group, and its sizes are remembered by object. */
function giveId({ event }: { readonly event: { id: string } }, id: string): void {
  event.id = id;
}

/** Maximum bytes of the parts of a draft in a section. */
export function sectionBytes({ changes, events, lines, outcome }: Omit<Draft, 'bytes' | 'tenant'>): number {
  let bytes = outcome === undefined ? 0 : operationBytes(outcome);
  for (const [key, value] of changes) bytes += changeBytes(key, value);
  for (const event of events) bytes += eventBytes(event);
  for (const line of lines) bytes += lineBytes(line);
  return bytes;
}

/** `true` if no message holds one of its records, or no entry of the journal all of it. */
export function isTooLarge({ changes, bytes }: Draft): boolean {
  const values = changes.map(([, value]) => (value === null ? 0 : bytesOf(value)));
  return (
    values.some((each) => each > limits.recordBytes) ||
    values.reduce((sum, each) => sum + each, 0) > limits.turnBytes ||
    bytes > limits.journalEntryBytes
  );
}

/** The part of a tenant in a group. */
export interface TenantLoad {
  /** Bytes of its changes, before those of the same key are joined. */
  bytes: number;
  answers: number;
  answerBytes: number;
}

export class Group<Effect extends object> implements DirtyMarks {
  readonly number: number;
  readonly #changes = new Map<string, Encoded | null>();
  readonly #operations: OperationRecord[] = [];
  readonly #events: OutgoingEvent[] = [];
  readonly #lines: OutgoingLine[] = [];
  readonly #effects = new Map<string, OutgoingEffect<Effect>>();
  readonly waiters: Waiter[] = [];
  readonly dirtyKeys = new Set<string>();
  /** By tenant; changes without a tenant are under the empty name. */
  readonly tenants = new Map<string, TenantLoad>();
  readonly #dirty: DirtyKeys;
  #bytes = 0;
  #answerBytes = 0;

  constructor(number: number, dirty: DirtyKeys) {
    this.number = number;
    this.#dirty = dirty;
  }

  get isFull(): boolean {
    return this.#bytes >= limits.journalEntryBytes / 2 || this.#changes.size >= limits.batchItems;
  }

  /** `true` if so many bytes still fit an entry of the journal; one turn always does. */
  fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= limits.journalEntryBytes;
  }

  /** Bytes of the changes, and of the answers that wait for them. */
  get waitingBytes(): number {
    return this.#bytes + this.#answerBytes;
  }

  /**
   * Adds a draft; its events and lines get their ids.
   * @param draft one that fits
   */
  take({ tenant, changes, events, lines, outcome, bytes }: Draft, partition: number): void {
    this.#loadOf(tenant).bytes += bytes;
    for (const [key, value] of changes) this.#changes.set(key, value);
    for (const outgoing of events) {
      giveId(outgoing, `${partition}-${this.number}-${this.#events.length}`);
      this.#events.push(outgoing);
    }
    for (const outgoing of lines) {
      giveId(outgoing, `${partition}-${this.number}-${this.#lines.length}`);
      this.#lines.push(outgoing);
    }
    if (outcome !== undefined) this.#operations.push(outcome);
    this.#bytes += bytes;
  }

  /** Adds an answer of so many bytes, which waits for the commit. */
  answer(tenant: string, bytes: number, waiter: Waiter): void {
    this.#answerBytes += bytes;
    const load = this.#loadOf(tenant);
    load.answers++;
    load.answerBytes += bytes;
    this.waiters.push(waiter);
  }

  #loadOf(tenant: string): TenantLoad {
    let load = this.tenants.get(tenant);
    if (load === undefined) this.tenants.set(tenant, (load = { bytes: 0, answers: 0, answerBytes: 0 }));
    return load;
  }

  /** Adds an effect. Of effects with the same key, the last is carried out. */
  effect(key: string, effect: OutgoingEffect<Effect>): void {
    this.#effects.set(key, effect);
  }

  /** Makes readers of this key wait for this group. */
  markDirty(key: string): void {
    this.#dirty.mark(key, this.number);
    this.dirtyKeys.add(key);
  }

  effects(): Iterable<OutgoingEffect<Effect>> {
    return this.#effects.values();
  }

  commit(clock: ClockReading): Commit {
    const changes: Change[] = [...this.#changes];
    const lines = this.#lines.length === 0 ? {} : { lines: this.#lines };
    return { number: this.number, changes, operations: this.#operations, events: this.#events, ...lines, clock };
  }
}

/** Keys with changes that are not committed yet, and the commit that will settle each. */
export class DirtyKeys {
  readonly #until = new Map<string, number>();

  mark(key: string, commit: number): void {
    this.#until.set(key, commit);
  }

  /** The number of the commit that a reader of this key waits for; 0 for none. */
  until(key: string): number {
    return this.#until.get(key) ?? 0;
  }

  committed({ number, dirtyKeys }: { readonly number: number; readonly dirtyKeys: Iterable<string> }): void {
    for (const key of dirtyKeys) if (this.#until.get(key) === number) this.#until.delete(key);
  }
}
