/**
 * A draft: what one turn puts into a commit. A group: those of all turns since the last commit. And
 * the output gate (invariant A3): which keys are dirty, and until which commit.
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
 * Called when a commit is settled. False: it was refused, or its outcome is unknown; run the turn
 * again.
 */
export type Waiter = (committed: boolean) => void;

/** With the id of the request that caused it, for the log lines on its way. */
export type OutgoingEffect<E extends object> = E & { readonly requestId: string | null };

/** Quotes, brackets, commas and a length, around a key in the head of a section. */
const headBytesOfKey = 16;

const changeBytes = (key: string, value: Encoded | null): number =>
  key.length + headBytesOfKey + (value === null ? 0 : bytesOf(value));

export interface DraftOptions<D extends DomainTypes> {
  readonly tenant: string;
  readonly changes: Changes<D>;
  /** Of its events. */
  readonly head: Omit<EventHead, 'id'>;
  readonly lines: readonly LineDraft[];
  /** Undefined: it is not kept. */
  readonly outcome: OperationRecord | undefined;
}

/** The records that a turn changed, its events, the lines of the audit and its outcome. */
export interface Draft {
  /** Whose write made it; empty: of no tenant. */
  readonly tenant: string;
  readonly changes: readonly Change[];
  /** Their ids name the commit, which is not known yet. */
  readonly events: readonly OutgoingEvent[];
  readonly lines: readonly OutgoingLine[];
  readonly outcome: OperationRecord | undefined;
  /** In the section of an entry, at most: the commit has to fit one message of the journal. */
  readonly bytes: number;
}

/** As long as any. */
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

/** In place: a draft is made for one group, and its sizes are known by object. */
function giveId({ event }: { readonly event: { id: string } }, id: string): void {
  event.id = id;
}

/** What the parts of a draft take of a section, at most. */
export function sectionBytes({ changes, events, lines, outcome }: Omit<Draft, 'bytes' | 'tenant'>): number {
  let bytes = outcome === undefined ? 0 : operationBytes(outcome);
  for (const [key, value] of changes) bytes += changeBytes(key, value);
  for (const event of events) bytes += eventBytes(event);
  for (const line of lines) bytes += lineBytes(line);
  return bytes;
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

/** What of a tenant is in a group. */
export interface TenantLoad {
  /** Of its changes, before those of the same key are joined. */
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
  /** Of what belongs to no tenant under the empty name. */
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

  /** Whether so much more still fits an entry of the journal; one turn always does. */
  fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= limits.journalEntryBytes;
  }

  /** Of the changes, and of the answers to them that wait. */
  get waitingBytes(): number {
    return this.#bytes + this.#answerBytes;
  }

  /**
   * The draft's events and lines get their ids.
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

  /** An answer of so many bytes waits for the commit. */
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

  /** Of effects with the same key, the last is carried out. */
  effect(key: string, effect: OutgoingEffect<Effect>): void {
    this.#effects.set(key, effect);
  }

  /** Readers of this key wait for this group. */
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
