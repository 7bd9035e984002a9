/**
 * This process as one of the members (ADR 8). It renews its own lease, watches the others renew
 * theirs, and declares a member dead by compare-and-set when that stops. As long as all clocks run
 * at the same rate, two promises hold: no member declares a valid lease dead, and a lease that was
 * declared dead is no longer valid.
 */
import { sleep } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { hours, seconds } from '../../schemas/limits/units.ts';
import { encodeValue } from '../runtime/journal/codec.ts';
import type { Lease } from '../runtime/lease.ts';
import type { WentBack } from '../runtime/store/fence.ts';
import type { MemberStore, StoredMember } from './member-store.ts';
import { claims, isRenewing, isSilent, Others } from './others.ts';
import { contentOf, deadRecord, heardIn, noticeOf, recordOf, type MemberRecord } from './record.ts';

/** A member lists all of them every so often, times their number. */
export const memberListPaceMs = 50;
/** Time for which a member must have been live before it gets partitions. */
export const memberSettledMs = 1 * seconds;

/**
 * The record that tells a process that its lease ended. An absent record says the same.
 */
const deadMemberTtlMs = 1 * hours;

export interface MembershipOptions {
  readonly store: MemberStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: () => MemberId;
  /** The partitions that this process serves. */
  readonly serving: () => readonly number[];
  /** The partitions that this process cannot load for now. */
  readonly refused: () => readonly number[];
  /** Called after each renewal: the lease is valid, perhaps after a lapse. */
  readonly onRenewed: () => void;
  /**
   * The others take over the partitions of this process, which continues as a new member without
   * any.
   */
  readonly onRevoked: () => void;
  /**
   * The members' bucket went back in time: the key of this member was at an older revision than one
   * that was acknowledged.
   */
  readonly onWentBack: (sequences: WentBack) => void;
  /** Called after each look at the members and each notice: they may have changed. */
  readonly onLooked: () => void;
  /** Sends a notice to the other processes. It may be lost. */
  readonly announce: (notice: string) => void;
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #ended = new AbortController();
  readonly #others = new Others();
  #id: MemberId;
  #state: 'live' | 'leaving' = 'live';
  #revision = 0;
  /** The newest revision of this member's key that was acknowledged. */
  #acknowledged = 0;
  #renewals = 0;
  #validUntilMs = -Infinity;
  /**
   * The monotonic time at which the current run of successful renewals began; `undefined` if the
   * last renewal failed.
   */
  #succeedingSinceMs: number | undefined;
  #renewing: Promise<void> = Promise.resolve();
  #running: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  #wantsAll = false;
  /** The monotonic time from which on the next look reads all members. */
  #listDueMs = -Infinity;
  /** The members that the last look has read. */
  #seen: readonly MemberId[] = [];
  /** This member's record as it is stored. */
  #stored: Pick<StoredMember, 'value' | 'revision'> | undefined;
  #announced = '';

  constructor(options: MembershipOptions) {
    this.#options = options;
    this.#id = options.newId();
  }

  get id(): MemberId {
    return this.#id;
  }

  /** The lease of the member that this process is now. A revoked lease is never valid again. */
  lease(): Lease {
    const member = this.#id;
    const { clock } = this.#options;
    return { member, isValid: () => this.#id === member && clock.monotonicMs() < this.#validUntilMs };
  }

  /** The members that may own partitions, this process included. */
  live(): MemberId[] {
    const others = this.#others.entries().flatMap(([id, { record }]) => (record?.state === 'live' ? [id] : []));
    return this.#state === 'live' ? [this.#id, ...others] : others;
  }

  /** The live members that do not refuse this partition. */
  candidates(partition: number): MemberId[] {
    const mayHave = (id: MemberId): boolean =>
      id === this.#id
        ? !this.#options.refused().includes(partition)
        : this.#others.get(id)?.record?.refused?.includes(partition) !== true;
    return this.live().filter(mayHave);
  }

  /** `true` if another member has been live long enough to receive partitions. */
  isSettled(id: MemberId): boolean {
    const other = this.#others.get(id);
    if (other?.record?.state !== 'live') return false;
    return this.#options.clock.monotonicMs() - other.knownSinceMs >= memberSettledMs;
  }

  /** `true` if the record of another member that is not dead names the partition. */
  isClaimed(partition: number): boolean {
    return this.#others.values().some((other) => claims(other, partition));
  }

  /** The same, but only for members that this process saw renew their lease. */
  isServed(partition: number): boolean {
    return this.#others.values().some((other) => isRenewing(other) && claims(other, partition));
  }

  /** Other members that have stopped renewing their leases, or so it seems. */
  silent(): ReadonlySet<MemberId> {
    if (!this.lease().isValid()) return new Set();
    return new Set(
      this.#others.entries().flatMap(([id, other]) => (isSilent(other, this.#succeedingSinceMs) ? [id] : [])),
    );
  }

  /**
   * `true` if the partition is named by a record of these members, and of no other that may live.
   */
  isClaimedBy(partition: number, members: ReadonlySet<MemberId>): boolean {
    const claimants = this.#others.entries().filter(([, other]) => claims(other, partition));
    return claimants.length > 0 && claimants.every(([id]) => members.has(id));
  }

  /** Joins; resolves when the lease is valid and the other members are known. */
  async start(): Promise<void> {
    while (!this.lease().isValid() && !this.#ended.signal.aborted) {
      await this.#renew();
      if (!this.lease().isValid()) await sleep(limits.leaseRenewMs, this.#ended.signal);
    }
    await this.look();
    this.#running = this.#run();
  }

  /** Tells the others to take over the partitions of this process. */
  async leave(): Promise<void> {
    this.#state = 'leaving';
    await this.#renew();
  }

  /** Ends the lease: from now on the others may take every partition. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#running;
    await this.#renewing;
    this.#validUntilMs = -Infinity;
    try {
      await this.#declareDead(this.#id, this.#revision);
    } catch (error) {
      this.#options.log.warn('lease_end_failed', { member: this.#id, error });
    }
  }

  /**
   * Ends this lease, because the journal of the member was sealed, or went back in time. This
   * process goes on as a new member, and every partition is taken again.
   */
  abandon(member: MemberId): Promise<void> {
    this.#renewing = this.#renewing.then(() => this.#abandonOnce(member));
    return this.#renewing;
  }

  async #abandonOnce(member: MemberId): Promise<void> {
    if (this.#id !== member || this.#ended.signal.aborted) return;
    const { log } = this.#options;
    const revision = this.#revision;
    this.#revoked();
    try {
      await this.#declareDead(member, revision);
    } catch (error) {
      log.warn('lease_end_failed', { member, error });
    }
  }

  #revoked(): void {
    const { log, newId, onRevoked } = this.#options;
    log.warn('lease_revoked', { member: this.#id });
    this.#succeedingSinceMs = undefined;
    this.#validUntilMs = -Infinity;
    this.#id = newId();
    this.#revision = 0;
    this.#acknowledged = 0;
    this.#stored = undefined;
    this.#announced = '';
    onRevoked();
  }

  /** Reads all members now. */
  look(): Promise<void> {
    this.#wantsAll = true;
    return this.#lookAround();
  }

  /** Called with a notice of another process, or of this one. */
  handleNotice(notice: Uint8Array): void {
    const heard = heardIn(notice);
    if (heard === undefined) {
      void this.look();
      return;
    }
    this.#learn([heard]);
    // Before the first list this process knows too few members to place partitions.
    if (this.#running !== undefined) this.#options.onLooked();
  }

  /** Tells the others that there is something to do, such as a partition to take. */
  announce(): void {
    this.#options.announce(this.#stored === undefined ? '' : noticeOf(this.#stored));
  }

  /**
   * `true` if a member is dead in the store. A stale read is enough, because dead is final. If
   * there is no key, this makes one that says dead, so that the member cannot join later.
   * @throws if the store does not answer.
   */
  async isDead(id: MemberId): Promise<boolean> {
    const { value } = await this.#options.store.read(id);
    if (value !== null) return recordOf(value)?.state === 'dead';
    return this.#declareDead(id, 0);
  }

  /** Two separate loops: a replica that does not answer a look must not delay a renewal. */
  async #run(): Promise<void> {
    await Promise.all([
      this.#again(() => this.#renew()),
      this.#again(async () => {
        await this.#lookAround();
        await this.#declareTheDead();
      }),
    ]);
  }

  async #again(work: () => Promise<void>): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#ended;
    let nextMs = clock.monotonicMs();
    while (!signal.aborted) {
      nextMs = Math.max(nextMs + limits.leaseRenewMs, clock.monotonicMs());
      await work();
      await sleep(nextMs - clock.monotonicMs(), signal);
    }
  }

  // This process's lease

  #renew(): Promise<void> {
    this.#renewing = this.#renewing.then(() => this.#renewOnce());
    return this.#renewing;
  }

  async #renewOnce(): Promise<void> {
    const { store, clock, log, serving, refused } = this.#options;
    const id = this.#id;
    const record = {
      id,
      state: this.#state,
      renewal: ++this.#renewals,
      partitions: serving(),
      refused: refused(),
    } satisfies MemberRecord;
    // The time before the renewal is sent: every observer's clock for it starts later.
    const startedMs = clock.monotonicMs();
    const value = encodeValue(record);
    const before = this.#revision;
    try {
      const revision = await store.replace(id, value, before);
      if (revision === undefined) {
        await this.#afterRefusal();
        return;
      }
      this.#look(before, revision);
      this.#renewed(revision, startedMs);
      this.#tell({ value, revision }, contentOf(record));
    } catch (error) {
      this.#succeedingSinceMs = undefined;
      log.warn('lease_renew_failed', { member: id, error });
    }
  }

  /**
   * A read alone may be stale, from a leader that is cut off. But this one has replaced the key at
   * an older revision than one that it had acknowledged.
   */
  #look(before: number, revision: number): void {
    const seen = this.#acknowledged;
    this.#acknowledged = revision;
    if (before >= seen) return;
    // The others will have older revisions than the known ones for a while.
    this.#others.forget();
    this.#listDueMs = -Infinity;
    this.#options.onWentBack({ seen, got: before });
  }

  #renewed(revision: number, startedMs: number): void {
    this.#revision = revision;
    this.#validUntilMs = startedMs + limits.leaseMs;
    // While it could not renew, notices may have been lost too.
    if (this.#succeedingSinceMs === undefined) this.#listDueMs = -Infinity;
    this.#succeedingSinceMs ??= this.#options.clock.monotonicMs();
    this.#options.onRenewed();
  }

  /** Announces a change of content at once, because the others read most keys rarely. */
  #tell(stored: Pick<StoredMember, 'value' | 'revision'>, content: string): void {
    this.#stored = stored;
    if (content === this.#announced) return;
    this.#announced = content;
    this.announce();
  }

  /**
   * Either another member declared this one dead, or the key was moved by an earlier renewal whose
   * answer was lost.
   */
  async #afterRefusal(): Promise<void> {
    const { store } = this.#options;
    this.#succeedingSinceMs = undefined;
    const { revision, value } = await store.read(this.#id);
    const record = value === null ? undefined : recordOf(value);
    if (record !== undefined && record.state !== 'dead') {
      this.#revision = revision;
      return;
    }
    this.#revoked();
  }

  // The others

  async #lookAround(): Promise<void> {
    this.#looking ??= this.#lookUntilSeen().finally(() => (this.#looking = undefined));
    await this.#looking;
  }

  async #lookUntilSeen(): Promise<void> {
    do {
      try {
        await this.#lookOnce();
      } catch (error) {
        this.#options.log.warn('members_read_failed', { error });
      }
    } while (this.#wantsAll && !this.#ended.signal.aborted);
    this.#options.onLooked();
  }

  /**
   * Reads the members that this one watches; from time to time, and if that is asked for, all. The
   * more members there are, the rarer are the lists, so that both cost the same for each member.
   */
  async #lookOnce(): Promise<void> {
    const { store, clock, announce } = this.#options;
    if (this.#wantsAll) this.#listDueMs = -Infinity;
    this.#wantsAll = false;
    const isDue = clock.monotonicMs() >= this.#listDueMs;
    const watched = isDue ? undefined : this.#others.watchedBy(this.#id, this.#succeedingSinceMs);
    const stored = watched === undefined ? await store.list() : await store.readSome(watched);
    const changed = this.#learn(stored);
    this.#seen = stored.map(({ id }) => id);
    if (watched === undefined) {
      this.#others.forgetAllBut(stored);
      this.#listDueMs = clock.monotonicMs() + stored.length * memberListPaceMs;
    } else {
      // Its notice was lost, or the member that declared it dead has died. Few members read this
      // key.
      for (const one of changed) announce(noticeOf(one));
    }
  }

  /** @returns those that say something new */
  #learn(stored: readonly StoredMember[]): StoredMember[] {
    const nowMs = this.#options.clock.monotonicMs();
    return stored.filter((one) => one.id !== this.#id && this.#others.learn(one, nowMs));
  }

  /**
   * Only while this process can renew its own lease: during a fail-over of the store no member can
   * renew, and none must be declared dead for that.
   */
  async #declareTheDead(): Promise<void> {
    const { clock, log, onLooked } = this.#options;
    for (const id of this.#seen) {
      const other = this.#others.get(id);
      if (other === undefined || other.record?.state === 'dead' || this.#succeedingSinceMs === undefined) continue;
      const sinceMs = Math.max(other.unchangedSinceMs, this.#succeedingSinceMs);
      if (clock.monotonicMs() - sinceMs < limits.leaseUnchangedMs) continue;
      try {
        const isDead = await this.#declareDead(id, other.revision);
        if (!isDead) {
          await this.#lookAgain(id, other.revision);
          continue;
        }
        log.warn('member_dead', { member: id });
        onLooked();
      } catch (error) {
        log.warn('member_declare_failed', { member: id, error });
      }
    }
  }

  /**
   * The key has moved: it was renewed, or the store went back in time and has it at an older
   * revision. Then what reads say of it is right, and what was seen would count for as long as
   * revisions are below that.
   */
  async #lookAgain(id: MemberId, seen: number): Promise<void> {
    const { store, clock } = this.#options;
    const stored = await store.read(id);
    if (stored.revision < seen) this.#others.replace(id, stored, clock.monotonicMs());
  }

  async #declareDead(id: MemberId, expected: number): Promise<boolean> {
    const { store, announce } = this.#options;
    const value = deadRecord(id);
    const revision = await store.replace(id, value, expected, { ttlMs: deadMemberTtlMs });
    if (revision === undefined) return false;
    this.#learn([{ id, value, revision }]);
    announce(noticeOf({ value, revision }));
    return true;
  }
}
