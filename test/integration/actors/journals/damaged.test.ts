/**
 * A journal that is damaged on one of three servers: the partitions are loaded from another, and
 * the damage is found.
 */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { journalBucketOf } from '../../../../actors/runtime/store/jetstream-store.ts';
import { buckets, bucketStream } from '../../../../schemas/records/buckets.ts';
import { alertsOn } from '../../../support/prometheus/promtool.ts';
import { until } from '../../../support/until.ts';
import { fillBucket, nothingLost, startGround, untilReady, Work, type Actors } from './support.ts';

/** Flips a bit of this text wherever the stream's blocks have it. @returns the number of places */
function damage(storeDir: string, stream: string, text: string): number {
  const blocks = readdirSync(storeDir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.blk') && `/${name}`.includes(`/${stream}/msgs/`))
    .map((name) => join(storeDir, name))
    .filter((file) => statSync(file).size > 0);
  let found = 0;
  for (const file of blocks) {
    const bytes = readFileSync(file);
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
      bytes[at] = bytes[at]! ^ 1;
      found++;
    }
    writeFileSync(file, bytes);
  }
  return found;
}

const askMs = 2_000;

/** The leader of a stream, once all of its replicas are current. */
async function leaderOf(nc: NatsConnection, stream: string): Promise<string> {
  const manager = await jetstreamManager(nc, { checkAPI: false, timeout: askMs });
  return until(`a leader of ${stream}, and all replicas`, async () => {
    const { cluster } = await manager.streams.info(stream);
    const replicas = cluster?.replicas ?? [];
    const isWhole = replicas.length === 2 && replicas.every(({ current, offline }) => current && offline !== true);
    return isWhole ? cluster?.leader : undefined;
  });
}

t.test('a journal that is damaged on one server', { timeout: 600_000 }, async (t) => {
  const settings = { SCRUB_INTERVAL: '1s' };
  const { nats, nc, actors, clientOn } = await startGround(t, { servers: 3, partitions: 2, actors: 1, settings });
  if (!('nodes' in nats)) throw new Error('three servers were asked for');
  const [process] = actors as [Actors];
  const before = await process.metrics();
  const works = await Promise.all([0, 1].map(async (partition) => new Work(await clientOn(partition))));
  // So that the load needs the journal.
  const full = await Promise.all([0, 1].map(async (partition) => fillBucket(nc, buckets.state.bucket(partition))));
  for (const work of works) for (let creates = 0; creates < 20; creates++) t.equal(await work.create(), 201);
  const stream = bucketStream(journalBucketOf(process.member()));
  await process.program.kill9();
  for (const { lift } of full) await lift();

  const leader = await leaderOf(nc, stream);
  const damaged = nats.nodes.find(({ name }) => name !== leader)!;
  await damaged.stop();
  t.ok(damage(damaged.storeDir, stream, '"name":"c7"') > 0);
  await damaged.start();
  await leaderOf(nc, stream);
  const stepDown = JSON.stringify({ placement: { preferred: damaged.name } });
  await until('it leads', async () => {
    if ((await leaderOf(nc, stream)) === damaged.name) return true;
    await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, stepDown, { timeout: askMs });
    return false;
  });

  await process.program.start();
  await untilReady([process]);
  t.comment(`${process.logged('load_failed').length} loads met the damage`);
  for (const work of works) t.same(await work.differences(), nothingLost);
  const label = `stream="${stream}",server="${damaged.name}"`;
  const metrics = await until(
    'the damage is found',
    async () => process.metrics(),
    (each) => (each.value('longshore_actors_replica_divergent_messages', label) ?? 0) > 0,
  );
  t.ok((await alertsOn(before.text, metrics.text)).includes('LongshoreReplicaDiverges'));

  for (const work of works) t.equal(await work.create(), 201);
  for (const work of works) t.same(await work.differences(), nothingLost);
});
