/** VPN networks, peers, certificates and files. */
import { KiB, MiB, seconds, minutes, hours, days } from '../units.ts';

export const vpn = {
  networkRoutes: 64,
  networkDns: 4,
  networkTenants: 4096,
  proxyDomains: 256,
  ipv4PoolPrefixMin: 16,
  ipv4PoolPrefixMax: 30,
  /**
   * A reservation that no peer came of is looked into after this long; far longer than any request.
   */
  reservationTtlMs: 2 * minutes,
  /**
   * How long the id of a peer that is gone, or never came, stays taken; longer than any request.
   */
  peerTombstoneTtlMs: 1 * days,
  peerTokens: 20,
  downloadTokenTtlMs: 7 * days,
  pacTokenTtlMs: 365 * days,
  tokenTtlMaxMs: 3 * 365 * days,
  peerRenewedCertificates: 16,
  /**
   * Revocations that a network has not heard of yet: beyond, a peer gets no new keys until it has.
   */
  peerRevocationsUntold: 256,
  /**
   * Of those that the network has heard of, so many of the newest are kept, for the time after a
   * restore.
   */
  peerRevocationsKept: 256,
  /**
   * Peers that are gone and certificates that are refused, of one tenant: 250–500 bytes each, here
   * and in its network, for as long as a certificate lives (825 days). 2,000 of the default cap of
   * 10.
   */
  gonePeersMin: 2000,
  gonePeersPerCap: 200,
  gonePeersMax: 100_000,
  /** So that a client that loops does not use them up before anybody looks. */
  peersGoneAnHourMin: 60,
  peersGoneAnHourPerCap: 2,
  peerRotationsAnHour: 12,
  /** Of one page of leases, revocations or secrets between gateway and actor. */
  vpnPage: 500,
  vpnPageBytes: 640 * KiB,
  /** What partitions have to tell one another (actors/outbox/outbox.ts). */
  outboxItemsPerSweep: 100,
  outboxTimeoutMs: 3 * seconds,
  caLifetimeMs: 10 * 365 * days,
  /** Apple accepts no server certificate of over 825 days; client certificates keep to the same. */
  certificateLifetimeMs: 825 * days,
  /** Clocks of phones are wrong by minutes. */
  certificateBackdateMs: 1 * hours,
  /** A certificate is renewed when less than this part of its life is left. */
  certificateRenewFraction: 1 / 3,
  crlLifetimeMs: 7 * days,
  /**
   * A revocation list older than this is signed again: long before it expires, and soon after a
   * revocation.
   */
  crlFreshMs: 2 * seconds,
  /** How old the counts of peers and the ends of certificates in /metrics/forage may be. */
  forageScrapeFreshMs: 1 * seconds,
  vpnJobsQueued: 1024,
  vpnJobMs: 30 * seconds,
  /** Threads that make keys and bundles: as many as the machine has processors, up to this. */
  vpnThreads: 4,
  spareRsaKeys: 16,
  /**
   * Of one tenant, how many requests make peers or keys at a time in a gateway, and how many more
   * may wait.
   */
  vpnKeysPerTenant: 8,
  vpnKeysWaitingPerTenant: 512,
  /** Routes that make RSA keys have this long in place of the usual deadline. */
  keyDeadlineMs: 60 * seconds,
  artifactCacheBytes: 64 * MiB,
  artifactCacheEntries: 20_000,
  /** ISO/IEC 18004 table 7: bytes in a version 40 symbol at level L. */
  qrBytes: 2953,
  p12Iterations: 2048,
  ipv6PoolPrefixMin: 64,
  peerNameChars: 64,
  /**
   * A renewal that gains less is not worth it: clocks differ, and certificates end on the second.
   */
  certificateGainMs: 1 * days,
} as const;
