/**
 * An actors process: it takes the partitions, serves what it owns, and lets go of what another has taken. All that
 * happens at intervals happens here.
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Clock } from '../lib/clock.ts';
import { signHostJwt, type HostsAccount } from '../lib/host-credentials.ts';
import type { Log } from '../lib/log.ts';
import { buckets } from '../schemas/buckets.ts';
import type { HostKey } from '../schemas/ids.ts';
import { limits } from '../schemas/limits.ts';
import type { DirectoryMessage, Doorbell, WriteAsk } from '../schemas/messages.ts';
import { subjects } from '../schemas/subjects.ts';
import { serveAsks } from './asks.ts';
import type { Prepared } from './decide.ts';
import { HostDirectory } from './directory.ts';
import { Fleet } from './fleet.ts';
import { createErrands } from './errands.ts';
import { mayEnrol } from './host/decide.ts';
import { serveHosts } from './hosts.ts';
import type { OutgoingEffect } from './runtime/group.ts';
import { createPartitionClient } from './partition-client.ts';
import { createEventSink, createJetStreamStore } from './runtime/jetstream-store.ts';
import { Partition, type PartitionObserver } from './runtime/partition.ts';
import type { PartitionView } from './state.ts';
import { expired, expiredOfVpn, sweep } from './sweep.ts';
import type { Changes, TurnContext } from './turn.ts';

export interface OwnerOptions {
  readonly nc: NatsConnection;
  readonly cluster: string;
  readonly partitions: number;
  readonly name: string;
  readonly hostsAccount: HostsAccount;
  readonly hostsNatsUrls: readonly string[];
  readonly hostCredentialsTtlMs: number;
  readonly hostUnknownMs: number;
  readonly hostLostMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: PartitionObserver;
  readonly newToken: () => string;
  /** Another process has taken a partition of ours. */
  readonly onLost: (partition: number) => void;
}

export interface Owner {
  readonly fleet: Fleet;
  serving(): number;
  /** Takes every partition; resolves when all of them serve. */
  start(): Promise<void>;
  /** Answers what has arrived, commits it, and goes. */
  stop(): Promise<void>;
}

/** A process that was stopped for so many intervals has heard nothing meanwhile. */
const sweepsMissed = 3;

interface Owned {
  readonly partition: Partition;
  readonly directory: HostDirectory;
  subscription: Subscription | undefined;
}

export function createOwner(options: OwnerOptions): Owner {
  const { nc, cluster, partitions: count, clock, log } = options;
  const fleet = new Fleet({ clock, partitions: count, hostUnknownMs: options.hostUnknownMs });
  const events = createEventSink(nc, options.newToken);
  const partitions = new Map<number, Owned>();
  const subscriptions: Subscription[] = [];
  const timers: NodeJS.Timeout[] = [];
  const onFault = (error: unknown): void => log.error('errand_failed', { error });
  const client = createPartitionClient({ nc, timeoutMs: limits.errandTimeoutMs, onFault });
  const errands = createErrands({ client, partitions: count, clock, log });

  function* owned(): Iterable<Partition> {
    for (const { partition } of partitions.values()) if (partition.isServing) yield partition;
  }

  // The directory

  const versionOf = ({ number, epoch, committed }: Partition) => ({ partition: number, epoch, revision: committed });

  function tell(message: DirectoryMessage): void {
    fleet.learn(message);
    nc.publish(subjects.directory, JSON.stringify(message));
  }

  const tellWholeDirectory = (): void => {
    for (const { partition, directory } of partitions.values()) {
      if (partition.isServing) tell(directory.whole(versionOf(partition)));
    }
  };

  // Effects: idempotent, after the commit, and any of them may be lost (invariant A3).

  function carryOut(partition: Partition, effects: Iterable<OutgoingEffect>): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'bell': {
          const bell: Doorbell = { partition: partition.number, rid: effect.requestId };
          nc.publish(subjects.desired(effect.host, partition.number), JSON.stringify(bell));
          break;
        }
        case 'changed':
          nc.publish(subjects.changed(effect.tenant, effect.id));
          break;
        case 'directory':
          {
            const directory = partitions.get(partition.number)?.directory;
            if (directory !== undefined) tell(directory.change(versionOf(partition), effect.host, effect.entry));
          }
          break;
        case 'errand':
          errands.look(partition);
          break;
      }
    }
  }

  /** Keys are signed outside of turns, and only for a join token that is good. */
  function prepare(partition: Partition, ask: WriteAsk): Promise<Prepared | undefined> | undefined {
    if (ask.type !== 'host.enrol') return undefined;
    const common = { cluster, natsUrls: options.hostsNatsUrls };
    if (!mayEnrol(partition.view, ask, clock.nowMs())) return Promise.resolve({ enrolment: { ...common, jwt: '' } });
    return signJwt(ask.host, ask.publicKey).then((jwt) => ({ enrolment: { ...common, jwt } }));
  }

  const signJwt = async (host: HostKey, publicKey: string): Promise<string> =>
    signHostJwt(
      options.hostsAccount,
      host,
      publicKey,
      Math.floor((clock.nowMs() + options.hostCredentialsTtlMs) / 1000),
    );

  // Intervals

  let isConnected = true;
  let sweptMs = clock.monotonicMs();

  function* allThatTimeChanges(state: PartitionView, context: TurnContext): Generator<Changes, void, void> {
    yield expired(state, context.nowMs);
    yield expiredOfVpn(state, context.nowMs);
    yield* sweep(state, {
      ...context,
      silentMs: (host) => fleet.silentMs(host),
      regionIsSilent: (host) => fleet.regionIsSilent(host),
      hostLostMs: options.hostLostMs,
      onFault: ({ id }, error) => log.error('turn_failed', { kind: 'sweep', container: id, error }),
    });
  }

  function sweepAll(): void {
    const nowMs = clock.monotonicMs();
    if (nowMs - sweptMs > sweepsMissed * limits.sweepIntervalMs) fleet.listen();
    sweptMs = nowMs;
    // Whoever is cut off hears no host; what it would decide would be committed when it is back.
    if (!isConnected) return;
    for (const partition of owned()) {
      partition.change('sweep', allThatTimeChanges);
      partition.expireOperations();
      errands.look(partition);
    }
  }

  async function watchConnection(): Promise<void> {
    for await (const { type } of nc.status()) {
      if (type === 'disconnect') isConnected = false;
      if (type !== 'reconnect') continue;
      isConnected = true;
      fleet.listen();
      nc.publish(subjects.directoryRefresh);
    }
  }

  function listen(): void {
    subscriptions.push(
      ...serveHosts({ nc, cluster, partitions: count, signJwt, owned, fleet, log }),
      nc.subscribe(subjects.directory, {
        callback: (error, message) => {
          if (error !== null) return;
          try {
            fleet.learn(message.json<DirectoryMessage>());
          } catch (cause) {
            log.error('malformed_directory', { error: cause });
          }
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

  function createPartition(number: number): Partition {
    return new Partition({
      number,
      owner: options.name,
      store: createJetStreamStore(nc, buckets.state.bucket(number), options.newToken),
      events,
      fleet,
      ledger: fleet,
      clock,
      log,
      newToken: options.newToken,
      observer: options.observer,
      onEffects: carryOut,
      onLoaded: (partition) => {
        const directory = partitions.get(number)?.directory;
        directory?.load(partition.view);
        if (directory !== undefined) tell(directory.whole(versionOf(partition)));
        ringAll(partition);
      },
      onLost: ({ number: lost }) => {
        partitions.get(lost)?.subscription?.unsubscribe();
        partitions.delete(lost);
        options.onLost(lost);
      },
    });
  }

  /** Bells may have been lost with the owner before: every host of the partition is asked to look. */
  function ringAll(partition: Partition): void {
    for (const host of partition.view.hostsWithContainers()) {
      const bell: Doorbell = { partition: partition.number, rid: null };
      nc.publish(subjects.desired(host, partition.number), JSON.stringify(bell));
    }
  }

  return {
    fleet,
    serving: () => [...owned()].length,
    async start() {
      listen();
      void watchConnection();
      nc.publish(subjects.directoryRefresh);
      await Promise.all(
        Array.from({ length: count }, async (_, number) => {
          const partition = createPartition(number);
          const slot: Owned = { partition, directory: new HostDirectory(), subscription: undefined };
          partitions.set(number, slot);
          await partition.start();
          // Only now: whoever subscribes is asked.
          if (partition.isServing) slot.subscription = serveAsks(partition, { nc, log, prepare });
        }),
      );
      // Whoever is told that we serve may ask at once: the server has to know of the subscriptions by then.
      await nc.flush();
    },
    async stop() {
      for (const timer of timers) clearInterval(timer);
      errands.stop();
      for (const subscription of subscriptions) subscription.unsubscribe();
      // Draining hears what was sent before the server knew that we left.
      await Promise.all([...partitions.values()].map(async ({ subscription }) => subscription?.drain()));
      await Promise.all([...partitions.values()].map(({ partition }) => partition.stop()));
      await nc.flush();
    },
  };
}
