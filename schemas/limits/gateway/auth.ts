/** Tokens, issuers, revocations, rate limits and Redis. */
import { KiB, seconds, minutes, days } from '../units.ts';

export const auth = {
  tokenBytes: 8 * KiB,
  /** `sub` of a token. */
  subjectChars: 256,
  tokenCacheEntries: 20_000,
  tokenCacheTtlMs: 60 * seconds,
  jwksFreshMs: 10 * minutes,
  jwksUnknownKidMs: 30 * seconds,
  jwksFilePollMs: 1 * seconds,
  revocationPollMs: 60 * seconds,
  /**
   * The time between two asks to one owner that doorbells cause: anyone who reaches Redis can ring
   * at any rate.
   */
  revocationDoorbellMs: 250,
  /**
   * Revocations in a tenant's record; a gateway holds twice as many, because it may get duplicates.
   */
  revocationsPerTenant: 1000,
  /**
   * Greatest lead of an issuer's clock: a token that is revoked by its `jti` still stays refused.
   */
  issuerAheadMs: 1 * days,
  /** A token that lives longer is refused, so a revocation ends after this. */
  tokenLifeMaxMs: 400 * days,
  signingKeysPollMs: 60 * seconds,
  /** The time between two reads that tokens with unknown key ids cause. */
  signingKeysUnknownMs: 250,
  rateBuckets: 50_000,
  /**
   * The time between two warnings about an X-Forwarded-For that is not trusted, or names no
   * address.
   */
  forwardedWarnMs: 10 * minutes,
  /** Addresses for which a gateway caches whether they are trusted proxies, and their networks. */
  addressesRemembered: 4096,
  /** Doorbells a second; at a higher rate a gateway disconnects from Redis for `redisPauseMs`. */
  redisDoorbellsPerSecond: 1000,
  redisPauseMs: 5 * seconds,
} as const;
