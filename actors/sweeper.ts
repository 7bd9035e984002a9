/** Applies the changes that time makes to every partition of this process, at intervals. */
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Slices } from '../lib/time/slices.ts';
import type { HostKey, TenantId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import type { PartitionView } from './domain/state.ts';
import { expiredFiles } from './domain/file/files.ts';
import { expiredAnswers } from './domain/answers/answers.ts';
import { expired, expiredKeys, expiredOfVpn, sweep, type SweepContext } from './domain/sweep.ts';
import type { Changes, TurnContext } from './domain/turn.ts';
import type { Fleet } from './endpoints/fleet.ts';
import type { Partition } from './partition.ts';

/** A process that missed this many sweeps was stopped, and heard no heartbeats meanwhile. */
export const sweepsMissed = 3;

export interface SweeperOptions {
  readonly owned: () => Iterable<Partition>;
  readonly fleet: Fleet;
  /** A process that is cut off hears no host, and its decisions would be committed later. */
  readonly isConnected: () => boolean;
  readonly hostLostMs: number;
  readonly fenceMarginMs: number;
  /** Milliseconds for which the keys of removed hosts are kept. */
  readonly revokedKeysKeptMs: number;
  readonly clock: Clock;
  readonly slices: Slices;
  readonly log: Log;
  /** Called after each sweep of a partition. */
  readonly onSwept: (partition: Partition) => void;
}

type RegionIsSilent = (host: HostKey) => boolean;

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #underWay = new Set<Partition>();
  #sweptMs: number;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#sweptMs = options.clock.monotonicMs();
  }

  sweep(): void {
    const { owned, fleet, isConnected, clock, log } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#sweptMs > sweepsMissed * limits.sweepIntervalMs) fleet.listening.stood(nowMs - this.#sweptMs);
    this.#sweptMs = nowMs;
    if (!isConnected()) return;
    const regionIsSilent = fleet.regionSilence();
    for (const partition of owned()) {
      partition.keepTime();
      this.#sweepOne(partition, regionIsSilent).catch((error: unknown) => log.error('sweep_failed', { error }));
    }
  }

  /**
   * Takes several turns: a sweep of a hundred thousand containers in one turn would block
   * everything else.
   */
  async #sweepOne(partition: Partition, regionIsSilent: RegionIsSilent): Promise<void> {
    if (this.#underWay.has(partition)) return;
    this.#underWay.add(partition);
    try {
      await this.#options.slices.repeat('sweep', this.#sliceOf(partition, regionIsSilent));
      this.#options.onSwept(partition);
    } finally {
      this.#underWay.delete(partition);
    }
  }

  /** @returns a slice of the sweep, which says whether it was the last */
  #sliceOf(partition: Partition, regionIsSilent: RegionIsSilent): (isOver: () => boolean) => boolean {
    const swept = partition.view;
    const mayTell = (tenant: TenantId): boolean => partition.mayTell(tenant);
    const due = (state: PartitionView, context: TurnContext) =>
      this.#due(state, { ...context, mayTell }, regionIsSilent);
    let work: Generator<Changes, void, void> | undefined;
    return (isOver) => {
      let isDone = true;
      const isTaken = partition.change('sweep', function* (state, context) {
        // The partition was loaded again: the next sweep reads the new state.
        if (state !== swept) return;
        work ??= due(state, context);
        isDone = false;
        do {
          const next = work.next();
          if (next.done === true) {
            isDone = true;
            return;
          }
          yield next.value;
        } while (!isOver());
      });
      return isDone || !isTaken;
    };
  }

  *#due(
    state: PartitionView,
    context: TurnContext & Pick<SweepContext, 'mayTell'>,
    regionIsSilent: RegionIsSilent,
  ): Generator<Changes, void, void> {
    const { fleet, log, hostLostMs, fenceMarginMs, revokedKeysKeptMs } = this.#options;
    yield expired(state, context.expiryMs);
    yield expiredAnswers(state, context.expiryMs);
    yield expiredOfVpn(state, context.expiryMs);
    yield expiredFiles(state, context.expiryMs);
    yield expiredKeys(state, context.expiryMs, revokedKeysKeptMs);
    yield* sweep(state, {
      ...context,
      silentMs: (host) => fleet.silentMs(host),
      regionIsSilent,
      hostLostMs,
      fenceMarginMs,
      onFault: ({ id }, error) => log.error('turn_failed', { kind: 'sweep', container: id, error }),
    });
  }
}
