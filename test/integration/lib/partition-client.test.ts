/**
 * Asks to owners over a real nats-server, with the test as the owner: whole, in parts, twice,
 * never, and refused.
 */
import { Answers } from '../../../lib/nats/answers.ts';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import {
  PartitionClient,
  laneQueuedItems,
  natsAwayMs,
  type Outcome,
  type Question,
  type RetryReason,
} from '../../../lib/rpc/partition-client.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { connectNats } from '../../../lib/nats/connection.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { encodeAnswer, encodeAnswers, linesOf, notOwner } from '../../../schemas/wire/codec.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { protocolVersion } from '../../../schemas/wire/version.ts';
import { decodeAsk } from '../../../lib/rpc/decode.ts';
import { ofPartition, readOf, writeOf } from '../../lib/rpc/support.ts';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { quietLog } from '../../gateway/support.ts';
import { controlPlane } from '../gateway/support.ts';
import { until } from '../../support/until.ts';

const nowMs = (): number => systemClock.monotonicMs();

interface Stage {
  readonly client: PartitionClient;
  /** The connection of the client. */
  readonly gateway: NatsConnection;
  readonly owner: NatsConnection;
  readonly retries: Map<RetryReason, number>;
  readonly batches: number[];
  ask(question: Question, withinMs?: number): Promise<Outcome>;
  /** Takes every batch from now on: the server knows of it when this resolves. */
  answerWith(handler: (asks: Ask[], message: Msg) => void): Promise<Subscription>;
}

const requestDeadlineMs = 10_000;

async function stage(t: Test, nats: Nats, partitions = 1): Promise<Stage> {
  const nc = await connectNats({ servers: [nats.url], name: 'gateway', credsFile: nats.credsFile }, quietLog);
  const owner = await controlPlane(nats);
  const retries = new Map<RetryReason, number>();
  const batches: number[] = [];
  const client = new PartitionClient({
    requestDeadlineMs,
    clock: systemClock,
    log: quietLog,
    answers: new Answers(systemClock),
    meters: {
      batch: (_lane, items) => batches.push(items),
      retry: (reason, items) => retries.set(reason, (retries.get(reason) ?? 0) + items),
    },
  });
  client.open(nc, partitions);
  t.teardown(async () => {
    client.stop();
    await Promise.all([nc.close(), owner.close()]);
  });
  return {
    client,
    gateway: nc,
    owner,
    retries,
    batches,
    ask: (question, withinMs = 60_000) => client.ask('op' in question ? 'write' : 'read', question, nowMs() + withinMs),
    answerWith: async (handler) => {
      const subscription = owner.subscribe('part.*', {
        callback: (error, message) => {
          if (error === null) handler(linesOf(message.string()).map(decodeAsk), message);
        },
      });
      await owner.flush();
      return subscription;
    },
  };
}

const echo = (ask: Ask): string => JSON.stringify({ data: 'id' in ask ? ask.id : ask.type });
const answerAll = (asks: readonly Ask[], message: Msg): void =>
  void message.respond(encodeAnswers(asks.map((ask, index) => encodeAnswer({ index, code: 'ok', body: echo(ask) }))));

const nats = await startNats({ dir: temporaryFolder(t) });
t.teardown(() => nats.stop());

t.test('asks of one turn go in one message, two messages at most under way', async (t) => {
  const { ask, answerWith, batches, retries } = await stage(t, nats);
  const held: [Ask[], Msg][] = [];
  let hold = true;
  await answerWith((asks, message) => (hold ? held.push([asks, message]) : answerAll(asks, message)));
  const asked: Promise<Outcome>[] = [];
  for (let turn = 0; turn < 4; turn++) {
    for (let n = 0; n < 10; n++) asked.push(ask(readOf(`${turn}-${n}`)));
    await sleep(20);
  }
  await until('two messages', () => held.length === 2);
  // Sent again: the machine was starved for longer than an attempt takes, and the counts are
  // others.
  const isStarved = (): boolean => retries.has('lost');
  if (!isStarved()) t.same(batches, [10, 10]);
  hold = false;
  for (const [asks, message] of held) answerAll(asks, message);
  const outcomes = await Promise.all(asked);
  if (!isStarved()) t.same(batches, [10, 10, 20], 'the rest was gathered meanwhile');
  t.same(
    outcomes.map(({ body }) => body),
    Array.from({ length: 40 }, (_, at) => `{"data":"${Math.floor(at / 10)}-${at % 10}"}`),
    'each got its own answer',
  );
});

t.test('a batch closes at its bounds', async (t) => {
  const { ask, answerWith, batches } = await stage(t, nats);
  await answerWith(answerAll);
  await Promise.all(Array.from({ length: limits.batchItems + 1 }, (_, at) => ask(readOf(String(at)))));
  // On a starved machine some are sent again, after these.
  t.same(batches.slice(0, 2), [limits.batchItems, 1]);
  batches.length = 0;
  const big = (id: string): Question => ({ ...readOf(id), rid: 'x'.repeat(limits.batchBytes / 2) });
  await Promise.all([ask(big('a')), ask(big('b')), ask(big('c'))]);
  t.same(batches.slice(0, 3), [1, 1, 1]);
});

t.test('answers in parts, in any order, twice, and to nobody', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  await answerWith((asks, message) => {
    const lines = asks.map((one, index) => encodeAnswer({ index, code: 'ok', body: echo(one) })).toReversed();
    for (const line of [...lines, ...lines]) message.respond(encodeAnswers([line]));
    message.respond(encodeAnswers([encodeAnswer({ index: 99, code: 'ok', body: '' })]));
    message.respond('rubbish');
  });
  const outcomes = await Promise.all(['a', 'b', 'c'].map((id) => ask(readOf(id))));
  t.same(
    outcomes.map(({ body }) => body),
    ['{"data":"a"}', '{"data":"b"}', '{"data":"c"}'],
  );
});

t.test('an answer of a release too far away counts as none, and the next counts', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  await answerWith((asks, message) => {
    const lines = asks.map((_, index) => encodeAnswer({ index, code: 'not_found', body: '' }));
    message.respond(`${protocolVersion + 2}\n${lines.join('\n')}`);
    const good = asks.map((one, index) => encodeAnswer({ index, code: 'ok', body: echo(one) }));
    message.respond(encodeAnswers(good));
  });
  t.match(await ask(readOf('a')), { code: 'ok', body: '{"data":"a"}' });
});

t.test('a budget rides on each ask, is bounded, and shrinks', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  const budgets: number[] = [];
  await answerWith((asks, message) => {
    budgets.push(...asks.map(({ budgetMs }) => budgetMs));
    if (budgets.length > 1) answerAll(asks, message);
  });
  await ask(readOf('a'), 60_000);
  const [first = 0, second = 0] = budgets;
  t.ok(first <= requestDeadlineMs && first > requestDeadlineMs / 2, `${first}`);
  t.ok(second < first - limits.attemptMs / 2, `${second}`);
});

t.test('no responders: tried again until there is one; 503 at the deadline', async (t) => {
  const { ask, answerWith, retries } = await stage(t, nats);
  for (const question of [readOf('a'), writeOf('a')]) {
    const startedMs = nowMs();
    t.match(await ask(question, 300), { code: 'unavailable' });
    t.ok(nowMs() - startedMs >= 290, 'not before its deadline');
  }
  const asked = ask(writeOf('b'));
  await until('several tries', () => (retries.get('no_responders') ?? 0) > 5);
  await answerWith(answerAll);
  t.match(await asked, { code: 'ok' });
  t.ok((retries.get('no_responders') ?? 0) < 60, 'with a back-off');
  t.equal(retries.get('lost'), undefined);
});

const refuseAll = (asks: Ask[], message: Msg): void => {
  message.respond(encodeAnswers(asks.map((_, index) => encodeAnswer({ index, code: notOwner, body: '' }))));
};

t.test('of one message some are answered and the others refused: those alone are asked again', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  const seen: string[][] = [];
  await answerWith((asks, message) => {
    seen.push(asks.map(({ rid }) => rid));
    if (seen.length > 1) answerAll(asks, message);
    else
      message.respond(
        encodeAnswers([
          encodeAnswer({ index: 0, code: 'ok', body: '' }),
          encodeAnswer({ index: 1, code: notOwner, body: '' }),
        ]),
      );
  });
  t.match(await Promise.all([ask(writeOf('a')), ask(writeOf('b'))]), [{ code: 'ok' }, { code: 'ok' }]);
  t.same(seen, [['a', 'b'], ['b']]);
});

t.test('of one message some are refused, and the rest is never answered: nobody knows of any of it', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  const owner = await answerWith((_asks, message) => {
    message.respond(encodeAnswers([encodeAnswer({ index: 1, code: notOwner, body: '' })]));
    owner.unsubscribe();
  });
  t.match(await Promise.all([ask(writeOf('a'), 3000), ask(writeOf('b'), 3000)]), [
    { code: 'timeout' },
    { code: 'timeout' },
  ]);
});

t.test('a write that was heard, and can’t be sent again, may have been executed', async (t) => {
  const { ask, answerWith, gateway } = await stage(t, nats);
  await answerWith((asks, message) => {
    gateway.publish = () => {
      throw new Error('closed');
    };
    refuseAll(asks, message);
  });
  t.match(await ask(writeOf('a')), { code: 'timeout' });
  t.match(await ask(writeOf('b')), { code: 'unavailable' }, 'and one that was not was not');
});

t.test('not_owner: asked again, a write under the same operation id', async (t) => {
  const { ask, answerWith, retries } = await stage(t, nats);
  let refusals = 3;
  const ops = new Set<string>();
  await answerWith((asks, message) => {
    for (const one of asks) if ('op' in one) ops.add(one.op);
    if (refusals-- > 0) refuseAll(asks, message);
    else answerAll(asks, message);
  });
  t.match(await ask(writeOf('a')), { code: 'ok' });
  t.equal(retries.get('not_owner'), 3);
  t.equal(ops.size, 1);
  refusals = Infinity;
  t.match(await ask(readOf('b'), 300), { code: 'unavailable' }, 'and 503 at the deadline');
  t.match(await ask(writeOf('c'), 3000), { code: 'timeout' }, 'or 504: somebody else may have heard it');
});

t.test('two subscribers of which one owns: its answer counts whichever comes first', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  await answerWith(refuseAll);
  await answerWith((asks, message) => void setTimeout(() => answerAll(asks, message), 30));
  t.match(await ask(writeOf('a')), { code: 'ok' });
});

t.test('a write that was sent again is refused by the last answer alone; a read by any', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  const heard: Msg[] = [];
  await answerWith((_asks, message) => void heard.push(message));
  const say = (message: Msg | undefined, code: 'conflict' | 'ok'): void =>
    void message?.respond(encodeAnswers([encodeAnswer({ index: 0, code, body: '' })]));
  const written = ask(writeOf('a'));
  await until('sent twice', () => heard.length >= 2);
  say(heard[0], 'conflict');
  await sleep(50);
  say(heard[1], 'ok');
  t.match(await written, { code: 'ok' });

  heard.length = 0;
  const refused = ask(writeOf('b'));
  await until('sent twice', () => heard.length >= 2);
  say(heard.at(-1), 'conflict');
  t.match(await refused, { code: 'conflict' });

  heard.length = 0;
  const read = ask(readOf('c'));
  await until('sent twice', () => heard.length >= 2);
  say(heard[0], 'conflict');
  t.match(await read, { code: 'conflict' });
});

t.test('a lost answer: sent again under the same operation id', async (t) => {
  const { ask, answerWith, retries } = await stage(t, nats);
  const seen: Ask[] = [];
  let lose = 1;
  await answerWith((asks, message) => {
    seen.push(...asks);
    if (lose-- <= 0) answerAll(asks, message);
  });
  t.match(await ask(writeOf('a')), { code: 'ok' });
  t.equal(seen.length, 2);
  const [first, second] = seen;
  t.ok(first !== undefined && second !== undefined && 'op' in first && 'op' in second && first.op === second.op);
  t.equal(retries.get('lost'), 1);
});

t.test('an answer that comes after it was given up still counts', async (t) => {
  const { ask, answerWith, retries } = await stage(t, nats);
  let held: [Ask[], Msg] | undefined;
  await answerWith((asks, message) => (held ??= [asks, message]));
  const asked = ask(writeOf('a'));
  await until('given up', () => retries.has('lost'));
  if (held !== undefined) answerAll(...held);
  t.match(await asked, { code: 'ok' });
});

t.test('at the deadline: a write that may have been executed is a timeout, a read is unavailable', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  await answerWith(() => {});
  const [write, read] = await Promise.all([ask(writeOf('a'), 3000), ask(readOf('a'), 3000)]);
  t.match(write, { code: 'timeout' });
  t.match(read, { code: 'unavailable' });
});

t.test('one slow item holds up nobody else', async (t) => {
  const { ask, answerWith } = await stage(t, nats);
  let isSlow = true;
  await answerWith((asks, message) => {
    asks.forEach((one, index) => {
      if (isSlow && 'id' in one && one.id === 'slow') return;
      message.respond(encodeAnswers([encodeAnswer({ index, code: 'ok', body: echo(one) })]));
    });
  });
  let isSettled = false;
  const slow = ask(writeOf('slow')).finally(() => (isSettled = true));
  const others = await Promise.all(Array.from({ length: 50 }, (_, at) => ask(writeOf(String(at)))));
  t.ok(others.every(({ code }) => code === 'ok'));
  t.notOk(isSettled, 'all before it');
  isSlow = false;
  t.match(await slow, { code: 'ok' });
});

t.test('reads do not wait for writes, nor either for watchers', async (t) => {
  const { client, answerWith } = await stage(t, nats);
  await answerWith((asks, message) => {
    if (asks.every((one) => one.type === 'container.get')) answerAll(asks, message);
  });
  for (let n = 0; n < 10; n++) {
    void client.ask('write', writeOf('w'), nowMs() + 120_000);
    void client.ask('watch', { ...readOf('x'), type: 'container.status' } as Question, nowMs() + 120_000);
    await sleep(5);
  }
  t.match(await client.ask('read', readOf('r'), nowMs() + 60_000), { code: 'ok' });
});

t.test('a full queue refuses at once', async (t) => {
  const { ask, answerWith, client } = await stage(t, nats);
  await answerWith(() => {});
  const asked = Array.from({ length: laneQueuedItems + 10 }, (_, at) => ask(readOf(String(at)), 700));
  t.match(await asked.at(-1), { code: 'unavailable' });
  t.ok(client.queued('read') > 0);
  const outcomes = await Promise.all(asked);
  t.ok(outcomes.every(({ code }) => code === 'unavailable'));
  t.equal(client.queued('read'), 0);
});

t.test('partitions of one owner share a message, and find another when it is gone', async (t) => {
  const { ask, owner, batches, client } = await stage(t, nats, 16);
  const two = await controlPlane(nats);
  t.teardown(() => two.close());
  const serve = async (nc: NatsConnection, name: string): Promise<void> => {
    for (const subject of ['part.*', subjects.owner(name)]) {
      nc.subscribe(subject, {
        callback: (_, message) => {
          const asks = linesOf(message.string()).map(decodeAsk);
          const lines = asks.map((_one, index) => encodeAnswer({ index, code: 'ok', body: `"${name}"` }));
          message.respond(encodeAnswers(lines, name));
        },
      });
    }
    await nc.flush();
  };
  const askAll = () => Promise.all(Array.from({ length: 16 }, (_, partition) => ask(ofPartition('read', partition))));
  await serve(owner, 'one');
  await askAll();
  batches.length = 0;
  await askAll();
  t.same(batches, [16]);
  await serve(two, 'two');
  await owner.close();
  t.ok((await askAll()).every(({ body }) => body === '"two"'));
  batches.length = 0;
  await askAll();
  t.same(batches, [16]);
  t.equal(client.queued('read'), 0);
});

t.test('the server killed and started again: 503 meanwhile, then everything as before', async (t) => {
  const own = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => own.stop());
  const { ask, answerWith, client } = await stage(t, own);
  const executed = new Map<string, number>();
  let silent = false;
  await answerWith((asks, message) => {
    for (const one of asks) if ('op' in one) executed.set(one.op, (executed.get(one.op) ?? 0) + 1);
    if (!silent) answerAll(asks, message);
  });
  t.match(await ask(writeOf('before')), { code: 'ok' });

  // Under way when the server dies: unknown to us, and sent again when it is back.
  silent = true;
  const underWay = ask(writeOf('under way'), 300_000);
  await until('heard', () => executed.size === 2);
  await own.kill9();
  await until('noticed', () => !client.connected());
  t.match(await ask(readOf('a'), 500), { code: 'unavailable' });
  t.match(await ask(writeOf('b'), 500), { code: 'unavailable' }, 'never sent, so not a timeout');
  await sleep(natsAwayMs);
  const atOnce = await Promise.race([ask(readOf('c')), new Promise(setImmediate)]);
  t.match(atOnce, { code: 'unavailable' }, 'away for long: refused at once, not at its deadline');

  silent = false;
  await own.restart();
  await until('back', () => client.connected());
  t.match(await underWay, { code: 'ok' });
  t.match(await ask(writeOf('after')), { code: 'ok' });
});
