/**
 * Keeps the revocations up to date: asks the owner of every partition at start, every minute, and
 * when a doorbell rings. An owner answers with the changes since this gateway's cursor, in pages.
 * Until the owner of a tenant's partition has answered once, it is unknown which tokens of that
 * tenant are revoked, and the gateway refuses them. The same holds for a tenant whose record is
 * damaged, or whose revocations do not fit in memory.
 *
 * A doorbell comes through Redis, so anyone who reaches Redis can ring it. It carries no content:
 * the gateway trusts only owners. Rings for one partition are merged and cost its owner at most one
 * ask in `limits.revocationDoorbellMs`.
 */
import { setMaxListeners } from 'node:events';
import { Doorbell } from '../../lib/time/doorbell.ts';
import { jitter, sleep } from '../../lib/time/backoff.ts';
import { CautiousClock, noReading } from '../../lib/time/cautious-clock.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { hours, seconds } from '../../schemas/limits/units.ts';
import type { Revocation } from '../../schemas/api/tenant.ts';
import type { PartitionClient } from '../../lib/rpc/partition-client.ts';
import type { RevocationPage } from '../../schemas/wire/answers.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { Revocations } from './revocations.ts';

/** A gateway trusts a wall clock that has not jumped for this long. */
const clockSettleMs = 24 * hours;
/** The wait after a failed read of the revocations of one owner. */
const revocationRetryMs = 500;
/** The deadline for a page of revocations. */
const revocationReadMs = 5 * seconds;

export type FeedClient = Pick<PartitionClient, 'partitions' | 'partitionFor' | 'ask'>;

/** The state of a tenant's revocations here; `damaged` and `too_many` concern this tenant alone. */
export type Knowledge = 'known' | 'unheard' | 'damaged' | 'too_many';

/** The reports of one owner. */
interface Heard {
  readonly doorbell: Doorbell;
  isComplete: boolean;
  /** `next` of the last page; `null` to ask for all. */
  after: string | null;
  readonly unreadable: Set<TenantId>;
  /** Tenants whose revocations did not fit. */
  readonly tooMany: Set<TenantId>;
  /** While the owner lists everything: the tenants of the two sets above that it has confirmed. */
  confirmed: Set<TenantId> | undefined;
}

const nothingHeard = (): Heard => ({
  doorbell: new Doorbell(),
  isComplete: false,
  after: null,
  unreadable: new Set(),
  tooMany: new Set(),
  confirmed: undefined,
});

export class RevocationFeed {
  readonly #client: FeedClient;
  readonly #revocations: Revocations;
  readonly #clock: Clock;
  /** A wall clock that jumps must not drop a revocation: owners report each only once. */
  readonly #expiry: CautiousClock;
  readonly #log: Log;
  readonly #heard: readonly Heard[];
  readonly #stop = new AbortController();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(client: FeedClient, revocations: Revocations, dependencies: { clock: Clock; log: Log }) {
    this.#client = client;
    this.#revocations = revocations;
    this.#clock = dependencies.clock;
    this.#expiry = new CautiousClock(dependencies.clock, clockSettleMs, noReading);
    this.#log = dependencies.log;
    this.#heard = Array.from({ length: client.partitions }, nothingHeard);
  }

  /** True if every partition has answered. */
  complete(): boolean {
    return this.#heard.every(({ isComplete }) => isComplete);
  }

  /** The state of this tenant's revocations here. */
  knowledgeOf(tenant: TenantId): Knowledge {
    const heard = this.#heard[this.#client.partitionFor(tenant)];
    if (heard?.isComplete !== true) return 'unheard';
    if (heard.unreadable.has(tenant)) return 'damaged';
    return heard.tooMany.has(tenant) ? 'too_many' : 'known';
  }

  tenantsRefused(): number {
    return this.#heard.reduce((sum, { unreadable, tooMany }) => sum + unreadable.size + tooMany.size, 0);
  }

  add(revocation: Revocation): void {
    if (this.#revocations.add(revocation, this.#expiry.nowMs())) return;
    const heard = this.#heard[this.#client.partitionFor(revocation.tenant)];
    if (heard === undefined) return;
    const { tenant } = revocation;
    if (!heard.tooMany.has(tenant)) {
      this.#log.error('revocations_full', { tenant, held: this.#revocations.count() });
    }
    heard.tooMany.add(tenant);
    heard.confirmed?.add(tenant);
  }

  start(): void {
    // Every partition has its own wait.
    setMaxListeners(0, this.#stop.signal);
    this.#heard.forEach((heard, partition) => void this.#follow(partition, heard));
    this.#sweeper = setInterval(() => this.#revocations.sweep(this.#expiry.nowMs()), limits.revocationPollMs).unref();
  }

  stop(): void {
    this.#stop.abort();
    clearInterval(this.#sweeper);
    this.ringAll();
  }

  /** Asks the owner of this partition soon. Ignores a partition that does not exist. */
  ring(partition: number): void {
    this.#heard[partition]?.doorbell.ring();
  }

  ringAll(): void {
    for (const { doorbell } of this.#heard) doorbell.ring();
  }

  async #follow(partition: number, heard: Heard): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const isWhole = await this.#readPages(partition, heard);
      // A ring from here on is kept: its revocation may be newer than the answer.
      await sleep(limits.revocationDoorbellMs, this.#stop.signal);
      await heard.doorbell.wait(jitter(isWhole ? limits.revocationPollMs : revocationRetryMs));
    }
  }

  /** @returns true if the owner has reported everything. */
  async #readPages(partition: number, heard: Heard): Promise<boolean> {
    // A tenant whose revocations did not fit may fit now: list everything again.
    if (heard.tooMany.size > 0 && heard.confirmed === undefined) heard.after = null;
    while (!this.#stop.signal.aborted) {
      const page = await this.#ask(partition, heard.after);
      if (page === undefined) return false;
      this.#take(partition, heard, page);
      if (!page.more) return true;
    }
    return false;
  }

  async #ask(partition: number, after: string | null): Promise<RevocationPage | undefined> {
    const question = { type: 'revocation.list', partition, after, rid: 'revocations' } as const;
    const { code, body } = await this.#client.ask('watch', question, this.#clock.monotonicMs() + revocationReadMs);
    if (code !== 'ok') return undefined;
    try {
      return decodeAnswer('revocation.list', body);
    } catch (error) {
      this.#log.error('revocations_malformed', { partition, error });
      return undefined;
    }
  }

  #take(partition: number, heard: Heard, { data, unreadable, whole, more, next }: RevocationPage): void {
    if (whole) heard.confirmed = new Set();
    for (const revocation of data) {
      heard.unreadable.delete(revocation.tenant);
      this.add(revocation);
    }
    for (const tenant of unreadable) {
      if (!heard.unreadable.has(tenant)) this.#log.error('revocations_unreadable', { partition, tenant });
      heard.unreadable.add(tenant);
      heard.confirmed?.add(tenant);
    }
    heard.after = next;
    if (more) return;
    if (heard.confirmed !== undefined) {
      for (const set of [heard.unreadable, heard.tooMany]) {
        for (const tenant of set) if (!heard.confirmed.has(tenant)) set.delete(tenant);
      }
      heard.confirmed = undefined;
    }
    heard.isComplete = true;
  }
}
