/** Hosts as the control plane sees them: heartbeats, syncs, reports, credentials. */
import { KiB, MiB, seconds, minutes, hours, days } from './units.ts';

export const hosts = {
  beatIntervalMs: 2 * seconds,
  /**
   * Up to this number of actors processes, each subscribes to the heartbeats of all hosts; among
   * more, owners pass them on.
   */
  beatsHeardByAll: 6,
  /**
   * After this time without news of a partition's hosts, each process subscribes to their
   * heartbeats.
   */
  beatsUntoldMs: 4 * seconds,
  beatsLookMs: 1 * seconds,
  /** An owner passes on an unchanged heartbeat whole in one of so many messages. */
  beatsWholeEvery: 15,
  /**
   * The least time between two times that an owner sends whole directories because others lack
   * them.
   */
  directoryRestMs: 1 * seconds,
  /**
   * The wait before a process asks for a directory that it lacks: another may ask for it meanwhile.
   */
  directoryAskMs: 1 * seconds,
  /**
   * The time for which a connection may have been lost before this is noticed: that of the pings
   * without an answer.
   */
  deafUnnoticedMs: 2 * seconds,
  hostUnknownMs: 8 * seconds,
  hostLostMs: 5 * minutes,
  syncIntervalMs: 30 * seconds,
  syncTimeoutMs: 3 * seconds,
  /**
   * The latest changes of desired state that an owner keeps of each partition; an agent that has
   * missed more takes the whole set.
   */
  syncChanges: 4096,
  /** The time for which changes of a tenant's members are gathered before its hosts are rung. */
  membersGatherMs: 50,
  /** The time for which the IPv4 address of a removed container is given to no other. */
  ipv4RestMs: 1 * hours,
  reportTimeoutMs: 2 * seconds,
  reportItems: 200,
  retryMinMs: 250,
  retryMaxMs: 15 * seconds,
  joinTokenTtlMs: 1 * hours,
  hostCredentialsTtlMs: 30 * days,
  /** Greatest distance of the time of a renewal from the clock of actors. */
  renewSkewMs: 1 * minutes,
  /** Renewals of a host whose nonces are kept, and so the most within twice that time. */
  renewalsKept: 8,
  /** Bytes of one message of an agent: the largest is a full report, encoded as JSON. */
  hostPayloadBytes: 768 * KiB,
  /**
   * Keys of removed hosts, and replaced keys, in the claims of the account HOSTS, which must fit
   * into one message.
   */
  revokedKeys: 4096,
  /**
   * The time between two log lines of one kind about refused messages, of which a sender can send
   * many.
   */
  refusalLogMs: 10 * seconds,
  /** The wait for the answers of all NATS servers. */
  revocationAskMs: 5 * seconds,
  /**
   * Times in a row that a fault of the host may stop a container before the host is reported as the
   * cause.
   */
  hostFaultTries: 3,
  rejectionTtlMs: 5 * minutes,
  /** Containers that leave a drained host at once. */
  drainAtOnce: 8,
  drainAtOnceMax: 1000,
  /** Containers that are named as blocked. */
  drainBlocked: 100,
  /** Time in which another host makes a copy ready; progress of its pull begins this time again. */
  preparationMs: 12 * minutes,
  /** Faults in one heartbeat, and characters in the message of each. */
  hostFaults: 8,
  hostFaultChars: 300,
  /**
   * The step in which a heartbeat gives the free disk, so that an idle host repeats the same
   * number.
   */
  roomDiskStepBytes: 1024 * MiB,
  /** Placement compares all hosts of a fleet up to this size, and a sample of a larger one. */
  placementAllHosts: 32,
  /**
   * The emptiest of a few random hosts is nearly as good as of all (Azar et al., Balanced
   * Allocations).
   */
  placementSampleHosts: 8,
  /**
   * The most hosts that placement examines for one without faults and with enough free disk, once
   * it has found another.
   */
  placementDoubtfulHosts: 64,
  /** Pushes of the account in a row, because another process may push at the same time. */
  revocationPushes: 4,
} as const;
