import t, { type Test } from 'tap';
import { hello, type HelloParts } from '../../../host-agent/control-plane/session.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { HelloAnswer } from '../../../schemas/wire/host.ts';
import { spoken } from '../../../schemas/wire/version.ts';
import { quietLog } from '../../actors/support.ts';

const given = (session: number, more: Partial<Extract<HelloAnswer, { ok: true }>> = {}): HelloAnswer => ({
  ok: true,
  cluster: 'c1',
  partitions: 4,
  session,
  orphan_word: 0,
  ...more,
});
const refused = (error: Extract<HelloAnswer, { ok: false }>['error']): HelloAnswer => ({ ok: false, error });

/** `answers`: one after another; an error is a request without an answer. */
function start(t: Test, answers: readonly (HelloAnswer | Error)[], highest = 0) {
  const did: string[] = [];
  const left = [...answers];
  const parts: HelloParts = {
    sender: { host: 'h1' as HostKey, user: 'UKEY' },
    cluster: 'c1',
    version: '0.0.0',
    capacity: () => ({ cpu_millis: 1, mem_bytes: 1, containers: 1 }),
    stopsAfterMs: () => null,
    onFenced: () => void did.push('fenced'),
    onSuperseded: (isSuperseded) => void did.push(isSuperseded ? 'superseded' : 'alone'),
    sessions: { highest: () => highest, used: (session) => void did.push(`used ${session}`), flush: async () => {} },
    credentials: { renewKey: () => undefined, renewed: (jwt) => did.push(`renewed ${jwt}`) === 0 },
    held: () => undefined,
    request: () => {
      const next = left.shift() ?? new Error('nothing is left to answer');
      return next instanceof Error
        ? Promise.reject(next)
        : Promise.resolve(Buffer.from(JSON.stringify({ ...spoken, ...next })));
    },
    backoff: { minMs: 1, maxMs: 1 },
    log: quietLog,
  };
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  return { parts, did, signal: ending.signal };
}

t.test('a hello is repeated until it gets a session above every earlier one', async (t) => {
  const { parts, did, signal } = start(t, [new Error('timeout'), given(6), given(7), given(8)], 7);
  t.match(await hello(parts, signal), { session: 8 });
  t.same(did, ['used 8', 'alone']);
});

t.test('a session of another cluster does not count', async (t) => {
  const { parts, signal } = start(t, [given(9, { cluster: 'c2' }), given(1)]);
  t.match(await hello(parts, signal), { cluster: 'c1', session: 1 });
});

t.test('refusals are passed on, and the agent asks again', async (t) => {
  const answers = [refused('fenced'), refused('unknown_host'), refused('superseded'), given(1)];
  const { parts, did, signal } = start(t, answers);
  t.match(await hello(parts, signal), { session: 1 });
  t.same(did, ['fenced', 'superseded', 'used 1', 'alone']);
});

t.test('credentials that come with a session are kept', async (t) => {
  const { parts, did, signal } = start(t, [given(1, { jwt: 'new' })]);
  await hello(parts, signal);
  t.same(did, ['used 1', 'alone', 'renewed new']);
});

t.test('a hello ends without a session when the agent stops', async (t) => {
  const { parts } = start(t, []);
  t.equal(await hello(parts, AbortSignal.abort()), undefined);
});
