/**
 * The history of the wall clock in this boot of the machine. The engine dates starts and ends by
 * the wall clock, which may be set; this finds the machine time at which the clock showed a date.
 */

/**
 * With a larger difference between the wall clock and machine time, the wall clock was set. Machine
 * time is known to 10 ms, and a busy process reads the two some time apart.
 */
const usageClockStepMs = 250;
/** Settings of the wall clock that are remembered within a boot. */
const usageClockSpans = 8;

/** A time by the wall clock, and by machine time (`MachineTime`). */
export interface Moment {
  readonly nowMs: number;
  /** Comparable within one boot, and never steps. */
  readonly steadyMs: number;
}

/** A time in which the wall clock was not set. */
export interface ClockSpan {
  /** Wall clock minus machine time. */
  readonly offsetMs: number;
  /** The first and the last reading of the clock, by machine time. */
  readonly fromMs: number;
  readonly untilMs: number;
}

/** `true` if two times agree; if not, the wall clock was set in between. */
export const isSameTime = (oneMs: number, otherMs: number): boolean => Math.abs(oneMs - otherMs) <= usageClockStepMs;

export class WallClock {
  readonly #spans: ClockSpan[];

  constructor(spans: readonly ClockSpan[]) {
    this.#spans = [...spans];
  }

  get spans(): readonly ClockSpan[] {
    return this.#spans;
  }

  look({ nowMs, steadyMs }: Moment): void {
    const offsetMs = nowMs - steadyMs;
    const last = this.#spans.at(-1);
    if (last !== undefined && steadyMs < last.untilMs) return;
    if (last !== undefined && isSameTime(offsetMs, last.offsetMs)) {
      this.#spans[this.#spans.length - 1] = { ...last, untilMs: steadyMs };
      return;
    }
    this.#spans.push({ offsetMs, fromMs: steadyMs, untilMs: steadyMs });
    if (this.#spans.length > usageClockSpans) this.#spans.shift();
  }

  /**
   * The machine time at which the clock showed this: the latest such time, if the clock was set
   * back. A date that it never showed is the nearest one between `notBeforeMs` and now.
   */
  machineTimeOf(wallMs: number, { nowMs, steadyMs }: Moment, notBeforeMs: number): number {
    const step = usageClockStepMs;
    for (const [index, { offsetMs }] of [...this.#spans.entries()].reverse()) {
      const atMs = wallMs - offsetMs;
      // The clock was set between the last reading of one span and the first of the next.
      const fromMs = Math.max(notBeforeMs, this.#spans[index - 1]?.untilMs ?? -Infinity);
      const untilMs = this.#spans[index + 1]?.fromMs ?? steadyMs;
      if (atMs >= fromMs - step && atMs <= untilMs + step) return clamp(atMs, notBeforeMs, steadyMs);
    }
    return clamp(wallMs - (nowMs - steadyMs), notBeforeMs, steadyMs);
  }
}

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));
