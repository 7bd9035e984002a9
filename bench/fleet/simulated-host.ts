/**
 * A host without an engine, for fleets that are too large for whole agents. It has the agent's own
 * side of the control plane: credentials, connection, session, heartbeat, sync and reports. A table
 * stands for everything else: each of its containers is at once as it should be.
 */
import { EventEmitter } from 'node:events';
import { createConnection } from '../../host-agent/link/connection.ts';
import { createCredentials } from '../../host-agent/link/identity/credentials.ts';
import { keyFrom, type Identity } from '../../host-agent/link/identity/identity.ts';
import { createLink, type LinkParts } from '../../host-agent/link/link.ts';
import { createReporter, type Description } from '../../host-agent/link/reporter.ts';
import { createStateDisk } from '../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../host-agent/faults.ts';
import { observation } from '../../host-agent/reconcile/describe.ts';
import type { AgentSettings } from '../../host-agent/settings.ts';
import { counted, nothing } from '../../host-agent/desired/admission.ts';
import { emptyDesired } from '../../host-agent/desired/desired-set.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { Answers } from '../../lib/nats/answers.ts';
import { connectNats } from '../../lib/nats/connection.ts';
import { jwtAuthenticator } from '../../lib/nats/quick-pair.ts';
import { timestamp } from '../../lib/time/timestamp.ts';
import { version } from '../../lib/version.ts';
import type { ContainerStatus } from '../../schemas/api/container.ts';
import type { Capacity } from '../../schemas/api/host.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { subjects, type Sender } from '../../schemas/wire/subjects.ts';
import type { EngineCounts } from '../../test/support/engine/model.ts';

export interface SimulatedHost {
  readonly counts: EngineCounts;
  hasSession(): Promise<boolean>;
}

export interface HostParts {
  readonly settings: AgentSettings;
  readonly identity: Identity;
  readonly seed: Uint8Array;
  readonly clock: Clock;
  readonly log: Log;
}

const capacity: Capacity = { cpu_millis: 1_000_000, mem_bytes: 2 ** 41, containers: 1_023 };

/** Counts may change while they are read. */
type Counts = { -readonly [name in keyof EngineCounts]: EngineCounts[name] };

type Report = (container: DesiredContainer, description: Description, prepared?: number) => void;

/** The containers that should run here, and therefore do. */
class Table {
  readonly counts: Counts = { running: 0, created: 0, started: 0, stopped: 0, removed: 0 };
  readonly #containers = new Map<ContainerId, DesiredContainer>();
  readonly #running = new Set<ContainerId>();
  #used = nothing;

  used(): Capacity {
    return this.#used;
  }

  /** Brings a container to what is desired, and reports it; an unchanged one is the same object. */
  take(container: DesiredContainer, description: (status: ContainerStatus) => Description, report: Report): void {
    const before = this.#containers.get(container.id);
    if (before === container) return;
    if (container.desired === 'removed') {
      this.drop(container.id);
      report(container, { ...description('removing'), gone: true });
      return;
    }
    if (before === undefined) this.counts.created++;
    this.#containers.set(container.id, container);
    if (before !== undefined) this.#used = counted(this.#used, before, -1);
    this.#used = counted(this.#used, container, 1);
    if (container.desired === 'running') this.#start(container.id);
    else this.#stop(container.id);
    report(container, description(container.desired), container.prepare === true ? container.placement : undefined);
  }

  drop(id: ContainerId): void {
    const before = this.#containers.get(id);
    if (before === undefined) return;
    this.#stop(id);
    this.#containers.delete(id);
    this.#used = counted(this.#used, before, -1);
    this.counts.removed++;
  }

  #start(id: ContainerId): void {
    if (this.#running.has(id)) return;
    this.#running.add(id);
    this.counts.running++;
    this.counts.started++;
  }

  #stop(id: ContainerId): void {
    if (!this.#running.delete(id)) return;
    this.counts.running--;
    this.counts.stopped++;
  }
}

/** Resolves once the host is connected. It works until its process ends. */
export async function startSimulatedHost(parts: HostParts): Promise<SimulatedHost> {
  const { settings, identity, seed, clock, log } = parts;
  const { signal } = new AbortController();
  const retry = { minMs: settings.RETRY_MIN, maxMs: settings.RETRY_MAX };
  const publicKey = keyFrom(seed).getPublicKey();
  const sender: Sender = { host: identity.host, user: publicKey };
  const faults = createFaults(log);
  const credentials = createCredentials(identity, {
    publicKey,
    stateDir: settings.STATE_DIR,
    disk: createStateDisk(faults, retry, log),
    clock,
    log,
  });
  const table = new Table();
  let desired = emptyDesired(identity.cluster);
  const workload: LinkParts['workload'] = {
    desired: () => desired,
    accept: (next) => {
      const before = desired;
      desired = next;
      // Containers of one update start together, so that they share what is said of them.
      const said = new Map<ContainerStatus, Description>();
      const startedAt = timestamp(clock.nowMs());
      const description = (status: ContainerStatus): Description => {
        const known = said.get(status) ?? descriptionOf(status, startedAt);
        said.set(status, known);
        return known;
      };
      for (const [partition, set] of next.sets) {
        const held = before.sets.get(partition);
        if (held === set) continue;
        for (const container of set.containers) table.take(container, description, report);
        if (held === undefined) continue;
        const named = new Set(set.containers.map(({ id }) => id));
        for (const { id } of held.containers) {
          if (named.has(id)) continue;
          table.drop(id);
          reporter.forget(id);
        }
      }
    },
    asked: ignore,
    settled: ignore,
    approveOrphans: ignore,
    strangers: () => [],
    unjudged: () => [],
    applyVerdicts: ignore,
  };
  const lease: LinkParts['lease'] = {
    events: new EventEmitter(),
    heard: ignore,
    fenced: ignore,
    superseded: ignore,
    greeted: ignore,
    synced: ignore,
    settled: ignore,
  };
  let highest = 0;
  const answers = new Answers(clock);
  const connection = createConnection(answers, log);
  const { request } = connection;
  const metrics = { sync: ignore, report: ignore };
  const reporter = createReporter({ sender, request, backoff: retry, metrics, log, signal, onContact: ignore });
  const link = createLink({
    sender,
    cluster: identity.cluster,
    version,
    capacity: () => capacity,
    stopsAfterMs: () => null,
    sessions: {
      highest: () => highest,
      used: (session) => void (highest = session),
      flush: () => Promise.resolve(),
    },
    connection,
    credentials,
    lease,
    reporter,
    workload,
    members: undefined,
    volumes: { strangers: () => [], applyVerdicts: () => Promise.resolve() },
    beat: () => ({ used: table.used(), engine: 'simulated', orphans_held: 0, volumes_left: 0, faults: [], room: {} }),
    beatMs: settings.HEARTBEAT_INTERVAL,
    syncMs: settings.SYNC_INTERVAL,
    isCountedOn: () => false,
    retry,
    clock,
    faults,
    metrics,
    log,
  });
  const report: Report = ({ tenant, id, generation }, description, prepared) =>
    reporter.set({ tenant, id, generation, ...(prepared === undefined ? {} : { prepared }), description });
  const nc = await connectNats(
    {
      servers: identity.natsUrls,
      name: `longshore-agent ${identity.host}`,
      authenticator: jwtAuthenticator(() => credentials.jwt(), seed),
      inboxPrefix: subjects.hostInbox(sender),
      answers,
    },
    log,
  );
  const serving = connection.run(
    () => Promise.resolve(nc),
    () => link.run(nc, signal),
    signal,
  );
  void serving.catch((error: unknown) => log.error('host_ended', { error }));
  return { counts: table.counts, hasSession: () => Promise.resolve(link.hasSession()) };
}

const ignore = (): undefined => undefined;

const descriptionOf = (status: ContainerStatus, startedAt: string): Description => ({
  gone: false,
  observation: observation(status, null, { started_at: status === 'running' ? startedAt : null }),
});
