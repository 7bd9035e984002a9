/**
 * Exchanges the host directory between actors processes: each sends the hosts of its partitions as
 * they change, and at intervals the versions that it has; all hosts of a partition, when it has
 * loaded it or when another process lacks a change (ADR 15).
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { messageDecoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { jitter } from '../../lib/time/backoff.ts';
import { runAtOnce, type Slices } from '../../lib/time/slices.ts';
import type { RateLimitedLog } from '../../lib/rate-limited-log.ts';
import type { DirectoryEntry } from '../../schemas/api/host.ts';
import type { HostKey, NetworkName } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { announcedEpoch, type Cluster } from '../../schemas/records/cluster.ts';
import { DirectoryMessage, DirectoryVersions, type DirectoryAt } from '../../schemas/wire/directory.ts';
import type { NetworkServer } from '../../schemas/wire/network-server.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { ProtocolError, protocolFields } from '../../schemas/wire/version.ts';
import type { Partition } from '../partition.ts';
import { DirectoryParts, HostDirectory, isBehind, messagesOf } from './directory.ts';
import type { Fleet } from './fleet.ts';

/** The part of a partition that its directory needs. */
export type DirectorySource = Pick<Partition, 'number' | 'epoch' | 'committed' | 'view'>;

const decodeDirectory = messageDecoder(DirectoryMessage);
const decodeVersions = messageDecoder(DirectoryVersions);

export interface DirectoryExchangeOptions {
  readonly nc: NatsConnection;
  readonly cluster: Cluster;
  readonly fleet: Fleet;
  readonly slices: Slices;
  readonly log: Log;
  /** Logs what others can cause at will, but not every time. */
  readonly refusals: RateLimitedLog;
}

export class DirectoryExchange {
  readonly #options: DirectoryExchangeOptions;
  readonly #directories = new Map<DirectorySource, HostDirectory>();
  readonly #parts = new DirectoryParts();
  /** Partitions of which another process lacks a change. */
  readonly #wanted = new Set<DirectorySource>();
  /** By partition, versions of which this process lacks a change. */
  readonly #lacked = new Map<number, DirectoryAt>();
  #isSending = false;
  #rest: NodeJS.Timeout | undefined;
  #asking: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: DirectoryExchangeOptions) {
    this.#options = options;
  }

  subscribe(): Subscription[] {
    const { nc } = this.#options;
    return [
      nc.subscribe(subjects.directory, {
        callback: (error, message) => {
          if (error === null) this.#receive(message.subject, message.data);
        },
      }),
      nc.subscribe(subjects.directoryRefresh, {
        callback: (error, { subject, data }) => {
          if (error === null) this.#taking(subject, () => this.#answer(decodeVersions(data).versions));
        },
      }),
      nc.subscribe(subjects.directoryVersions, {
        callback: (error, { subject, data }) => {
          if (error === null) this.#compare(subject, data);
        },
      }),
    ];
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#rest);
    clearTimeout(this.#asking);
  }

  /** Asks the owners for the hosts and servers that this process lacks. */
  refresh(): void {
    const { nc, fleet } = this.#options;
    nc.publish(subjects.directoryRefresh, versionsText(fleet.held()));
  }

  /** Announces the versions that this process has of its own partitions. */
  tell(): void {
    const own = [...this.#directories].map(([partition, directory]) => [
      String(partition.number),
      [this.#versionOf(partition).epoch, directory.changes],
    ]);
    if (own.length > 0) this.#options.nc.publish(subjects.directoryVersions, versionsText(Object.fromEntries(own)));
  }

  /** Called when this process has loaded the partition: sends its hosts to all. */
  load(partition: DirectorySource): void {
    const directory = new HostDirectory();
    directory.load(partition.view);
    this.#directories.set(partition, directory);
    this.#wanted.delete(partition);
    this.#send(directory.whole(this.#versionOf(partition)));
  }

  /** Called when this process no longer owns the partition. */
  gone(partition: DirectorySource): void {
    this.#directories.delete(partition);
    this.#wanted.delete(partition);
  }

  /** Called after the commit that changed the host. */
  change(partition: DirectorySource, host: HostKey, entry: DirectoryEntry | null): void {
    const directory = this.#directories.get(partition);
    if (directory !== undefined) this.#send(directory.change(this.#versionOf(partition), host, entry));
  }

  /** Called after the commit that changed the server of the network. */
  serve(partition: DirectorySource, network: NetworkName, server: NetworkServer | null): void {
    const directory = this.#directories.get(partition);
    if (directory !== undefined) this.#send(directory.serve(this.#versionOf(partition), network, server));
  }

  /** @param held the versions that the asker has */
  #answer(held: DirectoryVersions['versions']): void {
    for (const [partition, directory] of this.#directories) {
      const at = [this.#versionOf(partition).epoch, directory.changes] as const;
      if (isBehind(held[String(partition.number)], at)) this.#wanted.add(partition);
    }
    this.#sendWanted();
  }

  /**
   * Sends at once, and then after a rest: one message for all processes that have asked meanwhile.
   */
  #sendWanted(): void {
    if (this.#isSending || this.#rest !== undefined || this.#wanted.size === 0 || this.#isStopped) return;
    this.#isSending = true;
    const { slices, log } = this.#options;
    slices
      .run('directory', this.#sending())
      .catch((error: unknown) => log.error('directory_send_failed', { error }))
      .finally(() => {
        this.#isSending = false;
        if (this.#isStopped) return;
        this.#rest = setTimeout(() => {
          this.#rest = undefined;
          this.#sendWanted();
        }, jitter(limits.directoryRestMs));
      });
  }

  /**
   * Each partition is a step. A process that asks meanwhile has missed the first partitions, which
   * are then wanted again.
   */
  *#sending(): Generator<void, void, void> {
    for (const partition of [...this.#wanted]) {
      this.#wanted.delete(partition);
      const directory = this.#directories.get(partition);
      if (directory === undefined) continue;
      this.#send(directory.whole(this.#versionOf(partition)));
      yield;
    }
  }

  #send(message: DirectoryMessage): void {
    const { nc, fleet } = this.#options;
    fleet.learn(message);
    // All parts at once: a process that does not know the other hosts yet would ignore a change
    // that is sent between parts.
    for (const text of runAtOnce(messagesOf(fleet.dated(message)))) nc.publish(subjects.directory, text);
  }

  #receive(subject: string, bytes: Uint8Array): void {
    this.#taking(subject, () => {
      const whole = this.#parts.take(decodeDirectory(bytes));
      if (whole !== undefined) this.#options.fleet.learn(whole);
    });
  }

  /** Compares the versions of an owner with those that this process has. */
  #compare(subject: string, bytes: Uint8Array): void {
    this.#taking(subject, () => {
      const { versions } = decodeVersions(bytes);
      for (const [partition, at] of Object.entries(versions)) this.#lacked.set(Number(partition), at);
      this.#forgetKnown();
      if (this.#lacked.size > 0) this.#asking ??= setTimeout(this.#ask, jitter(limits.directoryAskMs));
    });
  }

  /** Asks, unless another process has asked meanwhile: its answer came to all. */
  readonly #ask = (): void => {
    this.#asking = undefined;
    this.#forgetKnown();
    if (this.#lacked.size > 0) this.refresh();
    this.#lacked.clear();
  };

  #forgetKnown(): void {
    const { fleet } = this.#options;
    for (const [partition, at] of this.#lacked) if (fleet.isUpTo(partition, at)) this.#lacked.delete(partition);
  }

  #taking(subject: string, take: () => void): void {
    try {
      take();
    } catch (error) {
      const event = error instanceof ProtocolError ? 'protocol_refused' : 'malformed_directory';
      this.#options.refusals.error(event, { subject, error });
    }
  }

  #versionOf({ number, epoch, committed }: DirectorySource) {
    return { partition: number, epoch: announcedEpoch(this.#options.cluster, number, epoch), revision: committed };
  }
}

const versionsText = (versions: DirectoryVersions['versions']): string =>
  JSON.stringify({ ...protocolFields, versions } satisfies DirectoryVersions);
