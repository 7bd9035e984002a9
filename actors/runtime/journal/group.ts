/**
 * A group: all that the turns since the last one changed, for one commit. And the output gate
 * (invariant A3): what is dirty, and until which commit.
 */
import type { ClockReading } from '../../../lib/time/cautious-clock.ts';
import { limits } from '../../../schemas/limits.ts';
import type { OperationRecord } from '../../../schemas/records/operation.ts';
import {
  bytesOf,
  eventBytes,
  lineBytes,
  operationBytes,
  type Change,
  type Commit,
  type Encoded,
  type OutgoingEvent,
  type OutgoingLine,
} from './codec.ts';
import type { DirtyMarks } from '../domain.ts';

/**
 * Called when a commit is settled. False: it was refused, or its outcome is unknown; run the turn
 * again.
 */
export type Waiter = (committed: boolean) => void;

/** With the id of the request that caused it, for the log lines on its way. */
export type OutgoingEffect<E extends object> = E & { readonly requestId: string | null };

/** Quotes, brackets, commas and a length, around a key in the head of a section. */
const headBytesOfKey = 16;

/** In a section. */
export const changeBytes = (key: string, value: Encoded | null): number =>
  key.length + headBytesOfKey + (value === null ? 0 : bytesOf(value));

export class Group<Effect extends object> implements DirtyMarks {
  readonly number: number;
  readonly #changes = new Map<string, Encoded | null>();
  readonly #operations: OperationRecord[] = [];
  readonly #events: OutgoingEvent[] = [];
  readonly #lines: OutgoingLine[] = [];
  readonly #effects = new Map<string, OutgoingEffect<Effect>>();
  readonly waiters: Waiter[] = [];
  readonly dirtyKeys = new Set<string>();
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

  get events(): number {
    return this.#events.length;
  }

  get lines(): number {
    return this.#lines.length;
  }

  change(key: string, value: Encoded | null): void {
    this.#changes.set(key, value);
    this.#bytes += changeBytes(key, value);
  }

  operation(record: OperationRecord): void {
    this.#operations.push(record);
    this.#bytes += operationBytes(record);
  }

  event(outgoing: OutgoingEvent): void {
    this.#events.push(outgoing);
    this.#bytes += eventBytes(outgoing);
  }

  line(outgoing: OutgoingLine): void {
    this.#lines.push(outgoing);
    this.#bytes += lineBytes(outgoing);
  }

  /** An answer of so many bytes waits for the commit. */
  answer(bytes: number): void {
    this.#answerBytes += bytes;
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
