/** Connections to NATS, and the cluster's record. */
import { MiB, seconds, minutes } from './units.ts';

export const nats = {
  /** A server that does not answer two pings in a row is away, and another is tried. */
  natsPingMs: 5 * seconds,
  natsConnectMs: 5 * seconds,
  /** Of gateways and actors, whose callers wait meanwhile. */
  natsPingUrgentMs: 1 * seconds,
  natsConnectUrgentMs: 2 * seconds,
  /**
   * Asked and not answered for this long: the server may be cut off from the others, and another is
   * tried.
   */
  natsSilentMs: 20 * seconds,
  /**
   * Of gateways and actors. Longer than another server takes to lead a stream, which is a silence
   * too.
   */
  natsSilentUrgentMs: 10 * seconds,
  /** Where no server answers, the next is tried after twice the time, up to this. */
  natsSilentMaxMs: 2 * minutes,
  natsSilenceLookMs: 500,
  clusterReadMs: 5 * seconds,
  clusterPollMs: 500,
  clusterWatchMs: 1 * seconds,
  /** So often in a row the record must be missing before it is gone. */
  clusterAbsences: 10,
  /**
   * Least `max_payload` of a NATS server, and its own default: a journal entry or a batch of asks
   * fits, with what the protocol adds.
   */
  natsPayloadBytes: 1 * MiB,
  /** One log line for this many failed reads of the cluster record. */
  clusterLogEveryAttempts: 20,
  /** Unanswered pings in a row after which a server counts as away. */
  natsPingsUnanswered: 2,
  /** To ask JetStream what it can do, and to make buckets and streams at a start. */
  natsInfoMs: 5 * seconds,
  jetstreamSetupMs: 10 * seconds,
} as const;
