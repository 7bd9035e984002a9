/**
 * Builds the agent: connects an identity, an engine and a control plane, and runs what works
 * between them.
 */
import { setMaxListeners } from 'node:events';
import type { Registry } from 'prom-client';
import { steadyTime, type Clock } from '../lib/time/clock.ts';
import type { Lifecycle } from '../lib/lifecycle.ts';
import type { Log } from '../lib/log.ts';
import type { Tracer } from '../lib/trace/tracer.ts';
import { Answers } from '../lib/nats/answers.ts';
import { connectNats, countFailovers } from '../lib/nats/connection.ts';
import { createProver } from '../lib/nats/host-proof.ts';
import { jwtAuthenticator } from '../lib/nats/quick-pair.ts';
import { version } from '../lib/version.ts';
import { Permits } from '../lib/permits.ts';
import type { ContainerStatus } from '../schemas/api/container.ts';
import { limits } from '../schemas/limits.ts';
import { engineAway } from '../schemas/wire/host.ts';
import { subjects, type Sender } from '../schemas/wire/subjects.ts';
import { createContainers, type Containers } from './containers.ts';
import { createConnection } from './link/connection.ts';
import { createCredentials, type Credentials } from './link/identity/credentials.ts';
import { createRenewal } from './link/identity/renewal.ts';
import { keyFrom, type Identity } from './link/identity/identity.ts';
import { createLease, stoppedAfterMs } from './link/lease.ts';
import { createLink, type Link } from './link/link.ts';
import { systemMachineTime, type MachineTime } from './link/machine-time.ts';
import { reportPulls } from './link/pull-reports.ts';
import { createReporter, type Reporter } from './link/reporter.ts';
import { createUnseal } from './link/unseal.ts';
import { createStateDisk } from './disk/state-disk.ts';
import type { EngineMonitor } from './docker/engine-monitor.ts';
import { isHere, type Transport } from './docker/transport.ts';
import { createFaults, type Faults } from './faults.ts';
import { createMetrics, registerGauges, type Gauges } from './metrics.ts';
import { ExecProcess } from './sessions/exec-process.ts';
import { execKind } from './sessions/exec.ts';
import { forwardKind } from './sessions/forward.ts';
import { createProcessTree, type ProcessTree } from './sessions/process-tree.ts';
import { createSessions, type Sessions } from './sessions/sessions.ts';
import { statsKind } from './sessions/stats.ts';
import { targetOf } from './sessions/target.ts';
import { createValues } from './secrets/values.ts';
import type { AgentSettings } from './settings.ts';
import { loadState, type State } from './state.ts';
import { observeContainers } from './usage/container-metrics.ts';
import { roomOf } from './desired/capacity.ts';

/** The time between two reports of the progress of pulls. */
const pullReportMs = 1000;
/**
 * An agent waits for the acknowledgement of its log blocks (`logAckTimeoutMs`), then for its
 * farewell and its connection (`farewellMs` each).
 */
const stopAgentMs = 14_000;

export interface AgentParts {
  readonly settings: AgentSettings;
  readonly identity: Identity;
  readonly seed: Uint8Array;
  readonly registry: Registry;
  /** `undefined` if tracing is off. */
  readonly tracer?: Tracer | undefined;
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
  const { settings, identity, seed, registry, tracer, clock, log, life } = parts;
  const { host, cluster } = identity;
  const retry = { minMs: settings.RETRY_MIN, maxMs: settings.RETRY_MAX };
  const steadyMs = steadyTime(clock);
  const metrics = createMetrics(registry);
  const faults = createFaults(log);
  const disk = createStateDisk(faults, retry, log);
  const publicKey = keyFrom(seed).getPublicKey();
  const sender: Sender = { host, user: publicKey };
  const credentials = createCredentials(identity, {
    publicKey,
    stateDir: settings.STATE_DIR,
    disk,
    clock,
    log,
  });
  // Written even if nothing changed: a disk that takes no writes shows at the start, not when it
  // matters.
  credentials.keep();
  const renewal = createRenewal({
    gatewayUrl: settings.LONGSHORE_URL,
    identity,
    seed,
    credentials,
    backoff: retry,
    clock,
    log,
  });
  const machineTime = parts.machineTime ?? systemMachineTime(clock);
  const state = await loadState({ settings, cluster, disk, clock, steadyMs, machineTime, metrics, log });
  const ending = new AbortController();
  const { signal } = ending;
  // Every loop of the agent has its own wait.
  setMaxListeners(0, signal);

  const answers = new Answers(clock);
  const connection = createConnection(answers, log);
  const { request } = connection;
  const { contact, fence } = state;
  const lease = createLease({ contact, fence, faults, lookMs: settings.HEARTBEAT_INTERVAL, log });
  const reporter = createReporter({ sender, request, backoff: retry, metrics, log, signal, onContact: lease.heard });
  const { sealKey, sealedCache } = state;
  const unseal = createUnseal({
    key: sealKey.publicKey,
    sender,
    prove: createProver({ sender, seed, jwt: () => credentials.jwt(), nowMs: () => clock.nowMs() }),
    request,
    backoff: retry,
    steadyMs,
    metrics,
    log,
  });
  const containers = await createContainers({
    settings,
    owner: { cluster, host },
    transport: parts.transport,
    state,
    disk,
    faults,
    reporter,
    request,
    lease,
    values: createValues({ key: sealKey, sealedCache, unseal, metrics, log }),
    sender,
    containerUse: settings.CONTAINER_METRICS === 'on' ? observeContainers(registry) : undefined,
    retry,
    clock,
    steadyMs,
    tracer,
    metrics,
    log,
  });
  const processes = processesOf(settings);
  const permits = new Permits({ inAll: limits.sessionsPerHost, perClient: limits.sessionsPerContainer });
  const sessions = createSessions({
    kinds: [
      execKind({ engine: containers.engine, processes, record: state.execs, permits, log }),
      forwardKind(isHere(settings.DOCKER_HOST), permits),
      statsKind(containers.liveStats),
    ],
    targetOf: (about) => targetOf(containers.engine, containers.workload.wanted(about.id), about),
    request,
    clock,
    metrics,
    log,
  });
  const link = createLink({
    sender,
    cluster,
    version,
    capacity: containers.capacity,
    stopsAfterMs: () => stoppedAfterMs(settings, containers.capacity().containers),
    sessions: state.sessions,
    connection,
    credentials,
    lease,
    reporter,
    workload: containers.workload,
    members: settings.NET_SOCKET === undefined ? undefined : state.members,
    volumes: containers.volumes,
    serveSessions: sessions.serve,
    beat: () => {
      const mesh = containers.meshEnd();
      return {
        used: containers.workload.used(),
        engine: engineWord(containers.monitor),
        orphans_held: containers.workload.orphansHeld(),
        volumes_left: containers.volumes.left(),
        faults: faults.list(),
        room: roomOf(freePorts(containers), containers.disk.freeBytes()),
        ...(mesh === undefined ? {} : { mesh }),
      };
    },
    beatMs: settings.HEARTBEAT_INTERVAL,
    syncMs: settings.SYNC_INTERVAL,
    isCountedOn: () => contact.silence().allowedMs > 0,
    retry,
    clock,
    faults,
    metrics,
    log,
  });
  link.events.on('greeted', renewal.accepted);
  const gauges = gaugesOf({ state, containers, link, reporter, credentials, faults, sessions });
  registerGauges(registry, gauges);

  containers.workload.accept(state.desired, 'disk');
  // The lease first: the agent starts nothing before it knows whether containers may run.
  const running = [
    lease.run(signal),
    containers.run({ onStrangers: link.syncSoon }, signal),
    renewal.run(signal),
    state.execs.endLeft((name) => new ExecProcess(containers.engine, processes, name).kill(), signal),
    reportPulls(
      {
        pulls: containers.pulling,
        moved: containers.pulls.moved,
        session: reporter.session,
        sender,
        request,
        everyMs: pullReportMs,
        log,
      },
      signal,
    ),
  ];
  const onMove = countFailovers(registry);
  const open = () =>
    connectNats(
      {
        servers: settings.NATS_URLS.length > 0 ? settings.NATS_URLS : identity.natsUrls,
        name: `longshore-agent ${host}`,
        authenticator: jwtAuthenticator(() => credentials.jwt(), seed),
        inboxPrefix: subjects.hostInbox(sender),
        answers,
        onMove,
        onRefused: renewal.refused,
        ...(settings.NATS_CA_FILE === undefined ? {} : { tlsCaFile: settings.NATS_CA_FILE }),
      },
      log,
    );
  const serving = connection.run(open, (nc) => link.run(nc, signal), signal);
  void serving.catch((error: unknown) => life.fail('control_failed', error));

  life.onStop({
    name: 'agent',
    deadlineMs: stopAgentMs,
    stop: async () => {
      ending.abort();
      sessions.stop();
      await Promise.all([containers.stop(), ...running]);
      await link.leave();
      await connection.close();
      await Promise.all([credentials.flush(), state.flush()]);
      await containers.close();
    },
  });
}

/** `undefined` for an engine on another machine: its processes are not visible here. */
const processesOf = ({ DOCKER_HOST }: AgentSettings): ProcessTree | undefined =>
  isHere(DOCKER_HOST) ? createProcessTree() : undefined;

const engineWord = (monitor: EngineMonitor): string => {
  const status = monitor.status();
  return status.phase === 'up' ? status.version : engineAway;
};

/** `null` with `LONGSHORE_SANDBOX=off`, and before the engine has listed its containers. */
const freePorts = ({ sandboxes }: Containers): number | null => sandboxes?.freePorts() ?? null;

const gaugesOf = ({
  state,
  containers,
  link,
  reporter,
  credentials,
  faults,
  sessions,
}: {
  readonly state: State;
  readonly containers: Containers;
  readonly link: Link;
  readonly reporter: Reporter;
  readonly credentials: Credentials;
  readonly faults: Faults;
  readonly sessions: Sessions;
}): Gauges => ({
  tunnels: sessions.count,
  containers: () => countByStatus(reporter),
  engineUp: () => containers.monitor.status().phase === 'up',
  sessionHeld: link.hasSession,
  lastInventoryMs: containers.present.lastListedMs,
  lastSyncMs: link.lastSyncMs,
  orphansHeld: containers.workload.orphansHeld,
  volumesLeft: containers.volumes.left,
  diskUsedPercent: containers.disk.usedPercent,
  diskUseUnknown: containers.disk.unknown,
  faults: () => faults.list().map(({ kind }) => kind),
  firewall: containers.firewall.state,
  pulls: containers.pulls.counts,
  portsFree: () => freePorts(containers),
  sandboxes: () => containers.sandboxes?.counts() ?? { ready: 0, used: 0 },
  usageRecordsPending: () => state.usage.kept().length,
  credentialsExpiryMs: credentials.expiryMs,
});

function countByStatus(reporter: Reporter): ReadonlyMap<ContainerStatus, number> {
  const counts = new Map<ContainerStatus, number>();
  for (const { description } of reporter.all()) {
    const { status } = description.observation;
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return counts;
}
