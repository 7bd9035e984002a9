/**
 * This process among the others (ADR 8). It renews its own lease, and sees the others renew theirs;
 * whoever stops is declared dead by compare-and-set. Two promises hold on every clock that runs at
 * the same rate: a lease that is good here is declared dead by nobody, and one that was declared
 * dead is not good any more.
 */
import { sleep } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { MemberId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { decodeValue, encodeValue } from '../runtime/journal/codec.ts';
import type { Lease } from '../runtime/lease.ts';
import type { MemberStore } from './member-store.ts';

export interface MemberRecord {
  readonly id: MemberId;
  /** Leaving: it takes nothing any more, and gives what it has. Dead is for ever. */
  readonly state: 'live' | 'leaving' | 'dead';
  /** Counts its renewals, so that no two are alike. */
  readonly renewal: number;
  /** What it serves. For the others' information: what counts is each partition's epoch record. */
  readonly partitions: readonly number[];
  /** What it can't load, so that another tries. Absent in records from before 0.1.0. */
  readonly refused?: readonly number[];
}

export interface MembershipOptions {
  readonly store: MemberStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: () => MemberId;
  /** The partitions that it serves. */
  readonly held: () => readonly number[];
  /** The partitions that it can't load for now. */
  readonly refused: () => readonly number[];
  /** The lease is good, perhaps again. */
  readonly onRenewed: () => void;
  /**
   * The others take over what this process had. It goes on as another member, which has nothing
   * yet.
   */
  readonly onRevoked: () => void;
  /** The members were looked at; they may have changed. */
  readonly onLooked: () => void;
}

/** Another member, as far as it was seen from here. */
interface Other {
  readonly revision: number;
  /** Undefined: its record can't be read. */
  readonly record: MemberRecord | undefined;
  /** Monotonic: since when its key has been at this revision, or later. */
  readonly unchangedSinceMs: number;
  readonly knownSinceMs: number;
}

const claims = ({ record }: Other, partition: number): boolean =>
  record !== undefined && record.state !== 'dead' && record.partitions.includes(partition);

const deadRecord = (id: MemberId): string =>
  encodeValue({ id, state: 'dead', renewal: 0, partitions: [] } satisfies MemberRecord);

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
   * Monotonic: the first of the renewals that have succeeded without one between that did not;
   * undefined: the last did not.
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

  /** Of the member that this process is now. After it was revoked, another lease is needed. */
  lease(): Lease {
    const member = this.#id;
    const { clock } = this.#options;
    return { member, isValid: () => this.#id === member && clock.monotonicMs() < this.#validUntilMs };
  }

  /** Those that should have partitions, this one too. */
  live(): MemberId[] {
    const others = [...this.#others].filter(([, { record }]) => record?.state === 'live').map(([id]) => id);
    return this.#state === 'live' ? [this.#id, ...others] : others;
  }

  /** Those that may have this partition; this process too, unless it refuses it itself. */
  candidates(partition: number): MemberId[] {
    const mayHave = (id: MemberId): boolean =>
      id === this.#id
        ? !this.#options.refused().includes(partition)
        : this.#others.get(id)?.record?.refused?.includes(partition) !== true;
    return this.live().filter(mayHave);
  }

  /** Whether another has been live for long enough to be given something. */
  isSettled(id: MemberId): boolean {
    const other = this.#others.get(id);
    if (other?.record?.state !== 'live') return false;
    return this.#options.clock.monotonicMs() - other.knownSinceMs >= limits.memberSettledMs;
  }

  /** Whether another that is not dead says that it has the partition. */
  isClaimed(partition: number): boolean {
    return [...this.#others.values()].some((other) => claims(other, partition));
  }

  /** Whether another that was seen to renew its lease says that it has the partition. */
  isServed(partition: number): boolean {
    return [...this.#others.values()].some(
      (other) => other.unchangedSinceMs > other.knownSinceMs && claims(other, partition),
    );
  }

  /** Joins; resolves when the lease is good and the others are known. */
  async start(): Promise<void> {
    while (!this.lease().isValid() && !this.#ended.signal.aborted) {
      await this.#renew();
      if (!this.lease().isValid()) await sleep(limits.leaseRenewMs, this.#ended.signal);
    }
    await this.look();
    this.#running = this.#run();
  }

  /** Tells the others to take what this process has. */
  async leave(): Promise<void> {
    this.#state = 'leaving';
    await this.#renew();
  }

  /** Ends the lease: from now on everything may be taken. */
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
   * Whether a member is dead, in the word of the store. However stale a read is: dead is for ever;
   * and where there is no key, one is made, so that it can't come.
   * @throws where the store does not answer.
   */
  async isDead(id: MemberId): Promise<boolean> {
    const { value } = await this.#options.store.read(id);
    if (value !== null) return recordOf(value)?.state === 'dead';
    return this.#declareDead(id, 0);
  }

  /** Apart: a look at a replica that does not answer must not hold up a renewal. */
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

  // The own lease

  #renew(): Promise<void> {
    this.#renewing = this.#renewing.then(() => this.#renewOnce());
    return this.#renewing;
  }

  async #renewOnce(): Promise<void> {
    const { store, clock, log, held, refused } = this.#options;
    const id = this.#id;
    const record = {
      id,
      state: this.#state,
      renewal: ++this.#renewals,
      partitions: held(),
      refused: refused(),
    } satisfies MemberRecord;
    // Of its start: whoever sees it sees it later.
    const startedMs = clock.monotonicMs();
    try {
      const revision = await store.replace(id, encodeValue(record), this.#revision);
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

  /** Somebody has declared us dead, or it was an earlier renewal of ours whose answer was lost. */
  async #afterRefusal(): Promise<void> {
    const { store, log, newId, onRevoked } = this.#options;
    this.#succeedingSinceMs = undefined;
    const { revision, value } = await store.read(this.#id);
    const record = value === null ? undefined : recordOf(value);
    if (record !== undefined && record.state !== 'dead') {
      this.#revision = revision;
      return;
    }
    log.warn('lease_revoked', { member: this.#id });
    this.#validUntilMs = -Infinity;
    this.#id = newId();
    this.#revision = 0;
    onRevoked();
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
      // The answer of a replica that lags.
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
   * Only while this process itself can renew: in a fail-over of the store nobody can, and nobody is
   * dead of it.
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
  const decoded = decodeValue<MemberRecord>(value);
  return decoded.ok ? decoded.value : undefined;
}
