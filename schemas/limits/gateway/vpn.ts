/** VPN networks, peers, certificates and files. */
import { KiB, MiB, seconds, minutes, hours, days } from '../units.ts';

export const vpn = {
  networkRoutes: 64,
  networkDns: 4,
  /** Windows and resolv.conf read six at least. */
  networkSearchDomains: 6,
  networkTenants: 4096,
  proxyDomains: 256,
  ipv4PoolPrefixMin: 16,
  ipv4PoolPrefixMax: 30,
  /**
   * A reservation that no peer has confirmed is checked after this time, which is far longer than
   * any request takes.
   */
  reservationTtlMs: 2 * minutes,
  /**
   * Time for which the id of a peer that was removed, or never made, stays taken; longer than any
   * request takes.
   */
  peerTombstoneTtlMs: 1 * days,
  peerTokens: 20,
  downloadTokenTtlMs: 7 * days,
  pacTokenTtlMs: 365 * days,
  tokenTtlMaxMs: 3 * 365 * days,
  peerLinks: 20,
  linkTtlMs: 1 * days,
  linkTtlMaxMs: 7 * days,
  /** A client may ask for the longest life by a clock that is ahead by this. */
  linkClockAheadMs: 1 * minutes,
  /** Time for which the browser that redeemed a link may repeat that and use its token. */
  linkRepeatMs: 10 * minutes,
  peerRenewedCertificates: 16,
  /**
   * Revocations of a peer that its network has not acknowledged: with more, the peer gets no new
   * keys until the network has.
   */
  peerRevocationsUnacknowledged: 256,
  /**
   * Newest acknowledged revocations that a peer keeps, in case a restore makes its network forget
   * them.
   */
  peerRevocationsKept: 256,
  /**
   * Tombstones of peers and revoked certificates of one tenant: 250–500 bytes each, here and in the
   * network, for the life of a certificate (820 days). 2,000 with the default cap of 10.
   */
  gonePeersMin: 2000,
  gonePeersPerCap: 200,
  gonePeersMax: 100_000,
  /**
   * Peers that a tenant removes, and new keys of a peer, in an hour: a client in a loop must not
   * use up the bound above before an operator notices.
   */
  peersGoneAnHourMin: 60,
  peersGoneAnHourPerCap: 2,
  peerRotationsAnHour: 12,
  /** The size of a page of leases, revocations or secrets between gateway and actor. */
  vpnPage: 500,
  vpnPageBytes: 640 * KiB,
  /**
   * Messages between partitions (actors/outbox/outbox.ts): from one partition to another without an
   * answer.
   */
  outboxItemsPerSweep: 100,
  outboxTimeoutMs: 3 * seconds,
  caLifetimeMs: 10 * 365 * days,
  /**
   * Counted from the moment of issue, so that a certificate ends some days before the longest that
   * is accepted; client certificates keep to the same.
   */
  certificateLifetimeMs: 820 * days,
  /**
   * Apple accepts no longer server certificate. RFC 5280 section 4.1.2.5 counts its first and its
   * last second.
   */
  certificateSpanMaxMs: 825 * days,
  /** Certificates begin this long ago, because clocks of phones are wrong by minutes. */
  certificateBackdateMs: 1 * hours,
  /** A certificate is renewed when less than this part of its life is left. */
  certificateRenewFraction: 1 / 3,
  crlLifetimeMs: 7 * days,
  /**
   * A revocation list older than this is signed again: long before it expires, and soon after a
   * revocation.
   */
  crlFreshMs: 2 * seconds,
  /** Greatest age of the counts of peers and the ends of certificates in /metrics/forage. */
  forageScrapeFreshMs: 1 * seconds,
  vpnJobsQueued: 1024,
  vpnJobMs: 30 * seconds,
  /** Threads that make keys and bundles: as many as the machine has processors, up to this. */
  vpnThreads: 4,
  spareRsaKeys: 16,
  /**
   * Requests of one tenant that make peers or keys at a time in a gateway, and those that may wait.
   */
  vpnKeysPerTenant: 8,
  vpnKeysWaitingPerTenant: 512,
  /** The deadline of routes that make RSA keys, instead of the usual one. */
  keyDeadlineMs: 60 * seconds,
  artifactCacheBytes: 64 * MiB,
  artifactCacheEntries: 20_000,
  /** ISO/IEC 18004 table 7: bytes in a version 40 symbol at level L. */
  qrBytes: 2953,
  p12Iterations: 2048,
  ipv6PoolPrefixMin: 64,
  peerNameChars: 64,
  /**
   * A certificate is not renewed if the new one would last less than this longer: clocks differ,
   * and certificates end on a whole second.
   */
  certificateGainMs: 1 * days,
} as const;
