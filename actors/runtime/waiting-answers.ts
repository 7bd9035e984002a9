/**
 * Answers that wait for a commit: reads of what is not committed yet, looks at it for hosts, and
 * repetitions of writes.
 *
 * A body is kept while there is room for it, in bytes, for the partition and for its tenant or
 * host. Beyond this the ask waits alone, and its turn runs again when the commit is there. Each is
 * dropped at its deadline, when its sender waits no longer.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Slices } from '../../lib/time/slices.ts';
import { limits } from '../../schemas/limits.ts';
import type { Waiter } from './journal/group.ts';

export interface WaitingAsk {
  /** The tenant or the host that asks; empty for an operator. */
  readonly by: string;
  /** Monotonic. */
  readonly untilMs: number;
  /** Runs the turn, and makes its answer. */
  readonly make: () => MadeAnswer;
  /** Runs the ask again. */
  readonly again: () => void;
  readonly refuse: () => void;
}

export interface MadeAnswer {
  readonly bytes: number;
  readonly give: () => void;
}

interface Waiting extends WaitingAsk {
  /** `undefined` if there was no room for it. */
  readonly answer: MadeAnswer | undefined;
}

/** Asks and bytes, of all or of an asker. */
interface Load {
  asks: number;
  bytes: number;
}

export interface WaitingAnswersOptions {
  readonly commits: {
    readonly committed: number;
    after(commit: number, waiter: Waiter): void;
  };
  readonly clock: Clock;
  readonly slices: Slices;
  readonly onFault: (error: unknown) => void;
}

export class WaitingAnswers {
  readonly #options: WaitingAnswersOptions;
  readonly #byCommit = new Map<number, Set<Waiting>>();
  readonly #all: Load = { asks: 0, bytes: 0 };
  readonly #askers = new Map<string, Load>();

  constructor(options: WaitingAnswersOptions) {
    this.#options = options;
  }

  get bytes(): number {
    return this.#all.bytes;
  }

  /** Answers when this commit is settled: at once if it already is. */
  add(commit: number, ask: WaitingAsk): void {
    const { commits, clock } = this.#options;
    if (commit <= commits.committed) {
      ask.make().give();
      return;
    }
    if (clock.monotonicMs() > ask.untilMs) return;
    const own = this.#askers.get(ask.by) ?? { asks: 0, bytes: 0 };
    if (this.#all.asks >= limits.answersWaiting || own.asks >= limits.answersWaitingOfTenant) {
      ask.refuse();
      return;
    }
    const hasRoom = this.#all.bytes < limits.answersWaitingBytes && own.bytes < limits.answersWaitingBytesOfTenant;
    this.#keep(commit, { ...ask, answer: hasRoom ? ask.make() : undefined }, own);
  }

  /** Drops those whose senders wait no longer. */
  expire(nowMs: number): void {
    for (const waiting of this.#byCommit.values()) {
      for (const one of waiting) {
        if (one.untilMs >= nowMs) continue;
        waiting.delete(one);
        this.#forget(one);
      }
    }
  }

  #keep(commit: number, one: Waiting, own: Load): void {
    this.#askers.set(one.by, own);
    for (const load of [this.#all, own]) {
      load.asks++;
      load.bytes += one.answer?.bytes ?? 0;
    }
    const waiting = this.#byCommit.get(commit);
    if (waiting !== undefined) {
      waiting.add(one);
      return;
    }
    this.#byCommit.set(commit, new Set([one]));
    this.#options.commits.after(commit, (committed) => this.#settle(commit, committed));
  }

  #forget({ by, answer }: Waiting): void {
    const own = this.#askers.get(by);
    for (const load of [this.#all, own]) {
      if (load === undefined) continue;
      load.asks--;
      load.bytes -= answer?.bytes ?? 0;
    }
    if (own?.asks === 0) this.#askers.delete(by);
  }

  #settle(commit: number, committed: boolean): void {
    const { slices, clock, onFault } = this.#options;
    const waiting = [...(this.#byCommit.get(commit) ?? [])];
    this.#byCommit.delete(commit);
    for (const one of waiting) this.#forget(one);
    const nowMs = clock.monotonicMs();
    const inTime = waiting.filter(({ untilMs }) => untilMs >= nowMs);
    const isMade = ({ answer }: Waiting): boolean => committed && answer !== undefined;
    for (const { answer } of inTime.filter(isMade)) {
      try {
        answer?.give();
      } catch (error) {
        onFault(error);
      }
    }
    const rest = inTime.filter((one) => !isMade(one));
    if (rest.length > 0) slices.run('held_answers', asking(rest, clock, onFault)).catch(onFault);
  }
}

/** An ask is a step: its turn may take long. */
function* asking(
  waiting: readonly Waiting[],
  clock: Clock,
  onFault: (error: unknown) => void,
): Generator<void, void, void> {
  for (const { untilMs, again } of waiting) {
    try {
      if (untilMs >= clock.monotonicMs()) again();
    } catch (error) {
      onFault(error);
    }
    yield;
  }
}
