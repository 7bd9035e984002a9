/**
 * A member that goes on although it should not: one whose journal is sealed under it, and one that
 * was paused in the middle of its puts. It becomes a new member, and nothing that was acknowledged
 * is lost.
 */
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { randomUUID } from 'node:crypto';
import { encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { limits } from '../../../../schemas/limits.ts';
import { alertsOn } from '../../../support/prometheus/promtool.ts';
import { until } from '../../../support/until.ts';
import {
  journalOf,
  nothingLost,
  readJournal,
  startGround,
  untilReady,
  Work,
  type Actors,
  type GroundOptions,
} from './support.ts';
import { checkpointTimeoutMs } from '../../../../actors/runtime/store/jetstream-store.ts';

/** Clients of all partitions that create without a pause until `end`. */
async function underLoad(t: Test, options: GroundOptions) {
  const ground = await startGround(t, options);
  const all = Array.from({ length: options.partitions }, (_, number) => number);
  const works = await Promise.all(all.map(async (partition) => new Work(await ground.clientOn(partition))));
  let isOver = false;
  const working = works.map(async (work) => {
    while (!isOver) await work.create();
  });
  const untilMore = async (): Promise<void> => {
    const counts = works.map((work) => work.acknowledged.size);
    await until('each tenant goes on', () =>
      works.every((work, index) => work.acknowledged.size >= counts[index]! + 5),
    );
  };
  await untilMore();
  return {
    ...ground,
    untilMore,
    differences: async () => {
      isOver = true;
      await Promise.all(working);
      return Promise.all(works.map(async (work) => work.differences()));
    },
    none: works.map(() => nothingLost),
  };
}

t.test('a journal that is sealed under its member', { timeout: 600_000 }, async (t) => {
  const { nc, actors, untilMore, differences, none } = await underLoad(t, { servers: 1, partitions: 4, actors: 1 });
  const [process] = actors as [Actors];
  const member = process.member();
  const before = await process.metrics();
  const journal = journalOf(nc, member);
  await until('sealed', async () => {
    const { revision } = await journal.readEpoch();
    const seal = { token: randomUUID(), owner: member, takenAtMs: 0, sealed: true };
    return (await journal.takeEpoch(encodeValue(seal), revision)) !== undefined;
  });
  await until('it noticed', () => process.logged('journal_sealed').length > 0);
  await untilReady(actors);
  await untilMore();
  const after = await process.metrics();
  t.equal(after.value('longshore_actors_journals_sealed_total', 'lease="valid"'), 1);
  t.ok((await alertsOn(before.text, after.text)).includes('LongshoreJournalSealed'));
  t.match(process.logged('lease_revoked'), [{ member }]);
  const { newest, fence } = await readJournal(nc, member);
  t.ok(newest < fence, 'nothing landed after the seal');
  t.same(await differences(), none);
  await process.program.kill9();
  await process.program.start();
  await untilReady(actors);
  t.same(await differences(), none, 'and after a load');
});

/**
 * Longer than every lease and every deadline of a put, a checkpoint and a silent server, so that
 * the process finds all of them over when it goes on.
 */
const pausedMs =
  Math.max(
    limits.leaseUnchangedMs,
    limits.commitTimeoutMs,
    checkpointTimeoutMs,
    limits.journalStalledMs,
    limits.natsSilentUrgentMs,
  ) + 1_000;

t.test('a member that is paused in the middle of its puts', { timeout: 600_000 }, async (t) => {
  const options = { servers: 3, partitions: 8, actors: 2 } as const;
  const { nc, actors, untilMore, differences, none } = await underLoad(t, options);
  const [first, second] = actors as [Actors, Actors];
  const served = async (each: Actors): Promise<number> => (await each.metrics()).partitions.length;
  // The one with more, because the other may have none.
  const paused = (await served(first)) >= (await served(second)) ? first : second;
  const other = paused === first ? second : first;
  const member = paused.member();
  // Clients create without a pause, so the journal has a put under way at almost any time.
  paused.program.server().pause();
  const resuming = pause(pausedMs);
  await until('the other serves all', async () => (await served(other)) === options.partitions);
  await untilMore();
  await resuming;
  paused.program.server().resume();
  await until('it is another member', () => paused.logged('lease_revoked').length > 0);
  t.match(paused.logged('lease_revoked').at(-1), { member });
  await until('both serve again', async () => (await served(paused)) + (await served(other)) === options.partitions);
  await untilMore();
  const { newest, fence } = await readJournal(nc, member);
  t.ok(newest < fence, 'no late put landed');
  const metrics = await paused.metrics();
  t.ok((metrics.value('longshore_actors_partition_moves_total', 'change="lost"') ?? 0) > 0);
  t.equal(metrics.value('longshore_actors_journals_sealed_total', 'lease="valid"'), 0);
  t.same(await differences(), none);
});
