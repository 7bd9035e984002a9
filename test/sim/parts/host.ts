/**
 * A host in virtual time: the agent's own sync, desired set and judgement of orphans, over an
 * engine that is a map. An agent that restarts loses its memory; its engine keeps its containers.
 */
import { createWorkload } from '../../../host-agent/workload/workload.ts';
import { emptyDesired, type DesiredSet } from '../../../host-agent/workload/desired.ts';
import { noOrphans, type OrphanState } from '../../../host-agent/workload/orphans.ts';
import { sync, type SyncResult, type SyncTarget } from '../../../host-agent/control-plane/sync/sync.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import type { DesiredContainer, HelloAnswer, ReportAnswer, ReportItem } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { agentOf, quietLog } from '../../actors/support.ts';
import { observation } from '../../actors/support/records.ts';
import type { Connection, Nats } from '../world/nats.ts';
import type { Process, World } from '../world/time.ts';

/** A container as the engine has it. */
export interface Running {
  readonly tenant: TenantId;
  /** `broken`: its host could not start it. */
  state: 'running' | 'stopped' | 'broken';
  generation: number;
  /** The generation of the placement that it was made under: its label. */
  placement: number;
  /** How often it has crashed and been restarted. */
  restarts: number;
}

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
  /** Called when the engine starts a container. */
  readonly onStarted: (id: ContainerId) => void;
  /** How long the next stop takes. */
  readonly stopMs: () => number;
}

const observed = (state: Running['state'], restart_count: number) =>
  state === 'broken'
    ? observation('backoff', { reason: 'host_fault', restart_count })
    : observation(state, { restart_count });

const capacity = { cpu_millis: 1_000_000, mem_bytes: 2 ** 40, containers: 10_000 };
const unused = { cpu_millis: 0, mem_bytes: 0, containers: 0 };
export class Host {
  readonly engine = new Map<ContainerId, Running>();
  /** While it has a fault, its engine starts nothing. */
  readonly fault = { isThere: false };
  readonly #options: HostOptions;
  #agent: Agent | undefined;

  constructor(options: HostOptions) {
    this.#options = options;
  }

  get process(): Process | undefined {
    return this.#agent?.process;
  }

  /** Kills the agent that ran before. */
  start(): void {
    this.#agent?.kill();
    const agent = (this.#agent = new Agent(this.#options, this.engine, this.fault));
    void this.#options.world.spawn(agent.process, () => agent.run());
  }
}

class Agent {
  readonly process: Process;
  readonly #options: HostOptions;
  readonly #engine: Map<ContainerId, Running>;
  readonly #fault: { readonly isThere: boolean };
  /** Stops under way. */
  readonly #stopping = new Set<Running>();
  readonly #connection: Connection;
  readonly #workload = createWorkload();
  #desired: DesiredSet;
  #orphans: OrphanState = noOrphans;
  #orphanWord: number | null = null;
  #isSettled = false;
  #session: number | undefined;
  #incarnation = 0;
  /** The cluster was restored after the session was given. */
  #isOfBefore = false;
  #seq = 0;
  /** What to sync next: partitions that a doorbell named, or all. */
  #due: Set<number> | 'all' = 'all';
  /** The generation and state of each container that the control plane has acknowledged. */
  readonly #told = new Map<ContainerId, string>();
  /** Containers that were removed as asked, and not acknowledged yet. */
  readonly #gone = new Map<ContainerId, { readonly tenant: TenantId; readonly generation: number }>();

  constructor(options: HostOptions, engine: Map<ContainerId, Running>, fault: { readonly isThere: boolean }) {
    const { world, nats, key, cluster } = options;
    this.#options = options;
    this.#engine = engine;
    this.#fault = fault;
    this.process = world.process(key);
    this.#connection = nats.connect(this.process);
    this.#desired = emptyDesired(cluster);
  }

  kill(): void {
    this.#options.world.kill(this.process);
    void this.#connection.close();
  }

  async run(): Promise<void> {
    const { key } = this.#options;
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
        const hello = JSON.stringify({ v: 1, agent_version: 'sim', capacity, highest_session: sessions.highest });
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
    const target: SyncTarget = {
      sender: () => agentOf(this.#options.key),
      current: () => this.#desired,
      update: (next) => {
        this.#desired = next;
        this.#isSettled = false;
        this.#workload.setDesired(next);
        this.#reconcile();
      },
      settled: () => {
        this.#isSettled = true;
        this.#reconcile();
      },
      fenced: () => {},
      orphanWord: (word) => {
        this.#orphanWord = word;
        this.#reconcile();
      },
      strangers: this.#workload.strangers,
      unjudged: this.#workload.unjudged,
      verdicts: (named, gone) => {
        this.#workload.hearVerdicts(named, gone);
        this.#reconcile();
      },
      incarnation: (told) => {
        if (told > this.#incarnation) this.#isOfBefore = true;
        this.#incarnation = Math.max(told, this.#incarnation);
      },
    };
    let fullAtMs = 0;
    for (;;) {
      const { nowMs } = this.#options.world;
      if (nowMs >= fullAtMs) this.#due = 'all';
      const due = this.#due;
      if (due === 'all' || due.size > 0) {
        this.#due = new Set();
        const result = await sync(
          this.#connection.asClient,
          target,
          due === 'all' ? undefined : [...due],
          quietLog,
          600,
        );
        this.#afterSync(result);
        if (due === 'all') fullAtMs = nowMs + 5000;
        this.#beat();
      }
      await sleep(150);
    }
  }

  /**
   * A partition that a doorbell named and no owner answered for stays due, as in the agent's
   * control.
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
    const beat = { v: 1, session: this.#session, used: unused, engine: 'sim', orphans_held: 0 };
    this.#connection.publish(subjects.hostBeat(agentOf(this.#options.key)), JSON.stringify(beat));
  }

  /** Takes every container one step further, as the agent's reconciler would. */
  #reconcile(): void {
    const { orphanState } = this.#workload.judge({
      capacity,
      present: new Map(this.#engine),
      touched: undefined,
      orphanState: this.#orphans,
      orphanWord: this.#orphanWord,
      isIsolated: false,
      isSettled: this.#isSettled,
    });
    this.#orphans = orphanState;
    for (const id of new Set([...this.#workload.ids(), ...this.#engine.keys()])) {
      const wanted = this.#workload.wanted(id);
      const found = this.#engine.get(id);
      switch (wanted.want) {
        case 'untouched':
          break;
        case 'nothing':
          if (found !== undefined) this.#remove(id, 'orphan');
          break;
        case 'removed':
          if (found !== undefined) this.#remove(id, 'removed');
          this.#gone.set(id, { tenant: wanted.container.tenant, generation: wanted.container.generation });
          break;
        default: {
          // A restore brought it back before its end was acknowledged: that word no longer holds.
          this.#gone.delete(id);
          this.#carryOut(id, wanted.container, wanted.want === 'running', found);
          if (wanted.want === 'prepared') this.#options.onPrepared(id);
        }
      }
    }
  }

  /** A container of another placement is another one; its stop takes time, as every stop. */
  #carryOut(id: ContainerId, container: DesiredContainer, isToRun: boolean, found: Running | undefined): void {
    const { tenant, generation, placement } = container;
    if (found?.state === 'running' && (!isToRun || found.placement !== placement)) {
      found.generation = generation;
      this.#stop(found);
      return;
    }
    const restarts = found?.restarts ?? 0;
    const state = isToRun ? (this.#fault.isThere && found?.state !== 'running' ? 'broken' : 'running') : 'stopped';
    if (state === 'running' && found?.state !== 'running') this.#options.onStarted(id);
    if (found === undefined) this.#engine.set(id, { tenant, generation, placement, restarts, state });
    else Object.assign(found, { generation, placement, state });
  }

  #stop(found: Running): void {
    if (this.#stopping.has(found)) return;
    this.#stopping.add(found);
    const { world, stopMs } = this.#options;
    world.at(world.nowMs + stopMs(), this.process, () => {
      this.#stopping.delete(found);
      found.state = 'stopped';
      this.#reconcile();
    });
  }

  #remove(id: ContainerId, why: 'removed' | 'orphan'): void {
    this.#engine.delete(id);
    this.#options.onRemoved(id, why);
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
    for (const [id, { tenant, generation, placement, state, restarts }] of this.#engine) {
      const prepared = this.#workload.wanted(id).want === 'prepared' ? { prepared: placement } : {};
      const text = `${generation} ${state} ${restarts} ${prepared.prepared ?? ''}`;
      // The agent reports it as stopping, which changes nothing here.
      if (state === 'running' && this.#workload.wanted(id).want !== 'running') continue;
      if (!isHere(tenant) || this.#told.get(id) === text) continue;
      texts.set(id, text);
      items.push({
        tenant,
        id,
        generation,
        seq: ++this.#seq,
        gone: false,
        ...prepared,
        observation: observed(state, restarts),
      });
    }
    const gone = [...this.#gone].filter(([, { tenant }]) => isHere(tenant));
    for (const [id, { tenant, generation }] of gone) {
      items.push({ tenant, id, generation, seq: ++this.#seq, gone: true, observation: observation('stopped') });
    }
    if (items.length === 0) return;
    const report = JSON.stringify({ v: 1, partition, session, items });
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
    for (const [id] of gone) this.#gone.delete(id);
  }
}
