/**
 * Exchanges the host directory between actors processes: each sends the hosts of its partitions,
 * all of them at intervals and single ones as they change, and learns those of the others.
 */
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { runAtOnce, type Slices } from '../../lib/time/slices.ts';
import type { SparingLog } from '../../lib/sparing.ts';
import type { DirectoryEntry } from '../../schemas/api/host.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { announcedEpoch, type Cluster } from '../../schemas/records/cluster.ts';
import { DirectoryMessage } from '../../schemas/wire/directory.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import { ProtocolError } from '../../schemas/wire/version.ts';
import type { Partition } from '../partition.ts';
import { DirectoryParts, HostDirectory, messagesOf } from './directory.ts';
import type { Fleet } from './fleet.ts';

const decodeDirectory = decoder(DirectoryMessage);

export interface DirectoryExchangeOptions {
  readonly nc: NatsConnection;
  readonly cluster: Cluster;
  readonly fleet: Fleet;
  readonly slices: Slices;
  readonly log: Log;
  /** Logs what others can cause at will, but not every time. */
  readonly refusals: SparingLog;
}

export class DirectoryExchange {
  readonly #options: DirectoryExchangeOptions;
  readonly #directories = new Map<Partition, HostDirectory>();
  readonly #parts = new DirectoryParts();
  #isSending = false;
  #isWanted = false;

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
        callback: (error) => {
          if (error === null) this.sendAll();
        },
      }),
    ];
  }

  /** Asks all processes to send their directories. */
  refresh(): void {
    this.#options.nc.publish(subjects.directoryRefresh);
  }

  /** Called when this process has loaded the partition: sends its hosts to all. */
  load(partition: Partition): void {
    const directory = new HostDirectory();
    directory.load(partition.view);
    this.#directories.set(partition, directory);
    this.#send(directory.whole(this.#versionOf(partition)));
  }

  /** Called when this process no longer owns the partition. */
  gone(partition: Partition): void {
    this.#directories.delete(partition);
  }

  /** Called after the commit that changed the host. */
  change(partition: Partition, host: HostKey, entry: DirectoryEntry | null): void {
    const directory = this.#directories.get(partition);
    if (directory !== undefined) this.#send(directory.change(this.#versionOf(partition), host, entry));
  }

  sendAll(): void {
    this.#isWanted = true;
    if (this.#isSending) return;
    this.#isSending = true;
    const { slices, log } = this.#options;
    slices
      .run('directory', this.#sendingAll())
      .catch((error: unknown) => log.error('directory_not_sent', { error }))
      .finally(() => {
        this.#isSending = false;
        if (this.#isWanted) this.sendAll();
      });
  }

  /**
   * Each partition is a step. A process that asks meanwhile has missed the first partitions, so all
   * are sent again.
   */
  *#sendingAll(): Generator<void, void, void> {
    while (this.#isWanted) {
      this.#isWanted = false;
      for (const [partition, directory] of this.#directories) {
        this.#send(directory.whole(this.#versionOf(partition)));
        yield;
      }
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
    const { fleet, refusals } = this.#options;
    try {
      const whole = this.#parts.take(decodeDirectory(bytes));
      if (whole !== undefined) fleet.learn(whole);
    } catch (error) {
      const event = error instanceof ProtocolError ? 'protocol_refused' : 'malformed_directory';
      refusals.error(event, { subject, error });
    }
  }

  #versionOf({ number, epoch, committed }: Partition) {
    return { partition: number, epoch: announcedEpoch(this.#options.cluster, number, epoch), revision: committed };
  }
}
