/** Every bound of the system, in one place: sizes, counts and waits. A number that is not here has no business in a queue. */

const KiB = 1024;
const MiB = 1024 * KiB;
const seconds = 1000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const days = 24 * hours;

export const limits = {
  /** Partitions of a new cluster. A cluster keeps the number it was initialised with. */
  partitions: 16,

  // HTTP
  bodyBytes: 512 * KiB,
  headerBytes: 16 * KiB,
  urlBytes: 8 * KiB,
  /** A body over `bodyBytes` is read on to here, so that its sender hears the 413, and then cut off. */
  bodyDiscardBytes: 8 * MiB,
  /** Bodies that are held at once, over all requests. */
  bodiesHeldBytes: 128 * MiB,
  requestsInFlight: 4096,
  requestDeadlineMs: 10 * seconds,
  shutdownGraceMs: 15 * seconds,
  idleTimeoutMs: 10 * seconds,
  tokenBytes: 8 * KiB,
  tokenCacheEntries: 20_000,
  tokenCacheTtlMs: 60 * seconds,
  tokensVerifying: 256,
  jwksBytes: 1 * MiB,
  jwksFetchMs: 5 * seconds,
  jwksFreshMs: 10 * minutes,
  jwksUnknownKidMs: 30 * seconds,
  jwksBackoffMinMs: 1 * seconds,
  jwksBackoffMaxMs: 60 * seconds,
  jwksFilePollMs: 1 * seconds,
  revocationPollMs: 60 * seconds,
  revocationsHeld: 100_000,
  rateBuckets: 50_000,
  rateShareMs: 200,
  streamsPerTenant: 32,
  streamHeartbeatMs: 15 * seconds,
  streamBufferBytes: 256 * KiB,
  streamPollMs: 2 * seconds,
  streamStalledMs: 60 * seconds,
  streamReadMs: 5 * seconds,
  streamReadMessages: 64,
  waitDefaultSeconds: 30,
  waitMaxSeconds: 300,

  // Container fields (spec/limits of the API document, and the contract)
  envKeys: 200,
  envKeyChars: 128,
  envValueBytes: 32 * KiB,
  envTotalBytes: 64 * KiB,
  ports: 50,
  memBytesMin: 6 * MiB,
  memBytesMax: 16 * 1024 * 1024 * MiB,
  listDefault: 100,
  listMax: 100,
  logsDefault: 50,
  logsMax: 500,
  eventsDefault: 100,
  eventsMax: 500,

  // Gateway to actor
  laneMessagesInFlight: 2,
  /** A lane of its own for what waits and streams ask again and again. */
  watchLaneMessagesInFlight: 1,
  laneQueuedItems: 10_000,
  batchBytes: 768 * KiB,
  batchItems: 512,
  answerPartBytes: 768 * KiB,
  attemptMs: 1 * seconds,
  attemptMaxMs: 4 * seconds,
  retryMinMs: 10,
  retryMaxMs: 500,
  /** NATS away for longer than this: asks are refused at once. */
  natsAwayMs: 2 * seconds,

  // Partition
  journalSlots: 1024,
  journalEntryBytes: 768 * KiB,
  turnsQueued: 20_000,
  commitTimeoutMs: 2 * seconds,
  checkpointBatchMessages: 64,
  checkpointBatchBytes: 4 * MiB,
  checkpointPaceMs: 5,
  checkpointTimeoutMs: 5 * seconds,
  operationTtlMs: 2 * minutes,
  idempotencyTtlMs: 24 * hours,
  tombstoneTtlMs: 7 * days,
  deleteMarkerTtlMs: 1 * hours,
  sweepIntervalMs: 1 * seconds,
  sweepChanges: 200,
  placementHistory: 32,

  // Hosts
  beatIntervalMs: 2 * seconds,
  hostUnknownMs: 8 * seconds,
  hostLostMs: 5 * minutes,
  syncIntervalMs: 30 * seconds,
  syncTimeoutMs: 3 * seconds,
  reportTimeoutMs: 2 * seconds,
  reportItems: 200,
  joinTokenTtlMs: 1 * hours,
  hostCredentialsTtlMs: 30 * days,
  rejectionTtlMs: 5 * minutes,

  // What an agent does
  stopGraceMs: 10 * seconds,
  restartBackoffMinMs: 1 * seconds,
  restartBackoffMaxMs: 60 * seconds,
  restartBackoffForgetMs: 10 * minutes,
  engineCallMs: 30 * seconds,
  enginePullMs: 10 * minutes,
  concurrentPulls: 3,
  concurrentSteps: 8,
  orphanFraction: 0.2,
  orphanCount: 5,

  // Logs and events
  logLineBytes: 16 * KiB,
  logBlockBytes: 64 * KiB,
  logBlockLines: 500,
  logBlockDelayMs: 200,
  logBlocksPerContainer: 1000,
  logAgeMs: 7 * days,
  logStreamBytes: 4 * 1024 * MiB,
  logAckTimeoutMs: 5 * seconds,
  logDrainMs: 5 * seconds,
  logSpoolBytes: 64 * MiB,
  eventAgeMs: 7 * days,
  eventsPerContainer: 1000,
  eventStreamBytes: 4 * 1024 * MiB,
} as const;

/** What a tenant may use before an operator says otherwise. */
export const defaultCaps = {
  containers: 20,
  cpu_millis: 8000,
  mem_bytes: 16 * 1024 * MiB,
  vpn_peers: 10,
} as const;
