/** HTTP: bodies, connections, requests and their deadlines. */
import { KiB, MiB, seconds } from '../units.ts';

export const http = {
  bodyBytes: 512 * KiB,
  headerBytes: 16 * KiB,
  urlBytes: 8 * KiB,
  /**
   * A body that is refused is read up to this length, so that its sender reads the reply; then the
   * connection ends.
   */
  bodyDiscardBytes: 8 * MiB,
  /** For routes that set no bound of their own. */
  bodyDefaultBytes: 16 * KiB,
  enrolBodyBytes: 4 * KiB,
  /** Keys and items in a body: parsing half a MiB of them would block the event loop. */
  bodyValues: 8192,
  /** Faulty fields that one answer names. */
  bodyFaults: 64,
  /**
   * Chunks of a body, and parts as the network cuts it. Of 512 KiB in the smallest segments that
   * occur (536 bytes) it takes 979.
   */
  bodyPieces: 4096,
  /** How long a body may take to arrive. */
  bodyMs: 10 * seconds,
  /**
   * A reply that is ready before the body waits for the rest: until nothing has come for so long,
   * or for so long in all.
   */
  bodyQuietMs: 250,
  bodyDrainMs: 5 * seconds,
  bodySweepMs: 100,
  /** Replies that wait like this; beyond, the connection ends with its reply at once. */
  bodiesDraining: 512,
  connections: 16_384,
  /**
   * Bodies that are held at once until they are whole: over all requests, of one client, and of one
   * tenant.
   */
  bodiesHeldBytes: 128 * MiB,
  bodiesHeldPerClientBytes: 16 * MiB,
  bodiesHeldPerTenantBytes: 16 * MiB,
  /** Requests with credentials in flight, without streams and waits. */
  requestsInFlight: 4096,
  /** Of those, of one tenant. */
  requestsPerTenant: 2048,
  /**
   * Requests without credentials, and of one client: enrolments have as many again, for their
   * bodies may come slowly.
   */
  publicRequestsInFlight: 256,
  publicRequestsPerClient: 32,
  requestDeadlineMs: 10 * seconds,
  shutdownGraceMs: 15 * seconds,
  idleTimeoutMs: 10 * seconds,
  /** node:http: for the head of a request, and for all of it. */
  requestHeadMs: 10 * seconds,
  requestWholeMs: 30 * seconds,
  /** Between two looks whether anything is in flight at a shutdown. */
  shutdownLookMs: 20,
  /**
   * A gateway stops when nothing was in flight for this long: the kernel has the last byte, and a
   * client that connected at the last moment has its answer.
   */
  shutdownQuietMs: 100,
  /**
   * A larger reply is handed over as the socket takes it; a smaller one is copied into its buffer
   * whole.
   */
  replyWholeBytes: 64 * KiB,
  /** `Cache-Control` of the OpenAPI document. */
  openApiMaxAgeSeconds: 300,
  /** Of an unknown field's name in an answer. */
  faultFieldChars: 128,
} as const;
