/**
 * One run of the whole system from a seed: several actors processes over one JetStream, gateways
 * with clients, and hosts. Each runs its real code in virtual time, over a NATS that loses, repeats
 * and delays messages; owners are paused, killed, cut off and replaced; wall clocks step by days.
 * The checker of histories judges the asks and answers. Then all faults end, and what is stored
 * must agree with what runs. In some runs an online backup is restored in the middle, and exactly
 * what was acknowledged after it is gone; in some the limits are small, and there are many tenants;
 * in some secrets and logins change.
 */
import { createInbox } from '@nats-io/transport-node';
import type { PartitionState } from '../../actors/domain/state.ts';
import type { Question } from '../../lib/rpc/partition-client.ts';
import { incarnationOf, type Cluster } from '../../schemas/records/cluster.ts';
import { home } from '../actors/support/vpn.ts';
import { restoreBackup, takeBackup, type Backup } from './restore.ts';
import { liveOnVpn, refusedIn, smallNetwork, storedStates, vpnFaults } from './parts/vpn.ts';
import { createOwner, type Owner, type OwnerOptions } from '../../actors/owner.ts';
import type { Login } from '../../host-agent/secrets/values.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { ContainerStatusView } from '../../schemas/api/container.ts';
import { createSlices } from '../../lib/time/slices.ts';
import type { HostUpdate } from '../../schemas/api/host.ts';
import type { EventBody } from '../../schemas/api/event.ts';
import type { ContainerId, HostKey, OperationId, Region, TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { agentKey, hostKey, quietLog, tenantId } from '../actors/support.ts';
import { createRandom, type Random } from '../actors/support/random.ts';
import { check, explain } from '../faults/check/check.ts';
import type { History, Request, Result, Seen } from '../faults/check/history.ts';
import type { ContainerRecord } from '../../schemas/api/container.ts';
import { bucketStream, buckets, journalBuckets, streams } from '../../schemas/records/buckets.ts';
import { auditFaults } from './parts/audit.ts';
import { rush } from './parts/rush.ts';
import { Secrets } from './parts/secrets.ts';
import { withScarceLimits } from './scarce.ts';
import { createScribe, first, Gateway, historyOf, live, record, type Scribe } from './parts/gateway.ts';
import { badTag, isUp } from './parts/engine.ts';
import { Host } from './parts/host.ts';
import { Nats, type Connection, type Fate, type Weather } from './world/nats.ts';
import { World, type Process } from './world/time.ts';

/**
 * With few actors, each lists the others at every look; with many, it watches only some (ADR 8).
 */
const actorsCounts = { few: 3, many: 8 };
const stormMs = 9_000;
const region = 'default' as Region;
/** The host that is drained and broken. */
const emptied = hostKey('h0');
const cap = 4;
const tenantCounts = { few: 3, many: 16 };
const caps: History['caps'] = { containers: cap, cpuMillis: null, memBytes: null };

export interface Run {
  readonly seed: number;
  readonly faults: readonly string[];
  /** Counts everything that happened. */
  readonly digest: string;
  readonly events: number;
  readonly operations: number;
  /** Histories with more possible orders than the checker tries. */
  readonly undecided: number;
}

/** An actors process, and those that have taken its place. */
interface Actor {
  readonly name: string;
  process: Process;
  connection: Connection;
  owner: Owner;
  /** Time until which it and JetStream do not hear each other. */
  cutOffUntilMs: number;
}

const observer: OwnerOptions['observer'] = {
  hostRefused: () => {},
  turn: () => {},
  commit: () => {},
  quarantined: () => {},
  journal: () => {},
  uncheckpointed: () => {},
  parked: () => {},
  room: () => {},
  load: () => {},
  unknown: () => {},
  moved: () => {},
  loadGivenUp: () => {},
  sealed: () => {},
  wentBack: () => {},
  worked: () => {},
};

class Simulation {
  readonly #random: Random;
  readonly #world = new World();
  readonly #nats: Nats;
  readonly #actors: Actor[] = [];
  readonly #gateways: Gateway[] = [];
  readonly #hosts = new Map<HostKey, Host>();
  /** `<host> <container>`: which ran where, and was not prepared there since. */
  readonly #ran = new Set<string>();
  #scribe: Scribe = createScribe();
  readonly #partitions: number;
  #cluster: Cluster;
  /**
   * True if a backup is restored in the middle of this run. There is also a VPN network with few
   * addresses then.
   */
  readonly #hasRestore: boolean;
  readonly #actorsCount: number;
  /** Containers that hosts ran at the restore; the control plane has forgotten some of them. */
  #ranBefore: ReadonlySet<string> = new Set();
  /** Certificates that the backup records as revoked. */
  #refused: ReadonlySet<string> = new Set();
  #operations = 0;
  #undecided = 0;
  readonly #tenants: readonly TenantId[];
  /** Secrets and logins of further tenants change in this run. */
  readonly #secrets: Secrets | undefined;
  /** The limits of this run are small. */
  readonly isScarce: boolean;
  readonly #hasRush: boolean;
  /** True if buckets go back in time at the end, under owners that have everything in memory. */
  readonly #goesBack: boolean;
  readonly #faults: string[] = [];
  /** The cost of one step of long work: in some runs partitions are large. */
  #stepMs: number;
  #isStormy = false;
  /** The operator's last order for the first host. */
  #draining = false;
  /** The last order that was acknowledged, and the orders under way. */
  #isDrained = false;
  #orders = Promise.resolve();
  #hasOrders = false;
  #tokens = 0;

  /** @param regime says which run this is; apart from what happens in it */
  constructor(random: Random, regime: Random) {
    this.#random = random;
    this.isScarce = regime.once(3);
    this.#hasRush = this.isScarce && regime.once(2);
    const tenants = this.isScarce || regime.once(6) ? tenantCounts.many : tenantCounts.few;
    this.#tenants = Array.from({ length: tenants }, (_, index) => tenantId(`t${index}`));
    if (regime.once(4)) {
      const own = ['s0', 's1'].map(tenantId);
      this.#secrets = new Secrets(
        own,
        () => this.#token(),
        () => this.#scribe.unwanted,
      );
    }
    this.#goesBack = regime.once(4);
    this.#nats = new Nats(this.#world, this.#weather());
    this.#stepMs = random.pick([0, 0, 1, 5, 15]);
    this.#hasRestore = random.once(5);
    this.#actorsCount = random.once(6) ? actorsCounts.many : actorsCounts.few;
    this.#partitions = random.pick([2, 4]);
    this.#cluster = { id: 'sim', partitions: this.#partitions, format: 1 };
  }

  async run(seed: number): Promise<Run> {
    const world = this.#world;
    const own = createRandom(-seed);
    let isDone = false;
    await world.run(
      () => own.below(2 ** 30) / 2 ** 30,
      async () => {
        const story = world.spawn(world.stage, () => this.#story());
        void story.then(
          () => (isDone = true),
          (error: unknown) => {
            this.#faults.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
            isDone = true;
          },
        );
        if (!(await world.until(() => isDone, limitMs))) this.#faults.push('it never came to its end');
      },
    );
    // The checker cannot know the state at the start of a history after a restore.
    if (incarnationOf(this.#cluster) === 0) this.#judgeHistory();
    else this.#operations += this.#scribe.operations.length;
    return {
      seed,
      faults: this.#faults,
      digest: world.digest(),
      events: world.events,
      operations: this.#operations,
      undecided: this.#undecided,
    };
  }

  async #story(): Promise<void> {
    for (let index = 0; index < this.#actorsCount; index++) this.#actors.push(this.#startActor(`actors-${index}`));
    for (let index = 0; index < 2; index++) {
      const options = { world: this.#world, nats: this.#nats, name: `gateway-${index}`, partitions: this.#partitions };
      this.#gateways.push(new Gateway({ ...options, newToken: () => this.#token(), hasLarge: this.isScarce }));
    }
    await this.#setUp();
    if (this.#hasRestore) {
      await this.#setUpVpn();
      const [backup] = await Promise.all([this.#takeBackup(), this.#storm()]);
      this.#judgeHistory();
      await this.#restore(backup);
    }
    await this.#storm();
    if (this.#hasRush) await this.#rush();
    if (this.#goesBack) await this.#goBack();
    await this.#judgeEnd();
  }

  async #storm(): Promise<void> {
    const random = this.#random;
    const endMs = this.#world.nowMs + stormMs;
    const isOver = (): boolean => this.#world.nowMs >= endMs;
    const clients = this.#gateways.flatMap((gateway, index) =>
      [0, 1].map((number) => {
        const name = `client-${index}-${number}`;
        return this.#world.spawn(gateway.process, () =>
          live(random, this.#scribe, gateway, this.#world, name, this.#tenants, isOver),
        );
      }),
    );
    const [gateway] = this.#gateways;
    if (this.#hasRestore && gateway !== undefined) {
      const client = () => liveOnVpn(random, gateway, () => this.#token(), this.#tenants, isOver);
      clients.push(this.#world.spawn(gateway.process, client), this.#world.spawn(gateway.process, client));
    }
    const secrets = this.#secrets;
    if (secrets !== undefined && gateway !== undefined)
      clients.push(this.#world.spawn(gateway.process, () => secrets.live(random, gateway, isOver)));
    this.#isStormy = true;
    await this.#trouble(isOver);
    this.#isStormy = false;
    this.#calm();
    await Promise.all(clients);
    await this.#orders;
  }

  // Backup and restore

  async #takeBackup(): Promise<Backup> {
    await sleep(2000 + this.#random.below(stormMs - 4000));
    return takeBackup(this.#nats, this.#random, this.#partitions);
  }

  /** As docs/backup.md says: no actors process runs meanwhile, but agents and gateways do. */
  async #restore(backup: Backup): Promise<void> {
    const { stage } = this.#world;
    for (const actor of this.#actors) {
      this.#crash(actor);
      // No process that was to restart does so.
      actor.process = stage;
    }
    await sleep(latestMs);
    const running = [...this.#hosts.values()].flatMap(({ engine }) => [...engine.ids()]);
    this.#ranBefore = new Set(running);
    const connection = this.#nats.connect(stage);
    const before = this.#secrets?.valueFaults(await this.#storedStates(connection)) ?? [];
    this.#cluster = await restoreBackup(this.#nats, connection, backup, this.#cluster);
    const states = await this.#storedStates(connection);
    this.#refused = refusedIn(states, this.#tenants);
    this.#faults.push(...before, ...(this.#secrets?.valueFaults(states) ?? []));
    for (const { audited } of this.#gateways) audited.clear();
    this.#scribe = createScribe(this.#scribe.unwanted);
    for (const actor of this.#actors) Object.assign(actor, this.#startActor(actor.name));
    await sleep(3000);
    // The backup may have another order of the operator.
    this.#orderDrain(this.#draining);
    await this.#orders;
  }

  #storedStates(connection: Connection): Promise<PartitionState[]> {
    return storedStates(connection.asClient, this.#partitions, incarnationOf(this.#cluster), () => this.#token());
  }

  // Processes

  #token(): string {
    const hex = (++this.#tokens).toString(16).padStart(12, '0');
    return `00000000-0000-7000-8000-${hex}`;
  }

  #startActor(name: string): Actor {
    const world = this.#world;
    const process = world.process(name);
    const connection = this.#nats.connect(process);
    const owner = world.as(process, () =>
      createOwner({
        nc: connection.asClient,
        cluster: this.#cluster,
        hostsAccount: { publicKey: '', signingSeed: '' },
        signHostJwt: async () => Promise.resolve('jwt'),
        hostsNatsUrls: [],
        hostCredentialsTtlMs: 3_600_000,
        hostUnknownMs: 600_000,
        hostLostMs: 3_600_000,
        clock: process.clock,
        slices: createSlices({
          monotonicMs: () => {
            world.work(process, this.#stepMs);
            return process.clock.monotonicMs();
          },
        }),
        log: quietLog,
        observer,
        newToken: () => this.#token(),
      }),
    );
    void world.spawn(process, () => owner.start());
    return { name, process, connection, owner, cutOffUntilMs: 0 };
  }

  #crash(actor: Actor): void {
    this.#world.kill(actor.process);
    void actor.connection.close();
  }

  /** Unless it was already. */
  #replace(actor: Actor, former: Process): void {
    if (actor.process === former) Object.assign(actor, this.#startActor(actor.name));
  }

  async #insist(what: string, question: () => Question): Promise<void> {
    const [gateway] = this.#gateways;
    if (gateway === undefined) return;
    // A stream may be away until the storm is over, and a journal full of what waits for it.
    for (let attempt = 0; attempt < 150; attempt++) {
      const { code } = await this.#world.spawn(gateway.process, () => gateway.ask('write', question()));
      if (code === 'ok' || code === 'created' || code === 'conflict') return;
      await sleep(200);
    }
    throw new Error(`${what} is not possible`);
  }

  #asker(): { readonly rid: string; readonly op: OperationId } {
    return { rid: this.#token(), op: this.#token() as OperationId };
  }

  async #setUpVpn(): Promise<void> {
    await this.#insist('a network', () => ({
      type: 'network.create',
      network: home,
      made: smallNetwork(() => this.#token()),
      ...this.#asker(),
    }));
  }

  async #setUp(): Promise<void> {
    for (const key of ['h0', 'h1', 'h2'].map(hostKey)) {
      await this.#insist('a host', () => ({
        type: 'host.create',
        host: key,
        region,
        joinTokenHash: 'x',
        ...this.#asker(),
      }));
      await this.#insist('an enrolment', () => ({
        type: 'host.enrol',
        host: key,
        joinTokenHash: 'x',
        publicKey: agentKey,
        ...this.#asker(),
      }));
      const host = new Host({
        world: this.#world,
        nats: this.#nats,
        key,
        cluster: this.#cluster.id,
        partitions: this.#partitions,
        sessions: { highest: 0 },
        onRemoved: (id, why) => this.#onRemoved(key, id, why),
        onPrepared: (id) => void this.#ran.delete(`${key} ${id}`),
        onStart: (id) => this.#onStart(key, id),
        stopMs: () => this.#random.below(1500),
        registry: {
          login: (tenant, registry) => this.#loginOf(tenant, registry),
          accepts: (registry, login) => this.#secrets?.accepts(registry, login) ?? true,
        },
      });
      this.#hosts.set(key, host);
      host.start();
    }
    for (const tenant of [...this.#tenants, ...(this.#secrets?.tenants ?? [])]) {
      const settings = { regions: [region], caps: { containers: cap, cpu_millis: null, mem_bytes: null } };
      await this.#insist('a tenant', () => ({ type: 'tenant.put', tenant, settings, ...this.#asker() }));
    }
    await sleep(3000);
  }

  async #loginOf(tenant: TenantId, registry: string): Promise<Login> {
    const [gateway] = this.#gateways;
    const secrets = this.#secrets;
    if (gateway === undefined || secrets === undefined) return { kind: 'none' };
    return this.#world.spawn(gateway.process, () => secrets.loginOf(gateway, tenant, registry));
  }

  // Weather

  #weather(): Weather {
    const random = this.#random;
    // In some runs the weather is so bad that little gets done.
    const severity = random.pick([1, 1, 1, 2.5, 6]);
    // In some runs writes often arrive late: after a new owner has begun to write.
    const isSlow = random.once(3);
    const inStorm = (inSoMany: number): boolean => this.#isStormy && random.once(inSoMany / severity);
    return {
      delayMs: () => (inStorm(80) ? random.below(300) : 0.2 + random.below(20) / 10),
      copies: (subject) => (subject.startsWith('members') ? 1 : inStorm(100) ? 0 : inStorm(20) ? 2 : 1),
      fate: (process, subject): Fate => {
        const actor = this.#actors.find((one) => one.process === process);
        if (actor !== undefined && this.#world.nowMs < actor.cutOffUntilMs) return 'lost';
        const isPublish = !subject.startsWith('$JS.API.');
        if (isSlow && isPublish && inStorm(25)) return 'late';
        return inStorm(100) ? random.pick(['lost', 'answer lost', isPublish ? 'late' : 'lost'] as const) : 'done';
      },
      lateMs: () => random.below(4000),
      lagMs: () => (inStorm(12) ? random.below(3000) : 0),
      isBusy: () => inStorm(40),
      page: () => ({
        messages: inStorm(8) ? 1 + random.below(40) : Infinity,
        fate: inStorm(12) ? random.pick(['broken', 'gap'] as const) : 'whole',
        lost: [random.below(1000) / 1000, random.below(1000) / 1000],
      }),
    };
  }

  // Trouble

  async #trouble(isOver: () => boolean): Promise<void> {
    const random = this.#random;
    while (!isOver()) {
      await sleep(300 + random.below(1500));
      if (isOver()) return;
      const actor = this.#actors[random.below(this.#actors.length)];
      if (actor === undefined) return;
      const { process } = actor;
      if (process.state === 'dead') continue;
      const kind = random.below(17);
      this.#world.trace('trouble', kind, actor.name);
      switch (kind) {
        case 0:
        case 1:
        case 2:
          this.#pauseFor(process, 100 + random.below(4000));
          break;
        case 3:
          this.#crash(actor);
          this.#later(random.below(2000), () => this.#replace(actor, process));
          break;
        case 4:
        case 9:
        case 10:
          actor.cutOffUntilMs = this.#world.nowMs + 1000 + random.below(5000);
          break;
        case 5:
          // The wall clock is days ahead or behind, and later right again (ADR 13).
          if (random.once(3)) process.wallOffsetMs = isDaysOff(process) ? 0 : (random.below(40) - 20) * dayMs;
          else process.wallOffsetMs += random.below(20_000) - 10_000;
          break;
        case 6: {
          const host = [...this.#hosts.values()][random.below(this.#hosts.size)];
          host?.start();
          break;
        }
        case 7: {
          const gateway = this.#gateways[random.below(this.#gateways.length)];
          if (gateway !== undefined) this.#pauseFor(gateway.process, random.below(2500));
          break;
        }
        case 8:
          // A rolling restart: the process hands over everything and comes back.
          await this.#restart(actor);
          break;
        case 11:
          this.#crashContainers();
          break;
        case 12:
        case 13:
          this.#drain();
          break;
        case 14:
          this.#breakHost();
          break;
        case 15:
        case 16:
          this.#loseStream();
          break;
      }
    }
  }

  /**
   * The first host is drained, at some pace, or the drain is called off. It stays cordoned: no
   * container comes back to a host that it has left, which the model takes for an operation done
   * twice.
   */
  #drain(): void {
    this.#draining = !this.#draining || this.#random.once(3);
    this.#orderDrain(this.#draining);
  }

  #orderDrain(draining: boolean): void {
    const update = { draining, drain_at_once: this.#random.pick([null, 1, 2]) };
    this.#update(update, () => (this.#isDrained = draining));
  }

  /** One stream alone is away, and often until the storm is over. */
  #loseStream(): void {
    const random = this.#random;
    const stream = random.pick([
      streams.audit.name,
      streams.events.name,
      bucketStream(buckets.state.bucket(random.below(this.#partitions))),
      bucketStream(buckets.journal.bucket(random.below(journalBuckets))),
    ]);
    const ms = random.once(2) ? stormMs : random.below(4000);
    this.#world.trace('away', stream);
    this.#nats.jetstream.leave(stream, this.#world.nowMs + ms, random.pick(['silent', 'refusing']));
  }

  /** The first host can start nothing for a while. */
  #breakHost(): void {
    const host = this.#hosts.get(emptied);
    if (host === undefined) return;
    const ms = this.#random.below(4000);
    this.#update({ cordoned: true }, () => {
      host.fault.isThere = true;
      this.#later(ms, () => (host.fault.isThere = false));
    });
  }

  /** An operator changes the first host. */
  #update(update: HostUpdate, onDone: () => void): void {
    const ask = { type: 'host.update' as const, host: emptied, update };
    const order = () => this.#insist('a change of a host', () => ({ ...ask, ...this.#asker() }));
    this.#hasOrders = true;
    this.#orders = this.#orders
      .then(() => this.#world.spawn(this.#world.stage, order))
      .then(onDone, (error: unknown) => void this.#faults.push(String(error)));
  }

  /** Some containers keep ending by themselves within a second, and their agent restarts them. */
  #crashContainers(): void {
    const random = this.#random;
    for (const { engine } of this.#hosts.values()) {
      for (const dockerId of engine.copies.keys()) {
        for (let crash = random.below(3); crash > 0; crash--) {
          this.#later(random.below(1000), () => engine.crash(dockerId));
        }
      }
    }
  }

  #later(ms: number, run: () => void): void {
    const { stage } = this.#world;
    this.#world.at(this.#world.nowMs + ms, stage, run);
  }

  #pauseFor(process: Process, ms: number): void {
    this.#world.pause(process);
    this.#later(ms, () => this.#world.resume(process));
  }

  async #restart(actor: Actor): Promise<void> {
    const { process, owner } = actor;
    if (process.state !== 'running') return;
    let isGone = false;
    void this.#world.spawn(process, () => owner.stop()).then(() => (isGone = true));
    for (let waitedMs = 0; !isGone && waitedMs < 2000; waitedMs += 50) await sleep(50);
    this.#crash(actor);
    this.#replace(actor, process);
  }

  #calm(): void {
    this.#nats.jetstream.calm();
    for (const actor of this.#actors) {
      actor.cutOffUntilMs = 0;
      this.#world.resume(actor.process);
    }
    for (const { process } of this.#gateways) this.#world.resume(process);
  }

  // Calm

  #ask(tenant: TenantId, request: Request, client = 'last'): Promise<Result> {
    const gateway = this.#gateways[0] as Gateway;
    const asking = () => record(this.#scribe, gateway, this.#world, client, tenant, request);
    return this.#world.spawn(gateway.process, asking);
  }

  async #rush(): Promise<void> {
    const [gateway] = this.#gateways;
    if (gateway === undefined) return;
    // No work here costs time: the gateway bounds the cost of an ask, and this run is about waits
    // for commits.
    this.#stepMs = 0;
    await sleep(heardMs);
    const ends = await this.#lastWords();
    const faults = await rush({
      ...{ nats: this.#nats, random: this.#random, gateway },
      ...{ partitions: this.#partitions, tenants: this.#tenants },
      newToken: () => this.#token(),
      ask: (tenant, request) => this.#ask(tenant, request, `rush ${tenant} ${request.kind}`),
      containerOf: (tenant) => ends.find(([of, { isRemoving }]) => of === tenant && !isRemoving)?.[1].id,
    });
    this.#faults.push(...faults);
  }

  /**
   * Takes the stored state back to a moment ago, except for the events, while owners have the newer
   * state in memory.
   */
  async #goBack(): Promise<void> {
    const { jetstream } = this.#nats;
    const create = async (name: string): Promise<void> => {
      for (const tenant of this.#tenants)
        await this.#ask(tenant, { kind: 'create', name, version: first, idempotencyKey: null });
    };
    await sleep(heardMs);
    const earlier = jetstream.lengths();
    await create('before');
    await sleep(this.#random.below(3000));
    jetstream.goBack(earlier, (stream) => stream !== streams.events.name && stream !== streams.audit.name);
    await create('after');
    await sleep(3000);
    for (const actor of this.#actors) await this.#restart(actor);
    await sleep(3000);
  }

  // Judgement

  #judgeHistory(): void {
    const history = historyOf(this.#scribe, caps);
    this.#operations += history.operations.length;
    const findings = check(history);
    this.#undecided += findings.filter(({ rule }) => rule === 'undecided').length;
    this.#faults.push(...findings.filter(({ rule }) => rule !== 'undecided').map(explain));
  }

  /**
   * Peers and their network agree, or report where they do not, and everything that the backup
   * records as revoked still is.
   */
  async #judgeVpn(): Promise<void> {
    await this.#judgeStored((states) => vpnFaults(states, this.#tenants, this.#refused));
  }

  /** Judges the stored state, which must come to have no faults. */
  async #judgeStored(faultsOf: (states: readonly PartitionState[]) => string[]): Promise<void> {
    const connection = this.#nats.connect(this.#world.stage);
    const look = async (): Promise<string[]> => {
      try {
        return faultsOf(await this.#storedStates(connection));
      } catch (error) {
        // Another owner took the partition meanwhile.
        return [`what is stored can't be read: ${String(error)}`];
      }
    };
    let faults = await look();
    for (let waitedMs = 0; waitedMs < settleMs && faults.length > 0; waitedMs += 500) {
      await sleep(500);
      faults = await look();
    }
    this.#faults.push(...faults);
  }

  async #judgeAudit(): Promise<void> {
    const answered = new Map(this.#gateways.flatMap(({ audited }) => [...audited]));
    const look = (): string[] => auditFaults(answered, this.#nats.jetstream.stored(streams.audit.name));
    for (let waitedMs = 0; waitedMs < settleMs && look().length > 0; waitedMs += 500) await sleep(500);
    this.#faults.push(...look());
  }

  #onRemoved(host: HostKey, id: ContainerId, why: 'removed' | 'orphan'): void {
    // Only the first host is drained or broken: elsewhere, only a copy that never ran may go.
    const isOther = why === 'orphan' && (host === emptied || !this.#ran.has(`${host} ${id}`));
    if (!this.#scribe.unwanted.has(id) && !isOther)
      this.#faults.push(`${host} removed ${id} as ${why}, and nobody had asked for that`);
  }

  /**
   * No host is lost here, so no container ever runs on two. A restore may have forgotten a move.
   */
  #onStart(host: HostKey, id: ContainerId): void {
    this.#ran.add(`${host} ${id}`);
    for (const [other, { engine }] of this.#hosts) {
      if (other !== host && incarnationOf(this.#cluster) > 0) continue;
      const tags = engine.runningTags(id);
      if (tags.length > 0) this.#faults.push(`${host} starts ${id}, which runs on ${other}: ${tags.join()}`);
    }
  }

  async #judgeEnd(): Promise<void> {
    for (
      let waitedMs = 0;
      waitedMs < settleMs && [...this.#hosts.values()].some((host) => host.isBroken());
      waitedMs += 200
    )
      await sleep(200);
    const [gateway] = this.#gateways;
    if (gateway !== undefined) await this.#world.spawn(gateway.process, async () => this.#secrets?.finish(gateway));
    // An owner that missed the operator's last order gets it with the next versions.
    if (this.#hasOrders) await sleep(heardMs);
    let ends = await this.#lastWords();
    // A sweep places containers that wait for a host; an update under way comes to its end.
    for (let waitedMs = 0; waitedMs < settleMs && ends.some(([, seen]) => isOnItsWay(seen)); waitedMs += 1000) {
      await sleep(1000);
      ends = await this.#lastWords();
    }
    const isLeft = ([, { host }]: (typeof ends)[number]): boolean => this.#isDrained && host === emptied;
    for (let waitedMs = 0; waitedMs < drainMs && ends.some(isLeft); waitedMs += 1000) {
      await sleep(1000);
      ends = await this.#lastWords();
    }
    for (const [tenant, { id, update }] of ends)
      if (update === 'under way') this.#faults.push(`${tenant} ${id}: its update does not end`);
    for (const [tenant, { id, version }] of ends.filter(isLeft))
      this.#faults.push(`${tenant} ${id}:${version?.tag} is left on a drained host`);
    const isSettled = (): boolean => ends.every(([, seen]) => this.#isAsDesired(seen));
    for (let waitedMs = 0; waitedMs < settleMs && !isSettled(); waitedMs += 100) await sleep(100);
    for (const [tenant, seen] of ends) {
      if (!this.#isAsDesired(seen))
        this.#faults.push(`${tenant} ${seen.id}: ${seen.desired} on ${seen.host}, and its host has it otherwise`);
    }
    const secrets = this.#secrets;
    const engines = [...this.#hosts.values()].map(({ engine }) => engine);
    let others: readonly ContainerRecord[] = [];
    if (secrets !== undefined)
      await this.#judgeStored((states) => {
        others = secrets.containersIn(states);
        return secrets.faults(states, engines, (id) => this.#ranBefore.has(id));
      });
    await this.#judgeCopies(new Set([...ends.map(([, { id }]) => id), ...others.map(({ id }) => id)]));
    await this.#judgeReports(ends);
    await this.#judgeEvents(ends.map(([, seen]) => seen));
    await this.#judgeTraces();
    await this.#judgeAudit();
    if (this.#hasRestore) await this.#judgeVpn();
  }

  /**
   * Each host removes containers that were deleted or moved, at the next sync or two. Those from
   * before a restore are held until an operator approves their removal.
   */
  async #judgeCopies(desired: ReadonlySet<string>): Promise<void> {
    const isRestored = incarnationOf(this.#cluster) > 0;
    const copies = () =>
      [...this.#hosts].flatMap(([host, { engine }]) =>
        [...engine.copies.values()]
          .filter(({ found }) => !this.#ranBefore.has(found.id) && (isUp(found) || !isRestored))
          .map(({ found: { id } }) => ({ host, id })),
      );
    const wrong = (): string[] => {
      const all = copies();
      const isDouble = (id: ContainerId): boolean => all.filter((copy) => copy.id === id).length > 1;
      return all
        .filter(({ id }) => !desired.has(id) || isDouble(id))
        .map(({ host, id }) => `${host} has ${id}, which is ${desired.has(id) ? 'there twice' : 'not there any more'}`);
    };
    for (let waitedMs = 0; waitedMs < settleMs && wrong().length > 0; waitedMs += 200) await sleep(200);
    this.#faults.push(...wrong());
  }

  /**
   * The shown state of a container is what its host reported last: no older report has replaced it.
   */
  async #judgeReports(ends: readonly (readonly [TenantId, Seen])[]): Promise<void> {
    for (const [tenant, { id, host, isRemoving, version }] of ends) {
      // Read at each look: a crash that the storm has left may still come.
      const had = (): string | undefined => {
        const seen = this.#hosts.get(host as HostKey)?.seen(id as ContainerId);
        return seen === undefined ? undefined : `${seen.status}, ${seen.restart_count} restarts`;
      };
      // A container that never stays up is seldom seen twice in one state.
      if (isRemoving || had() === undefined || version?.tag === badTag) continue;
      let shown = await this.#shown(tenant, id as ContainerId);
      for (let waitedMs = 0; waitedMs < settleMs && shown !== had(); waitedMs += 200) {
        await sleep(200);
        shown = await this.#shown(tenant, id as ContainerId);
      }
      if (shown !== had()) this.#faults.push(`${tenant} ${id}: shown as ${shown}; its host has it ${had()}`);
    }
  }

  async #shown(tenant: TenantId, id: ContainerId): Promise<string> {
    const [gateway] = this.#gateways;
    if (gateway === undefined) return 'by nobody';
    const ask = { type: 'container.status' as const, tenant, id, rid: this.#token() };
    const { code, body } = await this.#world.spawn(gateway.process, () => gateway.ask('read', ask));
    if (code !== 'ok') return code;
    const { data } = JSON.parse(body) as { readonly data: ContainerStatusView };
    return `${data.status}, ${data.restart_count} restarts`;
  }

  /** True if it runs in its declared version alone, or not at all. */
  #isAsDesired({ id, host, desired, isRemoving, version }: Seen): boolean {
    const engine = this.#hosts.get(host as HostKey)?.engine;
    const running = engine?.runningTags(id as ContainerId) ?? [];
    if (isRemoving) return engine?.of(id as ContainerId).length === 0;
    if (desired === 'stopped') return running.length === 0;
    if (version?.tag === badTag) return running.every((tag) => tag === badTag);
    return running.length === 1 && running[0] === version?.tag;
  }

  /** The containers that exist when all is calm, as every tenant's owner reports them. */
  async #lastWords(): Promise<readonly (readonly [TenantId, Seen])[]> {
    const ends: (readonly [TenantId, Seen])[] = [];
    for (const tenant of this.#tenants) {
      const told: Seen[] = [];
      await this.#ask(tenant, { kind: 'quota' });
      for (const { id } of await this.#listed(tenant)) {
        const isAnswered = (result: Result): boolean =>
          result.kind === 'ok' || (result.kind === 'refused' && result.code === 'not_found');
        let status = await this.#ask(tenant, { kind: 'get', id });
        for (let attempt = 0; attempt < 10 && !isAnswered(status); attempt++)
          status = await this.#ask(tenant, { kind: 'get', id });
        // The container may have been removed between the two reads.
        if (status.kind === 'ok' && status.told.of === 'container') told.push(status.told.container);
      }
      // What a status says is over may have been under way in the list before it.
      for (const { id, version } of await this.#listed(tenant)) {
        const container = told.find((each) => each.id === id);
        if (container !== undefined) ends.push([tenant, { ...container, version }]);
      }
    }
    return ends;
  }

  async #listed(tenant: TenantId): Promise<readonly Pick<Seen, 'id' | 'version'>[]> {
    let listed = await this.#ask(tenant, { kind: 'list' });
    for (let attempt = 0; attempt < 10 && listed.kind !== 'ok'; attempt++)
      listed = await this.#ask(tenant, { kind: 'list' });
    if (listed.kind !== 'ok' || listed.told.of !== 'list') throw new Error(`${tenant} is not answered`);
    return listed.told.containers;
  }

  /**
   * The run takes a minute, so everything in it must still be readable, however wrong the clocks
   * were.
   */
  async #judgeTraces(): Promise<void> {
    const [gateway] = this.#gateways;
    if (gateway === undefined) return;
    for (const [tenant, ids] of this.#scribe.known) {
      for (const id of ids) {
        const ask = { type: 'container.trace', tenant, id: id as ContainerId, rid: this.#token() } as const;
        let { code } = await this.#world.spawn(gateway.process, () => gateway.ask('read', ask));
        for (let attempt = 0; attempt < 10 && code !== 'ok' && code !== 'not_found'; attempt++)
          ({ code } = await this.#world.spawn(gateway.process, () => gateway.ask('read', ask)));
        if (code !== 'ok') this.#faults.push(`${tenant} ${id}: its trace is ${code}`);
      }
    }
  }

  /** Every change of a container has exactly one event: as many as its generation counts. */
  async #judgeEvents(ends: readonly Seen[]): Promise<void> {
    for (let waitedMs = 0; waitedMs < settleMs; waitedMs += 200) {
      if (ends.every((seen) => this.#changesTold(seen.id) === seen.generation)) return;
      await sleep(200);
    }
    for (const { id, generation } of ends) {
      const told = this.#changesTold(id);
      if (told !== generation) this.#faults.push(`${id}: ${told} events of changes at generation ${generation}`);
    }
  }

  #changesTold(id: string): number {
    const told = new Map<string, string>();
    for (const { payload } of this.#nats.jetstream.stored('EVENTS')) {
      for (const event of JSON.parse(payload) as readonly EventBody[]) {
        if (event.container_id !== id || !changes.has(event.type)) continue;
        const text = JSON.stringify(event);
        if ((told.get(event.id) ?? text) !== text) this.#faults.push(`the event ${event.id} was told in two ways`);
        told.set(event.id, text);
      }
    }
    return told.size;
  }
}

/** Events of changes that raise a generation. */
const changes: ReadonlySet<EventBody['type']> = new Set([
  'created',
  'placed',
  'unplaced',
  'start_requested',
  'stop_requested',
  'delete_requested',
  'update_requested',
  'update_failed',
]);

const isOnItsWay = ({ host, desired, isRemoving, update }: Seen): boolean =>
  (host === null && desired === 'running' && !isRemoving) || update === 'under way';
const dayMs = 86_400_000;
const isDaysOff = ({ wallOffsetMs }: Process): boolean => Math.abs(wallOffsetMs) > dayMs / 2;
const limitMs = 400_000;
/** No message that was sent takes longer to arrive. */
const latestMs = 6_000;
/** A process that has missed the hosts of a partition gets them at the next interval. */
const heardMs = limits.syncIntervalMs + 2000;
/** Time for all containers to leave one after the other, at the slowest pace. */
const drainMs = 100_000;
const settleMs = limits.syncIntervalMs + 10_000;

// The client's id generator reads Math.random once, which must not happen inside a run.
createInbox();

export function simulate(seed: number): Promise<Run> {
  const simulation = new Simulation(createRandom(seed), createRandom(seed + 2 ** 20));
  const run = (): Promise<Run> => simulation.run(seed);
  return simulation.isScarce ? withScarceLimits(run) : run();
}
