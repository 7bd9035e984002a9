/** Work of an agent on its host: engine, images, network, disk. */
import { KiB, MiB, seconds, minutes, hours, days } from './units.ts';

export const agent = {
  stopGraceMs: 10 * seconds,
  /** The time between two looks at a container that was given another signal than its image's. */
  stopLookMs: 200,
  restartBackoffMinMs: 1 * seconds,
  restartBackoffMaxMs: 60 * seconds,
  restartBackoffForgetMs: 10 * minutes,
  /** Ends in a row before they are called a loop. */
  loopEnds: 3,
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
  /**
   * The time of one run of nft, the size of its output, and the interval of the probe that tests
   * the rules from inside a container.
   */
  nftMs: 10 * seconds,
  nftOutputBytes: 4 * MiB,
  firewallProbeMs: 10 * minutes,
  /** A call of longshore-net, and how long a start waits for that program to be there. */
  netCallMs: 10 * seconds,
  netPatienceMs: 2 * seconds,
  netRetryMs: 100,
  /** A peer may end later than a timer can count. */
  vpnEndLookMs: 1 * hours,
  /** Entries of CONTAINER_EGRESS_ALLOW, and of CONTAINER_EGRESS_DENY. */
  egressRules: 256,
  nameservers: 8,
  probeMs: 60 * seconds,
  probePatienceMs: 3 * seconds,
  probeMemoryBytes: 256 * MiB,
  probePids: 64,
  probeOutputChars: 64 * KiB,
  /**
   * Bytes that are kept of one answer of the engine; the rest is skipped as it arrives
   * (docker/json-filter.ts).
   */
  engineAnswerBytes: 4 * MiB,
  engineLineBytes: 1 * MiB,
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
  /** Names of one image that are kept, of those that no container here needs. */
  namesOfImage: 16,
  /** Characters of the path of a volume in a report; a longer one is not reported. */
  volumePathChars: 512,
  /** Time for which a host keeps the volumes of a container that has left it. */
  volumesLeftMs: 7 * days,
  /** Hosts of one container that are known to have such volumes. */
  leftHosts: 8,
  /** Layers of a pull whose progress is told. Docker's storage holds 125 of an image. */
  pullLayers: 256,
  /**
   * The first pause after a registry has limited the rate of pulls, which doubles, and the longest
   * that it may ask for.
   */
  pullLimitedMs: 1 * minutes,
  pullLimitedMaxMs: 1 * hours,
  /** Pulls in places; one that takes longer than `pullPatienceMs` moves to a place aside. */
  concurrentPulls: 8,
  concurrentSlowPulls: 16,
  pullPatienceMs: 2 * minutes,
  /** Pulls of one tenant at a time, and in places from one registry, so that neither takes all. */
  pullsPerTenant: 2,
  pullsPerRegistry: 4,
  /** Asks for sealed values at a time, and how long each waits for its answer. */
  concurrentUnseals: 8,
  unsealTimeoutMs: 5 * seconds,
  /** Bytes of secrets as files in the memory of a host, and of one tenant's. */
  secretFilesBytes: 128 * MiB,
  secretFilesOfTenant: 16 * MiB,
  /** Proofs of access to images, and tenants that have one for the same image and repository. */
  imageProofs: 10_000,
  imageProvers: 1000,
  /** Images on a host that only this tenant has, and that came with a login. */
  privateImagesOfTenant: 1000,
  /** Rules in the list of a tenant, of one of its regions, or of an agent. */
  registryRules: 64,
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
  /** A list of the engine's containers that fails for this long is a fault of the host. */
  engineDegradedMs: 10 * seconds,
  /** Sandboxes that wait ready. */
  sandboxPool: 4,
  sandboxPoolMax: 64,
  /** Sandboxes made at a time: each slows down the others, and calls have deadlines. */
  concurrentSandboxes: 8,
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
  /**
   * Time in which a container that was evicted under pressure disappears, before the next is
   * evicted.
   */
  diskReliefMs: 2 * minutes,
  imagesHighPercent: 85,
  imagesLowPercent: 75,
  /** The time between two looks for images that were unused for long. */
  imagesUnusedLookMs: 1 * hours,
  diskPressurePercent: 90,
  /** Pressure is over when the use of the disk is this much below the threshold. */
  diskReliefPercent: 5,
  /** Failed probes in a row before the engine counts as away: a busy machine may lose one. */
  engineProbesFailed: 2,
  /** Delay with which the record of pulled images is written after a change. */
  imagesFlushMs: 1 * seconds,
  /** Characters of what a failed health check says, and how soon checks follow a start. */
  healthFaultChars: 512,
  healthStartMs: 1 * seconds,
  /** Characters of the message in a reported observation. */
  observationMessageChars: 1024,
  /**
   * Bytes of changes to the desired set, and to restart states, before the whole is written again.
   */
  stateLogBytes: 256 * KiB,
  /** One check of `host-agent doctor`: some calls of the engine, each up to its own deadline. */
  doctorCheckMs: 20 * seconds,
  /** Time that it waits for the answer of an owner. */
  doctorAnswerMs: 4 * seconds,
} as const;
