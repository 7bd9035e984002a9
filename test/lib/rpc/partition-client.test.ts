/** Lanes of owners in virtual time: what shares a message, and who waits for whom. */
import t from 'tap';
import { sleep } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Outcome } from '../../../lib/rpc/partition-client.ts';
import type { ContainerId, OperationId, TenantId } from '../../../schemas/ids.ts';
import { protocolVersion } from '../../../schemas/wire/version.ts';
import { play, type Stage } from './owners.ts';
import { laneMessagesInFlight, laneStallMs } from '../../../lib/rpc/lane.ts';
import { laneQueuedItems, rpcSweepMs } from '../../../lib/rpc/partition-client.ts';

const all = [0, 1, 2, 3];
const ownSubjects = all.map((partition) => [`part.${partition}`, partition]);

/** Every partition has answered, and the client knows whose it is. */
async function learn({ ask, messages }: Stage): Promise<void> {
  for (const kind of ['read', 'write'] as const) await ask(kind, all);
  messages();
}

t.test('partitions share the messages to their owner once it has answered for them', async (t) => {
  await play(t, 4, async ({ owner, ask, messages }) => {
    owner('one', [0, 1, 3]);
    owner('two', [2]);
    t.match(await ask('read', all), [
      { body: '"one 0"' },
      { body: '"one 1"' },
      { body: '"two 2"' },
      { body: '"one 3"' },
    ]);
    t.same(messages(), ownSubjects, 'each by itself at first');
    await ask('read', all);
    t.same(messages(), [
      ['owner.one', 0, 1, 3],
      ['owner.two', 2],
    ]);
  });
});

t.test('an owner that does not say who it is is asked by partition', async (t) => {
  await play(t, 4, async ({ owner, ask, messages }) => {
    owner('old', all, false);
    for (let round = 0; round < 3; round++) {
      t.ok((await ask('write', all)).every(({ code }) => code === 'ok'));
      t.same(messages(), ownSubjects);
    }
  });
});

t.test('not_owner of one partition pauses that one alone, and it finds its owner', async (t) => {
  await play(t, 4, async (stage) => {
    const { owner, ask, messages, retries } = stage;
    const one = owner('one', all);
    const two = owner('two', []);
    await learn(stage);
    one.give(2);
    two.take(2);
    const told = await ask('write', all);
    t.match(told, [{ body: '"one 0"' }, { body: '"one 1"' }, { body: '"two 2"' }, { body: '"one 3"' }]);
    t.same(
      told.map(({ tookMs }) => tookMs < 2),
      [true, true, false, true],
    );
    t.same(messages(), [
      ['owner.one', 0, 1, 2, 3],
      ['part.2', 2],
    ]);
    t.same([...retries.keys()], ['not_owner']);
    await ask('write', all);
    t.same(messages(), [
      ['owner.one', 0, 1, 3],
      ['owner.two', 2],
    ]);
    await ask('read', [2]);
    t.same(messages(), [['part.2', 2]], 'its reads have left the lane too');
  });
});

t.test('an owner that is gone: nothing was executed, and its partitions are asked by themselves', async (t) => {
  await play(t, 4, async (stage) => {
    const { owner, ask, messages, retries } = stage;
    const one = owner('one', all);
    await learn(stage);
    await one.end();
    const told = await ask('write', all, 300);
    t.ok(
      told.every(({ code }) => code === 'unavailable'),
      'not a timeout',
    );
    const [first, ...others] = messages();
    t.same(first, ['owner.one', 0, 1, 2, 3]);
    t.ok(others.length >= 4 && others.every(([subject]) => subject.startsWith('part.')));
    t.same([...retries.keys()], ['no_responders']);

    const asked = ask('write', all);
    await sleep(50);
    owner('successor', all);
    t.ok(
      (await asked).every(({ body }) => body.startsWith('"successor')),
      'its successor has another name',
    );
    messages();
    await ask('write', all);
    t.same(messages(), [['owner.successor', 0, 1, 2, 3]]);
  });
});

t.test('a partition that stalls takes no place of the others', async (t) => {
  await play(t, 4, async (stage) => {
    const { owner, ask, messages, retries } = stage;
    const one = owner('one', all);
    await learn(stage);
    one.stalled.add(0);
    const stalled: ReturnType<typeof ask>[] = [];
    for (let message = 0; message < laneMessagesInFlight; message++) {
      stalled.push(ask('read', [0]));
      await sleep(1);
    }
    // The lane is full of messages for the partition that stalls.
    const [first] = await ask('read', [1]);
    t.ok((first?.tookMs ?? Infinity) < laneStallMs + 2 * rpcSweepMs, `${first?.tookMs} ms`);
    for (let round = 0; round < 100; round++) {
      stalled.push(ask('read', [0]));
      const told = await ask('read', [1, 2, 3]);
      t.ok(told.every(({ code, tookMs }) => code === 'ok' && tookMs < 5));
    }
    const toOwner = messages().filter(([subject]) => subject === 'owner.one');
    t.notOk(
      toOwner.slice(4).some(([, ...partitions]) => partitions.includes(0)),
      'it has a lane of its own',
    );
    t.ok(one.executed.length > 0);
    await sleep(limits.attemptMs + 500);
    t.ok((retries.get('lost') ?? 0) >= 2, 'it is asked again after an attempt, the others are not');
    t.ok((retries.get('lost') ?? 0) <= 102);
    one.stalled.clear();
    const outcomes = await Promise.all(stalled);
    t.ok(outcomes.flat().every(({ code }) => code === 'ok'));
    messages();
    await ask('read', all);
    await ask('read', all);
    t.same(messages().at(-1), ['owner.one', 0, 1, 2, 3], 'answered in time, it shares messages again');
  });
});

t.test('a message is sent again for the partition without an answer alone', async (t) => {
  await play(t, 4, async (stage) => {
    const { owner, ask, messages, retries } = stage;
    const one = owner('one', all);
    await learn(stage);
    one.stalled.add(3);
    const asked = ask('write', all, 3000);
    await sleep(limits.attemptMs + 200);
    t.same(messages(), [
      ['owner.one', 0, 1, 2, 3],
      ['part.3', 3],
    ]);
    t.same([...retries], [['lost', 1]]);
    t.match(await asked, [{ code: 'ok' }, { code: 'ok' }, { code: 'ok' }, { code: 'timeout' }]);
    t.equal(new Set(one.executed).size, 12, 'under the same operation id');
  });
});

t.test('a frozen owner: partitions that were not asked meanwhile find its successor at once', async (t) => {
  await play(t, 4, async (stage) => {
    const { owner, ask } = stage;
    const one = owner('one', all);
    await learn(stage);
    for (const partition of all) one.stalled.add(partition);
    const frozen = ask('read', [0]);
    await sleep(laneStallMs + 2 * rpcSweepMs);
    owner('two', all);
    const told = await ask('read', [1, 2, 3]);
    t.ok(told.every(({ body, tookMs }) => body.startsWith('"two') && tookMs < 3));
    t.match(await frozen, [{ body: '"two 0"' }], 'and what it had heard is asked again');
  });
});

t.test('a full queue of one partition refuses nothing of the others, and shares its messages with them', async (t) => {
  await play(t, 4, async (stage) => {
    const { owner, ask, messages } = stage;
    owner('one', all);
    await learn(stage);
    const crowd = ask('read', new Array<number>(laneQueuedItems + 10).fill(0));
    const others = await ask('read', [1, 2, 3]);
    t.ok(others.every(({ code, tookMs }) => code === 'ok' && tookMs < 3));
    t.same(new Set(messages()[0]), new Set(['owner.one', ...all]), 'in the first message');
    const codes = (await crowd).map(({ code }) => code);
    t.same(codes.slice(-10), new Array(10).fill('unavailable'));
    t.ok(codes.slice(0, -10).every((code) => code === 'ok'));
  });
});

t.test('partitions change hands under load: every ask is answered, and no other partition waits', async (t) => {
  await play(t, 4, async (stage) => {
    const { owner, ask } = stage;
    const owners = [owner('one', all), owner('two', [])];
    await learn(stage);
    let isOver = false;
    const load = all.map(async (partition) => {
      const slowest = { ofPartition: 0 };
      for (let n = 0; !isOver; n++) {
        const [told] = await ask(n % 2 === 0 ? 'read' : 'write', [partition]);
        t.equal(told?.code, 'ok');
        slowest.ofPartition = Math.max(slowest.ofPartition, told?.tookMs ?? Infinity);
      }
      return slowest.ofPartition;
    });
    for (let move = 0; move < 6; move++) {
      const [from, to] = move % 2 === 0 ? owners : owners.toReversed();
      await sleep(40);
      from?.give(1);
      await sleep(20);
      to?.take(1);
    }
    isOver = true;
    const slowest = await Promise.all(load);
    t.ok(
      slowest.every((ms, partition) => partition === 1 || ms < 3),
      `${slowest.join(', ')} ms`,
    );
    t.ok((slowest[1] ?? Infinity) < 300, `${slowest[1]} ms`);
  });
});

t.test('an owner of the last release gets no ask that it does not know', async (t) => {
  await play(t, 4, async ({ owner, ask, pose, messages }) => {
    const tenant = 'acme' as TenantId;
    const one = owner('one', all);
    one.release(protocolVersion - 1);
    const list = (): Promise<Outcome> => pose('read', { type: 'metadata.list', tenant, ids: [], rid: 'r' });
    const put = {
      type: 'metadata.put',
      tenant,
      id: 'c' as ContainerId,
      fields: {},
      rid: 'w',
      op: 'w' as OperationId,
    } as const;
    const notYet = {
      code: 'unavailable',
      body: /"error":"unavailable","message":"an upgrade of Longshore is under way/,
    };
    t.match(await list(), notYet, 'nothing was known of it');
    t.equal(messages().length, 1);
    t.match(await list(), notYet);
    t.match(await pose('write', put), notYet);
    t.same(messages(), [], 'it is not asked again');
    t.match(
      await ask('write', all),
      all.map((partition) => ({ body: `"one ${partition}"` })),
      'the rest is answered',
    );

    one.release(protocolVersion);
    await ask('read', all);
    t.match(await list(), { code: 'ok' }, 'upgraded');
    one.release(protocolVersion - 1);
    t.match(await list(), notYet, 'rolled back meanwhile');
  });
});
