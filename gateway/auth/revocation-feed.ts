/**
 * Keeps the revocations up to date: asks the owner of every partition at start and every minute, and hears the news in
 * between through Redis. Until the owner of a tenant's partition has been heard once, whether a token of that tenant is
 * revoked can't be told, and it is not served.
 */
import { jitter, sleep } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { Revocation } from '../../schemas/tenant.ts';
import type { Coalescer } from '../coalescer.ts';
import { decodeRevocations, type Revocations } from './revocations.ts';

const retryMs = 500;
const askMs = 5_000;

export class RevocationFeed {
  readonly #coalescer: Coalescer;
  readonly #revocations: Revocations;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #heard: Set<number> = new Set();
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #overflowed = false;

  constructor(coalescer: Coalescer, revocations: Revocations, dependencies: { clock: Clock; log: Log }) {
    this.#coalescer = coalescer;
    this.#revocations = revocations;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log;
  }

  /** Whether every partition has been heard. */
  complete(): boolean {
    return this.#heard.size === this.#coalescer.partitions && !this.#overflowed;
  }

  /** Whether it can be told that a token of this tenant is revoked. */
  covers(tenant: string): boolean {
    return this.complete() || (!this.#overflowed && this.#heard.has(this.#coalescer.partitionFor(tenant)));
  }

  add(revocation: Revocation): void {
    if (this.#revocations.add(revocation, this.#clock.nowMs())) return;
    if (!this.#overflowed) this.#log.error('revocations_full', { held: this.#revocations.count() });
    this.#overflowed = true;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#stop.abort();
    this.#wake.abort();
  }

  /** Something may have been missed: ask now. */
  refresh(): void {
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      const partitions = Array.from({ length: this.#coalescer.partitions }, (_, partition) => partition);
      const heard = await Promise.all(partitions.map((partition) => this.#ask(partition)));
      this.#revocations.sweep(this.#clock.nowMs());
      const pauseMs = heard.every(Boolean) ? limits.revocationPollMs : retryMs;
      await sleep(jitter(pauseMs), this.#wake.signal);
    }
  }

  async #ask(partition: number): Promise<boolean> {
    const question = { type: 'revocation.list', partition, rid: 'revocations' } as const;
    const { code, body } = await this.#coalescer.ask('watch', question, this.#clock.monotonicMs() + askMs);
    if (code !== 'ok') return false;
    try {
      for (const revocation of decodeRevocations(Buffer.from(body)).data) this.add(revocation);
    } catch (error) {
      this.#log.error('revocations_malformed', { partition, error });
      return false;
    }
    this.#heard.add(partition);
    return true;
  }
}
