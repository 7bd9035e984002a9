/**
 * A host in virtual time: the agent's own sync, desired set, judgement of orphans and decisions,
 * over an engine that is a model. An agent that restarts loses its memory; engine and disk keep
 * theirs.
 */
import type { Description } from '../../../host-agent/link/reporter.ts';
import type { Found } from '../../../host-agent/docker/observed.ts';
import { updateTold } from '../../../host-agent/reconcile/reports.ts';
import { createWorkload, type Workload } from '../../../host-agent/desired/workload.ts';
import { noOrphans, type OrphanState } from '../../../host-agent/desired/orphans.ts';
import { sync, type SyncParts, type SyncResult } from '../../../host-agent/link/sync.ts';
import { backoffMs, jitter, sleep } from '../../../lib/time/backoff.ts';
import type { Reason } from '../../../schemas/api/container.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import type { HelloAnswer, ReportAnswer, ReportItem } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { agentOf, quietLog } from '../../actors/support.ts';
import type { Connection, Nats } from '../world/nats.ts';
import type { Process, World } from '../world/time.ts';
import { Engine, type Copy } from './engine.ts';
import { firstOf, Reconciler, type Disk, type Registry } from './reconciler.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

export interface HostOptions {
  readonly world: World;
  readonly nats: Nats;
  readonly key: HostKey;
  readonly cluster: string;
  readonly partitions: number;
  /** Kept on the host's disk. */
  readonly sessions: { highest: number };
  /** Called when a container is removed from the engine: as asked, or as an orphan. */
  readonly onRemoved: (id: ContainerId, why: 'removed' | 'orphan') => void;
  /** Called when a container is a copy that is kept ready, whatever it was before. */
  readonly onPrepared: (id: ContainerId) => void;
  /** Called before the engine starts a copy of a container. */
  readonly onStart: (id: ContainerId, copy: Copy) => void;
  /** Duration of the next stop or pull. */
  readonly stopMs: () => number;
  readonly registry: Registry;
}

const retry = { minMs: 300, maxMs: 5000 };
const capacity = { cpu_millis: 1_000_000, mem_bytes: 2 ** 40, containers: 10_000 };
const unused = { cpu_millis: 0, mem_bytes: 0, containers: 0 };
/** The reasons of a start that failed on its host. */
const isHostFault = (reason: Reason | null | undefined): boolean =>
  reason === 'start_failed' || reason === 'host_fault';

export class Host {
  readonly engine: Engine;
  /** While it has a fault, its engine starts nothing. */
  readonly fault = { isThere: false };
  readonly #options: HostOptions;
  readonly #disk: Disk = new Map();
  #agent: Agent | undefined;

  constructor(options: HostOptions) {
    this.#options = options;
    const { world, key: host, onStart } = options;
    this.engine = new Engine({ world, host, onStart, onChange: (id) => this.#agent?.look(id) });
  }

  get process(): Process | undefined {
    return this.#agent?.process;
  }

  /** The agent's last observation of a container. */
  seen(id: ContainerId): Description['observation'] | undefined {
    return this.#agent?.seen(id);
  }

  /** True if a container can't start here. */
  isBroken(): boolean {
    return this.fault.isThere || [...this.engine.ids()].some((id) => isHostFault(this.seen(id)?.reason));
  }

  /** Kills the agent that ran before. */
  start(): void {
    this.#agent?.kill();
    const agent = (this.#agent = new Agent(this.#options, {
      engine: this.engine,
      fault: this.fault,
      disk: this.#disk,
    }));
    void this.#options.world.spawn(agent.process, () => agent.run());
  }
}

class Agent {
  readonly process: Process;
  readonly #options: HostOptions;
  readonly #engine: Engine;
  readonly #reconciler: Reconciler;
  readonly #connection: Connection;
  readonly #workload: Workload;
  #orphans: OrphanState = noOrphans;
  #session: number | undefined;
  #incarnation = 0;
  /** The cluster was restored after the session was given. */
  #isOfBefore = false;
  #seq = 0;
  /** Partitions to sync next: those that a doorbell named, or all. */
  #due: Set<number> | 'all' = 'all';
  /** Reports that the control plane has acknowledged, by container. */
  readonly #told = new Map<ContainerId, string>();

  constructor(
    options: HostOptions,
    host: { readonly engine: Engine; readonly fault: { readonly isThere: boolean }; readonly disk: Disk },
  ) {
    const { world, nats, key, cluster, stopMs, registry, onPrepared, onRemoved } = options;
    this.#options = options;
    this.#engine = host.engine;
    this.process = world.process(key);
    this.#connection = nats.connect(this.process);
    this.#workload = createWorkload({
      cluster,
      store: { save: () => {} },
      capacity: () => capacity,
      present: { all: () => this.#present() },
      orphans: { orphans: () => this.#orphans, setOrphans: (state) => void (this.#orphans = state) },
      log: quietLog,
    });
    this.#workload.events.on('changed', (ids) => ids.forEach((id) => this.look(id)));
    this.#reconciler = new Reconciler({
      ...{ world, process: this.process, ...host, workload: this.#workload, stopMs, registry, onPrepared, onRemoved },
      onPresence: () => this.#workload.evaluate('any'),
    });
  }

  look(id: ContainerId): void {
    this.#reconciler.look(id);
  }

  seen(id: ContainerId): Description['observation'] | undefined {
    return this.#reconciler.observed.get(id)?.description.observation;
  }

  kill(): void {
    this.#options.world.kill(this.process);
    void this.#connection.close();
  }

  async run(): Promise<void> {
    const { key } = this.#options;
    // A container moved away while this host was down is a stranger, and in no desired set.
    this.#workload.evaluate('any');
    this.#connection.subscribe(subjects.desiredOfHost(key), {
      callback: (_, { subject }) => {
        if (this.#due !== 'all') this.#due.add(Number(subject.split('.')[2]));
      },
    });
    await Promise.all([this.#greet(), this.#keepSynced(), this.#keepReporting()]);
  }

  async #greet(): Promise<void> {
    const { sessions } = this.#options;
    while (this.#session === undefined) {
      try {
        const hello = JSON.stringify({
          v: 1,
          ...protocolFields,
          agent_version: 'sim',
          capacity,
          highest_session: sessions.highest,
        });
        const answer = (
          await this.#connection.request(subjects.hostHello(agentOf(this.#options.key)), hello, { timeout: 1000 })
        ).json<HelloAnswer>();
        if (answer.ok && answer.session > sessions.highest) this.#session = sessions.highest = answer.session;
      } catch {
        // The sync is repeated.
      }
      await sleep(300);
    }
  }

  /** The agent reports everything again in the new session. */
  async #renewSession(): Promise<void> {
    this.#session = undefined;
    this.#isOfBefore = false;
    await this.#greet();
    this.#told.clear();
    this.#seq = 0;
  }

  async #keepSynced(): Promise<void> {
    const parts: SyncParts = {
      sender: agentOf(this.#options.key),
      workload: this.#workload,
      members: undefined,
      volumes: { strangers: () => [], applyVerdicts: () => Promise.resolve() },
      lease: { fenced: () => {}, settled: () => {} },
      onSigner: () => {},
      onIncarnation: (told) => {
        if (told > this.#incarnation) this.#isOfBefore = true;
        this.#incarnation = Math.max(told, this.#incarnation);
      },
      onObeyed: () => {},
      log: quietLog,
    };
    let fullAtMs = 0;
    for (let failures = 0; ;) {
      const { nowMs } = this.#options.world;
      if (nowMs >= fullAtMs) this.#due = 'all';
      const due = this.#due;
      if (due === 'all' || due.size > 0) {
        this.#due = new Set();
        const result = await sync(this.#connection.asClient, parts, due === 'all' ? undefined : [...due], 600);
        this.#afterSync(result);
        if (due === 'all') fullAtMs = nowMs + 5000;
        this.#beat();
        failures = result.kind === 'complete' ? 0 : failures + 1;
      }
      await sleep(failures === 0 ? 150 : jitter(backoffMs(failures - 1, retry)));
    }
  }

  /**
   * A partition that a doorbell named and no owner answered for stays due, as in the agent's sync
   * loop.
   */
  #afterSync(result: SyncResult): void {
    if (result.kind === 'complete') {
      if (this.#due !== 'all') this.#due = new Set([...this.#due, ...result.due]);
      return;
    }
    if (result.kind !== 'partial') this.#due = 'all';
    else if (this.#due !== 'all') this.#due = new Set([...this.#due, ...result.missing]);
  }

  #beat(): void {
    if (this.#session === undefined) return;
    const quiet = { orphans_held: 0, volumes_left: 0, faults: [], room: {} };
    const said = { session: this.#session, used: unused, engine: 'sim', ...quiet };
    const beat = { v: 1, ...protocolFields, ...said };
    this.#connection.publish(subjects.hostBeat(agentOf(this.#options.key)), JSON.stringify(beat));
  }

  /** The containers that the engine has now. */
  #present(): Map<ContainerId, Found> {
    const ids = [...this.#engine.ids()];
    return new Map(
      ids.flatMap((id) => {
        const found = firstOf(this.#engine.of(id));
        return found === undefined ? [] : [[id, found] as const];
      }),
    );
  }

  async #keepReporting(): Promise<void> {
    for (;;) {
      await sleep(200);
      if (this.#isOfBefore) await this.#renewSession();
      if (this.#session === undefined) continue;
      const { partitions } = this.#options;
      for (let partition = 0; partition < partitions; partition++) await this.#report(partition, this.#session);
    }
  }

  /** Reports what has changed since it was last acknowledged, as the reporter does. */
  async #report(partition: number, session: number): Promise<void> {
    const isHere = (tenant: TenantId): boolean => partitionOf(tenant, this.#options.partitions) === partition;
    const items: ReportItem[] = [];
    const texts = new Map<ContainerId, string>();
    for (const id of this.#told.keys()) if (!this.#reconciler.observed.has(id)) this.#told.delete(id);
    for (const [id, { wanted, description, update }] of this.#reconciler.observed) {
      const { tenant, generation, placement } = wanted.container;
      const said = {
        ...{ tenant, id, generation },
        ...(wanted.want === 'prepared' ? { prepared: placement } : {}),
        ...(update === null ? {} : { update: updateTold(update) }),
        ...description,
      };
      const text = JSON.stringify(said);
      if (!isHere(tenant) || this.#told.get(id) === text) continue;
      texts.set(id, text);
      items.push({ ...said, seq: ++this.#seq });
    }
    if (items.length === 0) return;
    const report = JSON.stringify({ v: 1, ...protocolFields, partition, session, items });
    try {
      const message = await this.#connection.request(subjects.hostReport(agentOf(this.#options.key)), report, {
        timeout: 600,
      });
      const answer = message.json<ReportAnswer>();
      if (!answer.ok && answer.error === 'stale_session') await this.#renewSession();
      if (!answer.ok) return;
    } catch {
      return;
    }
    for (const [id, text] of texts) this.#told.set(id, text);
  }
}
