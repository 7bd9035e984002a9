/**
 * Token buckets: so many requests a second for a tenant, so many failed authentications for an
 * address. Each gateway decides from its own memory; Redis tells it what the others let through for
 * the same tenant (redis.ts), and that is charged a fraction of a second later. Redis may lie: a
 * charge never takes the last `limits.rateLocalShare` of a tenant's rate, and never adds to it.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import { limits } from '../../schemas/limits.ts';

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  /** Left of the rate after what this gateway let through. */
  tokens: number;
  /** Left after what the others let through, too. */
  common: number;
  /** Left of the share that charges do not touch. */
  floor: number;
  filledAtMs: number;
  /** Taken here since the last report to the others. */
  takenUntold: number;
}

/** 0: go on. Otherwise the seconds until there is room. */
export type RetryAfterSeconds = number;

export class RateLimiter {
  readonly #rate: Rate;
  readonly #clock: Clock;
  readonly #buckets = new LRUCache<string, Bucket>({ max: limits.rateBuckets });
  readonly #untold = new Set<string>();
  readonly #telling: boolean;

  /** `shared`: keep account of what is reported to the others. */
  constructor(rate: Rate, clock: Clock, options: { readonly shared: boolean }) {
    this.#rate = rate;
    this.#clock = clock;
    this.#telling = options.shared;
  }

  /** Takes one, if there is one. */
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

  /** Whether there is one, taking none. */
  peek(key: string): RetryAfterSeconds {
    return this.#buckets.get(key) === undefined ? 0 : this.#waitOf(this.#filled(key));
  }

  /**
   * What others took. The debt is bounded by one burst, so that a tenant is never held to its share
   * for long.
   */
  charge(key: string, amount: number): void {
    const bucket = this.#filled(key);
    bucket.common = Math.max(-this.#rate.burst, bucket.common - amount);
  }

  /** What was taken here since the last call, by key. */
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
    const shared =
      common >= 1 ? 0 : Math.min(waitS(common, perSecond), waitS(floor, perSecond * limits.rateLocalShare));
    return Math.max(1, Math.ceil(Math.max(waitS(tokens, perSecond), shared)));
  }

  #filled(key: string): Bucket {
    const nowMs = this.#clock.monotonicMs();
    const { perSecond, burst } = this.#rate;
    const floorBurst = Math.max(1, burst * limits.rateLocalShare);
    const known = this.#buckets.get(key);
    if (known === undefined) {
      const bucket: Bucket = { tokens: burst, common: burst, floor: floorBurst, filledAtMs: nowMs, takenUntold: 0 };
      this.#buckets.set(key, bucket);
      return bucket;
    }
    const grown = ((nowMs - known.filledAtMs) / 1000) * perSecond;
    known.tokens = Math.min(burst, known.tokens + grown);
    known.common = Math.min(burst, known.common + grown);
    known.floor = Math.min(floorBurst, known.floor + grown * limits.rateLocalShare);
    known.filledAtMs = nowMs;
    return known;
  }
}
