/** Connections to NATS, and the cluster's record. */
import { MiB, seconds, minutes } from './units.ts';

export const nats = {
  /** The longest wait while servers refuse the credentials. */
  natsRefusedMaxMs: 30 * seconds,
  natsConnectMs: 5 * seconds,
  /**
   * The same for gateways and actors. Longer than it takes to elect another leader of a stream,
   * when there are no answers either.
   */
  natsSilentUrgentMs: 10 * seconds,
  /**
   * If no server answers, the next is tried after twice the time, up to this. Where there is one
   * server, it is dialled again after this time alone.
   */
  natsSilentMaxMs: 2 * minutes,
  /** Short, since what is asked while there is no leader is never answered: it is asked again. */
  clusterReadMs: 2 * seconds,
  clusterWatchMs: 1 * seconds,
  /**
   * The least `max_payload` of a NATS server, which is its own default: a journal entry or a batch
   * of asks fits, with the protocol's headers.
   */
  natsPayloadBytes: 1 * MiB,
  /** Messages of an atomic batch, of which a server takes no more (NATS ADR-50). */
  natsBatchMessages: 1000,
  /** The time to make a stream. */
  jetstreamSetupMs: 10 * seconds,
} as const;
