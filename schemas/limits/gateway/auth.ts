/** Tokens, issuers, revocations, rate limits and Redis. */
import { KiB, MiB, seconds, minutes, days } from '../units.ts';

export const auth = {
  tokenBytes: 8 * KiB,
  tokenCacheEntries: 20_000,
  tokenCacheTtlMs: 60 * seconds,
  tokensVerifying: 256,
  jwksBytes: 1 * MiB,
  jwksFetchMs: 5 * seconds,
  jwksFreshMs: 10 * minutes,
  jwksUnknownKidMs: 30 * seconds,
  jwksBackoffMinMs: 1 * seconds,
  jwksBackoffMaxMs: 60 * seconds,
  jwksFilePollMs: 1 * seconds,
  revocationPollMs: 60 * seconds,
  /**
   * Between two questions that doorbells make a gateway ask one owner: who reaches Redis can ring
   * as often as he likes.
   */
  revocationDoorbellMs: 250,
  /** Of one tenant in its record; a gateway, which hears of some twice, holds twice as many. */
  revocationsPerTenant: 1000,
  /** What a gateway holds of all tenants. */
  revocationsHeldBytes: 256 * MiB,
  revocationPageBytes: 384 * KiB,
  /**
   * So far may the clock of an issuer be ahead, for a token that is revoked by its `jti` to stay
   * refused.
   */
  issuerAheadMs: 1 * days,
  /** A token that lives longer is refused, so a revocation ends after this. */
  tokenLifeMaxMs: 400 * days,
  rateBuckets: 50_000,
  /** Of X-Forwarded-For, so many are looked at, the last first. */
  forwardedHops: 16,
  /** Between two warnings of an X-Forwarded-For that is not believed, or that names no address. */
  forwardedWarnMs: 10 * minutes,
  /**
   * Of a hop that is no address, in the warning: an IPv6 address with brackets and a port is
   * shorter.
   */
  forwardedHopChars: 64,
  /** Whether they are trusted proxies, and which network they are of. */
  addressesRemembered: 4096,
  rateShareMs: 200,
  /**
   * The part of its rate and burst that a tenant has at each gateway, whatever Redis says that
   * others let through.
   */
  rateLocalShare: 0.1,
  /** Doorbells a second; above it a gateway leaves Redis for `redisPauseMs`. */
  redisDoorbellsPerSecond: 1000,
  redisPauseMs: 5 * seconds,
  /**
   * What a connection to Redis may bring without completing a message or a round of counts, which
   * is of `rateBuckets` at most.
   */
  redisUnreadBytes: 2 * MiB,
  /** To connect to Redis, and for the answer to one command. */
  redisConnectMs: 2 * seconds,
  redisCommandMs: 1 * seconds,
  /** Redis drops the count of a gateway that no longer renews it. */
  redisCountTtlSeconds: 60,
  /** After a failed read of the revocations of one owner. */
  revocationRetryMs: 500,
  /** For a page of revocations. */
  revocationReadMs: 5 * seconds,
  /** Between two connections to Redis. */
  redisRetryMinMs: 100,
  redisRetryMaxMs: 5 * seconds,
} as const;
