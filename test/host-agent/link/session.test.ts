import { setImmediate as settled } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createSession, hello, type SessionParts } from '../../../host-agent/link/session.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { HelloAnswer, ReportAnswer } from '../../../schemas/wire/host.ts';
import { partitionOf, subjects } from '../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { quietLog } from '../../actors/support.ts';

const sender = { host: 'h1' as HostKey, user: 'UKEY' };
const partitions = 4;

const given = (session: number, more: Partial<Extract<HelloAnswer, { ok: true }>> = {}): HelloAnswer => ({
  ok: true,
  cluster: 'c1',
  partitions,
  session,
  orphan_word: 0,
  ...more,
});
const refused = (error: Extract<HelloAnswer, { ok: false }>['error']): HelloAnswer => ({ ok: false, error });

/** `answers`: one after another; an error is a request without an answer. */
function start(t: Test, answers: readonly (HelloAnswer | Error)[], highest = 0) {
  const did: string[] = [];
  const left = [...answers];
  const parts: SessionParts = {
    sender,
    cluster: 'c1',
    version: '0.0.0',
    capacity: () => ({ cpu_millis: 1, mem_bytes: 1, containers: 1 }),
    stopsAfterMs: () => null,
    lease: {
      fenced: () => void did.push('fenced'),
      superseded: (isSuperseded) => void did.push(isSuperseded ? 'superseded' : 'alone'),
    },
    sessions: { highest: () => highest, used: (session) => void did.push(`used ${session}`), flush: async () => {} },
    credentials: { renewKey: () => undefined, renewed: (jwt) => did.push(`renewed ${jwt}`) > 0 },
    connection: {
      request: () => {
        const next = left.shift() ?? new Error('nothing is left to answer');
        return next instanceof Error
          ? Promise.reject(next)
          : Promise.resolve(Buffer.from(JSON.stringify({ ...protocolFields, ...next })));
      },
      reopen: async () => void did.push('connected again'),
    },
    retry: { minMs: 1, maxMs: 1 },
    log: quietLog,
  };
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  return { parts, did, signal: ending.signal };
}

t.test('a hello is repeated until it gets a session above every earlier one', async (t) => {
  const { parts, did, signal } = start(t, [new Error('timeout'), given(6), given(7), given(8)], 7);
  t.match(await hello(parts, undefined, signal), { session: 8 });
  t.same(did, ['used 8', 'alone']);
});

t.test('a session of another cluster does not count', async (t) => {
  const { parts, signal } = start(t, [given(9, { cluster: 'c2' }), given(1)]);
  t.match(await hello(parts, undefined, signal), { cluster: 'c1', session: 1 });
});

t.test('refusals are passed on, and the agent asks again', async (t) => {
  const answers = [refused('fenced'), refused('unknown_host'), refused('superseded'), given(1)];
  const { parts, did, signal } = start(t, answers);
  t.match(await hello(parts, undefined, signal), { session: 1 });
  t.same(did, ['fenced', 'superseded', 'used 1', 'alone']);
});

t.test('credentials that come with a session are kept', async (t) => {
  const { parts, did, signal } = start(t, [given(1, { jwt: 'new' })]);
  await hello(parts, undefined, signal);
  t.same(did, ['used 1', 'alone', 'renewed new', 'connected again'], 'they are of another signing key');
});

t.test('a hello ends without a session when the agent stops', async (t) => {
  const { parts } = start(t, []);
  t.equal(await hello(parts, undefined, AbortSignal.abort()), undefined);
});

/* When an agent asks for another session, and when it does not. */

const stale: ReportAnswer = { ok: false, error: 'stale_session' };

/** `greet` and `answer` give what the control plane says to the oldest hello and request. */
function startLoop(t: Test) {
  const hellos: ((answer: object | Error) => void)[] = [];
  const requests: { report: unknown; settle: (answer: object | Error) => void }[] = [];
  const greeted: number[] = [];
  const loop = createSession({
    ...start(t, []).parts,
    connection: {
      request: (subject, payload) =>
        new Promise((resolve, reject) => {
          const settle = (answer: object | Error) =>
            answer instanceof Error
              ? reject(answer)
              : resolve(Buffer.from(JSON.stringify({ ...protocolFields, ...answer })));
          if (subject === subjects.hostHello(sender)) hellos.push(settle);
          else requests.push({ report: JSON.parse(payload), settle });
        }),
      reopen: async () => {},
    },
  });
  loop.events.on('greeted', ({ session }) => void greeted.push(session));
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
      hellos.shift()?.(given(session));
      await settled();
    },
    answer: async (answer: object | Error) => {
      requests.shift()?.settle(answer);
      await settled();
    },
  };
}

t.test('a session is kept until it may be old, and shown until there is another', async (t) => {
  const { loop, hellos, greeted, greet } = startLoop(t);
  t.equal(loop.current(), undefined);
  await greet(5);
  t.same([loop.current(), hellos.length], [5, 0]);
  loop.renew();
  await settled();
  t.same([loop.current(), hellos.length], [5, 1], 'reports carry the old one meanwhile');
  loop.renew();
  await settled();
  t.equal(hellos.length, 1, 'one question at a time');
  await greet(6);
  t.same([loop.current(), greeted, hellos.length], [6, [5, 6], 0]);
});

t.test('a check is an empty report to the partition of the host', async (t) => {
  const { loop, requests, greet } = startLoop(t);
  await loop.check(partitions);
  t.equal(requests.length, 0, 'without a session there is nothing to check');
  await greet(5);
  await loop.check(null);
  t.equal(requests.length, 0, 'before the number of partitions is known, neither');
  void loop.check(partitions);
  t.match(requests, [{ report: { session: 5, partition: partitionOf(sender.host, partitions), items: [] } }]);
});

t.test('only the answer that the session is stale asks for another', async (t) => {
  const { loop, hellos, greet, answer } = startLoop(t);
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
  const { loop, hellos, requests, greet, answer } = startLoop(t);
  await greet(5);
  void loop.check(partitions);
  loop.renew();
  await settled();
  void loop.check(partitions);
  await greet(6);
  await answer(stale);
  await answer(stale);
  t.same([hellos.length, requests.length, loop.current()], [0, 0, 6]);
  void loop.check(partitions);
  await answer(stale);
  t.equal(hellos.length, 1, 'one about this session does');
});

t.test('it ends with its signal: while it waits, and while it asks', async (t) => {
  const waiting = startLoop(t);
  await waiting.greet(5);
  waiting.end();
  await waiting.running;
  t.equal(waiting.hellos.length, 0);
  const asking = startLoop(t);
  asking.end();
  asking.hellos.shift()?.(new Error('timeout'));
  await asking.running;
  t.same(asking.greeted, []);
});
