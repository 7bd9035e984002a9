/**
 * A group: everything that the turns since the last commit changed, to be written in one journal entry with one fsync.
 * And the output gate (invariant A3): what is dirty, and until which commit.
 */
import { limits } from '../../schemas/limits.ts';
import type { OperationRecord } from '../../schemas/container.ts';
import type { Effect } from '../turn.ts';
import { encodeEntry, type Change, type OutgoingEvent } from './codec.ts';

/** Waits for a commit. `settled(false)`: the commit's outcome is unknown or it was refused; run the turn again. */
export type Waiter = (committed: boolean) => void;

/** With the id of the request that caused it, for the log lines along its way. */
export type OutgoingEffect = Effect & { readonly requestId: string | null };

const effectKey = (effect: Effect): string =>
  effect.kind === 'changed' ? `changed ${effect.tenant} ${effect.id}` : `${effect.kind} ${effect.host}`;

export class Group {
  readonly number: number;
  readonly #changes = new Map<string, string | null>();
  readonly #operations: OperationRecord[] = [];
  readonly #events: OutgoingEvent[] = [];
  readonly #effects = new Map<string, OutgoingEffect>();
  readonly waiters: Waiter[] = [];
  readonly dirtyKeys = new Set<string>();
  #bytes = 0;

  constructor(number: number) {
    this.number = number;
  }

  get isFull(): boolean {
    return this.#bytes >= limits.journalEntryBytes / 2 || this.#changes.size >= limits.batchItems;
  }

  get events(): number {
    return this.#events.length;
  }

  change(key: string, value: string | null): void {
    this.#changes.set(key, value);
    this.#bytes += key.length + Buffer.byteLength(value ?? '-');
  }

  operation(record: OperationRecord): void {
    this.#operations.push(record);
    this.#bytes += 200 + (record.answer.kind === 'body' ? record.answer.body.length : 0);
  }

  event(outgoing: OutgoingEvent): void {
    this.#events.push(outgoing);
    this.#bytes += 600;
  }

  effect(effect: OutgoingEffect): void {
    this.#effects.set(effectKey(effect), effect);
  }

  effects(): Iterable<OutgoingEffect> {
    return this.#effects.values();
  }

  entry() {
    const changes: Change[] = [...this.#changes];
    const entry = { number: this.number, changes, operations: this.#operations, events: this.#events };
    return { entry, text: encodeEntry(entry) };
  }
}

/** Which keys have changes that are not committed yet, and the number of the commit that will settle each. */
export class Dirt {
  readonly #until = new Map<string, number>();

  mark(key: string, group: Group): void {
    this.#until.set(key, group.number);
    group.dirtyKeys.add(key);
  }

  /** Number of the commit that a reader of this key has to wait for; 0 for none. */
  until(key: string): number {
    return this.#until.get(key) ?? 0;
  }

  committed(group: Group): void {
    for (const key of group.dirtyKeys) if (this.#until.get(key) === group.number) this.#until.delete(key);
  }
}
