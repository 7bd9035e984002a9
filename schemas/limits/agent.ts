/** Work of an agent on its host: engine, images, network, disk. */
import { KiB, MiB, seconds, minutes, hours, days } from './units.ts';

export const agent = {
  stopGraceMs: 10 * seconds,
  restartBackoffMinMs: 1 * seconds,
  restartBackoffMaxMs: 60 * seconds,
  /** Ends in a row before the status is a crash loop. */
  loopEnds: 3,
  /**
   * An update is rolled back if its new version can't be made in so many tries, or ends so often in
   * the time in which it must stay up.
   */
  updateTries: 5,
  updateEnds: 3,
  updateVerifyMs: 1 * minutes,
  engineCallMs: 30 * seconds,
  /** The longest pull, even while bytes arrive. */
  enginePullMs: 24 * hours,
  engineProbeMs: 5 * seconds,
  engineConnections: 128,
  /** Entries of CONTAINER_EGRESS_ALLOW, and of CONTAINER_EGRESS_DENY. */
  egressRules: 256,
  nameservers: 8,
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
  /** The most kept names of one image that no container here needs. */
  namesOfImage: 16,
  /** Characters of the path of a volume in a report; a longer one is not reported. */
  volumePathChars: 512,
  /** Time for which a host keeps the volumes of a container that has left it. */
  volumesLeftMs: 7 * days,
  /** The most recorded hosts of one container that have such volumes. */
  leftHosts: 8,
  /** The longest pause that a registry may ask for after it has limited the rate of pulls. */
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
  /** Bytes of secrets as files in the memory of a host, in all and of one tenant. */
  secretFilesBytes: 128 * MiB,
  secretFilesOfTenant: 16 * MiB,
  /** Images on a host that only this tenant has, and that came with a login. */
  privateImagesOfTenant: 1000,
  /** Rules in the list of a tenant, of one of its regions, or of an agent. */
  registryRules: 64,
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
  /** The most containers in one ask that the desired set does not name. */
  syncStrangers: 500,
  /** The most partitions in one answer to a sync, besides its own. */
  syncSame: 256,
  /** A step that takes longer than this moves to the slow steps, of which so many run at a time. */
  stepPatienceMs: 2 * seconds,
  concurrentSlowSteps: 24,
  /** The time for which an inspection counts without an event or a list about it. */
  inspectionTrustMs: 2 * minutes,
  /** Sandboxes that wait ready. */
  sandboxPool: 4,
  sandboxPoolMax: 64,
  /** Below the ports that Linux gives to outgoing connections (32768 to 60999). */
  publishPortFirst: 20_000,
  publishPortLast: 31_999,
  containerPids: 1024,
  containerShmBytes: 64 * MiB,
  /**
   * The bytes that a container may write to its host's disk: in its writable layer and the volumes
   * of its image.
   */
  containerDiskBytes: 10 * 1024 * MiB,
  diskIntervalMs: 30 * seconds,
  /** The time between two checks of the fill of the engine's disk. */
  diskLookMs: 5 * seconds,
  /** The time for measuring one container, or all volumes. */
  diskMeasureMs: 1 * minutes,
  imagesHighPercent: 85,
  imagesLowPercent: 75,
  /** The time between two searches for images that were unused for long. */
  imagesUnusedLookMs: 1 * hours,
  diskPressurePercent: 90,
  /** Delay with which the record of pulled images is written after a change. */
  imagesFlushMs: 1 * seconds,
  /** The longest time between two health checks during a start, and the wait for the first. */
  healthStartMs: 1 * seconds,
  /** Characters of the message in a reported observation. */
  observationMessageChars: 1024,
  /**
   * Bytes of changes to the desired set, and to restart states, before the whole is written again.
   */
  stateLogBytes: 256 * KiB,
  /** One check of `host-agent doctor`: some calls of the engine, each up to its own deadline. */
  doctorCheckMs: 20 * seconds,
  /** The wait of the doctor for the answer of an owner. */
  doctorAnswerMs: 4 * seconds,
} as const;
