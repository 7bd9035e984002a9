/** Retention of the journals of dead members. */
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { createJournalRetention, journalKeptMs } from '../../../../actors/retention/journals.ts';
import { encodeEntry, encodeSection, encodeValue } from '../../../../actors/runtime/journal/codec.ts';
import { encodeMark, type Mark } from '../../../../actors/runtime/journal/mark.ts';
import { createJetStreamStore, createJournalStore } from '../../../../actors/runtime/store/jetstream-store.ts';
import { noReading } from '../../../../lib/time/cautious-clock.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { buckets, keys } from '../../../../schemas/records/buckets.ts';
import { quietLog } from '../../../actors/support.ts';
import { startCluster } from '../support.ts';

const memberId = (): MemberId => randomUUID() as MemberId;
const opened = (owner: MemberId): string => encodeValue({ token: randomUUID(), owner, takenAtMs: 0 });

/** A journal with one entry, as its member has left it. */
async function journalOf(nc: NatsConnection, member = memberId()) {
  const store = createJournalStore(nc, member, randomUUID);
  const fence = (await store.takeEpoch(opened(member), 0)) ?? 0;
  const commit = { number: 1, changes: [], operations: [], events: [], clock: noReading };
  const value = encodeEntry(1, { number: 1, sequence: 1 }, [{ partition: 0, bytes: encodeSection(commit) }]);
  const put = async () => store.put({ key: keys.entry(1), value }, fence);
  await put();
  return { member, put, hasEntry: async () => (await store.read(keys.entry(1))) !== null };
}

/** A partition whose mark names these journals. */
async function markPartition(nc: NatsConnection, partition: number, journals: Mark['journals']): Promise<void> {
  const store = createJetStreamStore(nc, buckets.state.bucket(partition), randomUUID);
  const { revision } = await store.readEpoch();
  const epoch = (await store.takeEpoch(opened(memberId()), revision)) ?? 0;
  await store.put({ key: keys.checkpoint, value: encodeMark({ number: 1, journals }) }, epoch);
}

t.test('a journal is emptied when its member is dead, it is sealed for a while, and no mark names it', async (t) => {
  const { nc } = await startCluster(t, 2);
  const [gone, named, live] = [await journalOf(nc), await journalOf(nc), await journalOf(nc)];
  await markPartition(nc, 0, [named.member, live.member]);
  await markPartition(nc, 1, []);
  let nowMs = 0;
  const retention = createJournalRetention({
    nc,
    partitions: 2,
    isDead: async (member) => Promise.resolve(member !== live.member),
    newToken: randomUUID,
    clock: { ...systemClock, monotonicMs: () => nowMs },
    log: quietLog,
  });
  const left = async () => Promise.all([gone, named, live].map(async ({ hasEntry }) => hasEntry()));

  await retention.look();
  t.same(await left(), [true, true, true], 'sealed now');
  t.match(await gone.put(), { kind: 'fenced' });
  t.match(await live.put(), { kind: 'written' }, 'a live member goes on');
  nowMs += journalKeptMs - 1;
  await retention.look();
  t.same(await left(), [true, true, true], 'not long ago');
  nowMs += 1;
  await retention.look();
  t.same(await left(), [false, true, true]);
  t.match(await gone.put(), { kind: 'fenced' }, 'its seal stays');

  await markPartition(nc, 0, [live.member]);
  await retention.look();
  t.same(await left(), [false, false, true], 'its partition has checkpointed what it had');
});

t.test('nothing is emptied while a mark can’t be read', async (t) => {
  const { nc } = await startCluster(t, 2);
  const gone = await journalOf(nc);
  const store = createJetStreamStore(nc, buckets.state.bucket(1), randomUUID);
  const epoch = (await store.takeEpoch(opened(memberId()), 0)) ?? 0;
  await store.put({ key: keys.checkpoint, value: Buffer.from('2 00000000 {}') }, epoch);
  let nowMs = 0;
  const events: string[] = [];
  const retention = createJournalRetention({
    nc,
    partitions: 2,
    isDead: async () => Promise.resolve(true),
    newToken: randomUUID,
    clock: { ...systemClock, monotonicMs: () => nowMs },
    log: { ...quietLog, warn: (event) => void events.push(event) },
  });
  await retention.look();
  nowMs += journalKeptMs;
  await retention.look();
  t.ok(await gone.hasEntry());
  t.same(events, ['journals_check_failed']);
});
