/**
 * Partitions of members that have stopped renewing their leases, read by the process that will
 * probably take them: most of the load is done when the lease has ended. The reading has no effect
 * unless this process takes the partition soon; then the load continues where it stopped
 * (reading.ts).
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Slices } from '../../lib/time/slices.ts';
import type { RecordFormat } from './domain.ts';
import { Reading } from './reading.ts';
import type { Store } from './store/store.ts';
import { MiB, seconds } from '../../schemas/limits/units.ts';

/**
 * Greatest age of what was read ahead when its partition is taken. Far less than
 * `deleteMarkerTtlMs`: a key that is deleted meanwhile still has its marker.
 */
export const readAheadKeptMs = 10 * seconds;
/** Partitions that a process reads ahead, and bytes of all of them. */
export const readAheadPartitions = 64;
export const readAheadBytes = 256 * MiB;

export interface ReadAheadOptions<R> {
  readonly storeOf: (partition: number) => Pick<Store, 'pages'>;
  readonly format: RecordFormat<R>;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
}

interface Ahead<R> {
  readonly reading: Reading<R>;
  readonly startedAtMs: number;
  readonly startedMs: number;
  readonly dropped: AbortController;
  isWanted: boolean;
  /** Resolves when it has stopped, to `false` if it failed. */
  readonly done: Promise<boolean>;
}

export class ReadAhead<R> {
  readonly #options: ReadAheadOptions<R>;
  readonly #aheads = new Map<number, Ahead<R>>();

  constructor(options: ReadAheadOptions<R>) {
    this.#options = options;
  }

  /**
   * Called at each look at the members.
   * @param expected partitions that this process will probably take
   * @param taking those that it takes now
   */
  look(expected: readonly number[], taking: readonly number[]): void {
    const kept = new Set([...expected, ...taking]);
    for (const [number, ahead] of this.#aheads) {
      if (kept.has(number) && this.#isFresh(ahead)) continue;
      this.#aheads.delete(number);
      ahead.dropped.abort();
    }
    for (const number of expected) {
      if (this.#aheads.size >= readAheadPartitions) return;
      if (!this.#aheads.has(number)) this.#begin(number);
    }
  }

  /**
   * Takes the reading of a partition; `undefined` if there is none that may be used. It is given
   * out once.
   */
  async take(partition: number): Promise<Reading<R> | undefined> {
    const ahead = this.#aheads.get(partition);
    if (ahead === undefined) return undefined;
    this.#aheads.delete(partition);
    ahead.isWanted = false;
    const hasStopped = await ahead.done;
    return hasStopped && this.#isFresh(ahead) ? ahead.reading : undefined;
  }

  /** The wall clock too: the other may stand still while the machine is suspended. */
  #isFresh({ startedAtMs, startedMs }: Ahead<R>): boolean {
    const { clock } = this.#options;
    const ageMs = Math.max(clock.monotonicMs() - startedMs, clock.nowMs() - startedAtMs);
    return ageMs < readAheadKeptMs;
  }

  #begin(partition: number): void {
    const { clock, format, log, slices, storeOf } = this.#options;
    const reading = new Reading(format);
    const dropped = new AbortController();
    const { signal } = dropped;
    const run = async (): Promise<boolean> => {
      try {
        const isOver = (): boolean => !ahead.isWanted || this.#bytes() >= readAheadBytes;
        await reading.readOn({ store: storeOf(partition), slices }, signal, isOver);
        return true;
      } catch (error) {
        if (!signal.aborted) log.warn('read_ahead_failed', { partition, error });
        return false;
      }
    };
    const ahead: Ahead<R> = {
      reading,
      startedAtMs: clock.nowMs(),
      startedMs: clock.monotonicMs(),
      dropped,
      isWanted: true,
      done: run(),
    };
    this.#aheads.set(partition, ahead);
  }

  #bytes(): number {
    return [...this.#aheads.values()].reduce((bytes, { reading }) => bytes + reading.bytes, 0);
  }
}
