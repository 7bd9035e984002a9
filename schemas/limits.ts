/**
 * Every bound of the system, in one place: sizes, counts and waits. A number that is not here has
 * no business in a queue.
 */

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
  /**
   * Of a body that nobody wants, so much is read, so that its sender hears why, and then it is cut
   * off.
   */
  bodyDiscardBytes: 8 * MiB,
  /** Of a route that says nothing else. */
  bodyDefaultBytes: 16 * KiB,
  enrolBodyBytes: 4 * KiB,
  /** Keys and items in a body. To parse half a MiB of them would hold up everybody. */
  bodyValues: 8192,
  /** Fields whose faults are told of one body. */
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
  /** Replies that wait so; beyond, a connection ends with its reply at once. */
  bodiesDraining: 512,
  connections: 16_384,
  /**
   * Bodies that are held at once until they are whole: over all requests, of one client, and of one
   * tenant.
   */
  bodiesHeldBytes: 128 * MiB,
  bodiesHeldPerClientBytes: 16 * MiB,
  bodiesHeldPerTenantBytes: 16 * MiB,
  /** Requests with credentials that are being answered, streams and waits not among them. */
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
  /**
   * Between two questions that bells make a gateway ask one owner: who reaches Redis can ring as
   * often as he likes.
   */
  revocationBellMs: 250,
  /** Of one tenant in its record; a gateway, which hears of some twice, holds twice as many. */
  revocationsPerTenant: 1000,
  /** What a gateway holds of all tenants. */
  revocationsHeldBytes: 256 * MiB,
  revocationPageBytes: 384 * KiB,
  /**
   * So far may the clock of an issuer be ahead, for a token that is revoked by its `jti` to stay
   * refused.
   */
  issuerAheadMs: 1 * days,
  /** A token that lives longer is refused, so a revocation ends after this. */
  tokenLifeMaxMs: 400 * days,
  rateBuckets: 50_000,
  /** Of X-Forwarded-For, so many are looked at, the last first. */
  forwardedHops: 16,
  /** Between two warnings of an X-Forwarded-For that is not believed, or that names no address. */
  forwardedWarnMs: 10 * minutes,
  /**
   * Of a hop that is no address, in the warning: an IPv6 address with brackets and a port is
   * shorter.
   */
  forwardedHopChars: 64,
  /** Whether they are trusted proxies, and which network they are of. */
  addressesRemembered: 4096,
  rateShareMs: 200,
  /**
   * The part of its rate and burst that a tenant has at each gateway, whatever Redis says that
   * others let through.
   */
  rateLocalShare: 0.1,
  /** Bells a second; above it a gateway leaves Redis for `redisPauseMs`. */
  redisBellsPerSecond: 1000,
  redisPauseMs: 5 * seconds,
  /**
   * What a connection to Redis may bring without completing a message or a round of counts, which
   * is of `rateBuckets` at most.
   */
  redisUnreadBytes: 2 * MiB,
  streamsPerTenant: 32,
  /**
   * Of one address, unless an operator says otherwise: an office, or a proxy that names no clients,
   * has many tenants.
   */
  streamsPerAddress: 1024,
  streams: 8192,
  streamHeartbeatMs: 15 * seconds,
  streamBufferBytes: 256 * KiB,
  streamPollMs: 2 * seconds,
  /** How often a wait looks at the status while no bell rings. */
  waitPollMs: 1 * seconds,
  /** Between a ring that had nothing to show yet and the next look. */
  streamSettleMs: 100,
  streamStalledMs: 60 * seconds,
  streamReadMs: 1.5 * seconds,
  /** A question to JetStream that actors hand on. */
  readAskBytes: 1 * KiB,
  streamReadAttempts: 4,
  streamReadMessages: 64,
  waitDefaultSeconds: 30,
  waitMaxSeconds: 300,

  // Container fields (spec/limits of the API document, and the contract)
  envKeys: 200,
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
  laneRetryMinMs: 10,
  laneRetryMaxMs: 500,
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
  /** A gateway is ready when the owner of a partition has answered it within this time. */
  gatewayAnsweredMs: 7.5 * seconds,
  /** A gateway that has nothing to ask asks a partition so often whether it is there. */
  gatewayProbeMs: 1 * seconds,
  gatewayProbeDeadlineMs: 5 * seconds,
  /** NATS away for longer than this: asks are refused at once. */
  natsAwayMs: 2 * seconds,

  // Deletion by time (lib/cautious-clock.ts)
  /**
   * Two wall clocks agree when the second, read up to so much later, shows no more than this beyond
   * the first.
   */
  clockTrustMs: 2 * hours,
  /** A change of the wall clock against the monotonic one that counts as a jump. */
  clockStepMs: 1 * minutes,
  /** A gateway believes a wall clock that did not jump for this long. */
  clockSettleMs: 24 * hours,
  /**
   * A partition believes wall clocks that agreed for this long: as long as it keeps anything by
   * default.
   */
  clockAgreedMs: 30 * days,
  /** A partition that nobody writes to keeps the time so often. */
  clockKeptMs: 10 * minutes,

  // The cluster's record
  clusterReadMs: 5 * seconds,
  clusterPollMs: 500,
  clusterWatchMs: 1 * seconds,
  /** So often in a row the record must be missing before it is gone. */
  clusterAbsences: 10,

  // Members (actors processes)
  /**
   * A lease is good for this long from the start of its last renewal, on its member's own monotonic
   * clock.
   */
  leaseMs: 1 * seconds,
  leaseRenewMs: 250,
  memberRequestMs: 500,
  membersPerRead: 256,
  /**
   * A lease that was seen unchanged for this long is over on every clock: `leaseMs`, and half of it
   * to spare.
   */
  leaseUnchangedMs: 1.5 * seconds,
  /**
   * What tells a process whose lease ended that it did. Gone means the same, and is as conclusive.
   */
  deadMemberTtlMs: 1 * hours,
  /** Partitions go to a member that has been live for this long. */
  memberSettledMs: 1 * seconds,
  /** How long a process goes on saying `not_owner` of a partition that it has given away. */
  notOwnerLingerMs: 500,
  /** A process that stops has this long to give its partitions away. */
  leaveMs: 8 * seconds,
  /**
   * Commits under way at a hand-over have this long; what has not been acknowledged then, its
   * sender asks for again.
   */
  handOverSettleMs: 3 * seconds,

  // Partition
  journalSlots: 1024,
  /** With a full ring, between two entries; from half of it on, in proportion to the square. */
  journalThrottleMs: 100,
  journalEntryBytes: 768 * KiB,
  /** Of one record as it is stored; with half an entry before it, it still fits the entry. */
  recordBytes: 320 * KiB,
  turnsQueued: 20_000,
  commitTimeoutMs: 2 * seconds,
  /**
   * Of one page of a load; a replica that is away swallows it, and the next attempt may go to
   * another.
   */
  loadReadMs: 1.5 * seconds,
  loadReadAttempts: 6,
  /** So often a load may find that records are missing before the partition is released. */
  loadAttempts: 4,
  /** So often it may fail for any reason, as while no replica answers. */
  loadAttemptsMax: 20,
  /** Between two such series of one process. */
  loadRestMinMs: 5 * seconds,
  loadRestMaxMs: 5 * minutes,
  /** Loads of one partition that the loss of the lease may end before this process rests, too. */
  loadsRevoked: 2,
  /** Of work that is long: the event loop turns after so much of it. */
  sliceMs: 20,
  /**
   * Of the work that messages ask for, in the turn of the event loop that they arrive in; the rest
   * waits for a slice.
   */
  atOnceMs: 10,
  /**
   * Messages whose work waits for slices. Beyond, the sender is told to ask again, or hears nothing
   * and does.
   */
  worksBegun: 1000,
  /** Containers of a report that one turn takes in. */
  reportItemsPerTurn: 10,
  /**
   * Of a write that a replicated stream refuses for another with the same fence that is in flight.
   */
  checkInFlightRetries: 100,
  /**
   * A server makes a store on its disk for every atomic batch, whatever its size (ADR 10): few and
   * large ones.
   */
  checkpointBatchMessages: 256,
  checkpointBatchBytes: 4 * MiB,
  /** Between two batches of a partition, where one holds all that there is. */
  checkpointPaceMs: 250,
  /** Between two batches of events of a process. */
  eventsPaceMs: 50,
  checkpointTimeoutMs: 5 * seconds,
  operationTtlMs: 2 * minutes,
  /**
   * Outcomes of writes that changed nothing, refusals among them: in the memory of a partition, for
   * as long as the others.
   */
  unchangedKept: 20_000,
  idempotencyTtlMs: 24 * hours,
  /**
   * What is bounded by the hour counts for so long: deletions, removed peers, new keys of a peer.
   */
  anHourMs: 1 * hours,
  tombstoneTtlMs: 7 * days,
  /**
   * The cap `deletes_per_hour` where nobody has set it: so many for each container of the cap,
   * within these. No cap of containers has the largest. Above it a tenant creates none; it may
   * delete at any time. What it adds in an hour is at most this and its cap of containers, for all
   * of these may end at once.
   *
   * A tombstone takes 340 bytes of the owner's memory and 160 in the bucket, and up to 800 and 530
   * with an `Idempotency-Key` of 255 characters (measured). A tenant with the default cap of 20
   * adds (300 + 20) × 24 = 7,680 a day: 2.6 MB, at most 6. If it goes on for seven days, and nobody
   * else does: 54,000, 18 MB, at most 43.
   */
  deletesPerHourPerCap: 15,
  deletesPerHourMin: 300,
  deletesPerHourMax: 5000,
  /**
   * Tombstones of a partition: beyond, those of the tenant with the most end early, a day after the
   * deletion at the earliest. 68 MB, at most 160, for a partition; a process with all 16 has 1.1
   * GB, at most 2.6. More only where tenants add more than this in one day: 26 for each partition
   * that do nothing else, with the default cap.
   */
  goneContainersPerPartition: 200_000,
  deleteMarkerTtlMs: 1 * hours,
  sweepIntervalMs: 1 * seconds,
  sweepChanges: 200,
  placementHistory: 32,

  // Scrub: replicas compared with one another
  scrubIntervalMs: 10 * minutes,
  scrubPageMessages: 256,
  scrubPageBytes: 1 * MiB,
  scrubReadMs: 2 * seconds,
  /**
   * Between one read of a page and the next: so many times as long as the read took, within these.
   */
  scrubRest: 4,
  scrubPaceMinMs: 20,
  scrubPaceMaxMs: 200,
  /**
   * Any of three replicas answers: some eight reads of a page, mostly. One that never does is away.
   */
  scrubAttempts: 60,
  /**
   * A replica that follows is heard by the leader, and behind by fewer entries: it has them long
   * before the second look.
   */
  scrubSilenceMs: 5 * seconds,
  scrubLag: 1000,
  /** Between a suspicion and the second look. */
  scrubConfirmMs: 10 * seconds,
  /** A replica that diverges in so many pages is made anew whatever the others hold. */
  scrubDivergentPages: 16,

  // Hosts
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
   * How often at least an agent with credentials of the last release asks for bound ones; at first
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

  // What an agent does
  stopGraceMs: 10 * seconds,
  restartBackoffMinMs: 1 * seconds,
  restartBackoffMaxMs: 60 * seconds,
  restartBackoffForgetMs: 10 * minutes,
  engineCallMs: 30 * seconds,
  enginePullMs: 10 * minutes,
  engineProbeMs: 5 * seconds,
  engineConnections: 128,
  /**
   * One run of nft, what it may print, and how often a container looks at the rules from inside.
   */
  nftMs: 10 * seconds,
  nftOutputBytes: 4 * MiB,
  firewallProbeMs: 10 * minutes,
  /** Entries of CONTAINER_EGRESS_ALLOW, and of CONTAINER_EGRESS_DENY. */
  egressRules: 256,
  nameservers: 8,
  probeMs: 60 * seconds,
  probePatienceMs: 3 * seconds,
  probeMemoryBytes: 256 * MiB,
  probePids: 64,
  probeOutputChars: 64 * KiB,
  /** Of what an engine says, in one line of the agent's log. */
  engineDetailChars: 1000,
  /**
   * Of what is kept of one answer of the engine; all else in it is skipped as it arrives
   * (docker/sieve.ts).
   */
  engineAnswerBytes: 4 * MiB,
  engineLineBytes: 1 * MiB,
  /**
   * What an image says of itself, which the engine repeats for each of its containers; beyond, it
   * is refused.
   */
  imageConfigBytes: 1 * MiB,
  imageLabelBytes: 128 * KiB,
  /** Labels are blanked at create; their names remain. */
  imageLabelNameBytes: 8 * KiB,
  imageCommandBytes: 64 * KiB,
  imagePorts: 256,
  imageVolumes: 16,
  /** No progress of a pull for this long: its registry stalls. */
  enginePullIdleMs: 60 * seconds,
  concurrentPulls: 8,
  /** Of those, so that one tenant, or one registry, does not hold all. */
  pullsPerTenant: 2,
  pullsPerRegistry: 4,
  /** In the list of a tenant, of one of its regions, or of an agent. */
  registryRules: 64,
  /** How long a registry's name may take to resolve, before the pull that needs it is put off. */
  registryLookupMs: 10 * seconds,
  /** For the first answer of one name server; then the next is asked. */
  nameserverMs: 2 * seconds,
  concurrentStops: 64,
  /**
   * Of stops that have taken longer than their grace. All calls together leave room among
   * `engineConnections`.
   */
  concurrentSlowStops: 16,
  concurrentSteps: 8,
  /** Until every actors process knows of a fence, and an agent can have heard nothing else. */
  fenceMarginMs: 2 * minutes,
  /**
   * An agent that starts without proof of a recent contact waits so long for one, before it stops
   * its containers.
   */
  firstContactMs: 5 * seconds,
  /** How old the last contact on an agent's disk may get. */
  contactWriteMs: 10 * seconds,
  /** An agent that ends waits so long for its last answer, and for its connection to close. */
  farewellMs: 2 * seconds,
  /** Containers that one sync asks about, because the desired set does not know them. */
  syncStrangers: 500,
  /**
   * A step that takes longer than this goes on beside the others, among at most so many slow ones.
   */
  stepPatienceMs: 2 * seconds,
  concurrentSlowSteps: 24,
  /** A list of the engine's containers that fails for this long is a fault of the host. */
  engineDegradedMs: 10 * seconds,
  /** Quick exits in a row before they are called a loop. */
  crashLoopExits: 3,
  containerPids: 1024,
  containerShmBytes: 64 * MiB,
  /**
   * What a container may write to its host's disk: its writable layer and the volumes that its
   * image names.
   */
  containerDiskBytes: 10 * 1024 * MiB,
  diskIntervalMs: 30 * seconds,
  /** Between looks at how full the engine's disk is. */
  diskLookMs: 5 * seconds,
  /** Of one container, or of all volumes. */
  diskMeasureMs: 1 * minutes,
  /** At the same time, of containers of different tenants or of the volumes. */
  diskMeasurements: 2,
  /** For a container that was evicted under pressure to be gone, before the next is. */
  diskReliefMs: 2 * minutes,
  imagesHighPercent: 85,
  imagesLowPercent: 75,
  diskPressurePercent: 90,
  /** Pressure is over when the disk is so much below its threshold. */
  diskReliefPercent: 5,
  /** Images that an agent remembers to have pulled. */
  imagesRecorded: 5000,
  /** Of one Linux bridge; all tenants' containers of a host are on one. */
  bridgePorts: 1023,
  containersPerHost: 500,

  // Logs and events
  /**
   * The engine's own rotated files: the ring on the host's disk that holds lines until they are
   * captured.
   */
  engineLogFileSize: '10m',
  engineLogFiles: 3,
  logLineBytes: 16 * KiB,
  /** Of a block as it is sent, JSON and all. A line that alone takes more goes alone. */
  logBlockBytes: 64 * KiB,
  /**
   * Of any block: one line, each of its bytes as an escape of six, with a mark for what was lost
   * before it.
   */
  logBlockMostBytes: 6 * 16 * KiB + 2 * KiB,
  logBlockLines: 500,
  logBlockDelayMs: 200,
  logBlocksPerContainer: 1000,
  logAgeMs: 7 * days,
  logStreamBytes: 4 * 1024 * MiB,
  logAckTimeoutMs: 5 * seconds,
  logDrainMs: 5 * seconds,
  /** Attempts in a row to read the last lines of a container; then it is removed without them. */
  logDrainAttempts: 5,
  logSpoolBytes: 64 * MiB,
  /** Of one container, its newest lines. */
  logSpoolContainerBytes: 8 * MiB,
  /** Files that are sent at a time, each of another tenant. */
  logSpoolSenders: 4,
  /**
   * How far apart the two streams of one container may be written out of order into the engine's
   * log.
   */
  logSkewMs: 2 * seconds,
  /** With this much of one container read and not yet sent, an agent stops reading. */
  logQueueBytes: 256 * KiB,
  /**
   * Encoded bytes a second that leave a host, by default: of a container, of a tenant's containers
   * there, of all.
   */
  logRateContainerBytes: 2 * MiB,
  logRateTenantBytes: 12 * MiB,
  logRateHostBytes: 24 * MiB,
  /** So much time's worth of a rate that was not used may go at once. */
  logRateBurstMs: 10 * seconds,
  /**
   * Containers, and tenants, whose rates are kept in mind before those that are not over them are
   * forgotten.
   */
  logBucketsHeld: 2048,
  /** How often those who wait for a rate are looked at, at least. */
  logTurnLookMs: 100,
  /**
   * A block that takes longer than this is late: what its container writes meanwhile may outrun a
   * follower.
   */
  logLateMs: 1 * seconds,
  /** Between two reads of a log that is behind: for each, the engine reads all its files of it. */
  logCatchUpMs: 10 * seconds,
  logFrameBytes: 1 * MiB,
  logCursorFlushMs: 500,
  eventAgeMs: 7 * days,
  eventsPerContainer: 1000,
  eventStreamBytes: 4 * 1024 * MiB,
  /**
   * The owner shows an event for this long after it was published: a replica that lags by more is
   * not read from.
   */
  eventsSettledMs: 10 * seconds,
  /** Of such events, in a partition. */
  eventsSettlingBytes: 4 * MiB,
  /** Of one page of recent events between gateway and actor. */
  recentEventsBytes: 512 * KiB,
  /**
   * A checkpoint waits for its events for this long; then they are parked in the bucket, and the
   * mark moves on.
   */
  eventsPatienceMs: 500,
  /**
   * Of parked events in a partition; about 20,000. Beyond, the mark stands still until some are
   * published.
   */
  eventsParkedBytes: 16 * MiB,
  /** Of one key of them, which is written again until it is full. */
  eventsParkedKeyBytes: 128 * KiB,

  // Budgets of hosts, tenants and containers in the streams LOGS and EVENTS
  budgetIntervalMs: 5 * seconds,
  /**
   * Of a stream's limit: above the first, the largest are trimmed until it is down to the second.
   */
  budgetFrom: 0.75,
  budgetTo: 0.6,
  budgetRequestMs: 5 * seconds,
  /** Of STREAM.INFO with subjects; the server puts 100,000 into one. */
  budgetSubjectPages: 20,
  /**
   * Of a stream: above it, hosts that have more than their part are trimmed, however few their
   * bytes.
   */
  budgetSubjects: 1_000_000,
  budgetSubjectsPerHost: 100_000,
  /** Of a host with more tenants than it can have containers, the rest is counted as nobody's. */
  budgetTenantsPerHost: 1000,
  /**
   * Messages that are read for their sizes, each at a random place of the stream, and so many of
   * them at a time.
   */
  budgetSamples: 256,
  budgetSamplesAtOnce: 16,
  budgetSampleBytes: 128 * KiB,
  /**
   * Parts of one that are trimmed apart; where more are over their share, it is trimmed as a whole.
   */
  budgetCuts: 2000,
  /** Of one purge. */
  budgetPurgeMessages: 10_000,
  /** Tenants' names that are none, of one host, that are removed at one look. */
  budgetNamelessPurges: 100,

  // VPN networks and peers
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
  errandsPerSweep: 100,
  errandTimeoutMs: 3 * seconds,

  // Certificates
  caLifetimeMs: 10 * 365 * days,
  /** Apple accepts no server certificate of over 825 days; client certificates keep to the same. */
  certificateLifetimeMs: 825 * days,
  /** Clocks of phones are wrong by minutes. */
  certificateBackdateMs: 1 * hours,
  /** A certificate is renewed when less than this part of its life is left. */
  certificateRenewFraction: 1 / 3,
  crlLifetimeMs: 7 * days,
  /**
   * A revocation list is signed anew when it is older than this: far ahead of its end, and soon
   * after a revocation.
   */
  crlFreshMs: 2 * seconds,

  // VPN files
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
} as const;

/** What a tenant may use before an operator says otherwise. */
export const defaultCaps = {
  containers: 20,
  cpu_millis: 8000,
  mem_bytes: 16 * 1024 * MiB,
  vpn_peers: 10,
} as const;

/**
 * What a host is believed to offer at most, before an operator says otherwise: far above the
 * largest machine that is sold, and low enough that one host which lies does not take every
 * placement of a platform for long.
 */
export const defaultHostCeiling = {
  cpu_millis: 1024 * 1000,
  mem_bytes: 64 * 1024 * 1024 * MiB,
  containers: 10_000,
} as const;
