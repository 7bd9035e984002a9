/**
 * This process as one of the members (ADR 8). It renews its own lease, watches the others renew
 * theirs, and declares a member dead by compare-and-set when that stops. As long as all clocks run
 * at the same rate, two promises hold: no member declares a valid lease dead, and a lease that was
 * declared dead is no longer valid.
 */
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { sleep } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { decodeValue, encodeText } from '../runtime/journal/codec.ts';
import type { Lease } from '../runtime/lease.ts';
import type { NextOwner } from '../runtime/ownership.ts';
import type { MemberStore } from './member-store.ts';

const partitionNumbers = Type.Unsafe<readonly number[]>(Type.Array(Type.Integer()));
const MemberRecord = Type.Object({
  id: Type.Unsafe<MemberId>(Type.String()),
  /** Leaving: it takes no more partitions, and hands over those it has. Dead is final. */
  state: Type.Unsafe<'live' | 'leaving' | 'dead'>(Type.String()),
  /** Counts renewals, so that each record differs from the one before. */
  renewal: Type.Integer(),
  /** The partitions that it serves, as a hint. The epoch record of each partition decides. */
  partitions: partitionNumbers,
  /** Partitions that it cannot load; another member tries. Absent in records from before 0.1.0. */
  refused: Type.Optional(partitionNumbers),
  /** It reads journals of members. Absent in records of release 0.1.0. */
  journals: Type.Optional(Type.Boolean()),
});
export type MemberRecord = Readonly<Static<typeof MemberRecord>>;
const memberShape = Compile(MemberRecord);

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
  /** Called after each look at the members, which may have changed. */
  readonly onLooked: () => void;
}

/** Another member, as this process sees it. */
interface Other {
  readonly revision: number;
  /** Undefined: the record is unreadable. */
  readonly record: MemberRecord | undefined;
  /** When this process first saw the key at this revision (monotonic). */
  readonly unchangedSinceMs: number;
  readonly knownSinceMs: number;
}

const claims = ({ record }: Other, partition: number): boolean =>
  record !== undefined && record.state !== 'dead' && record.partitions.includes(partition);

const deadRecord = (id: MemberId): string =>
  encodeText({ id, state: 'dead', renewal: 0, partitions: [] } satisfies MemberRecord);

export class Membership {
  readonly #options: MembershipOptions;
  readonly #ended = new AbortController();
  #others: ReadonlyMap<MemberId, Other> = new Map();
  #id: MemberId;
  #state: 'live' | 'leaving' = 'live';
  #revision = 0;
  #renewals = 0;
  #validUntilMs = -Infinity;
  /**
   * When the current run of successful renewals began (monotonic); undefined: the last renewal
   * failed.
   */
  #succeedingSinceMs: number | undefined;
  #renewing: Promise<void> = Promise.resolve();
  #running: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  #looksAgain = false;

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
    const others = [...this.#others].filter(([, { record }]) => record?.state === 'live').map(([id]) => id);
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

  /** Whether another member has been live long enough to receive partitions. */
  isSettled(id: MemberId): boolean {
    const other = this.#others.get(id);
    if (other?.record?.state !== 'live') return false;
    return this.#options.clock.monotonicMs() - other.knownSinceMs >= limits.memberSettledMs;
  }

  /**
   * The release of the other members. One of release 0.1.0 can't read journals, and counts first.
   */
  nextOwner(): NextOwner {
    const records = [...this.#others.values()].flatMap(({ record }) => (record === undefined ? [] : [record]));
    const others = records.filter(({ state }) => state !== 'dead');
    if (others.some(({ journals }) => journals !== true)) return 'last release';
    return others.length > 0 ? 'this release' : 'nobody';
  }

  /** Whether the record of another member that is not dead names the partition. */
  isClaimed(partition: number): boolean {
    return [...this.#others.values()].some((other) => claims(other, partition));
  }

  /** The same, but only for members that this process saw renew their lease. */
  isServed(partition: number): boolean {
    return [...this.#others.values()].some(
      (other) => other.unchangedSinceMs > other.knownSinceMs && claims(other, partition),
    );
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
      await this.#options.store.replace(this.#id, deadRecord(this.#id), this.#revision, {
        ttlMs: limits.deadMemberTtlMs,
      });
    } catch (error) {
      this.#options.log.warn('lease_not_ended', { member: this.#id, error });
    }
  }

  /**
   * Ends this lease, because the journal of the member was sealed: this process goes on as a new
   * member, and every partition is taken again.
   */
  abandon(member: MemberId): void {
    this.#renewing = this.#renewing.then(() => this.#abandonOnce(member));
  }

  async #abandonOnce(member: MemberId): Promise<void> {
    if (this.#id !== member || this.#ended.signal.aborted) return;
    const { store, log } = this.#options;
    const revision = this.#revision;
    this.#revoked();
    try {
      await store.replace(member, deadRecord(member), revision, { ttlMs: limits.deadMemberTtlMs });
    } catch (error) {
      log.warn('lease_not_ended', { member, error });
    }
  }

  #revoked(): void {
    const { log, newId, onRevoked } = this.#options;
    log.warn('lease_revoked', { member: this.#id });
    this.#succeedingSinceMs = undefined;
    this.#validUntilMs = -Infinity;
    this.#id = newId();
    this.#revision = 0;
    onRevoked();
  }

  /** Looks at the others now. */
  async look(): Promise<void> {
    if (this.#looking !== undefined) {
      this.#looksAgain = true;
      return this.#looking;
    }
    this.#looking = this.#lookUntilSeen();
    try {
      await this.#looking;
    } finally {
      this.#looking = undefined;
    }
  }

  /**
   * Whether a member is dead, as the store has it. A stale read is enough, because dead is final.
   * If there is no key, this makes one that says dead, so that the member cannot join later.
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
        await this.look();
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
      journals: true,
    } satisfies MemberRecord;
    // The time before the renewal is sent: every observer's clock for it starts later.
    const startedMs = clock.monotonicMs();
    try {
      const revision = await store.replace(id, encodeText(record), this.#revision);
      if (revision === undefined) await this.#afterRefusal();
      else this.#renewed(revision, startedMs);
    } catch (error) {
      this.#succeedingSinceMs = undefined;
      log.warn('lease_not_renewed', { member: id, error });
    }
  }

  #renewed(revision: number, startedMs: number): void {
    this.#revision = revision;
    this.#validUntilMs = startedMs + limits.leaseMs;
    this.#succeedingSinceMs ??= this.#options.clock.monotonicMs();
    this.#options.onRenewed();
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

  async #lookUntilSeen(): Promise<void> {
    do {
      this.#looksAgain = false;
      try {
        await this.#lookOnce();
      } catch (error) {
        this.#options.log.warn('members_not_seen', { error });
      }
    } while (this.#looksAgain && !this.#ended.signal.aborted);
    this.#options.onLooked();
  }

  async #lookOnce(): Promise<void> {
    const { store, clock } = this.#options;
    const stored = await store.list();
    const nowMs = clock.monotonicMs();
    const others = new Map<MemberId, Other>();
    for (const { id, value, revision } of stored) {
      if (id === this.#id) continue;
      const before = this.#others.get(id);
      // A replica that lags may answer with an older revision.
      const isNewer = before === undefined || revision > before.revision;
      others.set(
        id,
        isNewer
          ? { revision, record: recordOf(value), unchangedSinceMs: nowMs, knownSinceMs: before?.knownSinceMs ?? nowMs }
          : before,
      );
    }
    this.#others = others;
  }

  /**
   * Only while this process can renew its own lease: during a fail-over of the store no member can
   * renew, and none must be declared dead for that.
   */
  async #declareTheDead(): Promise<void> {
    const { clock, log, onLooked } = this.#options;
    for (const [id, other] of this.#others) {
      if (other.record?.state === 'dead' || this.#succeedingSinceMs === undefined) continue;
      const sinceMs = Math.max(other.unchangedSinceMs, this.#succeedingSinceMs);
      if (clock.monotonicMs() - sinceMs < limits.leaseUnchangedMs) continue;
      try {
        const isDead = await this.#declareDead(id, other.revision);
        if (!isDead) continue;
        log.warn('member_dead', { member: id });
        this.#others = new Map([...this.#others].filter(([key]) => key !== id));
        onLooked();
      } catch (error) {
        log.warn('member_not_declared_dead', { member: id, error });
      }
    }
  }

  async #declareDead(id: MemberId, revision: number): Promise<boolean> {
    const { store } = this.#options;
    return (await store.replace(id, deadRecord(id), revision, { ttlMs: limits.deadMemberTtlMs })) !== undefined;
  }
}

function recordOf(value: string): MemberRecord | undefined {
  const decoded = decodeValue(value, memberShape);
  return decoded.ok ? decoded.value : undefined;
}
