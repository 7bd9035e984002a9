/** The shared parts of the handlers of hosts' messages. */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Log } from '../../../lib/log.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { Slices } from '../../../lib/time/slices.ts';
import type { RateLimitedLog } from '../../../lib/rate-limited-log.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { Cluster } from '../../../schemas/records/cluster.ts';
import { partitionOf, type Sender } from '../../../schemas/wire/subjects.ts';
import { isEnrolled } from '../../domain/host/sender.ts';
import type { Partition } from '../../partition.ts';
import type { Fleet } from '../fleet.ts';

export interface HostServerOptions {
  readonly nc: NatsConnection;
  readonly cluster: Cluster;
  /** Signs NATS credentials for an enrolled host's key. */
  readonly signJwt: (host: HostKey, publicKey: string) => Promise<string>;
  /** The public key that signs them; absent if agents do not get it. */
  readonly signer?: string;
  /** The partitions that this process owns and serves. */
  readonly owned: () => Iterable<Partition>;
  readonly fleet: Fleet;
  readonly slices: Slices;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** Called if the sender does not hold the enrolled key, or the host does not exist. */
  readonly onRefused: (kind: HostMessage, sender: Sender) => void;
  readonly log: Log;
  /** Logs what hosts can cause at will, but not every time. */
  readonly refusals: RateLimitedLog;
}

export type HostMessage = 'hello' | 'sync' | 'report' | 'beat' | 'usage';

/** Counts nothing until the enrolled key is known: a process that has just started knows none. */
export function countRefused(
  { fleet, onRefused }: Pick<HostServerOptions, 'fleet' | 'onRefused'>,
  kind: HostMessage,
  sender: Sender,
): void {
  if (fleet.isSynced(sender.host) && !fleet.isUnreadable(sender.host)) onRefused(kind, sender);
}

/** `true` if the host itself is in this partition, whose owner knows the enrolled key for sure. */
export const isHomeOf = (
  { cluster }: Pick<HostServerOptions, 'cluster'>,
  { number }: Partition,
  { host }: Sender,
): boolean => number === partitionOf(host, cluster.partitions);

/** `true` if the sender is the enrolled agent, as far as the owner of this partition knows. */
export const isFromEnrolled = (options: HostServerOptions, partition: Partition, sender: Sender): boolean =>
  isHomeOf(options, partition, sender)
    ? isEnrolled(partition.view.host(sender.host), sender)
    : options.fleet.isEnrolled(sender);

export const ownedPartition = ({ owned }: HostServerOptions, number: number): Partition | undefined => {
  for (const partition of owned()) if (partition.number === number) return partition;
  return undefined;
};
