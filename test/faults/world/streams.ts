/** Streams and their replicas, as JetStream tells of them, and changed past our programs. */
import { jetstreamManager, type JetStreamManager, type StreamInfo, type StreamUpdateConfig } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { buckets, bucketStream, journalBuckets, streams } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { until } from '../../support/until.ts';
import type { NatsPlaceName } from './wire.ts';

export const askMs = 2_000;

export const allStreams: readonly string[] = [
  ...Object.values(streams).map(({ name }) => name),
  ...[buckets.cluster.bucket, buckets.members.bucket].map(bucketStream),
  ...Array.from({ length: limits.partitions }, (_, partition) => bucketStream(buckets.state.bucket(partition))),
  ...Array.from({ length: journalBuckets }, (_, number) => bucketStream(buckets.journal.bucket(number))),
];

export const managerOf = (nc: NatsConnection): Promise<JetStreamManager> =>
  jetstreamManager(nc, { checkAPI: false, timeout: askMs });

export const leaderIn = ({ cluster }: StreamInfo): NatsPlaceName | undefined =>
  cluster?.leader as NatsPlaceName | undefined;

/** Asks until it is answered: it is not while there is no leader. */
export const changeStream = (
  nc: NatsConnection,
  stream: string,
  change: Partial<StreamUpdateConfig>,
): Promise<StreamInfo> =>
  until(`a change of ${stream}`, async () => (await managerOf(nc)).streams.update(stream, change));

/** One of these servers leads the stream, and the others of them have what it has. */
function isReplicated(info: StreamInfo, servers: readonly NatsPlaceName[]): boolean {
  const leader = leaderIn(info);
  if (leader === undefined || !servers.includes(leader)) return false;
  const replicas = info.cluster?.replicas ?? [];
  const current = replicas.filter((replica) => replica.current && replica.offline !== true);
  return servers.every((server) => server === leader || current.some(({ name }) => name === server));
}

/** Resolves when these servers have all of these streams. */
export async function untilReplicated(
  nc: NatsConnection,
  servers: readonly NatsPlaceName[],
  names: readonly string[] = allStreams,
): Promise<void> {
  const lacking = async (): Promise<string[]> => {
    const { streams: api } = await managerOf(nc);
    const infos = await Promise.allSettled(names.map(async (name) => api.info(name)));
    return names.filter((_, index) => {
      const info = infos[index];
      return info?.status !== 'fulfilled' || !isReplicated(info.value, servers);
    });
  };
  await until(`${servers.join(' and ')} have these streams`, lacking, (left) => left.length === 0);
}
