/**
 * Long work in slices. Each turn of the event loop runs one slice, however many works there are, so
 * that I/O and timers (above all the renewal of a lease) never wait longer than a slice and one
 * step.
 */
import { limits } from '../../schemas/limits.ts';
import { Permits } from '../permits.ts';

/**
 * Messages whose work waits for slices. Beyond this, the sender is asked to try again, or gets no
 * answer and tries again.
 */
export const worksBegun = 1000;
/** Of one host: a flood of its messages leaves the others room, and their turns. */
export const worksBegunPerHost = 64;

/** A sort in slices sorts runs of this many items at once. */
const sortRunItems = 64;

export interface Slices {
  /**
   * Runs the work to its end, one slice in each turn; a step goes from one `yield` to the next.
   * @throws the signal's reason, between two slices, once it has aborted.
   */
  run<T>(name: string, work: Generator<void, T, void>, signal?: AbortSignal): Promise<T>;
  /**
   * Calls `slice` once in each turn until it returns true. It should return when `isOver()` is
   * true.
   */
  repeat(name: string, slice: (isOver: () => boolean) => boolean, signal?: AbortSignal): Promise<void>;
  /**
   * Runs the work for a message: at once while this turn has time left for such work, and the rest
   * in slices. `onFault` gets what a step throws, which ends the work. `host`: the one whose
   * message it is, which has a share of the room.
   * @returns false if too many such works wait already; then this one does not run.
   */
  begin(name: string, work: Generator<void, void, void>, onFault: (error: unknown) => void, host?: string): boolean;
}

export interface SlicesOptions {
  readonly monotonicMs: () => number;
  readonly onSlice?: (name: string, seconds: number) => void;
}

export function createSlices({ monotonicMs, onSlice }: SlicesOptions): Slices {
  const waiting: (() => void)[] = [];
  let isScheduled = false;

  const grant = (): void => {
    waiting.shift()?.();
    isScheduled = waiting.length > 0;
    if (isScheduled) setImmediate(grant);
  };
  const turn = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (isScheduled) return;
      isScheduled = true;
      setImmediate(grant);
    });

  async function repeat(name: string, slice: (isOver: () => boolean) => boolean, signal?: AbortSignal): Promise<void> {
    for (let isDone = false; !isDone;) {
      await turn();
      signal?.throwIfAborted();
      const startMs = monotonicMs();
      const isOver = (): boolean => monotonicMs() - startMs >= limits.sliceMs;
      isDone = slice(isOver);
      onSlice?.(name, (monotonicMs() - startMs) / 1000);
    }
  }

  async function run<T>(name: string, work: Generator<void, T, void>, signal?: AbortSignal): Promise<T> {
    let result: IteratorResult<void, T> | undefined;
    const slice = (isOver: () => boolean): boolean => {
      do result = work.next();
      while (result.done !== true && !isOver());
      return result.done === true;
    };
    await repeat(name, slice, signal);
    if (result?.done !== true) throw new Error('the work has not ended');
    return result.value;
  }

  /** Of works that have begun and not ended. */
  const permits = new Permits({ inAll: worksBegun, perClient: worksBegunPerHost });
  /** Time spent in this turn of the event loop on works that began in it. */
  let spentMs = 0;
  let isNewTurnComing = false;

  /** @returns true if the work has ended. */
  function startNow(name: string, work: Generator<void, void, void>): boolean {
    if (!isNewTurnComing) {
      isNewTurnComing = true;
      setImmediate(() => {
        isNewTurnComing = false;
        spentMs = 0;
      });
    }
    const startMs = monotonicMs();
    const leftMs = limits.atOnceMs - spentMs;
    let tookMs = 0;
    try {
      while (tookMs < leftMs) {
        const isDone = work.next().done === true;
        tookMs = monotonicMs() - startMs;
        if (isDone) return true;
      }
      return false;
    } finally {
      spentMs += tookMs;
      if (tookMs > 0) onSlice?.(name, tookMs / 1000);
    }
  }

  function begin(
    name: string,
    work: Generator<void, void, void>,
    onFault: (error: unknown) => void,
    host?: string,
  ): boolean {
    const permit = permits.take(host);
    if (typeof permit === 'string') return false;
    let isOver = true;
    try {
      isOver = startNow(name, work);
    } catch (error) {
      onFault(error);
    }
    if (isOver) permit.release();
    else
      run(name, work)
        .catch(onFault)
        .finally(() => permit.release());
    return true;
  }

  return { repeat, run, begin };
}

/** Runs work in one go, for programs that do nothing else meanwhile. */
export function runAtOnce<T>(work: Generator<void, T, void>): T {
  for (;;) {
    const result = work.next();
    if (result.done === true) return result.value;
  }
}

/** Sorts in steps: sorts short runs, then merges them. Stable. */
export function* sorting<T>(items: readonly T[], compare: (one: T, other: T) => number): Generator<void, T[], void> {
  let from: T[] = [];
  for (let start = 0; start < items.length; start += sortRunItems) {
    from.push(...items.slice(start, start + sortRunItems).sort(compare));
    yield;
  }
  for (let width = sortRunItems; width < from.length; width *= 2) {
    const to: T[] = [];
    for (let start = 0; start < from.length; start += 2 * width) {
      const middle = Math.min(start + width, from.length);
      const end = Math.min(start + 2 * width, from.length);
      for (let [left, right] = [start, middle]; left < middle || right < end;) {
        const isLeft = right >= end || (left < middle && compare(from[left] as T, from[right] as T) <= 0);
        to.push(from[isLeft ? left++ : right++] as T);
        if (to.length % sortRunItems === 0) yield;
      }
    }
    from = to;
  }
  return from;
}
