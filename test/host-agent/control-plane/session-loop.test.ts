/** When an agent asks for another session, and when it does not. */
import { setImmediate as settled } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Greeting } from '../../../host-agent/control-plane/session.ts';
import { createSessionLoop } from '../../../host-agent/control-plane/session-loop.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { ReportAnswer } from '../../../schemas/wire/host.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { quietLog } from '../../actors/support.ts';
import { spoken } from '../../../schemas/wire/version.ts';

const host = 'h1' as HostKey;
const partitions = 4;
const stale: ReportAnswer = { ok: false, error: 'stale_session' };

/** `greet` and `answer` give what the control plane says to the oldest hello and request. */
function start(t: Test) {
  const hellos: ((greeting: Greeting | undefined) => void)[] = [];
  const requests: { report: unknown; settle: (answer: object | Error) => void }[] = [];
  const greeted: number[] = [];
  const loop = createSessionLoop({
    sender: { host, user: 'UKEY' },
    request: (_subject, payload) =>
      new Promise((resolve, reject) => {
        const settle = (answer: object | Error) =>
          answer instanceof Error ? reject(answer) : resolve(Buffer.from(JSON.stringify({ ...spoken, ...answer })));
        requests.push({ report: JSON.parse(payload), settle });
      }),
    hello: () => new Promise((resolve) => hellos.push(resolve)),
    onGreeted: ({ session }) => void greeted.push(session),
    log: quietLog,
  });
  const ending = new AbortController();
  const running = loop.run(ending.signal);
  t.teardown(() => ending.abort());
  return {
    loop,
    hellos,
    requests,
    greeted,
    running,
    end: () => ending.abort(),
    greet: async (session: number) => {
      hellos.shift()?.({ ok: true, cluster: 'c1', partitions, session, orphan_word: 0 });
      await settled();
    },
    answer: async (answer: object | Error) => {
      requests.shift()?.settle(answer);
      await settled();
    },
  };
}

t.test('a session is kept until it may be old, and shown until there is another', async (t) => {
  const { loop, hellos, greeted, greet } = start(t);
  t.equal(loop.session(), undefined);
  await greet(5);
  t.same([loop.session(), hellos.length], [5, 0]);
  loop.renew();
  await settled();
  t.same([loop.session(), hellos.length], [5, 1], 'reports carry the old one meanwhile');
  loop.renew();
  await settled();
  t.equal(hellos.length, 1, 'one question at a time');
  await greet(6);
  t.same([loop.session(), greeted, hellos.length], [6, [5, 6], 0]);
});

t.test('a check is an empty report to the partition of the host', async (t) => {
  const { loop, requests, greet } = start(t);
  await loop.check(partitions);
  t.equal(requests.length, 0, 'without a session there is nothing to check');
  await greet(5);
  await loop.check(null);
  t.equal(requests.length, 0, 'before the number of partitions is known, neither');
  void loop.check(partitions);
  t.match(requests, [{ report: { session: 5, partition: partitionOf(host, partitions), items: [] } }]);
});

t.test('only the answer that the session is stale asks for another', async (t) => {
  const { loop, hellos, greet, answer } = start(t);
  await greet(5);
  for (const [said, asks] of [
    [{ ok: true }, 0],
    [{ ok: false, error: 'unavailable' }, 0],
    [{ nonsense: true }, 0],
    [new Error('timeout'), 0],
    [stale, 1],
  ] as const) {
    const check = loop.check(partitions);
    await answer(said);
    await check;
    t.equal(hellos.length, asks, said instanceof Error ? said.message : JSON.stringify(said));
  }
});

t.test('an answer about an earlier session, or while another is asked for, says nothing', async (t) => {
  const { loop, hellos, requests, greet, answer } = start(t);
  await greet(5);
  void loop.check(partitions);
  loop.renew();
  await settled();
  void loop.check(partitions);
  await greet(6);
  await answer(stale);
  await answer(stale);
  t.same([hellos.length, requests.length, loop.session()], [0, 0, 6]);
  void loop.check(partitions);
  await answer(stale);
  t.equal(hellos.length, 1, 'one about this session does');
});

t.test('it ends with its signal: while it waits, and while it asks', async (t) => {
  const waiting = start(t);
  await waiting.greet(5);
  waiting.end();
  await waiting.running;
  t.equal(waiting.hellos.length, 0);
  const asking = start(t);
  asking.end();
  asking.hellos.shift()?.(undefined);
  await asking.running;
  t.same(asking.greeted, []);
});
