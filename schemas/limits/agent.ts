/** What an agent does on its host: engine, images, network, disk. */
import { KiB, MiB, seconds, minutes } from './units.ts';

export const agent = {
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
  /** Failed probes in a row before the engine counts as away: a busy machine may lose one. */
  engineProbesFailed: 2,
  /** Of a member's name in an answer of the engine: no member that is kept has a longer one. */
  engineNameBytes: 256,
  /** Nesting of an answer of the engine. */
  engineAnswerLevels: 64,
  /** The list of pulled images is written this long after a change. */
  imagesFlushMs: 1 * seconds,
  /** Of the message in a reported observation. */
  observationMessageChars: 1024,
  /** Between two looks at a removal that the engine itself carries out. */
  removalLookMs: 1 * seconds,
  /** Before another step for a container whose last engine call had no answer, or hit a bug. */
  stepOutageRetryMs: 1 * seconds,
  stepBugRetryMs: 5 * seconds,
  /** Restart states are written this long after a change. */
  restartStateFlushMs: 500,
  /** The engine refuses less than a hundredth of a CPU. */
  engineCpuMillisMin: 10,
} as const;
