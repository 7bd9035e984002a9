/**
 * An actors process: a member that serves the partitions which it has. What it has, the partition
 * manager decides; all that happens at intervals happens here.
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { sleep } from '../lib/backoff.ts';
import type { Answers } from '../lib/nats/answers.ts';
import type { Clock } from '../lib/clock.ts';
import { signHostJwt, type HostsAccount } from '../lib/nats/host-credentials.ts';
import type { Log } from '../lib/log.ts';
import { createSlices, runAtOnce, type Slices } from '../lib/slices.ts';
import { sparing } from '../lib/sparing.ts';
import { buckets } from '../schemas/records/buckets.ts';
import { incarnationOf, announcedEpoch, type Cluster } from '../schemas/records/cluster.ts';
import type { Capacity } from '../schemas/api/host.ts';
import type { HostKey, MemberId } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import type { WriteAsk } from '../schemas/wire/asks.ts';
import { DirectoryMessage, type Doorbell } from '../schemas/wire/directory.ts';
import { wholeSeconds } from '../schemas/quantity.ts';
import { subjects, type Sender } from '../schemas/wire/subjects.ts';
import { ProtocolError, spoken } from '../schemas/wire/version.ts';
import { serveAsks } from './endpoints/asks.ts';
import type { Prepared } from './domain/decide.ts';
import { DirectoryParts, HostDirectory, messagesOf } from './endpoints/directory.ts';
import { Fleet } from './endpoints/fleet.ts';
import { createOutbox } from './outbox/outbox.ts';
import { isJustRevoked, mayEnrol } from './domain/host/decide.ts';
import { serveHosts, type HostMessage } from './endpoints/hosts.ts';
import {
  PartitionManager,
  type PartitionManagerObserver,
  type ManagedPartitionOptions,
} from './membership/partition-manager.ts';
import { createJetStreamMemberStore } from './membership/jetstream-member-store.ts';
import type { OutgoingEffect } from './runtime/journal/group.ts';
import { createDomain } from './domain/domain.ts';
import { PartitionClient } from '../lib/rpc/partition-client.ts';
import { serveReads } from './endpoints/reads.ts';
import { createEventSink, createJetStreamStore } from './runtime/store/jetstream-store.ts';
import type { Partition } from './partition.ts';
import { Partition as RuntimePartition, type PartitionObserver } from './runtime/partition.ts';
import { createRevocation, keptForMs, type Accounts } from './revocation.ts';
import type { PartitionView } from './domain/state.ts';
import { expired, expiredKeys, expiredOfVpn, sweep } from './domain/sweep.ts';
import type { Changes, Effect, TurnContext } from './domain/turn.ts';
import { decoder } from '../lib/decode.ts';

const decodeDirectory = decoder(DirectoryMessage);

export interface OwnerOptions {
  readonly nc: NatsConnection;
  /** Of that connection. */
  readonly answers?: Answers;
  readonly cluster: Cluster;
  readonly hostsAccount: HostsAccount;
  /** Absent: signs by the wall clock, as NATS checks it. */
  readonly signHostJwt?: typeof signHostJwt;
  readonly hostsNatsUrls: readonly string[];
  /**
   * Where credentials of hosts are revoked; absent: nowhere, and those of a removed host are good
   * until they expire.
   */
  readonly accounts?: Accounts;
  readonly hostCredentialsTtlMs: number;
  readonly hostUnknownMs: number;
  readonly hostLostMs: number;
  /** What any host is believed to offer at most. Absent: that of the limits. */
  readonly hostCeiling?: Capacity;
  /** Absent: that of the limits. */
  readonly fenceMarginMs?: number;
  readonly clock: Clock;
  /** Absent: slices by the clock. */
  readonly slices?: Slices;
  readonly log: Log;
  readonly observer: PartitionObserver & PartitionManagerObserver & HostObserver;
  readonly newToken: () => string;
}

export interface HostObserver {
  /** A message of a host whose sender is not the agent that is enrolled. */
  hostRefused(message: HostMessage): void;
}

export interface Owner {
  readonly fleet: Fleet;
  readonly manager: PartitionManager;
  /** How many partitions it serves. */
  serving(): number;
  /** Joins the members; resolves when every partition is served, by this process or another. */
  start(): Promise<void>;
  /**
   * The cluster is another: nothing that was of the one before is committed or answered any more.
   */
  drop(): void;
  /** Answers what has arrived, commits it, gives its partitions away, and goes. */
  stop(): Promise<void>;
}

/** What goes with a partition for as long as this process has it. */
interface Served {
  readonly directory: HostDirectory;
  readonly subscription: Subscription;
}

export function createOwner(options: OwnerOptions): Owner {
  const { nc, clock, log } = options;
  const { id: cluster, partitions: count } = options.cluster;
  const fleet = new Fleet({
    clock,
    partitions: count,
    hostUnknownMs: options.hostUnknownMs,
    ...(options.hostCeiling === undefined ? {} : { ceiling: options.hostCeiling }),
  });
  const domain = createDomain({ incarnation: incarnationOf(options.cluster), fleet, ledger: fleet });
  const events = createEventSink(nc, options.newToken);
  const directoryParts = new DirectoryParts();
  const { slices = createSlices({ monotonicMs: () => clock.monotonicMs(), onSlice: options.observer.worked }) } =
    options;
  const served = new Map<Partition, Served>();
  const subscriptions: Subscription[] = [];
  /** Of partitions that have gone to others. */
  const leaving = new Set<Promise<void>>();
  const timers: NodeJS.Timeout[] = [];
  const onFault = (error: unknown): void => log.error('errand_failed', { error });
  const client = new PartitionClient(nc, { partitions: count, requestDeadlineMs: limits.outboxTimeoutMs, clock, log });
  const outbox = createOutbox({ client, partitions: count, clock, slices, log });

  const { accounts } = options;
  const revocation =
    accounts &&
    createRevocation({
      accounts,
      account: options.hostsAccount.publicKey,
      ttlMs: options.hostCredentialsTtlMs,
      clock,
      log,
    });

  const manager = new PartitionManager({
    partitions: count,
    members: createJetStreamMemberStore(nc, options.answers),
    clock,
    log,
    newId: () => options.newToken() as MemberId,
    createPartition,
    onTaken,
    onGone,
    announce: () => nc.publish(subjects.membersChanged),
    observer: options.observer,
  });
  const owned = (): Iterable<Partition> => manager.serving();

  // The directory

  const versionOf = ({ number, epoch, committed }: Partition) => ({
    partition: number,
    epoch: announcedEpoch(options.cluster, number, epoch),
    revision: committed,
  });

  function tell(message: DirectoryMessage): void {
    fleet.learn(message);
    // In one go: a change that is told in between would be lost on a process that knows nothing of
    // the others yet.
    for (const text of runAtOnce(messagesOf(fleet.dated(message)))) nc.publish(subjects.directory, text);
  }

  let isTelling = false;
  let isTellingWanted = false;

  /**
   * A partition is a step. A process that asks meanwhile has not heard the first of them: all are
   * told again.
   */
  function* tellingAll(): Generator<void, void, void> {
    while (isTellingWanted) {
      isTellingWanted = false;
      for (const [partition, { directory }] of served) {
        tell(directory.whole(versionOf(partition)));
        yield;
      }
    }
  }

  const tellWholeDirectory = (): void => {
    isTellingWanted = true;
    if (isTelling) return;
    isTelling = true;
    slices
      .run('directory', tellingAll())
      .catch(onFault)
      .finally(() => {
        isTelling = false;
        if (isTellingWanted) tellWholeDirectory();
      });
  };

  // Effects: idempotent, after the commit, and any of them may be lost (invariant A3).

  function carryOut(partition: Partition, effects: Iterable<OutgoingEffect<Effect>>): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'doorbell': {
          const doorbell: Doorbell = { ...spoken, partition: partition.number, rid: effect.requestId };
          nc.publish(subjects.desired(effect.host, partition.number), JSON.stringify(doorbell));
          break;
        }
        case 'changed':
          nc.publish(subjects.changed(effect.tenant, effect.id));
          break;
        case 'directory': {
          const directory = served.get(partition)?.directory;
          if (directory !== undefined) tell(directory.change(versionOf(partition), effect.host, effect.entry));
          break;
        }
        case 'outbox':
          outbox.look(partition);
          break;
      }
    }
  }

  /** Keys are signed outside of turns, and only for a join token that is good. */
  function prepare(partition: Partition, ask: WriteAsk): Promise<Prepared | undefined> | undefined {
    if (ask.type !== 'host.enrol') return undefined;
    const common = { cluster, natsUrls: options.hostsNatsUrls };
    const nowMs = clock.nowMs();
    const isGood = mayEnrol(partition.view, ask, nowMs) && !isJustRevoked(partition.view, ask.publicKey, nowMs);
    if (!isGood) return Promise.resolve({ enrolment: { ...common, jwt: '' } });
    return signJwt(ask.host, ask.publicKey).then((jwt) => ({ enrolment: { ...common, jwt } }));
  }

  const signJwt = async (host: HostKey, publicKey: string, isUnbound = false): Promise<string> => {
    const expiresAtS = wholeSeconds(clock.nowMs() + options.hostCredentialsTtlMs);
    return (options.signHostJwt ?? signHostJwt)(options.hostsAccount, { host, publicKey, expiresAtS, isUnbound });
  };

  const refusals = sparing(log, limits.refusalLogMs, clock);

  /**
   * Old credentials may be tried as fast as their holder likes: all are counted, a few are logged.
   */
  function onRefused(message: HostMessage, { host, user }: Sender): void {
    options.observer.hostRefused(message);
    refusals.warn('host_sender_refused', {
      message,
      host,
      user: user ?? null,
      why: 'this key is not enrolled for this host',
    });
  }

  // Intervals

  let isConnected = true;
  let sweptMs = clock.monotonicMs();
  const sweeping = new Set<Partition>();

  function* allThatTimeChanges(
    state: PartitionView,
    context: TurnContext,
    regionIsSilent: (host: HostKey) => boolean,
  ): Generator<Changes, void, void> {
    yield expired(state, context.expiryMs);
    yield expiredOfVpn(state, context.expiryMs);
    yield expiredKeys(state, context.expiryMs, keptForMs(options.hostCredentialsTtlMs));
    yield* sweep(state, {
      ...context,
      silentMs: (host) => fleet.silentMs(host),
      regionIsSilent,
      hostLostMs: options.hostLostMs,
      fenceMarginMs: options.fenceMarginMs ?? limits.fenceMarginMs,
      onFault: ({ id }, error) => log.error('turn_failed', { kind: 'sweep', container: id, error }),
    });
  }

  function sweepAll(): void {
    const nowMs = clock.monotonicMs();
    if (nowMs - sweptMs > limits.sweepsMissed * limits.sweepIntervalMs) fleet.stood(nowMs - sweptMs);
    sweptMs = nowMs;
    // Whoever is cut off hears no host; what it would decide would be committed when it is back.
    if (!isConnected) return;
    const regionIsSilent = fleet.regionSilence();
    for (const partition of owned()) {
      partition.keepTime();
      sweepOne(partition, regionIsSilent).catch(onFault);
    }
  }

  /**
   * In as many turns as it takes: a sweep of a hundred thousand containers would hold up everything
   * else.
   */
  async function sweepOne(partition: Partition, regionIsSilent: (host: HostKey) => boolean): Promise<void> {
    if (sweeping.has(partition)) return;
    sweeping.add(partition);
    const swept = partition.view;
    let work: Generator<Changes, void, void> | undefined;
    const slice = (isOver: () => boolean): boolean => {
      let isDone = true;
      const isTaken = partition.change('sweep', function* (state, context) {
        // It was loaded again: the next sweep looks at what is there now.
        if (state !== swept) return;
        work ??= allThatTimeChanges(state, context, regionIsSilent);
        isDone = false;
        do {
          const next = work.next();
          if (next.done === true) {
            isDone = true;
            return;
          }
          yield next.value;
        } while (!isOver());
      });
      return isDone || !isTaken;
    };
    try {
      await slices.repeat('sweep', slice);
      outbox.look(partition);
      revocation?.look(partition);
    } finally {
      sweeping.delete(partition);
    }
  }

  async function watchConnection(): Promise<void> {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') {
        isConnected = false;
        fleet.deafen();
      }
      if (type !== 'reconnect') continue;
      isConnected = true;
      fleet.listen();
      nc.publish(subjects.directoryRefresh);
    }
  }

  function listen(): void {
    subscriptions.push(
      ...serveReads(nc, refusals),
      ...serveHosts({ nc, cluster: options.cluster, signJwt, owned, fleet, slices, onRefused, log, refusals }),
      nc.subscribe(subjects.directory, {
        callback: (error, message) => {
          if (error !== null) return;
          try {
            const whole = directoryParts.take(decodeDirectory(message.data));
            if (whole !== undefined) fleet.learn(whole);
          } catch (cause) {
            const event = cause instanceof ProtocolError ? 'protocol_refused' : 'malformed_directory';
            refusals.error(event, { subject: message.subject, error: cause });
          }
        },
      }),
      nc.subscribe(subjects.membersChanged, {
        callback: (error) => {
          if (error === null) manager.look();
        },
      }),
      nc.subscribe(subjects.directoryRefresh, {
        callback: (error) => {
          if (error === null) tellWholeDirectory();
        },
      }),
    );
    timers.push(setInterval(sweepAll, limits.sweepIntervalMs), setInterval(tellWholeDirectory, limits.syncIntervalMs));
  }

  function createPartition(number: number, more: ManagedPartitionOptions): Partition {
    return new RuntimePartition({
      number,
      domain,
      store: createJetStreamStore(nc, buckets.state.bucket(number), options.newToken),
      events,
      clock,
      slices,
      log,
      newToken: options.newToken,
      observer: options.observer,
      onEffects: carryOut,
      onLoaded: (partition) => {
        const directory = served.get(partition)?.directory;
        if (directory !== undefined) show(partition, directory);
      },
      ...more,
    });
  }

  /** Whoever subscribes is asked: so only now. */
  function onTaken(partition: Partition): void {
    const directory = new HostDirectory();
    served.set(partition, { directory, subscription: serveAsks(partition, { nc, log, refusals, slices, prepare }) });
    show(partition, directory);
  }

  function onGone(partition: Partition): void {
    const subscription = served.get(partition)?.subscription;
    served.delete(partition);
    revocation?.gone(partition);
    options.observer.journal(partition.number, 0);
    options.observer.parked(partition.number, 0);
    options.observer.room(partition.number, true);
    options.observer.quarantined(partition.number, 0);
    if (subscription === undefined) return;
    const left = leave(subscription).catch(onFault);
    leaving.add(left);
    void left.finally(() => leaving.delete(left));
  }

  /** For a while some are still sent here, and are told to ask again. */
  async function leave(subscription: Subscription): Promise<void> {
    await sleep(limits.notOwnerLingerMs);
    if (!nc.isClosed()) await subscription.drain();
  }

  /**
   * What was loaded may be another's work: all processes hear of its hosts, and its hosts of what
   * they should run.
   */
  function show(partition: Partition, directory: HostDirectory): void {
    directory.load(partition.view);
    tell(directory.whole(versionOf(partition)));
    ringAll(partition);
  }

  /**
   * Doorbells may have been lost with the owner before: every host of the partition is asked to
   * look.
   */
  function ringAll(partition: Partition): void {
    for (const host of partition.view.hostsWithContainers()) {
      const doorbell: Doorbell = { ...spoken, partition: partition.number, rid: null };
      nc.publish(subjects.desired(host, partition.number), JSON.stringify(doorbell));
    }
  }

  return {
    fleet,
    manager,
    serving: () => [...owned()].length,
    async start() {
      listen();
      void watchConnection();
      nc.publish(subjects.directoryRefresh);
      await manager.start();
      // Whoever is told that we serve may ask at once: the server has to know of the subscriptions
      // by then.
      await nc.flush();
    },
    drop: () => manager.drop(),
    async stop() {
      for (const timer of timers) clearInterval(timer);
      outbox.stop();
      revocation?.stop();
      await manager.stop();
      for (const subscription of subscriptions) subscription.unsubscribe();
      // Those that are about to leave, each in its time.
      await Promise.all(leaving);
      await nc.flush();
    },
  };
}
