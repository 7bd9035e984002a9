/** A journal that is gone: what needs it is refused until an operator gives it up. */
import { jetstreamManager } from '@nats-io/jetstream';
import t, { type Test } from 'tap';
import { journalBucketOf } from '../../../../actors/runtime/store/jetstream-store.ts';
import { limits } from '../../../../schemas/limits.ts';
import { bucketStream } from '../../../../schemas/records/buckets.ts';
import { alertsOn } from '../../../support/prometheus/promtool.ts';
import { until } from '../../../support/until.ts';
import { giveUpJournal, nothingLost, removeJournal, startGround, untilReady, Work, type Actors } from './support.ts';

const partitions = limits.partitions;
const all = Array.from({ length: partitions }, (_, number) => number);
const none = all.map(() => nothingLost);

const untilCheckpointed = (actors: Actors): Promise<unknown> =>
  until(
    'everything is in a checkpoint',
    async () => (await actors.metrics()).value('longshore_actors_uncheckpointed_commits'),
    (commits) => commits === 0,
  );

t.test('a journal that is gone', { timeout: 600_000 }, async (t) => {
  const { nc, actors, clientOn } = await startGround(t, { servers: 1, partitions, actors: 2 });
  const [first, second] = actors as [Actors, Actors];
  const works = await Promise.all(all.map(async (partition) => new Work(await clientOn(partition))));
  const served = async (each: Actors) => (await each.metrics()).partitions;
  await until('both serve, and nothing moves', async () => {
    const [one, other] = [await served(first), await served(second)];
    return one.length + other.length === partitions && second.logged('serving').length > 0;
  });

  const refused = async (t: Test, of: readonly number[]): Promise<void> => {
    const answers = await Promise.all(
      works.map(async (work, partition) => ({
        partition,
        read: (await work.client.list()).status,
        write: await work.create(),
      })),
    );
    const expected = all.map((partition) =>
      of.includes(partition) ? { partition, read: 503, write: 503 } : { partition, read: 200, write: 201 },
    );
    t.same(answers, expected, 'only what needs the journal is refused');
  };
  const differences = async () => Promise.all(works.map(async (work) => work.differences()));

  await t.test('its keys', async (t) => {
    t.same(new Set(await Promise.all(works.map(async (work) => work.create()))), new Set([201]));
    await Promise.all([first, second].map(untilCheckpointed));
    const before = await second.metrics();
    const needed = await served(first);
    const member = first.member();
    await removeJournal(nc, member);
    await first.program.kill9();
    const { text } = await until(
      'the other refuses to load',
      async () => second.readiness(),
      (readiness) => readiness.text.includes(`the journal of member ${member} is gone`),
    );
    t.match(text, `${needed.length} of ${partitions} partitions have no owner`);
    await until('all of them', () => second.logged('load_given_up').length >= needed.length);
    const after = await second.metrics();
    t.equal(after.value('longshore_actors_partitions_unserved'), needed.length);
    t.ok((await alertsOn(before.text, after.text)).includes('LongshorePartitionsMissing'));
    await refused(t, needed);

    await giveUpJournal(nc, member);
    await untilReady([second]);
    t.match(second.logged('journal_given_up'), [{ member }]);
    t.same(await differences(), none);
  });

  await t.test('its bucket', async (t) => {
    await untilCheckpointed(second);
    const member = second.member();
    const manager = await jetstreamManager(nc, { timeout: limits.jetstreamSetupMs });
    await manager.streams.delete(bucketStream(journalBucketOf(member)));
    t.equal(await works[0]!.create(), 504, 'nothing is acknowledged any more');
    t.equal((await second.metrics()).value('longshore_actors_checkpoint_stalled_seconds'), 0, 'nor missing');
    await second.program.kill9();
    await first.program.start();
    await until('it refuses to load', () => first.logged('load_given_up').length >= partitions);
    t.match(first.logged('load_given_up').at(-1)?.['why'], `the journal of member ${member} is gone`);
    await refused(t, all);

    await giveUpJournal(nc, member);
    await untilReady([first]);
    t.same(await differences(), none);
  });
});
