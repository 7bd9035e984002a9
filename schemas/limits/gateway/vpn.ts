/** VPN networks, peers, certificates and files. */
import { KiB, seconds, minutes, hours, days } from '../units.ts';

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
  /** Time for which the browser that redeemed a link may repeat that and use its token. */
  linkRepeatMs: 10 * minutes,
  /**
   * Newest acknowledged revocations that a peer keeps, in case a restore makes its network forget
   * them.
   */
  peerRevocationsKept: 256,
  /**
   * Peers that a tenant removes, and new keys of a peer, in an hour: a client in a loop must not
   * use up a tenant's tombstones before an operator notices.
   */
  peersGoneAnHourMin: 60,
  peersGoneAnHourPerCap: 2,
  peerRotationsAnHour: 12,
  /** The size of a page of leases, revocations or secrets between gateway and actor. */
  vpnPage: 500,
  vpnPageBytes: 640 * KiB,
  /** Time for an answer to messages between partitions (actors/outbox/outbox.ts). */
  outboxTimeoutMs: 3 * seconds,
  caLifetimeMs: 10 * 365 * days,
  /**
   * Counted from the moment of issue, so that a certificate ends some days before the longest that
   * is accepted; client certificates keep to the same.
   */
  certificateLifetimeMs: 820 * days,
  /** Certificates begin this long ago, because clocks of phones are wrong by minutes. */
  certificateBackdateMs: 1 * hours,
  /** A certificate is renewed when less than this part of its life is left. */
  certificateRenewFraction: 1 / 3,
  /** The deadline of routes that make RSA keys, instead of the usual one. */
  keyDeadlineMs: 60 * seconds,
  /** ISO/IEC 18004 table 7: bytes in a version 40 symbol at level L. */
  qrBytes: 2953,
  ipv6PoolPrefixMin: 64,
  peerNameChars: 64,
} as const;
