/** Tokens, issuers, revocations, rate limits and Redis. */
import { KiB, MiB, seconds, minutes, days } from '../units.ts';

export const auth = {
  tokenBytes: 8 * KiB,
  /** `sub` of a token. */
  subjectChars: 256,
  tokenCacheEntries: 20_000,
  /** Unknown words in the scopes of tokens that the log names, and how much of each. */
  scopesTold: 1000,
  scopeToldChars: 64,
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
   * The time between two asks to one owner that doorbells cause: anyone who reaches Redis can ring
   * at any rate.
   */
  revocationDoorbellMs: 250,
  /**
   * Revocations in a tenant's record; a gateway holds twice as many, because it may get duplicates.
   */
  revocationsPerTenant: 1000,
  /** Memory of a gateway for the revocations of all tenants. */
  revocationsHeldBytes: 256 * MiB,
  revocationPageBytes: 384 * KiB,
  /**
   * Greatest lead of an issuer's clock: a token that is revoked by its `jti` still stays refused.
   */
  issuerAheadMs: 1 * days,
  /** A token that lives longer is refused, so a revocation ends after this. */
  tokenLifeMaxMs: 400 * days,
  /** Signing keys of the cluster that are kept, because tokens of theirs are still valid. */
  signingKeys: 16,
  /**
   * A replaced signing key stays for the longest life of a token and this: other gateways sign with
   * it until they have heard of the next one.
   */
  signingKeyRestMs: 60 * minutes,
  signingKeysPollMs: 60 * seconds,
  /** The time between two reads that tokens with unknown key ids cause. */
  signingKeysUnknownMs: 250,
  signingKeysReadMs: 5 * seconds,
  rateBuckets: 50_000,
  /**
   * The time between two warnings about an X-Forwarded-For that is not trusted, or names no
   * address.
   */
  forwardedWarnMs: 10 * minutes,
  /**
   * Characters of an entry that is not an address, in the warning: an IPv6 address with brackets
   * and a port is shorter.
   */
  forwardedHopChars: 64,
  /** Addresses for which a gateway caches whether they are trusted proxies, and their networks. */
  addressesRemembered: 4096,
  rateShareMs: 200,
  /** Doorbells a second; at a higher rate a gateway disconnects from Redis for `redisPauseMs`. */
  redisDoorbellsPerSecond: 1000,
  redisPauseMs: 5 * seconds,
  /** Redis drops the count of a gateway that no longer renews it. */
  redisCountTtlSeconds: 60,
} as const;
