/**
 * An actors process: a member that serves its partitions. The partition manager decides which those
 * are; this file puts the parts together and drives them.
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { sleep } from '../lib/time/backoff.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import type { Tracer } from '../lib/trace/tracer.ts';
import type { Answers } from '../lib/nats/answers.ts';
import type { HostsAccount, signHostJwt } from '../lib/nats/host-credentials.ts';
import { PartitionClient } from '../lib/rpc/partition-client.ts';
import { createSlices, type Slices } from '../lib/time/slices.ts';
import { rateLimitedLog, type RateLimitedLog } from '../lib/rate-limited-log.ts';
import type { Capacity } from '../schemas/api/host.ts';
import type { MemberId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import { buckets } from '../schemas/records/buckets.ts';
import { incarnationOf, type Cluster } from '../schemas/records/cluster.ts';
import { partitionOf, subjects, type Sender } from '../schemas/wire/subjects.ts';
import { createDomain, records } from './domain/domain.ts';
import type { TenantIpv4 } from './domain/turn.ts';
import type { StateRecord } from './domain/records.ts';
import { createEffects } from './effects.ts';
import { serveAsks, sourceOf, type AskOptions } from './endpoints/asks.ts';
import { createHostCredentials, type HostCredentials } from './endpoints/credentials.ts';
import { DirectoryExchange } from './endpoints/directory-exchange.ts';
import { Fleet } from './endpoints/fleet.ts';
import { Heartbeats } from './endpoints/hosts/heartbeats.ts';
import { subscribeHeartbeats, serveHosts } from './endpoints/hosts/serve.ts';
import type { HostMessage } from './endpoints/hosts/server.ts';
import type { UsageOptions } from './endpoints/hosts/usage.ts';
import { OwnSubject } from './endpoints/own-subject.ts';
import { StatusWatchers } from './endpoints/status-watchers.ts';
import { serveReads } from './endpoints/reads.ts';
import { createJetStreamMemberStore } from './membership/jetstream-member-store.ts';
import {
  PartitionManager,
  type ManagedPartitionOptions,
  type PartitionManagerObserver,
} from './membership/partition-manager.ts';
import { createOutbox, type Outbox } from './outbox/outbox.ts';
import type { Partition } from './partition.ts';
import { createRevocation, keptForMs, type Revocation } from './revocation.ts';
import type { Accounts } from '../lib/nats/accounts/servers.ts';
import { Journals, type JournalsObserver } from './runtime/journal/journals.ts';
import { Partition as RuntimePartition, type PartitionObserver } from './runtime/partition.ts';
import { ReadAhead } from './runtime/read-ahead.ts';
import { createEventSink, createJetStreamStore, createJournalStore } from './runtime/store/jetstream-store.ts';
import type { WentBack } from './runtime/store/fence.ts';
import type { Store } from './runtime/store/store.ts';
import { Sweeper } from './sweeper.ts';
import { PeersSeen } from './usage/peers-seen.ts';
import { createUsageStore } from './usage/store.ts';
import { ipv4RangeIn, ipv4SliceOf } from '../schemas/tenant-network.ts';

/** Time for which a process answers `not_owner` after it gave a partition away. */
const notOwnerLingerMs = 500;

export interface OwnerOptions {
  readonly nc: NatsConnection;
  /** Tracks the answers of that connection. */
  readonly answers?: Answers;
  readonly cluster: Cluster;
  readonly hostsAccount: HostsAccount;
  /** By default, signs by the wall clock, as NATS checks it. */
  readonly signHostJwt?: typeof signHostJwt;
  readonly hostsNatsUrls: readonly string[];
  /**
   * Used to revoke the credentials of removed hosts. By default, these stay valid until they
   * expire.
   */
  readonly accounts?: Accounts;
  readonly hostCredentialsTtlMs: number;
  readonly hostUnknownMs: number;
  readonly hostLostMs: number;
  /** Maximum capacity of any host; by default, that of the limits. */
  readonly hostCeiling?: Capacity;
  /** Containers that leave a drained host at once; by default, as the limits say. */
  readonly drainAtOnce?: number;
  /** By default, that of the limits. */
  readonly fenceMarginMs?: number;
  readonly clock: Clock;
  /** By default, slices that use the clock. */
  readonly slices?: Slices;
  readonly log: Log;
  /** `undefined` if nothing is traced. */
  readonly tracer?: Tracer | undefined;
  readonly observer: PartitionObserver & JournalsObserver & PartitionManagerObserver & SealObserver & HostObserver;
  readonly newToken: () => string;
}

/** The part in which it was noticed that the store went back in time. */
type WhereBack = { readonly members: MemberId } | { readonly journal: MemberId } | { readonly partition: number };

export interface SealObserver {
  /**
   * Called when the journal of this process was sealed. With a valid lease it is a bug of ours, or
   * an operator moved its fence by hand.
   */
  sealed(lease: 'valid' | 'lapsed'): void;
  /** Called when the store went back in time: this process acknowledges nothing more. */
  wentBack(): void;
}

export interface HostObserver {
  /** Called for a message whose sender does not hold the host's enrolled key. */
  hostRefused(message: HostMessage): void;
}

export interface Owner {
  readonly fleet: Fleet;
  readonly manager: PartitionManager;
  /** The number of partitions that this process serves. */
  serving(): number;
  /** Joins the members; resolves when every partition is served, by this process or another. */
  start(): Promise<void>;
  /**
   * Called when the cluster was replaced: nothing from the earlier one is committed or answered any
   * more.
   */
  drop(): void;
  /** Resolves when no partition is being stored again (ADR 48), and takes none from then on. */
  storedAgain(): Promise<void>;
  /** Answers and commits what has arrived, hands over the partitions, and leaves the members. */
  stop(): Promise<void>;
}

export function createOwner(options: OwnerOptions): Owner {
  return new OwnerProcess(options);
}

class OwnerProcess implements Owner {
  readonly fleet: Fleet;
  readonly manager: PartitionManager;
  readonly #options: OwnerOptions;
  readonly #slices: Slices;
  readonly #refusals: RateLimitedLog;
  readonly #directory: DirectoryExchange;
  readonly #hostOptions: UsageOptions;
  readonly #peersSeen: PeersSeen;
  readonly #heartbeats: Heartbeats;
  readonly #outbox: Outbox;
  readonly #revocation: Revocation | undefined;
  readonly #credentials: HostCredentials;
  readonly #watched: StatusWatchers;
  readonly #effects: ReturnType<typeof createEffects>;
  readonly #sweeper: Sweeper;
  readonly #journals: Journals;
  readonly #readAhead: ReadAhead<StateRecord>;
  /** The subscription on which asks for one partition alone arrive, by partition. */
  readonly #served = new Map<Partition, Subscription>();
  readonly #ownSubject: OwnSubject;
  #subscriptions: Subscription[] = [];
  /** Closing subscriptions of partitions that moved to other processes. */
  readonly #leaving = new Set<Promise<void>>();
  #timers: NodeJS.Timeout[] = [];
  #isConnected = true;

  constructor(options: OwnerOptions) {
    this.#options = options;
    this.#peersSeen = new PeersSeen(options.newToken);
    const { nc, cluster, clock, log, observer } = options;
    const { partitions } = cluster;
    this.#slices = options.slices ?? createSlices({ monotonicMs: () => clock.monotonicMs(), onSlice: observer.worked });
    this.#refusals = rateLimitedLog(log, limits.refusalLogMs, clock);
    this.fleet = new Fleet({
      clock,
      partitions,
      hostUnknownMs: options.hostUnknownMs,
      ...(options.hostCeiling === undefined ? {} : { ceiling: options.hostCeiling }),
      ...(options.drainAtOnce === undefined ? {} : { drainAtOnce: options.drainAtOnce }),
      processes: () => this.manager.membership.live().length,
      onMeshEnd: (host) => this.#effects.ringNeighbours(host, this.manager.serving()),
      onServer: (network, hosts) => this.#effects.ringNetwork(network, hosts, this.manager.serving()),
    });
    const { fleet } = this;
    const parts = { nc, cluster, fleet, clock, log, slices: this.#slices, refusals: this.#refusals };
    const client = new PartitionClient({ requestDeadlineMs: limits.outboxTimeoutMs, clock, log });
    client.open(nc, partitions);
    this.#outbox = createOutbox({ ...parts, client, partitions });
    this.#directory = new DirectoryExchange(parts);
    this.#watched = new StatusWatchers(clock);
    this.#effects = createEffects({
      nc,
      fleet,
      directory: this.#directory,
      outbox: this.#outbox,
      watched: this.#watched,
    });
    this.#credentials = createHostCredentials({
      clusterId: cluster.id,
      account: options.hostsAccount,
      ttlMs: options.hostCredentialsTtlMs,
      natsUrls: options.hostsNatsUrls,
      clock,
      sign: options.signHostJwt,
    });
    this.#hostOptions = {
      ...parts,
      signJwt: this.#credentials.sign,
      ...(this.#credentials.signer === undefined ? {} : { signer: this.#credentials.signer }),
      usage: createUsageStore(nc),
      peersSeen: this.#peersSeen,
      owned: () => this.manager.serving(),
      onRefused: (message, sender) => this.#onRefused(message, sender),
    };
    this.#heartbeats = new Heartbeats({
      ...parts,
      partitions,
      owned: () => Array.from(this.manager.serving(), ({ number }) => number),
      processes: () => this.manager.membership.live().length,
      subscribe: (host, onHeard) => subscribeHeartbeats(this.#hostOptions, host, onHeard),
    });
    this.#ownSubject = new OwnSubject(options.newToken(), partitions);
    this.#revocation = revocationOf(options);
    this.#journals = new Journals({
      storeOf: (member) => createJournalStore(nc, member, options.newToken),
      clock,
      slices: this.#slices,
      log,
      newToken: options.newToken,
      onSealed: (member) => {
        const { membership } = this.manager;
        const lease = membership.lease();
        // Others seal only the journal of a member whose lease has ended on every clock.
        observer.sealed(lease.member === member && lease.isValid() ? 'valid' : 'lapsed');
        void membership.abandon(member);
      },
      onWentBack: (member, sequences) => this.#onWentBack({ journal: member }, sequences),
      observer,
    });
    this.#readAhead = new ReadAhead({
      storeOf: (partition) => this.#storeOf(partition),
      format: records,
      clock,
      slices: this.#slices,
      log,
    });
    this.manager = new PartitionManager({
      partitions,
      members: createJetStreamMemberStore(nc, options.answers),
      clock,
      log,
      newId: () => options.newToken() as MemberId,
      createPartition: this.#partitionFactory(),
      onExpected: (expected, taking) => this.#readAhead.look(expected, taking),
      onTaken: (partition) => this.#onTaken(partition),
      onGone: (partition) => this.#onGone(partition),
      announce: (notice) => nc.publish(subjects.membersChanged, notice),
      onWentBack: (sequences) => this.#onWentBack({ members: this.manager.membership.id }, sequences),
      observer,
    });
    this.#sweeper = new Sweeper({
      ...parts,
      owned: () => this.manager.serving(),
      isConnected: () => this.#isConnected,
      hostLostMs: options.hostLostMs,
      fenceMarginMs: options.fenceMarginMs ?? limits.fenceMarginMs,
      revokedKeysKeptMs: keptForMs(options.hostCredentialsTtlMs),
      onSwept: (partition) => {
        this.#outbox.look(partition);
        this.#revocation?.look(partition);
      },
    });
  }

  serving(): number {
    return [...this.manager.serving()].length;
  }

  async start(): Promise<void> {
    this.#listen();
    void this.#watchConnection();
    this.#listenAsOwner();
    this.#directory.refresh();
    await this.manager.start();
    // Gateways may ask as soon as this resolves, so the server must have the subscriptions by then.
    await this.#options.nc.flush();
  }

  drop(): void {
    this.manager.drop();
    this.#journals.close();
  }

  async storedAgain(): Promise<void> {
    return this.manager.storedAgain();
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#directory.stop();
    this.#outbox.stop();
    this.#revocation?.stop();
    await this.manager.stop();
    this.#journals.close();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#heartbeats.stop();
    // Each closes after it has answered `not_owner` for a while.
    await Promise.all(this.#leaving);
    if (!this.#options.nc.isClosed()) await this.#ownSubject.drain();
    await this.#options.nc.flush();
  }

  /**
   * Buckets go back together: with a copy of a server's folder, or a snapshot of its machine. So
   * one shows it for all: nothing of this process is acknowledged until all of its memory is stored
   * again.
   */
  #onWentBack(where: WhereBack, sequences: WentBack): void {
    this.#journals.hold();
    if (!this.manager.storeAgain()) return;
    const { log, observer } = this.#options;
    log.error('store_went_back', { ...where, ...sequences });
    observer.wentBack();
  }

  readonly #onFault = (error: unknown): void => this.#options.log.error('handover_failed', { error });

  #listen(): void {
    const { nc } = this.#options;
    this.#subscriptions = [
      ...serveReads(nc, this.#refusals),
      ...serveHosts(this.#hostOptions),
      this.#heartbeats.subscribe(),
      ...this.#directory.subscribe(),
      nc.subscribe(subjects.membersChanged, {
        callback: (error, { data }) => {
          if (error === null) this.manager.handleNotice(data);
        },
      }),
    ];
    this.#timers = [
      setInterval(() => this.#sweeper.sweep(), limits.sweepIntervalMs),
      setInterval(() => this.#directory.tell(), limits.syncIntervalMs),
      setInterval(() => this.#heartbeats.look(), limits.beatsLookMs),
      setInterval(() => this.#heartbeats.tell(), limits.beatIntervalMs),
    ];
  }

  async #watchConnection(): Promise<void> {
    for await (const { type } of this.#options.nc.status()) {
      if (type === 'disconnect') {
        this.#isConnected = false;
        this.fleet.listening.deafen();
      }
      if (type !== 'reconnect') continue;
      this.#isConnected = true;
      this.fleet.listening.listen();
      this.#listenAsOwner();
      this.#directory.refresh();
      this.#directory.tell();
    }
  }

  /**
   * Counts every attempt but logs only a few, because the holder of old credentials may try them as
   * fast as it likes.
   */
  #onRefused(message: HostMessage, { host, user }: Sender): void {
    this.#options.observer.hostRefused(message);
    this.#refusals.warn('host_sender_refused', {
      message,
      host,
      user,
      why: 'this key is not enrolled for this host',
    });
  }

  // Partitions

  #storeOf(partition: number): Store {
    const { nc, newToken } = this.#options;
    return createJetStreamStore(nc, buckets.state.bucket(partition), newToken);
  }

  #partitionFactory(): (number: number, managed: ManagedPartitionOptions) => Partition {
    const { nc, cluster, clock, log, tracer, newToken, observer } = this.#options;
    const { fleet } = this;
    const domain = createDomain({
      cluster: cluster.id,
      incarnation: incarnationOf(cluster),
      fleet,
      ledger: fleet.placements,
      tenantIpv4: ipv4In(cluster),
      peerSeen: this.#peersSeen.of,
    });
    const events = createEventSink(nc, newToken);
    const audit = createEventSink(nc, newToken);
    return (number, managed) =>
      new RuntimePartition({
        number,
        domain,
        store: this.#storeOf(number),
        journals: this.#journals,
        readAhead: async () => this.#readAhead.take(number),
        events,
        audit,
        clock,
        slices: this.#slices,
        log,
        tracer,
        newToken,
        observer,
        onEffects: (partition, effects) => this.#effects.carryOut(partition, effects),
        onLoaded: (partition) => {
          if (this.#served.has(partition)) this.#show(partition);
        },
        onWentBack: (partition, sequences) => this.#onWentBack({ partition: partition.number }, sequences),
        ...managed,
      });
  }

  #listenAsOwner(): void {
    const { log } = this.#options;
    this.#ownSubject.listen(this.#askOptions()).catch((error: unknown) => log.warn('owner_subject_unknown', { error }));
  }

  #askOptions(): AskOptions {
    const { nc, clock, log, tracer } = this.#options;
    const { prepare } = this.#credentials;
    const token = (): string | undefined => this.#ownSubject.token;
    const parts = { nc, clock, log, tracer, refusals: this.#refusals, slices: this.#slices };
    return { ...parts, watched: this.#watched, prepare, token };
  }

  /** Subscribes only now, because gateways ask the process that subscribes. */
  #onTaken(partition: Partition): void {
    const subscription = serveAsks(sourceOf(partition), this.#askOptions());
    this.#ownSubject.taken(partition);
    this.#served.set(partition, subscription);
    this.#heartbeats.look();
    this.#show(partition);
  }

  /**
   * Another process may have written what was loaded, so all processes learn the hosts of the
   * partition, and its hosts sync.
   */
  #show(partition: Partition): void {
    this.#directory.load(partition);
    this.#effects.ringAll(partition);
  }

  #onGone(partition: Partition): void {
    const subscription = this.#served.get(partition);
    this.#served.delete(partition);
    this.#ownSubject.gone(partition);
    this.#directory.gone(partition);
    this.#revocation?.gone(partition);
    const { observer } = this.#options;
    observer.uncheckpointed(partition.number, 0);
    observer.parked(partition.number, 0);
    observer.room(partition.number, true);
    observer.quarantined(partition.number, 0);
    if (subscription === undefined) return;
    const left = this.#leave(subscription).catch(this.#onFault);
    this.#leaving.add(left);
    void left.finally(() => this.#leaving.delete(left));
  }

  /** Some asks still arrive here for a while, and get the answer `not_owner`. */
  async #leave(subscription: Subscription): Promise<void> {
    await sleep(notOwnerLingerMs);
    if (!this.#options.nc.isClosed()) await subscription.drain();
  }
}

function revocationOf({
  accounts,
  hostsAccount,
  hostCredentialsTtlMs,
  clock,
  log,
}: OwnerOptions): Revocation | undefined {
  if (accounts === undefined) return undefined;
  return createRevocation({ accounts, account: hostsAccount.publicKey, ttlMs: hostCredentialsTtlMs, clock, log });
}

/** The range of containers' IPv4 addresses; `undefined` if the cluster gives none. */
function ipv4In({ tenantIpv4, partitions }: Cluster): TenantIpv4 | undefined {
  const range = tenantIpv4 === undefined ? undefined : ipv4RangeIn(tenantIpv4);
  if (tenantIpv4 === undefined || range === undefined) return undefined;
  return {
    range: tenantIpv4,
    sliceOf: (tenant) => ipv4SliceOf(range, partitionOf(tenant, partitions), partitions),
  };
}
