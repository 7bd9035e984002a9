/** Builds what runs containers: the engine, images, logs, firewall, disk, and the reconciler. */
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import type { BackoffBounds } from '../lib/time/backoff.ts';
import { every } from '../lib/time/every.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Tracer } from '../lib/trace/tracer.ts';
import type { Capacity } from '../schemas/api/host.ts';
import type { ContainerId } from '../schemas/ids.ts';
import { minutes } from '../schemas/limits/units.ts';
import type { MeshEnd } from '../schemas/wire/mesh.ts';
import type { PullItem } from '../schemas/wire/host.ts';
import type { Sender } from '../schemas/wire/subjects.ts';
import type { Request } from './link/connection.ts';
import type { Lease } from './link/lease.ts';
import type { Reporter } from './link/reporter.ts';
import { createEvictor, type Evictor } from './disk/evictor.ts';
import { diskLimitOf, evictionWords } from './disk/plan.ts';
import type { StateDisk } from './disk/state-disk.ts';
import { createDiskWatch, type DiskWatch } from './disk/watch.ts';
import { createEngineMonitor, type EngineMonitor, type EngineWatcher } from './docker/engine-monitor.ts';
import type { Info } from './docker/answers.ts';
import { createCachedEngine, type CachedEngine } from './docker/cached-engine.ts';
import { createEngine } from './docker/engine.ts';
import type { Owner } from './docker/ownership.ts';
import { createTransport, isHere, type Transport } from './docker/transport.ts';
import type { Faults } from './faults.ts';
import { createHealthChecks } from './health/checks.ts';
import { probe } from './health/probe.ts';
import { createImageCollector, type ImageCollector } from './images/collector.ts';
import { configBytes } from './images/config-size.ts';
import { createPulls, type Pulls } from './images/pulls.ts';
import { createPermit, isVouched } from './images/registries.ts';
import { systemResolve } from './images/resolve.ts';
import { createCollector } from './logs/collector.ts';
import { logPathOf } from './logs/files/ring.ts';
import { createPasses } from './logs/passes.ts';
import { createPublish } from './logs/publish.ts';
import { createLogTurns } from './logs/rates.ts';
import type { Metrics } from './metrics.ts';
import { createFirewall, type Firewall } from './network/firewall.ts';
import { watchPortProxies } from './network/port-proxy.ts';
import { createNetworkKeeper } from './network/network.ts';
import { hostNetworks } from './network/range-overlap.ts';
import { TenantNetwork } from './network/tenant-network.ts';
import { createExecutor } from './reconcile/execute/execute.ts';
import { createPresentContainers, type PresentContainers } from './reconcile/observe/present.ts';
import { createReconciler, type Reconciler } from './reconcile/reconciler.ts';
import { overDisk, withinDisk, type RestartState } from './reconcile/restart/restart-state.ts';
import { SandboxPool, type Sandboxes } from './sandbox/sandboxes.ts';
import { openDeclaredFiles } from './secrets/declared-files.ts';
import { openSecretFiles } from './secrets/files.ts';
import { neededSealed } from './secrets/needed.ts';
import type { Values } from './secrets/values.ts';
import { VpnKeys } from './secrets/vpn-keys.ts';
import { logRatesOf, publishPortsOf, type AgentSettings } from './settings.ts';
import type { State } from './state.ts';
import { createCgroups, type Cgroups } from './usage/cgroups.ts';
import { createLiveStats, type LiveStats } from './usage/live-stats.ts';
import { OomKills } from './usage/oom-kills.ts';
import { countPeers } from './usage/peers.ts';
import { createUsageReports, type UsageReports } from './usage/reports.ts';
import { createSampler, type Sampler, type UseBoard } from './usage/sampler.ts';
import type { LimitingHost } from './spec/create-body.ts';
import { createVolumes, type Volumes } from './volumes/volumes.ts';
import { capacityOf, type Machine } from './desired/capacity.ts';
import { containersOf } from './desired/desired-set.ts';
import { createWorkload, type Workload } from './desired/workload.ts';

/**
 * The time between two checks of the host's processes; each check reads a file of every process.
 */
const portProxyLookMs = 5 * minutes;

export interface ContainersParts {
  readonly settings: AgentSettings;
  readonly owner: Owner;
  /** Replaces HTTP to DOCKER_HOST. */
  readonly transport: Transport | undefined;
  readonly state: State;
  readonly disk: StateDisk;
  readonly faults: Faults;
  readonly reporter: Reporter;
  readonly request: Request;
  readonly lease: Pick<Lease, 'verdict' | 'events'>;
  readonly values: Values;
  readonly sender: Sender;
  /** Shows what each container uses; `undefined` if that is off. */
  readonly containerUse: UseBoard | undefined;
  readonly retry: BackoffBounds;
  readonly clock: Clock;
  readonly steadyMs: () => number;
  /** `undefined` if tracing is off. */
  readonly tracer: Tracer | undefined;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface Containers {
  readonly engine: CachedEngine;
  readonly workload: Workload;
  readonly present: Pick<PresentContainers, 'lastListedMs'>;
  readonly monitor: EngineMonitor;
  readonly firewall: Firewall;
  readonly disk: Pick<DiskWatch, 'usedPercent' | 'freeBytes'> & Pick<Evictor, 'unknown'>;
  readonly sandboxes: Pick<Sandboxes, 'counts' | 'freePorts'> | undefined;
  readonly pulls: Pick<Pulls, 'counts' | 'moved'>;
  readonly liveStats: Pick<LiveStats, 'watch'>;
  readonly volumes: Pick<Volumes, 'strangers' | 'applyVerdicts' | 'left'>;
  /** This host's end of the mesh between hosts; `undefined` if there is no mesh. */
  meshEnd(): MeshEnd | undefined;
  /** The progress of the pulls that containers wait for. */
  pulling(): readonly PullItem[];
  capacity(): Capacity;
  /**
   * Resolves after the signal has aborted and the work in progress has ended.
   * @param onStrangers the engine has containers that the desired set does not name
   */
  run(listener: { readonly onStrangers: () => void }, signal: AbortSignal): Promise<void>;
  /** Begins nothing more; containers keep running. */
  stop(): Promise<void>;
  /** The last calls to the engine. */
  close(): Promise<void>;
}

/** The engine's machine, from `GET /info`; until the engine has answered, this machine. */
interface EngineHost {
  readonly machine: Machine;
  readonly rootDir: string | undefined;
  /** As the kernel names it, such as `x86_64`. */
  readonly architecture: string;
  readonly unkept: LimitingHost['unkept'];
}

const unkeptBy = ({ SwapLimit, PidsLimit, CPUShares, CPUSet }: Info): LimitingHost['unkept'] => [
  ...(SwapLimit === false ? (['MemorySwap'] as const) : []),
  ...(PidsLimit === false ? (['PidsLimit'] as const) : []),
  ...(CPUShares === false ? (['CpuShares'] as const) : []),
  ...(CPUSet === false ? (['CpusetCpus'] as const) : []),
];

export async function createContainers(parts: ContainersParts): Promise<Containers> {
  const { settings, owner, state, lease, faults, reporter, retry, clock, steadyMs, metrics, log } = parts;
  const { spool } = state;
  const nowMs = (): number => clock.nowMs();
  let engineHost: EngineHost = {
    machine: { cores: availableParallelism(), memBytes: totalmem() },
    rootDir: undefined,
    architecture: process.arch === 'arm64' ? 'aarch64' : 'x86_64',
    unkept: [],
  };
  const cpuMillis = (): number => engineHost.machine.cores * 1000;
  const capacity = (): Capacity => capacityOf(settings, engineHost.machine);
  const transport =
    parts.transport ??
    createTransport(settings.DOCKER_HOST, (name, seconds, outcome) => metrics.engineCall(name, outcome, seconds));
  const cgroups = isHere(settings.DOCKER_HOST) ? createCgroups() : undefined;
  const oomKills = cgroups === undefined ? undefined : new OomKills(cgroups);
  const cached = createCachedEngine(createEngine(transport), owner, steadyMs);
  const monitor = createEngineMonitor({
    engine: cached,
    owner,
    probeIntervalMs: settings.HEARTBEAT_INTERVAL,
    backoff: retry,
    clock,
    steadyMs,
    log,
  });
  const usage = createUsage(parts, oomKills?.over(cached) ?? cached, cgroups, monitor);
  const engine = usage.sampler.sampled;

  const present = createPresentContainers(engine, faults, clock);
  const { store, restartStore } = state;
  const { cluster } = owner;
  const workload = createWorkload({ cluster, store, capacity, present, orphans: restartStore, log });
  lease.events.on('verdict', (verdict) => workload.isolate(verdict === 'stop'));
  workload.isolate(lease.verdict() === 'stop');

  const turns = createLogTurns(logRatesOf(settings), clock);
  const publish = createPublish({ ...parts, host: owner.host, turns, backoff: retry });
  const logPath = (dockerId: string): string | undefined => {
    const { rootDir } = engineHost;
    const readsFiles = isHere(settings.DOCKER_HOST) && settings.LOG_SOURCE === 'files';
    return readsFiles && rootDir !== undefined ? logPathOf(rootDir, dockerId) : undefined;
  };
  const runPass = createPasses({ engine, logPath, clock, metrics, log });
  const logs = createCollector({ ...parts, ...state, runPass, publish, backoff: retry });
  const firewall = createFirewall({ settings, engine, owner, faults, metrics, steadyMs, log });
  const images = await createImageCollector({
    engine,
    stateDir: settings.STATE_DIR,
    policy: settings.IMAGES_COLLECTED,
    wanted: workload.images,
    nowMs,
    access: state.imageAccess,
    metrics,
    disk: parts.disk,
    log,
  });
  const permit = createPermit(settings.REGISTRIES_ALLOWED, systemResolve);
  const pulls = createPulls({
    engine: images.recording,
    access: state.imageAccess,
    logins: parts.values.login,
    permit,
    isVouched: (registry) => isVouched(registry, settings.REGISTRIES_ALLOWED),
    metrics,
    log,
  });
  const ensureNetwork = createNetworkKeeper(engine, owner);
  const sandboxes =
    settings.LONGSHORE_SANDBOX === 'off'
      ? undefined
      : new SandboxPool({
          engine,
          owner,
          publishAddress: settings.PUBLISH_ADDRESS,
          ports: publishPortsOf(settings),
          size: settings.LONGSHORE_SANDBOX_POOL,
          architecture: () => engineHost.architecture,
          ensureNetwork,
          isCutOff: cgroups?.isCutOff,
          metrics,
          log,
        });
  const secretFiles = await openSecretFiles({
    root: settings.SECRET_FILES_DIR,
    isEngineHere: isHere(settings.DOCKER_HOST),
    owner,
    values: parts.values,
    log,
  });
  const declaredFiles = await openDeclaredFiles({
    stateDir: settings.STATE_DIR,
    isEngineHere: isHere(settings.DOCKER_HOST),
    values: parts.values,
    log,
  });
  const volumes = createVolumes({
    engine,
    owner,
    record: state.volumes,
    isWanted: workload.knows,
    isPresent: (id) => present.all()?.has(id),
    steadyMs,
    log,
  });
  const vpnKeys = new VpnKeys({ values: parts.values, nowMs, log });
  const tenantNetwork =
    sandboxes === undefined || settings.NET_SOCKET === undefined
      ? undefined
      : new TenantNetwork({
          cluster,
          host: owner.host,
          socket: settings.NET_SOCKET,
          mtu: settings.MESH_MTU,
          meshAt: settings.MESH === 'on' ? settings.MESH_ADDRESS : undefined,
          resolvConf: join(settings.STATE_DIR, 'network', 'resolv.conf'),
          engine,
          wayOut: (isWanted) => sandboxes.wayOut(isWanted),
          networks: hostNetworks,
          vpnKeys,
          kept: () => state.members.flush(),
          onPeers: (peers) => countPeers(state.usage, peers),
          nowMs: () => clock.nowMs(),
          faults,
          onChange: (id) => reconciler.enqueue(id),
          log,
        });
  if (tenantNetwork !== undefined) {
    const { members } = state;
    const name = (own = containersOf(workload.desired())): void => tenantNetwork.name(members, own);
    name();
    members.events.on('changed', () => name());
    workload.events.on('desired', () => {
      const own = containersOf(workload.desired());
      name(own);
    });
  }
  const executor = createExecutor({
    engine: images.recording,
    owner,
    pulls,
    logs,
    firewall,
    sandboxes,
    tenantNetwork,
    ensureNetwork,
    configBytes: (imageId) => configBytes(isHere(settings.DOCKER_HOST) ? engineHost.rootDir : undefined, imageId),
    secretsDir: settings.SECRETS_DIR,
    values: parts.values,
    secretFiles,
    declaredFiles,
    volumes,
    publishAddress: settings.PUBLISH_ADDRESS,
    capabilities: settings.CONTAINER_CAPABILITIES,
    diskBytes: settings.CONTAINER_DISK_BYTES,
    stopGraceMs: settings.STOP_GRACE,
    cpuMillis,
    unkept: () => engineHost.unkept,
    nowMs,
    log,
  });
  present.events.on('listed', (list) => {
    void sandboxes
      ?.look(list, workload.knows)
      .catch((error: unknown) => log.debug('sandboxes_check_failed', { error }));
    void tenantNetwork
      ?.look(list.users, (id) => present.all()?.get(id)?.tenant, workload.knows)
      .catch((error: unknown) => log.debug('tenant_network_look_failed', { error }));
  });
  const health = createHealthChecks({ probe, isLocal: isHere(settings.DOCKER_HOST), steadyMs, metrics });
  const reconciler = createReconciler({
    workload,
    present,
    lease,
    engine,
    health,
    secretFiles,
    declaredFiles,
    volumes,
    monitor,
    executor,
    sandboxes,
    tenantNetwork,
    logs,
    reporter,
    restartStore,
    engineHost: () => ({ cpuMillis: cpuMillis(), unkept: engineHost.unkept }),
    updateVerifyMs: settings.UPDATE_VERIFY,
    backoff: { minMs: settings.RESTART_BACKOFF_MIN, maxMs: settings.RESTART_BACKOFF_MAX },
    clock,
    steadyMs,
    tracer: parts.tracer,
    metrics,
    log,
  });
  reconciler.start();
  const share = createDisk(parts, engine, { images, workload, reconciler, monitor, rootDir: () => engineHost.rootDir });

  const onUp = async (): Promise<void> => {
    const info = await engine.info();
    const { NCPU, MemTotal, DockerRootDir, Architecture } = info;
    engineHost = {
      machine: { cores: NCPU, memBytes: MemTotal },
      rootDir: DockerRootDir,
      architecture: Architecture ?? engineHost.architecture,
      unkept: unkeptBy(info),
    };
    // Before anything is started.
    await firewall.look();
    await reconciler.onEngine(monitor.status());
  };

  return {
    engine,
    workload,
    present,
    monitor,
    firewall,
    sandboxes,
    pulls,
    volumes,
    meshEnd: () => tenantNetwork?.end(),
    liveStats: createLiveStats({ engine, cgroups, clock, log }),
    pulling: () =>
      [...pulls.progress()].flatMap(([id, progress]) => {
        const wanted = workload.wanted(id);
        if (!('container' in wanted)) return [];
        const { tenant, generation } = wanted.container;
        return [{ tenant, id, generation, ...progress }];
      }),
    disk: { usedPercent: share.watch.usedPercent, freeBytes: share.watch.freeBytes, unknown: share.evictor.unknown },
    capacity,
    run: async ({ onStrangers }, signal) => {
      const watcher: EngineWatcher = {
        onUp: async () => {
          await onUp();
          if (workload.unjudged().length > 0) onStrangers();
        },
        onAway: (sinceMs) => void reconciler.onEngine({ phase: 'away', sinceMs }),
        onWatched: engine.setWatched,
        onChange: engine.heardChange,
        onEvent: (event) => {
          const id = engine.heard(event) ?? sandboxes?.heard(event);
          if (id !== undefined) reconciler.enqueue(id);
        },
      };
      const syncMs = (): number => settings.SYNC_INTERVAL;
      /** Finds changes whose events were lost. */
      const sweep = async (): Promise<void> => {
        try {
          await reconciler.sweep();
          if (monitor.status().phase === 'up') await volumes.look();
        } catch (error) {
          log.debug('sweep_failed', { error });
          monitor.suspect();
        }
      };
      /** Drops sealed values that this host does not need again. */
      const pruneSealedCache = (): Promise<void> => {
        const versions = workload.versions();
        return state.sealedCache.prune(
          versions === undefined ? undefined : [...neededSealed(versions), ...vpnKeys.kept()],
        );
      };
      const lookAtPeers = async (): Promise<void> =>
        tenantNetwork?.lookAtPeers().catch((error: unknown) => log.debug('peers_look_failed', { error }));
      await Promise.all([
        monitor.run(watcher, signal),
        spool.run(publish, signal),
        share.watch.run(signal),
        share.evictor.run(signal),
        ...(isHere(settings.DOCKER_HOST) ? [watchPortProxies(portProxyLookMs, log, signal)] : []),
        oomKills?.run(signal),
        usage.sampler.run(signal),
        usage.reports.run(signal),
        every(() => settings.USAGE_INTERVAL, lookAtPeers, signal),
        firewall.run(settings.SYNC_INTERVAL, signal),
        every(syncMs, sweep, signal),
        every(syncMs, pruneSealedCache, signal),
      ]);
    },
    stop: async () => {
      pulls.stop();
      health.stop();
      await Promise.all([reconciler.stop(), logs.stop(), sandboxes?.stop()]);
    },
    close: async () => {
      await images.flush();
      engine.close();
      tenantNetwork?.close();
    },
  };
}

/** Counts what containers use, and reports it. */
function createUsage(
  { settings, state, request, reporter, sender, containerUse, metrics, log }: ContainersParts,
  engine: CachedEngine,
  cgroups: Cgroups | undefined,
  monitor: EngineMonitor,
): { readonly sampler: Sampler; readonly reports: UsageReports } {
  const store = state.usage;
  const reports = createUsageReports({
    store,
    partitions: () => reporter.session()?.partitions,
    sender,
    request,
    everyMs: settings.USAGE_REPORT_INTERVAL,
    peersEveryMs: settings.USAGE_INTERVAL,
    onReport: metrics.usageReported,
    onRefused: metrics.usageRefused,
    log,
  });
  const sampler = createSampler({
    engine,
    cgroups,
    store,
    isEngineUp: () => monitor.status().phase === 'up',
    intervalMs: settings.USAGE_INTERVAL,
    onSampled: metrics.usageSampled,
    board: containerUse,
    onEnded: reports.ended,
    log,
  });
  return { sampler, reports };
}

/** Watches how full the engine's disk is, and stops containers that exceed their share. */
function createDisk(
  { settings, state, faults, metrics, steadyMs, log }: ContainersParts,
  engine: CachedEngine,
  {
    images,
    workload,
    reconciler,
    monitor,
    rootDir,
  }: {
    readonly images: ImageCollector;
    readonly workload: Pick<Workload, 'wanted'>;
    readonly reconciler: Pick<Reconciler, 'enqueue'>;
    readonly monitor: EngineMonitor;
    readonly rootDir: () => string | undefined;
  },
): { readonly watch: DiskWatch; readonly evictor: Evictor } {
  const isEngineUp = (): boolean => monitor.status().phase === 'up';
  /** @returns `true` if the state has changed */
  const note = (id: ContainerId, after: (before: RestartState) => RestartState): boolean => {
    const isNews = state.restartStore.change(id, after);
    if (isNews) reconciler.enqueue(id);
    return isNews;
  };
  const watch = createDiskWatch({
    isEngineUp,
    // An engine over TCP may be on another machine, and its path means nothing here.
    rootDir: () => (isHere(settings.DOCKER_HOST) ? rootDir() : undefined),
    images,
    settings,
    faults,
    steadyMs,
    log,
  });
  const evictor = createEvictor({
    engine,
    isEngineUp,
    pressure: watch.pressure,
    limitOf: (id) => {
      const wanted = workload.wanted(id);
      return diskLimitOf('container' in wanted ? wanted.container : {}, settings.CONTAINER_DISK_BYTES);
    },
    evict: (use) => note(use.id, (before) => overDisk(before, use.dockerId, evictionWords(use))),
    relieve: ({ id, dockerId }) => void note(id, (before) => withinDisk(before, dockerId)),
    settings,
    faults,
    metrics,
    steadyMs,
    log,
  });
  return { watch, evictor };
}
