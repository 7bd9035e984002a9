/**
 * Decides which partitions this process owns: it takes those that are assigned to it and free,
 * hands over those that are assigned to another member, and drops all when its lease is revoked
 * (ADR 8). Level-triggered: every look at the members goes through all partitions.
 */
import { messageOf } from '../../lib/error-message.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { backoffMs, sleep } from '../../lib/time/backoff.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { MemberStore } from './member-store.ts';
import { Membership } from './membership.ts';
import { memberFor } from './rendezvous.ts';
import type { EpochRecord } from '../runtime/store/epoch.ts';
import type { Lease } from '../runtime/lease.ts';
import type { WentBack } from '../runtime/store/fence.ts';
import type { Partition, PartitionOptions } from '../partition.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Interval at which a process that stores its partitions again says that it does. */
const storeAgainSaidMs = 5 * seconds;
/** Loads of one partition that the loss of the lease may end before this process rests, too. */
export const loadsRevoked = 2;

export interface PartitionManagerOptions {
  readonly partitions: number;
  readonly members: MemberStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: () => MemberId;
  /** Makes a partition that is not loaded yet. */
  readonly createPartition: (number: number, more: ManagedPartitionOptions) => Partition;
  /**
   * Called at each look at the members, with the partitions that this process will probably take,
   * and those that it takes now.
   */
  readonly onExpected: (expected: readonly number[], taking: readonly number[]) => void;
  /** Called when this process begins to serve the partition. */
  readonly onTaken: (partition: Partition) => void;
  /** Called when this process no longer owns the partition. */
  readonly onGone: (partition: Partition) => void;
  readonly observer: PartitionManagerObserver;
  /** Sends a notice to the other processes. It may be lost. */
  readonly announce: (notice: string) => void;
  /** The members' bucket went back in time. */
  readonly onWentBack: (sequences: WentBack) => void;
}

export interface PartitionManagerObserver {
  moved(how: 'taken' | 'released' | 'lost'): void;
  /**
   * This process pauses before it loads the partition again: the records were unreadable, or the
   * lease was revoked during the load.
   */
  loadGivenUp(why: 'unloadable' | 'revoked'): void;
}

/** The options of a partition that the partition manager provides. */
export type ManagedPartitionOptions = Pick<PartitionOptions, 'lease' | 'mayTake' | 'onLost' | 'onUnloadable'>;

/** A partition that this process could not load. */
interface Refusal {
  readonly count: number;
  readonly untilMs: number;
  readonly why: string;
}

type Owned =
  | { readonly partition: Partition; readonly phase: 'taking' | 'serving' }
  | { readonly partition: Partition; readonly phase: 'releasing'; readonly done: Promise<void> };

const isReleasable = ({ partition, phase }: Owned): boolean => phase === 'serving' && partition.isServing;

export class PartitionManager {
  readonly membership: Membership;
  readonly #options: PartitionManagerOptions;
  readonly #owned = new Map<number, Owned>();
  readonly #refusals = new Map<number, Refusal>();
  /** By partition, the number of loads in a row that a revoked lease interrupted. */
  readonly #revokedLoads = new Map<number, number>();
  #isLeaving = false;
  /** The member whose partitions are being stored again. */
  #storing: MemberId | undefined;
  #stored: Promise<void> = Promise.resolve();
  #waiting: (() => void)[] = [];

  constructor(options: PartitionManagerOptions) {
    this.#options = options;
    const { clock, log, newId } = options;
    this.membership = new Membership({
      store: options.members,
      clock,
      log,
      newId,
      serving: () => [...this.serving()].map(({ number }) => number),
      onRenewed: () => this.#resume(),
      refused: () => [...this.#refusals.keys()].filter((number) => this.#refuses(number)),
      onRevoked: () => this.#onRevoked(),
      onLooked: () => this.#look(),
      announce: options.announce,
      onWentBack: options.onWentBack,
    });
  }

  /** The partitions that this process serves. */
  *serving(): Generator<Partition, void, void> {
    for (const { partition, phase } of this.#owned.values())
      if (phase === 'serving' && partition.isServing) yield partition;
  }

  /** The partitions that no member is known to serve. */
  unowned(): number[] {
    const all = Array.from({ length: this.#options.partitions }, (_, number) => number);
    return all.filter((number) => this.#owned.get(number)?.phase !== 'serving' && !this.membership.isServed(number));
  }

  /**
   * The cause for which this process is not ready; `undefined` if it is, and every partition has an
   * owner.
   */
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
    while (this.unowned().length > 0 && !this.#isLeaving) {
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    }
  }

  /** Called with each notice. */
  handleNotice(notice: Uint8Array): void {
    this.membership.handleNotice(notice);
  }

  /** Commits what is under way, hands over every partition, and ends the lease. */
  async stop(): Promise<void> {
    this.#isLeaving = true;
    await this.membership.leave();
    const given = new AbortController();
    const releasing = Promise.all([...this.#owned].map(async ([number, owned]) => this.#release(number, owned)));
    void releasing.finally(() => given.abort());
    await sleep(limits.leaveMs, given.signal);
    await this.storedAgain();
    // The others take what could not be handed over when the lease has ended.
    this.#dropAll();
    await this.membership.stop();
    this.#wake();
  }

  /**
   * Resolves when no partition is being stored again, and takes none from then on. There is no
   * deadline: nothing else has what was acknowledged, and a bucket that was stored by half is
   * loaded by nobody.
   */
  async storedAgain(): Promise<void> {
    this.#isLeaving = true;
    while (this.#storing !== undefined && this.#owned.size > 0) {
      this.#options.log.warn('stop_awaits_partitions_stored_again', { partitions: [...this.#owned.keys()] });
      const looked = new AbortController();
      void this.#stored.finally(() => looked.abort());
      await sleep(storeAgainSaidMs, looked.signal);
    }
  }

  /**
   * Drops every partition at once: the cluster was replaced by a restore, so nothing from before
   * may be committed or answered.
   */
  drop(): void {
    this.#isLeaving = true;
    this.#dropAll();
    this.#wake();
  }

  /**
   * The store went back in time (ADR 48): all partitions are given away, each with all of its
   * memory, and this process goes on as a new member, because its journal went back, too. It takes
   * no partition meanwhile.
   * @returns `false` if that is under way
   */
  storeAgain(): boolean {
    if (this.#storing !== undefined) return false;
    this.#stored = this.#storeAll((this.#storing = this.membership.id));
    return true;
  }

  async #storeAll(member: MemberId): Promise<void> {
    while (this.#owned.size > 0) {
      await Promise.all([...this.#owned].map(async ([number, owned]) => this.#release(number, owned)));
    }
    await this.membership.abandon(member);
    this.#storing = undefined;
    this.#look();
  }

  #look(): void {
    this.#wake();
    if (this.#isLeaving || this.#storing !== undefined) return;
    const { membership } = this;
    const live = membership.live();
    let isReleasing = [...this.#owned.values()].some(({ phase }) => phase === 'releasing');
    for (let number = 0; number < this.#options.partitions; number++) {
      const owned = this.#owned.get(number);
      if (live.length === 0) break;
      const owner = memberFor(number, membership.candidates(number));
      if (owned === undefined) {
        if (this.#refuses(number)) continue;
        // A partition that no member claims, but whose epoch record names this one: no other member
        // may take it, so this one does.
        const isOrphan = owner !== membership.id && !membership.isClaimed(number);
        if (membership.lease().isValid() && (owner === membership.id || isOrphan)) void this.#take(number, isOrphan);
      } else if (
        owner !== undefined &&
        owner !== membership.id &&
        isReleasable(owned) &&
        !isReleasing &&
        membership.isSettled(owner)
      ) {
        // One at a time: a partition answers nothing while it moves.
        isReleasing = true;
        void this.#release(number, owned);
      }
    }
    this.#expect();
  }

  /** Work for partitions whose owner seems dead begins before its lease has ended. */
  #expect(): void {
    const { partitions, onExpected } = this.#options;
    const { membership } = this;
    const silent = membership.silent();
    const expected: number[] = [];
    for (let number = 0; silent.size > 0 && number < partitions; number++) {
      if (this.#owned.has(number) || this.#refuses(number) || !membership.isClaimedBy(number, silent)) continue;
      const candidates = membership.candidates(number).filter((id) => !silent.has(id));
      if (memberFor(number, candidates) === membership.id) expected.push(number);
    }
    const taking = [...this.#owned].flatMap(([number, { phase }]) => (phase === 'taking' ? [number] : []));
    onExpected(expected, taking);
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
        this.#refuse(number, 'unloadable', messageOf(error));
        if (this.#owned.get(number)?.phase === 'serving') this.#lost(number, partition);
      },
    });
    this.#owned.set(number, { partition, phase: 'taking' });
    await partition.start();
    if (this.#owned.get(number)?.partition !== partition) return;
    if (!partition.isServing) {
      this.#owned.delete(number);
      return;
    }
    this.#owned.set(number, { partition, phase: 'serving' });
    this.#refusals.delete(number);
    this.#revokedLoads.delete(number);
    log.info('partition_taken', { partition: number, epoch: partition.epoch });
    observer.moved('taken');
    onTaken(partition);
    this.#wake();
  }

  /**
   * The rule for taking over an epoch: the member that it names has released it, or is dead.
   */
  async #mayTake(number: number, lease: Lease, record: EpochRecord | undefined): Promise<boolean> {
    if (!lease.isValid()) return false;
    // An absent or damaged record names no member. If a member has the partition all the same, its
    // own record says so.
    if (record === undefined) return !this.membership.isClaimed(number);
    if (record.released === true) return true;
    return this.membership.isDead(record.owner);
  }

  #release(number: number, owned: Owned): Promise<void> {
    if (owned.phase === 'releasing') return owned.done;
    const { partition } = owned;
    const done = this.#giveAway(number, partition);
    this.#owned.set(number, { partition, phase: 'releasing', done });
    return done;
  }

  async #giveAway(number: number, partition: Partition): Promise<void> {
    const { log, onGone, observer } = this.#options;
    const { isServing } = partition;
    const isReleased = await partition.release();
    if (this.#owned.get(number)?.partition !== partition) return;
    if (!isReleased) {
      log.warn('partition_release_failed', { partition: number });
      this.#owned.set(number, { partition, phase: 'serving' });
      return;
    }
    this.#owned.delete(number);
    if (!isServing) return;
    log.info('partition_released', { partition: number });
    observer.moved('released');
    onGone(partition);
    this.membership.announce();
  }

  #lost(number: number, partition: Partition): void {
    if (this.#owned.get(number)?.partition !== partition) return;
    this.#owned.delete(number);
    const { log, onGone, observer } = this.#options;
    log.warn('partition_lost', { partition: number });
    observer.moved('lost');
    onGone(partition);
  }

  // Partitions that this process cannot load

  /**
   * `true` during the pause, and for as long as another member has the partition: that member would
   * hand it over, only for this one to fail again.
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
    for (const [number, { phase }] of this.#owned) {
      if (phase !== 'taking') continue;
      const count = (this.#revokedLoads.get(number) ?? 0) + 1;
      this.#revokedLoads.set(number, count);
      if (count >= loadsRevoked) {
        this.#refuse(number, 'revoked', `this process lost its lease ${count} times while it loaded the partition`);
      }
    }
    this.#dropAll();
  }

  #dropAll(): void {
    for (const [number, { partition, phase }] of [...this.#owned]) {
      partition.drop();
      if (phase === 'taking') this.#owned.delete(number);
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
