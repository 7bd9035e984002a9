/**
 * Token buckets: so many requests a second for a tenant, so many failed authentications for an address. Each gateway
 * decides from its own memory; what the other gateways let through for the same tenant is taken from the bucket when it is
 * heard of (shared-rates.ts), a fraction of a second later.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';
import { limits } from '../schemas/limits.ts';

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  filledAtMs: number;
  /** Taken here since the last time it was told to the others. */
  takenUntold: number;
}

/** 0: go on. Otherwise in how many seconds there will be room. */
export type RetryAfterSeconds = number;

export class RateLimiter {
  readonly #rate: Rate;
  readonly #clock: Clock;
  readonly #buckets = new LRUCache<string, Bucket>({ max: limits.rateBuckets });
  readonly #untold = new Set<string>();
  readonly #telling: boolean;

  /** `shared`: keep account of what others should hear of. */
  constructor(rate: Rate, clock: Clock, options: { readonly shared: boolean }) {
    this.#rate = rate;
    this.#clock = clock;
    this.#telling = options.shared;
  }

  /** Takes one, if there is one. */
  take(key: string): RetryAfterSeconds {
    const bucket = this.#filled(key);
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / this.#rate.perSecond));
    bucket.tokens--;
    if (this.#telling) {
      bucket.takenUntold++;
      this.#untold.add(key);
    }
    return 0;
  }

  /** Whether there is one, taking none. */
  peek(key: string): RetryAfterSeconds {
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return 0;
    const { tokens } = this.#filled(key);
    return tokens >= 1 ? 0 : Math.max(1, Math.ceil((1 - tokens) / this.#rate.perSecond));
  }

  /** What others took. The debt is bounded by one burst, so that a tenant is never shut out for long. */
  charge(key: string, amount: number): void {
    const bucket = this.#filled(key);
    bucket.tokens = Math.max(-this.#rate.burst, bucket.tokens - amount);
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

  #filled(key: string): Bucket {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#buckets.get(key);
    if (known === undefined) {
      const bucket: Bucket = { tokens: this.#rate.burst, filledAtMs: nowMs, takenUntold: 0 };
      this.#buckets.set(key, bucket);
      return bucket;
    }
    const grown = known.tokens + ((nowMs - known.filledAtMs) / 1000) * this.#rate.perSecond;
    known.tokens = Math.min(this.#rate.burst, grown);
    known.filledAtMs = nowMs;
    return known;
  }
}
