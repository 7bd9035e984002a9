/**
 * A group: everything that the turns since the last commit changed, to be written in one journal
 * entry with one fsync. And the output gate (invariant A3): what is dirty, and until which commit.
 */
import type { ClockReading } from '../../lib/cautious-clock.ts';
import { limits } from '../../schemas/limits.ts';
import type { OperationRecord } from '../../schemas/api/container.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { Effect, EventDraft } from '../domain/turn.ts';
import { encodeEntry, eventBytes, operationBytes, type Change, type OutgoingEvent } from './codec.ts';

/**
 * Waits for a commit. `settled(false)`: the commit's outcome is unknown or it was refused; run the
 * turn again.
 */
export type Waiter = (committed: boolean) => void;

/** With the id of the request that caused it, for the log lines along its way. */
export type OutgoingEffect = Effect & { readonly requestId: string | null };

function effectKey(effect: Effect): string {
  switch (effect.kind) {
    case 'changed':
      return `changed ${effect.tenant} ${effect.id}`;
    case 'outbox':
      return 'outbox';
    case 'doorbell':
    case 'directory':
      return `${effect.kind} ${effect.host}`;
  }
}

/** The event as it is told; its id is the same however often it is. */
export function outgoingEvent(
  { type, container, status }: EventDraft,
  { id, nowMs, requestId }: { readonly id: string; readonly nowMs: number; readonly requestId: string | null },
): OutgoingEvent {
  const { observed, placement } = container;
  return {
    subject: subjects.event(container.tenant, container.id),
    event: {
      id,
      ts: new Date(nowMs).toISOString(),
      type,
      container_id: container.id,
      name: container.spec.name,
      generation: container.generation,
      host_key: placement.phase === 'placed' ? placement.host : null,
      status,
      reason: observed.reason,
      message: observed.message,
      exit_code: observed.exit_code,
      request_id: requestId,
    },
  };
}

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
    this.#bytes += operationBytes(record);
  }

  event(outgoing: OutgoingEvent): void {
    this.#events.push(outgoing);
    this.#bytes += eventBytes(outgoing);
  }

  effect(effect: OutgoingEffect): void {
    this.#effects.set(effectKey(effect), effect);
  }

  effects(): Iterable<OutgoingEffect> {
    return this.#effects.values();
  }

  entry(clock: ClockReading) {
    const changes: Change[] = [...this.#changes];
    const entry = { number: this.number, changes, operations: this.#operations, events: this.#events, clock };
    return { entry, text: encodeEntry(entry) };
  }
}

/**
 * Which keys have changes that are not committed yet, and the number of the commit that will settle
 * each.
 */
export class DirtyKeys {
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
