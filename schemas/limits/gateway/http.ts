/** HTTP: bodies, connections, requests and their deadlines. */
import { KiB, MiB, seconds } from '../units.ts';

export const http = {
  bodyBytes: 512 * KiB,
  headerBytes: 16 * KiB,
  urlBytes: 8 * KiB,
  /** The bound of routes that set none of their own. */
  bodyDefaultBytes: 16 * KiB,
  enrolBodyBytes: 4 * KiB,
  /** Keys and items in a body: parsing half a MiB of them would block the event loop. */
  bodyValues: 8192,
  /** Faulty fields that one answer names. */
  bodyFaults: 64,
  /**
   * Pieces of a body: chunks, or parts as the network cuts it. 512 KiB in the smallest usual
   * segments (536 bytes) are 979 pieces.
   */
  bodyPieces: 4096,
  /** Time in which a body must arrive. */
  bodyMs: 10 * seconds,
  /**
   * A reply that is ready before the body has arrived waits until nothing has come for the first of
   * these times, or for the second in all.
   */
  bodyQuietMs: 250,
  bodyDrainMs: 5 * seconds,
  connections: 16_384,
  /**
   * Memory for bodies that are not complete yet: of all requests, of one client, and of one tenant.
   */
  bodiesHeldBytes: 128 * MiB,
  bodiesHeldPerClientBytes: 16 * MiB,
  bodiesHeldPerTenantBytes: 16 * MiB,
  /** Requests with credentials in flight, without streams and waits. */
  requestsInFlight: 4096,
  /**
   * Requests without credentials, in all and of one client. Enrolments have as many places of their
   * own, because their bodies may come slowly.
   */
  publicRequestsInFlight: 256,
  publicRequestsPerClient: 32,
  requestDeadlineMs: 10 * seconds,
  shutdownGraceMs: 15 * seconds,
  idleTimeoutMs: 10 * seconds,
  /** Characters of an unknown field's name in an answer. */
  faultFieldChars: 128,
} as const;
