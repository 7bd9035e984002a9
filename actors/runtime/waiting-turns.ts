/**
 * Turns that cannot run yet, in the order in which they came: the partition is loading, or its
 * lease has lapsed. Bounded, for each tenant too; running them is long work, a turn a step
 * (lib/time/slices.ts).
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Slices } from '../../lib/time/slices.ts';
import { limits } from '../../schemas/limits.ts';
import { Shares } from './shares.ts';

/** Interval at which turns whose senders have given up make room, while all places are taken. */
export const turnsQueuedLookMs = 100;

export interface WaitingTurn<Serving> {
  /** The tenant of the turn; empty if there is none. */
  readonly tenant: string;
  /** Monotonic time until which its sender waits. */
  readonly untilMs: number;
  readonly run: (serving: Serving) => void;
  readonly refuse: () => void;
}

export interface WaitingTurnsOptions<Serving> {
  /** The partition that turns run on; `undefined` if they have to wait. */
  readonly answering: () => Serving | undefined;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly onFault: (error: unknown) => void;
}

export class WaitingTurns<Serving> {
  readonly #options: WaitingTurnsOptions<Serving>;
  readonly #turns = new Set<WaitingTurn<Serving>>();
  readonly #tenants = new Shares();
  #isRunning = false;
  #expiredMs = -Infinity;

  constructor(options: WaitingTurnsOptions<Serving>) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#turns.size === 0;
  }

  add(turn: WaitingTurn<Serving>): void {
    if (!this.#hasRoom(turn)) this.#expire(this.#options.clock.monotonicMs());
    if (!this.#hasRoom(turn)) {
      turn.refuse();
      return;
    }
    this.#turns.add(turn);
    this.#tenants.add(turn.tenant, 1);
  }

  #hasRoom({ tenant }: WaitingTurn<Serving>): boolean {
    return this.#turns.size < limits.turnsQueued && this.#tenants.has(tenant, limits.turnsQueued);
  }

  #remove(turn: WaitingTurn<Serving>): void {
    if (this.#turns.delete(turn)) this.#tenants.add(turn.tenant, -1);
  }

  /** Works at intervals: otherwise each turn that finds no room would look at all of them. */
  #expire(nowMs: number): void {
    if (nowMs < this.#expiredMs + turnsQueuedLookMs) return;
    this.#expiredMs = nowMs;
    for (const waiting of this.#turns) if (waiting.untilMs <= nowMs) this.#remove(waiting);
  }

  /** Runs the turns, unless they still have to wait, or are being run. */
  run(): void {
    const { answering, slices, onFault } = this.#options;
    if (this.#isRunning || this.isEmpty || answering() === undefined) return;
    this.#isRunning = true;
    slices
      .run('held_turns', this.#running())
      .catch(onFault)
      .finally(() => (this.#isRunning = false));
  }

  refuseAll(): void {
    const turns = [...this.#turns];
    for (const turn of turns) this.#remove(turn);
    for (const { refuse } of turns) refuse();
  }

  *#running(): Generator<void, void, void> {
    const { answering, clock } = this.#options;
    for (const turn of this.#turns) {
      const serving = answering();
      // A load or a renewal runs the rest.
      if (serving === undefined) return;
      this.#remove(turn);
      if (turn.untilMs > clock.monotonicMs()) turn.run(serving);
      yield;
    }
  }
}
