/**
 * Builds the agent: connects an identity, an engine and a control plane, and runs what works
 * between them.
 */
import { availableParallelism, totalmem } from 'node:os';
import { jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import type { Registry } from 'prom-client';
import { sleep, within } from '../lib/backoff.ts';
import { steadyTime, type Clock } from '../lib/clock.ts';
import type { Lifecycle } from '../lib/lifecycle.ts';
import type { Log } from '../lib/log.ts';
import { Answers } from '../lib/nats/answers.ts';
import { connectNats, countMoves } from '../lib/nats/connection.ts';
import { version } from '../lib/version.ts';
import type { ContainerStatus } from '../schemas/api/container.ts';
import { limits } from '../schemas/limits.ts';
import { engineAway } from '../schemas/wire/host.ts';
import { subjects } from '../schemas/wire/subjects.ts';
import { capacityOf, type Machine } from './workload/capacity.ts';
import { footingOf, loadContact, stoppedAfterMs, type Contact, type Footing } from './control-plane/contact.ts';
import { createControl } from './control-plane/control.ts';
import { createCredentials } from './control-plane/identity/credentials.ts';
import { createDesiredStore } from './workload/desired-store.ts';
import { createEngine } from './docker/engine.ts';
import { createTransport, type Transport } from './docker/transport.ts';
import { createEngineMonitor, type EngineMonitor } from './docker/engine-monitor.ts';
import { createExecutor } from './reconcile/execute/execute.ts';
import { createFaults } from './faults.ts';
import { createFirewall } from './network/firewall.ts';
import { keyFrom, type StoredIdentity } from './control-plane/identity/identity.ts';
import { createCollector } from './logs/collector.ts';
import { loadCursors } from './logs/cursors.ts';
import { createPublish } from './logs/publish.ts';
import { createLogTurns } from './logs/rates.ts';
import { openSpool } from './logs/spool.ts';
import { createNotify, type Notify } from '../lib/notify.ts';
import { systemMachineTime, type MachineTime } from './control-plane/machine-time.ts';
import { loadRestartStore } from './reconcile/restart/restart-store.ts';
import { loadFence } from './control-plane/fence.ts';
import { createMetrics, registerGauges } from './metrics.ts';
import { watchPortProxies } from './network/port-proxy.ts';
import { createPulls } from './images/pulls.ts';
import { createReconciler, type Reconciler } from './reconcile/reconciler.ts';
import { createPermit } from './images/registries.ts';
import { createReporter, type Reporter } from './control-plane/reporter.ts';
import { systemResolve } from './images/resolve.ts';
import { loadSessionNumber } from './control-plane/session.ts';
import { logRatesOf, type AgentSettings } from './settings.ts';
import { createEvictor } from './disk/evictor.ts';
import { diskLimitOf, evictionWords } from './disk/plan.ts';
import { createDiskWatch } from './disk/watch.ts';
import { createImageCollector } from './images/collector.ts';
import { createStateDisk } from './disk/state-disk.ts';
import type { Owner } from './docker/ownership.ts';

export interface AgentParts {
  readonly settings: AgentSettings;
  readonly identity: StoredIdentity;
  readonly seed: Uint8Array;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
  readonly life: Lifecycle;
  /** Replaces the machine's own clock. */
  readonly machineTime?: MachineTime;
  /** Replaces HTTP to DOCKER_HOST. */
  readonly transport?: Transport;
}

/**
 * Starts work from the desired set on disk; the control plane and the engine may come later, and
 * may go away.
 */
export async function startAgent(parts: AgentParts): Promise<void> {
  const { settings, identity, seed, registry, clock, log, life } = parts;
  const { host, cluster } = identity;
  const retry = { minMs: settings.RETRY_MIN_MS, maxMs: settings.RETRY_MAX_MS };
  const steadyMs = steadyTime(clock);
  const faults = createFaults(log);
  const disk = createStateDisk(faults, retry, log);
  const credentials = createCredentials(identity, {
    publicKey: keyFrom(seed).getPublicKey(),
    stateDir: settings.STATE_DIR,
    boundRetry: { minMs: settings.SYNC_INTERVAL_MS, maxMs: limits.boundRetryMaxMs },
    disk,
    clock,
    log,
  });
  const { sender } = credentials;
  // Written even if nothing changed: a disk that takes no writes shows at the start, not when it
  // matters.
  credentials.keep();
  const owner: Owner = { cluster, host };
  const stateDir = settings.STATE_DIR;
  const ending = new AbortController();
  const { signal } = ending;
  const metrics = createMetrics(registry);

  let engineRoot: string | undefined;
  let machine: Machine = { cores: availableParallelism(), memBytes: totalmem() };
  const capacity = () => capacityOf(settings, machine);
  const engine = createEngine(
    parts.transport ??
      createTransport(settings.DOCKER_HOST, (name, seconds, outcome) => metrics.engineCall(name, outcome, seconds)),
  );

  const sessions = await loadSessionNumber(stateDir, disk, log);
  const store = createDesiredStore(stateDir, cluster, disk, log);
  let desired = await store.load();
  let incarnation = 0;

  const contact = await loadContact(
    stateDir,
    settings.STOP_ON_DISCONNECT_MS,
    parts.machineTime ?? systemMachineTime(clock),
    disk,
    log,
  );
  const contactHeard = createNotify();
  let footing: Footing = 'in_touch';
  const stand = (next: Footing): void => {
    if (next === footing) return;
    const { silentMs = null } = contact.silence();
    if (next === 'waiting') log.warn('contact_awaited', { silentMs });
    else if (next === 'cut_off') log.warn('isolated', { silentMs });
    else log.warn('isolation_ended', { was: footing });
    footing = next;
    isolate({ isCutOff: next === 'cut_off' });
    reconciler.setWaiting(next === 'waiting');
  };

  /** Why no container may run here at present. */
  const isolation = { isCutOff: false, isSuperseded: false };
  const isolate = (change: Partial<typeof isolation>): void => {
    Object.assign(isolation, change);
    reconciler.setIsolated(isolation.isCutOff || isolation.isSuperseded);
  };
  const onSuperseded = (isSuperseded: boolean): void => {
    if (isSuperseded) faults.raise('cloned_state', clonedState);
    else faults.clear('cloned_state');
    isolate({ isSuperseded });
  };
  const fence = await loadFence(stateDir, disk, log);
  const onFenced = (): void => {
    if (!fence.raise()) return;
    log.error('fenced', { why: 'an operator has removed this host by force: its containers are being stopped' });
    reconciler.setFenced(true);
    // The agent asks until it gets a session; the control plane then accepts this host again.
    control.renewSession();
  };
  const stopsAfterMs = () => stoppedAfterMs(settings, capacity().containers);

  const answers = new Answers(clock);
  const control = createControl({
    target: {
      sender,
      current: () => desired,
      update: (next) => {
        desired = next;
        store.save(next);
        reconciler.setDesired(next);
      },
      settled: () => {
        if (fence.synced()) {
          log.warn('fence_lifted');
          reconciler.setFenced(false);
        }
        reconciler.desiredSettled();
      },
      fenced: onFenced,
      orphanWord: (word) => reconciler.setOrphanWord(word),
      strangers: () => reconciler.strangers(),
      unjudged: () => reconciler.unjudged(),
      verdicts: (named, gone) => reconciler.hearVerdicts(named, gone),
      incarnation: (announced) => {
        // The cluster was restored: it has lost what it acknowledged since the backup, so the agent
        // reports everything again in a new session. This holds before the first answer too: the
        // cluster may have acknowledged reports by then.
        if (announced > incarnation) control.renewSession();
        incarnation = Math.max(announced, incarnation);
      },
    },
    onGreeted: () => {
      fence.greeted();
      contact.greeted();
    },
    onContact: contact.heard,
    onSynced: () => {
      contact.synced();
      contactHeard.notify();
    },
    hello: {
      cluster,
      version,
      capacity,
      stopsAfterMs,
      onFenced,
      sessions,
      credentials,
      onSuperseded,
      backoff: retry,
      log,
    },
    beat: () => ({
      used: reconciler.used(),
      engine: engineWord(monitor),
      orphans_held: reconciler.orphansHeld(),
      faults: faults.list(),
    }),
    beatMs: settings.BEAT_INTERVAL_MS,
    syncMs: settings.SYNC_INTERVAL_MS,
    isCountedOn: () => contact.silence().allowedMs > 0,
    retry,
    clock,
    answers,
    metrics,
    log,
  });

  const reporter = createReporter({
    sender,
    request: control.request,
    backoff: retry,
    metrics,
    log,
    signal,
    onStaleSession: control.renewSession,
    onContact: control.onContact,
  });

  const cursors = await loadCursors(stateDir, disk, log);
  const spool = await openSpool(stateDir, () => clock.nowMs(), metrics.logDropped, log);
  const turns = createLogTurns(logRatesOf(settings), clock);
  const publish = createPublish({ host, request: control.request, turns, backoff: retry, clock, metrics, log });
  const logs = createCollector({ engine, cursors, spool, publish, backoff: retry, clock, metrics, log });
  const firewall = createFirewall({ settings, engine, owner, faults, metrics, steadyMs, log });
  const images = await createImageCollector({
    engine,
    stateDir,
    policy: settings.IMAGES_COLLECTED,
    wanted: () => reconciler.wantedImages(),
    nowMs: () => clock.nowMs(),
    metrics,
    disk,
    log,
  });
  const pulls = createPulls(images.recording, createPermit(settings.REGISTRIES_ALLOWED, systemResolve), metrics);
  const executor = createExecutor({
    engine: images.recording,
    owner,
    pulls,
    logs,
    firewall,
    secretsDir: settings.SECRETS_DIR,
    publishAddress: settings.PUBLISH_ADDRESS,
    capabilities: settings.CONTAINER_CAPABILITIES,
    diskBytes: settings.CONTAINER_DISK_BYTES,
    stopGraceMs: settings.STOP_GRACE_MS,
    cpuMillis: () => machine.cores * 1000,
  });
  const reconciler: Reconciler = createReconciler({
    engine,
    owner,
    monitor: () => monitor,
    executor,
    logs,
    reporter,
    faults,
    restartStore: await loadRestartStore(
      stateDir,
      { wallMs: () => clock.nowMs(), steadyMs, maxWaitMs: settings.RESTART_BACKOFF_MAX_MS },
      disk,
      log,
    ),
    capacity,
    restartBackoff: { minMs: settings.RESTART_BACKOFF_MIN_MS, maxMs: settings.RESTART_BACKOFF_MAX_MS },
    clock,
    steadyMs,
    metrics,
    log,
  });
  const monitor: EngineMonitor = createEngineMonitor({
    engine,
    owner,
    probeIntervalMs: settings.BEAT_INTERVAL_MS,
    backoff: retry,
    clock,
    steadyMs,
    log,
    onUp: async () => {
      const { NCPU, MemTotal, DockerRootDir } = await engine.info();
      machine = { cores: NCPU, memBytes: MemTotal };
      engineRoot = DockerRootDir;
      // Before anything is started.
      await firewall.look();
      await reconciler.onEngineUp();
      if (reconciler.unjudged().length > 0) control.syncSoon();
    },
    onAway: reconciler.onEngineAway,
    onEvent: reconciler.onEvent,
  });

  const diskWatch = createDiskWatch({
    isEngineUp: () => monitor.status().phase === 'up',
    // An engine over TCP may be on another machine, and its path means nothing here.
    rootDir: () => (settings.DOCKER_HOST.kind === 'unix' ? engineRoot : undefined),
    images,
    settings,
    faults,
    steadyMs,
    log,
  });
  const evictor = createEvictor({
    engine,
    owner,
    isEngineUp: () => monitor.status().phase === 'up',
    pressure: diskWatch.pressure,
    limitOf: (id) => {
      const wanted = reconciler.wanted(id);
      return diskLimitOf('container' in wanted ? wanted.container : {}, settings.CONTAINER_DISK_BYTES);
    },
    evict: (use) => reconciler.evict(use.id, use.dockerId, evictionWords(use)),
    settings,
    faults,
    metrics,
    steadyMs,
    log,
  });

  registerGauges(
    registry,
    {
      containers: () => countByStatus(reporter),
      engineUp: () => monitor.status().phase === 'up',
      sessionHeld: control.hasSession,
      lastInventoryMs: reconciler.lastInventoryMs,
      lastSyncMs: control.lastSyncMs,
      orphansHeld: reconciler.orphansHeld,
      diskUsedPercent: diskWatch.usedPercent,
      diskUseUnknown: evictor.unknown,
      faults: () => faults.list().map(({ kind }) => kind),
      firewall: firewall.state,
      credentialsExpiryMs: () => credentials.expiryMs(),
      credentialsBound: () => sender().user !== undefined,
    },
    () => clock.nowMs(),
  );

  reconciler.setFenced(fence.isUp());
  reconciler.setDesired(desired);
  const running = [
    // First: the agent starts nothing before it knows whether containers may run.
    watchContact(contact, contactHeard, settings.BEAT_INTERVAL_MS, stand, signal),
    monitor.run(signal),
    spool.run(publish, signal),
    diskWatch.run(signal),
    evictor.run(signal),
    ...(settings.DOCKER_HOST.kind === 'unix' ? [watchPortProxies(settings.SYNC_INTERVAL_MS, log, signal)] : []),
    firewall.run(settings.SYNC_INTERVAL_MS, signal),
    sweepEvery(settings.SYNC_INTERVAL_MS, reconciler, monitor, log, signal),
  ];
  const onMove = countMoves(registry);
  let connection: NatsConnection | undefined;
  let serving: Promise<void> = Promise.resolve();
  void connect().catch((error: unknown) => life.fail('control_failed', error));

  function open(): Promise<NatsConnection> {
    return connectNats(
      {
        servers: settings.NATS_URLS.length > 0 ? settings.NATS_URLS : identity.natsUrls,
        name: `longshore-agent ${host}`,
        authenticator: jwtAuthenticator(() => credentials.jwt(), seed),
        inboxPrefix: subjects.hostInbox(sender()),
        answers,
        onMove,
        ...(settings.NATS_CA_FILE === undefined ? {} : { tlsCaFile: settings.NATS_CA_FILE }),
      },
      log,
    );
  }

  /** One connection after another: other credentials mean other subjects and another inbox. */
  async function connect(): Promise<void> {
    while (!signal.aborted) {
      const nc = await openOrFallBack();
      if (nc === undefined) continue;
      // The agent stopped while it was connecting.
      if (signal.aborted) return nc.close();
      connection = nc;
      serving = control.run(nc, reporter, signal);
      await serving;
      if (!signal.aborted) await nc.close();
    }
  }

  /** Undefined: no server accepted these credentials; the earlier ones are next. */
  async function openOrFallBack(): Promise<NatsConnection | undefined> {
    const opening = open();
    if (!credentials.hasFallback()) return opening;
    try {
      return await within(opening, settings.SYNC_INTERVAL_MS / 2, 'connecting with bound credentials');
    } catch (error) {
      log.error('bound_credentials_unanswered', { error });
      credentials.fallBack();
      // The connection attempt goes on, now with the other credentials; close what it opens.
      void opening.then((nc) => nc.close()).catch(() => undefined);
      return undefined;
    }
  }

  const disconnect = async (): Promise<void> => {
    await control.leave();
    const parts: readonly [string, Promise<void>][] = [
      ['closing the connection to NATS', connection?.close() ?? Promise.resolve()],
      ['ending what waits for the control plane', serving],
    ];
    for (const [what, ended] of parts) {
      await within(ended, limits.farewellMs, what).catch((error: unknown) => log.warn('control_not_closed', { error }));
    }
  };

  life.onStop({
    name: 'agent',
    deadlineMs: limits.stopAgentMs,
    // Containers keep running when the agent stops.
    stop: async () => {
      ending.abort();
      pulls.stop();
      await Promise.all([reconciler.stop(), logs.stop(), ...running]);
      await disconnect();
      await Promise.all([sessions, credentials, store, fence, contact, images].map((kept) => kept.flush()));
      engine.close();
    },
  });
}

const clonedState =
  'a second agent with the identity of this host is running: STATE_DIR was copied. The containers on this machine are ' +
  'stopped and none is removed; enrol this machine as a host of its own';

const engineWord = (monitor: EngineMonitor): string => {
  const status = monitor.status();
  return status.phase === 'up' ? status.version : engineAway;
};

function countByStatus(reporter: Reporter): ReadonlyMap<ContainerStatus, number> {
  const counts = new Map<ContainerStatus, number>();
  for (const { description } of reporter.all()) {
    const { status } = description.observation;
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return counts;
}

/** Finds changes whose events were lost. */
async function sweepEvery(
  intervalMs: number,
  reconciler: Reconciler,
  monitor: EngineMonitor,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(intervalMs, signal);
    if (signal.aborted) return;
    try {
      await reconciler.sweep();
    } catch (error) {
      log.debug('sweep_failed', { error });
      monitor.suspect();
    }
  }
}

/** STOP_ON_DISCONNECT_MS: opt-in, for containers that must not run in two places. */
async function watchContact(
  contact: Contact,
  heard: Notify,
  lookMs: number,
  stand: (footing: Footing) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const footing = footingOf(contact.silence());
    stand(footing);
    // One heartbeat: no later than the control plane assumes. While waiting, contact ends the pause
    // at once.
    await (footing === 'in_touch' ? sleep(lookMs, signal) : heard.wait(lookMs, signal));
  }
}
