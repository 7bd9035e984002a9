/**
 * Which partitions this process has: it takes those that should be its own and may be taken, gives
 * away those that should be another's, and lets go of everything when its lease is revoked (ADR 8).
 * Level-triggered: every look at the members is a look at all partitions.
 */
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { backoffMs, sleep } from '../../lib/backoff.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { MemberStore } from './member-store.ts';
import { Membership } from './membership.ts';
import { memberFor } from './rendezvous.ts';
import type { EpochRecord } from '../runtime/store/epoch.ts';
import type { Lease } from '../runtime/lease.ts';
import type { Partition, PartitionOptions } from '../partition.ts';

export interface PartitionManagerOptions {
  readonly partitions: number;
  readonly members: MemberStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: () => MemberId;
  /** A partition that is not taken yet. */
  readonly createPartition: (number: number, more: ManagedPartitionOptions) => Partition;
  /** It serves from now on. */
  readonly onTaken: (partition: Partition) => void;
  /** It is another's from now on. */
  readonly onGone: (partition: Partition) => void;
  readonly observer: PartitionManagerObserver;
  /** Tells the others to look. */
  readonly announce: () => void;
}

export interface PartitionManagerObserver {
  moved(how: 'taken' | 'released' | 'lost'): void;
  /**
   * This process rests before it loads the partition again: its records could not be read, or its
   * lease was lost in a load.
   */
  loadGivenUp(why: 'unloadable' | 'revoked'): void;
}

/** What of a partition is the partition manager's. */
export type ManagedPartitionOptions = Pick<PartitionOptions, 'lease' | 'mayTake' | 'onLost' | 'onUnloadable'>;

/** A partition that this process could not load. */
interface Refusal {
  readonly count: number;
  readonly untilMs: number;
  readonly why: string;
}

type Held =
  | { readonly partition: Partition; readonly phase: 'taking' | 'serving' }
  | { readonly partition: Partition; readonly phase: 'releasing'; readonly done: Promise<void> };

/**
 * While it is loaded anew its epoch moves; given up then, it would name a member that lives and
 * does not have it.
 */
const isGivable = ({ partition, phase }: Held): boolean => phase === 'serving' && partition.isServing;

export class PartitionManager {
  readonly membership: Membership;
  readonly #options: PartitionManagerOptions;
  readonly #held = new Map<number, Held>();
  readonly #refusals = new Map<number, Refusal>();
  /** By partition, how many loads in a row ended because the lease was revoked. */
  readonly #revokedLoads = new Map<number, number>();
  #isLeaving = false;
  #waiting: (() => void)[] = [];

  constructor(options: PartitionManagerOptions) {
    this.#options = options;
    const { clock, log, newId } = options;
    this.membership = new Membership({
      store: options.members,
      clock,
      log,
      newId,
      held: () => [...this.serving()].map(({ number }) => number),
      onRenewed: () => this.#resume(),
      refused: () => [...this.#refusals.keys()].filter((number) => this.#refuses(number)),
      onRevoked: () => this.#onRevoked(),
      onLooked: () => this.#look(),
    });
  }

  /** Those that serve. */
  *serving(): Generator<Partition, void, void> {
    for (const { partition, phase } of this.#held.values())
      if (phase === 'serving' && partition.isServing) yield partition;
  }

  /** The partitions that nobody is known to have. */
  unowned(): number[] {
    const all = Array.from({ length: this.#options.partitions }, (_, number) => number);
    return all.filter((number) => this.#held.get(number)?.phase !== 'serving' && !this.membership.isServed(number));
  }

  /** Why this process is not ready; undefined: it is, and no partition waits for an owner. */
  fault(): string | undefined {
    if (!this.membership.lease().isValid()) return 'the lease has lapsed';
    const unowned = this.unowned();
    if (unowned.length === 0) return undefined;
    const causes = unowned.flatMap((number) => {
      const refusal = this.#refusals.get(number);
      return refusal === undefined ? [] : [`; this process can't load partition ${number}: ${refusal.why}`];
    });
    return `${unowned.length} of ${this.#options.partitions} partitions have no owner${causes.join('')}`;
  }

  /** Joins the members; resolves when every partition has an owner. */
  async start(): Promise<void> {
    await this.membership.start();
    this.#options.announce();
    while (this.unowned().length > 0 && !this.#isLeaving) {
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    }
  }

  /** Another process has something to tell. */
  look(): void {
    void this.membership.look();
  }

  /** Gives everything away, commits first, and ends the lease. */
  async stop(): Promise<void> {
    this.#isLeaving = true;
    await this.membership.leave();
    this.#options.announce();
    const given = new AbortController();
    const giving = Promise.all([...this.#held].map(async ([number, held]) => this.#release(number, held)));
    void giving.finally(() => given.abort());
    await sleep(limits.leaveMs, given.signal);
    // What could not be given away is taken, once the lease has ended.
    this.#dropAll();
    await this.membership.stop();
    this.#options.announce();
    this.#wake();
  }

  /**
   * Lets go of everything at once: it is of a past that is no more, and nothing of it may be
   * committed or answered.
   */
  drop(): void {
    this.#isLeaving = true;
    this.#dropAll();
    this.#wake();
  }

  #look(): void {
    this.#wake();
    if (this.#isLeaving) return;
    const { membership } = this;
    const live = membership.live();
    let isReleasing = [...this.#held.values()].some(({ phase }) => phase === 'releasing');
    for (let number = 0; number < this.#options.partitions; number++) {
      const held = this.#held.get(number);
      if (live.length === 0) return;
      const owner = memberFor(number, membership.candidates(number));
      if (held === undefined) {
        if (this.#refuses(number)) continue;
        // Whatever brought it about: one that nobody has, and whose epoch names us, nobody else may
        // take.
        const isOrphan = owner !== membership.id && !membership.isClaimed(number);
        if (membership.lease().isValid() && (owner === membership.id || isOrphan)) void this.#take(number, isOrphan);
      } else if (
        owner !== undefined &&
        owner !== membership.id &&
        isGivable(held) &&
        !isReleasing &&
        membership.isSettled(owner)
      ) {
        // One at a time: each is away for a moment.
        isReleasing = true;
        void this.#release(number, held);
      }
    }
  }

  async #take(number: number, onlyOwn: boolean): Promise<void> {
    const { log, createPartition, onTaken, observer } = this.#options;
    const lease = this.membership.lease();
    const partition = createPartition(number, {
      lease,
      mayTake: async (record) => {
        const isOwn = record?.owner === lease.member && record.released !== true;
        return isOwn || (!onlyOwn && this.#mayTake(number, lease, record));
      },
      onLost: () => this.#lost(number, partition),
      onUnloadable: (_, error) => {
        this.#refuse(number, 'unloadable', error instanceof Error ? error.message : String(error));
        if (this.#held.get(number)?.phase === 'serving') this.#lost(number, partition);
      },
    });
    this.#held.set(number, { partition, phase: 'taking' });
    await partition.start();
    if (this.#held.get(number)?.partition !== partition) return;
    if (!partition.isServing) {
      this.#held.delete(number);
      return;
    }
    this.#held.set(number, { partition, phase: 'serving' });
    this.#refusals.delete(number);
    this.#revokedLoads.delete(number);
    log.info('partition_taken', { partition: number, epoch: partition.epoch });
    observer.moved('taken');
    onTaken(partition);
    this.#wake();
  }

  /**
   * The rule by which an epoch moves: from the member that it names, by that member's word or after
   * its death.
   */
  async #mayTake(number: number, lease: Lease, record: EpochRecord | undefined): Promise<boolean> {
    if (!lease.isValid()) return false;
    // No record, or a damaged one, names nobody: whoever has the partition says so in its own.
    if (record === undefined) return !this.membership.isClaimed(number);
    if (record.released === true) return true;
    return this.membership.isDead(record.owner);
  }

  #release(number: number, held: Held): Promise<void> {
    if (held.phase === 'releasing') return held.done;
    const { partition } = held;
    const done = this.#giveAway(number, partition);
    this.#held.set(number, { partition, phase: 'releasing', done });
    return done;
  }

  async #giveAway(number: number, partition: Partition): Promise<void> {
    const { log, onGone, observer, announce } = this.#options;
    const { isServing } = partition;
    await partition.release();
    if (this.#held.get(number)?.partition !== partition) return;
    this.#held.delete(number);
    if (!isServing) return;
    log.info('partition_released', { partition: number });
    observer.moved('released');
    onGone(partition);
    announce();
  }

  #lost(number: number, partition: Partition): void {
    if (this.#held.get(number)?.partition !== partition) return;
    this.#held.delete(number);
    const { log, onGone, observer } = this.#options;
    log.warn('partition_lost', { partition: number });
    observer.moved('lost');
    onGone(partition);
  }

  // Partitions that this process can't load

  /**
   * While it rests, and for as long as another has the partition: giving it back would only take it
   * away again.
   */
  #refuses(number: number): boolean {
    const refusal = this.#refusals.get(number);
    if (refusal === undefined) return false;
    return this.#options.clock.monotonicMs() < refusal.untilMs || this.membership.isClaimed(number);
  }

  #refuse(number: number, cause: 'unloadable' | 'revoked', why: string): void {
    const { clock, log, observer } = this.#options;
    const count = (this.#refusals.get(number)?.count ?? 0) + 1;
    const restMs = backoffMs(count - 1, { minMs: limits.loadRestMinMs, maxMs: limits.loadRestMaxMs });
    this.#refusals.set(number, { count, untilMs: clock.monotonicMs() + restMs, why });
    log.error('load_given_up', { partition: number, cause, why, count, restMs });
    observer.loadGivenUp(cause);
  }

  #onRevoked(): void {
    for (const [number, { phase }] of this.#held) {
      if (phase !== 'taking') continue;
      const count = (this.#revokedLoads.get(number) ?? 0) + 1;
      this.#revokedLoads.set(number, count);
      if (count >= limits.loadsRevoked) {
        this.#refuse(number, 'revoked', `this process lost its lease ${count} times while it loaded the partition`);
      }
    }
    this.#dropAll();
  }

  #dropAll(): void {
    for (const [number, { partition, phase }] of [...this.#held]) {
      partition.drop();
      if (phase === 'taking') this.#held.delete(number);
      else this.#lost(number, partition);
    }
  }

  #resume(): void {
    for (const partition of this.serving()) partition.resume();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
