/**
 * The features that the runtime relies on, tried on the real server: the fence, atomic batches,
 * TTLs, and loads.
 */
import { randomUUID } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import t from 'tap';
import { createJetStreamStore } from '../../../../actors/runtime/store/jetstream-store.ts';
import { moveEpoch } from '../../../../actors/runtime/store/epoch.ts';
import type { Store } from '../../../../actors/runtime/store/store.ts';
import { readBatch } from '../../../../lib/nats/direct-reads.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { buckets } from '../../../../schemas/records/buckets.ts';
import { startCluster } from '../support.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);

const take = async (store: Store, from?: number) =>
  moveEpoch(
    store,
    { token: randomUUID(), owner: 'test' as MemberId, takenAtMs: 0 },
    {
      from: from === undefined ? { mayTake: async () => Promise.resolve(true) } : { epoch: from },
      signal: AbortSignal.timeout(5000),
      onFailure: (error) => t.fail(String(error)),
    },
  );

t.test('the bucket of a partition', async (t) => {
  const { nc } = await startCluster(t, 4);
  const storeOf = (partition: number) => createJetStreamStore(nc, buckets.state.bucket(partition), randomUUID);

  t.test('the server refuses writes of an earlier epoch, single and in batches', async (t) => {
    const store = storeOf(0);
    const first = await take(store);
    const second = await take(store);
    t.equal(first.kind, 'moved');
    t.equal(second.kind, 'moved');
    if (first.kind !== 'moved' || second.kind !== 'moved') return;
    t.match(await store.put({ key: 'tenant.c', value: bytes('late') }, first.epoch), { kind: 'fenced' });
    const batch = [
      { key: 'tenant.a', value: bytes('late') },
      { key: 'tenant.b', value: bytes('late') },
    ];
    t.match(await store.putBatch(batch, first.epoch), { kind: 'fenced' });
    t.match(await store.put({ key: 'tenant.c', value: bytes('mine') }, second.epoch), { kind: 'written' });
    const values = new Map((await store.load(second.epoch)).map(({ key, value }) => [key, value]));
    t.same(values.get('tenant.c'), bytes('mine'));
    t.notOk(values.has('tenant.a'));
  });

  t.test('a write that is larger than the server takes is refused, and not of unknown outcome', async (t) => {
    const store = storeOf(0);
    const taken = await take(store);
    if (taken.kind !== 'moved') return t.fail();
    const large = { key: 'tenant.a', value: 'x'.repeat(limits.natsPayloadBytes) };
    t.match(await store.put(large, taken.epoch), { kind: 'refused' }, 'a message');
    const writes = Array.from({ length: limits.natsBatchMessages + 1 }, (_, index) => ({
      key: `container.t.${index}`,
      value: bytes('v'),
    }));
    t.match(await store.putBatch(writes, taken.epoch), { kind: 'refused' }, 'a batch');
    t.match(await store.putBatch(writes.slice(1), taken.epoch), { kind: 'written' }, 'as long as it may be');
  });

  t.test('a batch is written as a whole, with deletions and outcomes that have a TTL', async (t) => {
    const store = storeOf(1);
    const taken = await take(store);
    if (taken.kind !== 'moved') return t.fail();
    const many = Array.from({ length: 64 }, (_, index) => ({ key: `container.t.${index}`, value: bytes(`v${index}`) }));
    t.match(await store.putBatch(many, taken.epoch), { kind: 'written' });
    const next = [
      { key: 'container.t.0', value: null },
      { key: 'ops.1', value: bytes('outcomes'), ttlMs: 1000 },
      { key: 'checkpoint', value: bytes('1') },
    ];
    t.match(await store.putBatch(next, taken.epoch), { kind: 'written' });
    const values = new Map((await store.load(taken.epoch)).map(({ key, value }) => [key, value]));
    t.equal(values.get('container.t.0'), null, 'a delete marker');
    t.same(values.get('container.t.63'), bytes('v63'));
    t.same(values.get('checkpoint'), bytes('1'));
    const isGone = async () =>
      !(await store.load(taken.epoch)).some(({ key, value }) => key === 'ops.1' && value !== null);
    for (let tries = 0; tries < 100 && !(await isGone()); tries++) await new Promise((done) => setTimeout(done, 100));
    t.ok(await isGone(), 'the outcome has gone by itself');
  });

  t.test('an epoch moves only from the value that was read', async (t) => {
    const store = storeOf(2);
    const mine = await take(store);
    if (mine.kind !== 'moved') return t.fail();
    t.match(await take(store, mine.epoch), { kind: 'moved' });
    t.match(await take(store, mine.epoch), { kind: 'refused' });
  });

  t.test('a load is refused if the epoch has moved', async (t) => {
    const store = storeOf(3);
    const first = await take(store);
    await take(store);
    if (first.kind !== 'moved') return t.fail();
    await t.rejects(store.load(first.epoch), { name: 'StoreError' });
  });

  t.test('a load of a part has the keys that were written there', async (t) => {
    const store = storeOf(3);
    const taken = await take(store);
    if (taken.kind !== 'moved') return t.fail();
    const sequences: number[] = [];
    for (const key of ['tenant.a', 'tenant.b', 'tenant.c', 'tenant.d']) {
      const outcome = await store.put({ key, value: bytes(key) }, taken.epoch);
      sequences.push(outcome.kind === 'written' ? outcome.sequence : 0);
    }
    const keysOf = async (from?: number, until?: number) =>
      (await store.load(taken.epoch, from, until)).map(({ key }) => key);
    t.same(await keysOf(sequences[1], sequences[3]), ['tenant.b', 'tenant.c']);
    t.same(await keysOf(1, sequences[1]), ['epoch', 'tenant.a']);
    const beyond = (sequences[3] ?? 0) + 1;
    await t.rejects(store.load(taken.epoch, sequences[1], beyond), { name: 'StoreError' }, 'the replica may lag');
  });
});

t.test('a page without an answer is asked for again, a limited number of times', async (t) => {
  const { nc } = await startCluster(t, 1);
  let asked = 0;
  // Stands for the replicas, of which the first two are away.
  nc.subscribe('$JS.API.DIRECT.GET.PAGES', {
    callback: (_error, message) => {
      if (++asked % 3 !== 0) return;
      const head = headers(404, 'nothing');
      message.respond('', { headers: head });
    },
  });
  const read = { stream: 'PAGES', filter: '>', from: { seq: 1 }, batchMessages: 1, batchBytes: 1000, timeoutMs: 100 };
  t.same(await readBatch(nc, { ...read, attempts: 3 }), { messages: [], pending: 0 });
  t.equal(asked, 3);
  await t.rejects(readBatch(nc, { ...read, attempts: 2 }), { name: 'DeadlineError' });
  t.equal(asked, 5);
});
