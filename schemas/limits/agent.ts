/** Work of an agent on its host: engine, images, network, disk. */
import { KiB, MiB, seconds, minutes, hours, days } from './units.ts';

export const agent = {
  stopGraceMs: 10 * seconds,
  /** The time between two looks at a container that was given another signal than its image's. */
  stopLookMs: 200,
  restartBackoffMinMs: 1 * seconds,
  restartBackoffMaxMs: 60 * seconds,
  restartBackoffForgetMs: 10 * minutes,
  /**
   * An update is rolled back when its new version can't be made in so many tries, or ends so often
   * before it has stood for so long.
   */
  updateTries: 5,
  updateEnds: 3,
  updateVerifyMs: 1 * minutes,
  engineCallMs: 30 * seconds,
  /** The longest pull, even while bytes arrive. */
  enginePullMs: 24 * hours,
  engineProbeMs: 5 * seconds,
  engineConnections: 128,
  /** An unused connection to the engine is closed after so long. */
  engineIdleMs: 30 * seconds,
  /**
   * The time of one run of nft, the size of its output, and the interval of the probe that tests
   * the rules from inside a container.
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
  /** Characters of an engine's text in one line of the agent's log. */
  engineDetailChars: 1000,
  /**
   * Bytes that are kept of one answer of the engine; the rest is skipped as it arrives
   * (docker/sieve.ts).
   */
  engineAnswerBytes: 4 * MiB,
  engineLineBytes: 1 * MiB,
  /** Bytes of an event's action that are read: `exec_create` repeats a whole command after it. */
  engineActionBytes: 64,
  /**
   * Metadata of an image, which the engine repeats for each of its containers; an image with more
   * is refused.
   */
  imageConfigBytes: 1 * MiB,
  imageLabelBytes: 128 * KiB,
  /** Bytes of the names of an image's labels; their values are blanked at create. */
  imageLabelNameBytes: 8 * KiB,
  imageCommandBytes: 64 * KiB,
  imageEnvBytes: 64 * KiB,
  /** Bytes of the rest of it: user, working directory, shell, names of ports and volumes. */
  imageOtherBytes: 32 * KiB,
  imagePorts: 256,
  imageVolumes: 16,
  /** Characters of the path of a volume in a report; a longer one is not reported. */
  volumePathChars: 512,
  /** Time for which a host keeps the volumes of a container that has left it. */
  volumesLeftMs: 7 * days,
  /** Delay with which the time that they were kept is written after a change. */
  volumesFlushMs: 10 * minutes,
  /** A pull ends after this time without progress. */
  enginePullIdleMs: 60 * seconds,
  /** Multiple of that time that it may wait for other pulls of the engine. */
  enginePullQueuedTimes: 30,
  /** Layers of a pull whose progress is told. Docker's storage holds 125 of an image. */
  pullLayers: 256,
  /** Pulls in places; one that takes longer than `pullPatienceMs` moves to a place aside. */
  concurrentPulls: 8,
  concurrentSlowPulls: 16,
  pullPatienceMs: 2 * minutes,
  /** The time between two reports of the progress of pulls. */
  pullReportMs: 1 * seconds,
  /** Pulls of one tenant at a time, and in places from one registry, so that neither takes all. */
  pullsPerTenant: 2,
  pullsPerRegistry: 4,
  /** Asks for sealed values at a time, and how long each waits for its answer. */
  concurrentUnseals: 8,
  unsealTimeoutMs: 5 * seconds,
  /** Bytes of sealed values on the state disk; what is over is asked for at each use. */
  boxesBytes: 512 * MiB,
  /** Bytes of secrets as files in the memory of a host, and of one tenant's. */
  secretFilesBytes: 128 * MiB,
  secretFilesOfTenant: 16 * MiB,
  /** Proofs of access to images, and tenants that have one for the same image and repository. */
  imageProofs: 10_000,
  imageProvers: 1000,
  /** Proofs that a full record gives up for a new one: each takes a look at all of it. */
  imageProofsGoing: 8,
  /** Images on a host that only this tenant has, and that came with a login. */
  privateImagesOfTenant: 1000,
  /** Rules in the list of a tenant, of one of its regions, or of an agent. */
  registryRules: 64,
  /** Time in which a registry's name must resolve, before the pull that needs it is postponed. */
  registryLookupMs: 10 * seconds,
  /** The wait for the answer of one name server, before the next is asked. */
  nameserverMs: 2 * seconds,
  concurrentStops: 64,
  /**
   * Stops that have taken longer than their grace. `engineConnections` is larger than all such
   * bounds together.
   */
  concurrentSlowStops: 16,
  concurrentSteps: 8,
  /**
   * The time in which every actors process learns of a fence, and an agent can no longer get
   * another answer.
   */
  fenceMarginMs: 2 * minutes,
  /**
   * Time that an agent that starts without proof of a recent contact waits for an answer before it
   * stops its containers.
   */
  firstContactMs: 5 * seconds,
  /** Greatest age of the last contact on an agent's disk. */
  contactWriteMs: 10 * seconds,
  /** Time that an agent that ends waits for its last answer, and for its connection to close. */
  farewellMs: 2 * seconds,
  /** Containers that one sync asks about, because the desired set does not know them. */
  syncStrangers: 500,
  /** Partitions that one answer to a sync speaks for, besides its own. */
  syncSame: 256,
  /** A step that takes longer than this moves to the slow steps, of which so many run at a time. */
  stepPatienceMs: 2 * seconds,
  concurrentSlowSteps: 24,
  /** Time for which an inspection counts that no event, and no list, has touched. */
  inspectionTrustMs: 2 * minutes,
  /** References whose images are known without asking the engine. */
  imagesRemembered: 1000,
  /** Images whose configuration is known without asking; each is at most `imageConfigBytes`. */
  imageDetailsRemembered: 16,
  /** The time between two looks at the processes of the host: each reads a file of every one. */
  portProxyLookMs: 5 * minutes,
  /** A list of the engine's containers that fails for this long is a fault of the host. */
  engineDegradedMs: 10 * seconds,
  /** Quick exits in a row before they are called a loop. */
  crashLoopExits: 3,
  /** Samples of the event loop's delay: every 10 ms they take 0.004 cores, so often 0.0007. */
  agentLoopTickMs: 100,
  /** Sandboxes that wait ready. */
  sandboxPool: 4,
  sandboxPoolMax: 64,
  /** Sandboxes made at a time: each slows down the others, and calls have deadlines. */
  concurrentSandboxes: 8,
  /** Its program needs a few pages; the engine refuses less than 6 MiB. */
  sandboxMemoryBytes: 16 * MiB,
  /** Ports of the host that are tried for one sandbox. */
  sandboxPortTries: 8,
  /** Below the ports that Linux gives to outgoing connections (32768 to 60999). */
  publishPortFirst: 20_000,
  publishPortLast: 31_999,
  containerPids: 1024,
  containerShmBytes: 64 * MiB,
  /**
   * Bytes that a container may write to its host's disk: in its writable layer and the volumes that
   * its image names.
   */
  containerDiskBytes: 10 * 1024 * MiB,
  diskIntervalMs: 30 * seconds,
  /** The time between two checks of how full the engine's disk is. */
  diskLookMs: 5 * seconds,
  /** The time for measuring one container, or all volumes. */
  diskMeasureMs: 1 * minutes,
  /** Measurements at a time, of containers of different tenants or of the volumes. */
  diskMeasurements: 2,
  /**
   * Time in which a container that was evicted under pressure disappears, before the next is
   * evicted.
   */
  diskReliefMs: 2 * minutes,
  imagesHighPercent: 85,
  imagesLowPercent: 75,
  /** Two weeks. */
  imagesUnusedMs: 336 * hours,
  /** The time between two looks for images that were unused for long. */
  imagesUnusedLookMs: 1 * hours,
  diskPressurePercent: 90,
  /** Pressure is over when the use of the disk is this much below the threshold. */
  diskReliefPercent: 5,
  /** Images in an agent's record of those that it pulled. */
  imagesRecorded: 5000,
  /** Ports of one Linux bridge; all tenants' containers of a host are on one. */
  bridgePorts: 1023,
  containersPerHost: 500,
  /** Failed probes in a row before the engine counts as away: a busy machine may lose one. */
  engineProbesFailed: 2,
  /**
   * Bytes of a member's name in an answer of the engine: no member that is kept has a longer one.
   */
  engineNameBytes: 256,
  /** Levels of nesting in an answer of the engine. */
  engineAnswerLevels: 64,
  /** Delay with which the record of pulled images is written after a change. */
  imagesFlushMs: 1 * seconds,
  /** Characters of what a failed health check says, and how soon checks follow a start. */
  healthFaultChars: 512,
  healthStartMs: 1 * seconds,
  /** Characters of the message in a reported observation. */
  observationMessageChars: 1024,
  /** The time between two checks of a removal that the engine itself carries out. */
  removalLookMs: 1 * seconds,
  /**
   * The wait before another step for a container whose last engine call had no answer, or hit a
   * bug.
   */
  stepOutageRetryMs: 1 * seconds,
  stepBugRetryMs: 5 * seconds,
  /**
   * Bytes of changes to the desired set, and to restart states, before the whole is written again.
   */
  stateLogBytes: 256 * KiB,
  /**
   * Delay with which the desired set is written after a change: with others, where many containers
   * start.
   */
  desiredFlushMs: 100,
  /** Delay with which restart states are written after a change. */
  restartStateFlushMs: 500,
  /** Time that `host-agent join` waits for the gateway. */
  joinMs: 1 * minutes,
  /** One check of `host-agent doctor`: some calls of the engine, each up to its own deadline. */
  doctorCheckMs: 20 * seconds,
  /** Running containers, the newest, that the engine is asked for figures of. */
  doctorContainersAsked: 3,
  /** Time that it waits for the answer of an owner. */
  doctorAnswerMs: 4 * seconds,
  /** Offsets of the host's clock that are a warning, and a failure. */
  doctorClockWarnMs: 5 * seconds,
  doctorClockFailMs: 5 * minutes,
  /** Free bytes of the state folder's disk, below which the agent soon cannot write. */
  doctorStateBytes: 64 * MiB,
  /** Ports in use that one line of the doctor names. */
  doctorPortsNamed: 8,
  /** Processes that one line of the doctor names. */
  doctorShimsNamed: 8,
  /** Layers that the engine may fetch at a time: eight pulls of many layers. */
  doctorDownloads: 64,
  /** The engine refuses less than a hundredth of a CPU. */
  engineCpuMillisMin: 10,
} as const;
