/**
 * Token buckets: requests per second of a tenant, failed authentications of an address. Each
 * gateway decides from its own memory. It learns from Redis how many requests of the same tenant
 * the others admitted (redis.ts) and charges these a fraction of a second later. Redis may lie: a
 * charge never takes the last `rateLocalShare` of a tenant's rate, and never adds to it.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';

/**
 * The part of its rate and burst that a tenant keeps at each gateway, whatever counts Redis
 * reports.
 */
const rateLocalShare = 0.1;

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  /** Tokens left after the requests of this gateway. */
  tokens: number;
  /** Tokens left after the requests of all gateways. */
  common: number;
  /** Tokens left of the share that charges do not touch. */
  floor: number;
  filledAtMs: number;
  /** Tokens taken here since the last report to the other gateways. */
  takenUntold: number;
}

/** 0: admitted. Otherwise, the seconds until there is room. */
export type RetryAfterSeconds = number;

export class RateLimiter {
  readonly #rate: Rate;
  readonly #clock: Clock;
  readonly #buckets = new LRUCache<string, Bucket>({ max: limits.rateBuckets });
  readonly #untold = new Set<string>();
  readonly #telling: boolean;

  /** `shared`: also counts the tokens taken, for reports to the other gateways. */
  constructor(rate: Rate, clock: Clock, options: { readonly shared: boolean }) {
    this.#rate = rate;
    this.#clock = clock;
    this.#telling = options.shared;
  }

  /** Takes a token if there is one. */
  take(key: string): RetryAfterSeconds {
    const bucket = this.#filled(key);
    const waitS = this.#waitOf(bucket);
    if (waitS > 0) return waitS;
    bucket.tokens--;
    if (bucket.common >= 1) bucket.common--;
    else bucket.floor--;
    if (this.#telling) {
      bucket.takenUntold++;
      this.#untold.add(key);
    }
    return 0;
  }

  /** Like `take`, but takes nothing. */
  peek(key: string): RetryAfterSeconds {
    return this.#buckets.get(key) === undefined ? 0 : this.#waitOf(this.#filled(key));
  }

  /**
   * The remaining requests, the quota and its window in seconds, and the seconds until the quota is
   * full again. As this gateway sees it: others may have admitted more.
   */
  budget(key: string): {
    readonly left: number;
    readonly quota: number;
    readonly windowS: number;
    readonly fullS: number;
  } {
    const { perSecond, burst } = this.#rate;
    const { tokens, common, floor } = this.#filled(key);
    const left = Math.max(0, Math.floor(Math.min(tokens, Math.max(0, common) + floor)));
    const secondsFor = (requests: number): number => Math.ceil(requests / perSecond);
    return { left, quota: Math.floor(burst), windowS: Math.max(1, secondsFor(burst)), fullS: secondsFor(burst - left) };
  }

  /**
   * Charges the requests that the other gateways admitted. The debt is at most one burst, so that a
   * tenant is not limited to its local share for long.
   */
  charge(key: string, amount: number): void {
    const bucket = this.#filled(key);
    bucket.common = Math.max(-this.#rate.burst, bucket.common - amount);
  }

  /** Returns the number of tokens taken here since the last call, by key. */
  tellUntold(): Map<string, number> {
    const taken = new Map<string, number>();
    for (const key of this.#untold) {
      const bucket = this.#buckets.peek(key);
      if (bucket === undefined || bucket.takenUntold === 0) continue;
      taken.set(key, bucket.takenUntold);
      bucket.takenUntold = 0;
    }
    this.#untold.clear();
    return taken;
  }

  #waitOf({ tokens, common, floor }: Bucket): RetryAfterSeconds {
    if (tokens >= 1 && (common >= 1 || floor >= 1)) return 0;
    const { perSecond } = this.#rate;
    const waitS = (left: number, rate: number): number => Math.max(0, 1 - left) / rate;
    const shared = common >= 1 ? 0 : Math.min(waitS(common, perSecond), waitS(floor, perSecond * rateLocalShare));
    return Math.max(1, Math.ceil(Math.max(waitS(tokens, perSecond), shared)));
  }

  #filled(key: string): Bucket {
    const nowMs = this.#clock.monotonicMs();
    const { perSecond, burst } = this.#rate;
    const floorBurst = Math.max(1, burst * rateLocalShare);
    const known = this.#buckets.get(key);
    if (known === undefined) {
      const bucket: Bucket = { tokens: burst, common: burst, floor: floorBurst, filledAtMs: nowMs, takenUntold: 0 };
      this.#buckets.set(key, bucket);
      return bucket;
    }
    const grown = ((nowMs - known.filledAtMs) / 1000) * perSecond;
    known.tokens = Math.min(burst, known.tokens + grown);
    known.common = Math.min(burst, known.common + grown);
    known.floor = Math.min(floorBurst, known.floor + grown * rateLocalShare);
    known.filledAtMs = nowMs;
    return known;
  }
}
