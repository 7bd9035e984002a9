/**
 * Availability of JetStream itself: the harness writes to the streams that owners write to, past
 * our programs, on a connection of its own to each server. Gaps in these writes are JetStream's
 * part of an unavailability; the rest is ours.
 *
 * Leases and journals get a key that nothing reads. A bucket of a partition must have no key that
 * its owner did not write, so its leader is only asked to read one.
 */
import { readFileSync } from 'node:fs';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { decodeAck, readLast } from '../../../lib/nats/kv-keys.ts';
import { bucketPrefix, buckets, bucketStream, journalBuckets, keys } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { membersOf, type Member } from '../world/members.ts';
import type { World } from '../world/world.ts';
import { lengthMs, silences, type Span } from './silence.ts';
import { tenants } from './tenants.ts';

export interface JetStreamProbes {
  /** Parts of the span in which a stream that the tenant's partition needs was not served. */
  outages(tenant: string, span: Span): Span[];
  stop(): Promise<void>;
}

/** Each bucket is tried this often, by one server after another. */
const tryEveryMs = 200;
/** Longer than three tries, as two servers of three may be unable to answer. */
const outageMs = 4 * tryEveryMs;
const answerMs = 2_000;
const lookEveryMs = 500;
/** An owner that was seen this long before a span may be the one that its beginning is about. */
const lookBackMs = 2_000;

interface Seen extends Member {
  readonly atMs: number;
}

const connectTo = (world: World, url: string): Promise<NatsConnection> =>
  connect({
    servers: [url],
    ignoreClusterUpdates: true,
    authenticator: credsAuthenticator(readFileSync(world.nats.credsFile)),
    tls: { caFile: world.nats.caFile, handshakeFirst: true },
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    name: 'fault harness',
  });

async function write(nc: NatsConnection, bucket: string): Promise<void> {
  const answer = await nc.request(`${bucketPrefix(bucket)}faults`, '', { timeout: answerMs });
  if (decodeAck(answer.data).error !== undefined) throw new Error(`${bucket} refuses`);
}

const read = async (nc: NatsConnection, bucket: string): Promise<void> =>
  void (await readLast(nc, bucketStream(bucket), bucketPrefix(bucket) + keys.epoch, answerMs));

const partitionOfTenant = (tenant: string): number => partitionOf(tenant, limits.partitions);

export async function startJetStreamProbes(world: World): Promise<JetStreamProbes> {
  const connections = await Promise.all(world.nats.urls.map((url) => connectTo(world, url)));
  const written = [
    buckets.members.bucket,
    ...Array.from({ length: journalBuckets }, (_, number) => buckets.journal.bucket(number)),
  ];
  const led = [...new Set(tenants.map(partitionOfTenant))].map((partition) => buckets.state.bucket(partition));
  const answersMs = new Map<string, number[]>([...written, ...led].map((bucket) => [bucket, []]));
  const seen: Seen[] = [];

  const attempt = async (bucket: string, work: Promise<void>): Promise<void> => {
    try {
      await work;
      answersMs.get(bucket)?.push(performance.now());
    } catch {
      // No answer: the silence shows it.
    }
  };
  const look = async (nc: NatsConnection): Promise<void> => {
    try {
      const members = await membersOf(nc);
      const atMs = performance.now();
      seen.push(...members.map((member) => ({ ...member, atMs })));
    } catch {
      // The next look is by another server.
    }
  };

  let turn = 0;
  const next = (): NatsConnection => connections[turn++ % connections.length]!;
  const trying = setInterval(() => {
    const nc = next();
    for (const bucket of written) void attempt(bucket, write(nc, bucket));
    for (const bucket of led) void attempt(bucket, read(nc, bucket));
  }, tryEveryMs);
  const looking = setInterval(() => void look(next()), lookEveryMs);

  return {
    outages: (tenant, span) => {
      const partition = partitionOfTenant(tenant);
      const journals = seen
        .filter(({ atMs }) => atMs >= span.fromMs - lookBackMs && atMs <= span.toMs)
        .filter(({ partitions }) => partitions.includes(partition))
        .map(({ journal }) => journal);
      const needed = new Set([buckets.members.bucket, buckets.state.bucket(partition), ...journals]);
      return [...needed].flatMap((bucket) =>
        silences(answersMs.get(bucket) ?? [], span).filter((silence) => lengthMs(silence) > outageMs),
      );
    },
    stop: async () => {
      clearInterval(trying);
      clearInterval(looking);
      await Promise.all(connections.map((nc) => nc.close()));
    },
  };
}
