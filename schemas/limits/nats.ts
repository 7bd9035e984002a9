/** Connections to NATS, and the cluster's record. */
import { seconds, minutes } from './units.ts';

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
} as const;
