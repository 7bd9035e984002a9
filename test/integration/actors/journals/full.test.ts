/**
 * A partition that cannot checkpoint, and a journal that takes no entries: writes are refused where
 * they have to be, reads go on, and everything goes on when it is over.
 */
import t from 'tap';
import { decodeEntry } from '../../../../actors/runtime/journal/codec.ts';
import { journalBucketOf } from '../../../../actors/runtime/store/jetstream-store.ts';
import { limits } from '../../../../schemas/limits.ts';
import { buckets, keys } from '../../../../schemas/records/buckets.ts';
import { alertsOn } from '../../../support/prometheus/promtool.ts';
import { until } from '../../../support/until.ts';
import {
  fillBucket,
  journalOf,
  nothingLost,
  startGround,
  untilReady,
  Work,
  type Actors,
  type Metrics,
} from './support.ts';

/** Almost as much as one container may have. */
const large = { env: { LARGE: 'x'.repeat(limits.envValueBytes), LARGER: 'x'.repeat(limits.envValueBytes - 1024) } };

t.test('a partition that cannot checkpoint', { timeout: 600_000 }, async (t) => {
  const { nc, actors, clientOn } = await startGround(t, { servers: 1, partitions: 2, actors: 1 });
  const [process] = actors as [Actors];
  const [stuck, other] = await Promise.all([0, 1].map(async (partition) => new Work(await clientOn(partition))));
  const beside = new Work(await clientOn(0, 1));
  const before = await process.metrics();
  const full = await fillBucket(nc, buckets.state.bucket(0));
  t.equal(await stuck!.create(), 201);

  await t.test('the others go on beyond the size of the ring', async (t) => {
    const journal = journalOf(nc, process.member());
    const slot = 100;
    const isBeyond = async (): Promise<boolean> => {
      const value = await journal.read(keys.entry(slot));
      const decoded = value === null ? undefined : decodeEntry(value);
      return decoded?.ok === true && decoded.value.number > limits.journalSlots;
    };
    let filling: Metrics | undefined;
    const statuses = new Set<number>();
    while (!(await isBeyond())) {
      await Promise.all(
        [1, 2].map(async () => {
          for (let creates = 0; creates < 40; creates++) statuses.add(await other!.create());
        }),
      );
      const metrics = await process.metrics();
      if ((metrics.value('longshore_actors_journal_entries') ?? 0) > 1200) filling = metrics;
    }
    t.same([...statuses], [201]);
    t.ok((await alertsOn(before.text, filling?.text ?? '')).includes('LongshoreJournalFilling'));
    t.equal(await stuck!.create(), 201, 'it has room too');
  });

  await t.test('a tenant that waits for it with too much is refused; others write, and reads go on', async (t) => {
    let status = 201;
    for (let bytes = 0; status === 201 && bytes < 2 * limits.uncheckpointedBytes; bytes += limits.envTotalBytes) {
      status = await stuck!.create(large);
    }
    t.equal(status, 429);
    t.equal(await other!.create(), 201);
    t.equal(await beside.create(), 201);
    t.same(await beside.differences(), nothingLost);
    t.same(await stuck!.differences(), nothingLost);
    const metrics = await until(
      'its checkpoint stands still for longer than an election takes',
      async () => process.metrics(),
      (each) => (each.value('longshore_actors_checkpoint_stalled_seconds', 'partition="0"') ?? 0) > 15,
    );
    t.equal(metrics.value('longshore_actors_writes_blocked'), 0);
    t.ok((await alertsOn(before.text, metrics.text)).includes('LongshoreCheckpointStalled'));
  });

  await t.test('all goes on when the bucket takes writes again, and nothing is lost', async (t) => {
    await full.lift();
    await until('a write', async () => (await stuck!.create()) === 201);
    const metrics = await until(
      'all is in checkpoints',
      async () => process.metrics(),
      (each) => each.value('longshore_actors_uncheckpointed_commits') === 0,
    );
    t.equal(metrics.value('longshore_actors_writes_blocked'), 0);
    t.equal(metrics.value('longshore_actors_checkpoint_stalled_seconds'), 0);
    await process.program.kill9();
    await process.program.start();
    await untilReady([process]);
    t.same(await stuck!.differences(), nothingLost);
    t.same(await other!.differences(), nothingLost);
  });

  await t.test('a journal that takes no entries', async (t) => {
    const { body } = await other!.client.list();
    const [read] = body.data;
    const idle = await clientOn(0);
    const journal = await fillBucket(nc, journalBucketOf(process.member()));
    t.equal(await other!.create(), 504, 'the outcome is unknown');
    const metrics = await until(
      'writes are refused',
      async () => ((await other!.create()) === 503 ? process.metrics() : undefined),
      (each) => each?.value('longshore_actors_writes_blocked', 'partition="1"') === 1,
    );
    t.ok((await alertsOn(before.text, metrics?.text ?? '')).includes('LongshoreWritesRefused'));
    t.match(process.logged('writes_refused').at(-1)?.['cause'], 'the journal does not acknowledge its next entry');
    t.equal((await other!.client.get(read!)).status, 200, 'what is committed is read');
    t.equal((await idle.list()).status, 200);
    await journal.lift();
    await until('a write', async () => (await other!.create()) === 201);
    await until(
      'the metric says so',
      async () => (await process.metrics()).value('longshore_actors_writes_blocked'),
      (refused) => refused === 0,
    );
    t.same(await other!.differences(), nothingLost);
  });
});
