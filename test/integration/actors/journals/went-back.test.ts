/**
 * A NATS server that starts with an older copy of its folder, under owners that have everything in
 * memory: they notice, store all of it again, and nothing that was acknowledged is lost, whether
 * before the copy was made, after it, or after it was put in place.
 */
import { cpSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { bucketStream, buckets } from '../../../../schemas/records/buckets.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { Nats } from '../../../../dev/servers/nats.ts';
import { alertsOn } from '../../../support/prometheus/promtool.ts';
import { until } from '../../../support/until.ts';
import { nothingLost, startGround, untilReady, Work, type Actors } from './support.ts';

const partitions = 4;

async function infoOf(nc: NatsConnection) {
  const manager = await jetstreamManager(nc, { timeout: limits.jetstreamSetupMs });
  const { created, state } = await manager.streams.info(bucketStream(buckets.state.bucket(0)));
  return { created, newest: state.last_seq, server: nc.info?.server_id };
}

t.test('a store that goes back in time', { timeout: 600_000 }, async (t) => {
  const { nats, nc, actors, clientOn } = await startGround(t, { servers: 1, partitions, actors: 1 });
  const [process] = actors as [Actors];
  const all = Array.from({ length: partitions }, (_, number) => number);
  const works = await Promise.all(all.map(async (partition) => new Work(await clientOn(partition))));
  const createAll = async (count: number): Promise<void> => {
    for (let more = 0; more < count; more++) {
      for (const work of works) t.equal(await work.create(), 201);
    }
  };
  const settled = async (): Promise<void> => {
    await until('checkpointed', async () => {
      const metrics = await process.metrics();
      return metrics.value('longshore_actors_uncheckpointed_commits') === 0;
    });
  };
  const differences = async () => Promise.all(works.map(async (work) => work.differences()));
  const none = works.map(() => nothingLost);

  await createAll(3);
  const { status, body } = await works[0]!.client.create({
    ...{ name: 'deleted', registry: 'registry.test', repository: 'longshore/demo' },
    ...{ cpu_limit: '0.1', mem_limit: '16m' },
  });
  t.equal(status, 201);
  await settled();
  const before = await process.metrics();

  const { logFile, restart } = nats as Nats;
  const folder = join(dirname(logFile), 'jetstream');
  cpSync(folder, `${folder}.copy`, { recursive: true });
  await createAll(3);
  const { id } = (body as unknown as { data: { id: string } }).data;
  const deleted = await works[0]!.client.call('DELETE', `/api/v2/compute/${id}`);
  t.ok(deleted.status < 300, `deleted: ${deleted.status}`);
  await settled();
  const seen = await infoOf(nc);
  await nats.stop();
  rmSync(folder, { recursive: true });
  renameSync(`${folder}.copy`, folder);
  await restart();

  await until('it noticed', () => process.logged('store_went_back').length > 0);
  await until('all is stored again', () => process.logged('partition_stored_again').length === partitions);
  await untilReady(actors);
  await createAll(3);
  t.same(await differences(), none);
  const [back, ...others] = process.logged('store_went_back');
  t.same(others, [], 'it says so once');
  t.ok(Number(back?.['got']) <= Number(back?.['seen']));
  const after = await process.metrics();
  t.equal(after.value('longshore_actors_store_went_back_total'), 1);
  t.ok((await alertsOn(before.text, after.text)).includes('LongshoreStoreWentBack'));
  const now = await until('the connection is back', async () => infoOf(nc).catch(() => undefined));
  t.equal(now.created, seen.created, 'the stream itself says nothing of it');
  t.not(now.server, seen.server, 'as at every start of a server');

  await process.program.kill9();
  await process.program.start();
  await untilReady(actors);
  t.same(process.logged('load_failed'), []);
  t.same(await differences(), none, 'a fresh process loads all');
});
