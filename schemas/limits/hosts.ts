/** Hosts as the control plane sees them: heartbeats, syncs, reports, credentials. */
import { KiB, seconds, minutes, hours, days } from './units.ts';

export const hosts = {
  beatIntervalMs: 2 * seconds,
  /**
   * A connection that is found to be lost may have been lost for so long: pings that nobody
   * answered.
   */
  deafUnnoticedMs: 2 * seconds,
  hostUnknownMs: 8 * seconds,
  hostLostMs: 5 * minutes,
  syncIntervalMs: 30 * seconds,
  syncTimeoutMs: 3 * seconds,
  reportTimeoutMs: 2 * seconds,
  reportItems: 200,
  reportBytes: 512 * KiB,
  retryMinMs: 250,
  retryMaxMs: 15 * seconds,
  enrolTimeoutMs: 10 * seconds,
  joinTokenTtlMs: 1 * hours,
  hostCredentialsTtlMs: 30 * days,
  /**
   * How often at least an agent with credentials from before 0.1.0 asks for bound ones; at first
   * more often.
   */
  boundRetryMaxMs: 1 * hours,
  /**
   * Of one connection of an agent, which needs four: its doorbells, its answers, and a sync or two.
   */
  hostSubscriptions: 32,
  /** Of one message of an agent: a full report is the largest, with what JSON adds. */
  hostPayloadBytes: 768 * KiB,
  /**
   * Of all hosts together: a server takes 65,536 in all by default, and the control plane needs
   * some of them.
   */
  hostConnections: 32_768,
  /**
   * Keys of removed hosts, and keys that another took the place of, in the claims of the account
   * HOSTS: one message.
   */
  revokedKeys: 4096,
  /** An agent has this long to hear that its host is fenced, before its credentials are revoked. */
  fenceNoticeMs: 3 * seconds,
  /**
   * Between two log lines of one kind about messages that are refused: who sends them can send
   * many.
   */
  refusalLogMs: 10 * seconds,
  /** How often the NATS servers are asked whether they hold all of them. */
  revocationLookMs: 1 * minutes,
  /** For the answers of all NATS servers; and after each, how long for another. */
  revocationAskMs: 5 * seconds,
  revocationStallMs: 500,
  /**
   * So often in a row a fault of the host may stop a container before the host is reported as its
   * cause.
   */
  hostFaultTries: 3,
  rejectionTtlMs: 5 * minutes,
  /** Faults in one heartbeat, and characters in the message of each. */
  hostFaults: 8,
  hostFaultChars: 300,
  /** Placement looks at every host of a fleet up to this size, and at a sample of a larger one. */
  placementAllHosts: 32,
  /**
   * The emptiest of a few random hosts is nearly as good as of all (Azar et al., Balanced
   * Allocations).
   */
  placementSampleHosts: 8,
  /** Hosts looked at in search of one without faults, where a host with faults is found already. */
  placementDoubtfulHosts: 64,
  /** Pushes of the account in a row: another process may push at the same time. */
  revocationPushes: 4,
} as const;
