import t from 'tap';
import { createUnseal, type UnsealParts } from '../../../host-agent/link/unseal.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { UnsealAnswer } from '../../../schemas/wire/unseal.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { quietLog } from '../../actors/support.ts';
import { id, tenant } from '../support/decisions.ts';

const who = { tenant, id };
const what = { secret: { name: 'db', version: 3 } };
const key = `X${'A'.repeat(55)}`;

/** Asks of a control plane that answers as the test says; an Error: it does not. */
function asking(answer: () => UnsealAnswer | Error | object, parts: Partial<UnsealParts> = {}) {
  const asked: { subject: string; ask: unknown; ms: number }[] = [];
  const results: string[] = [];
  let nowMs = 0;
  const unseal = createUnseal({
    key,
    sender: { host: 'h1' as HostKey, user: 'U1' },
    prove: ({ id: of }) => ({ atMs: 1, jwt: 'a.b.c', signature: `of ${of}` }),
    request: (subject, payload, ms) => {
      asked.push({ subject, ask: JSON.parse(payload), ms });
      const said = answer();
      return said instanceof Error
        ? Promise.reject(said)
        : Promise.resolve(Buffer.from(JSON.stringify({ ...protocolFields, ...said })));
    },
    backoff: { minMs: 100, maxMs: 1000 },
    steadyMs: () => nowMs,
    metrics: { unseal: (result) => void results.push(result) },
    log: quietLog,
    ...parts,
  });
  return { unseal, asked, results, pass: (ms: number) => (nowMs += ms) };
}

t.test('an ask names the container, what it needs and the key, has a proof and a deadline', async (t) => {
  const { unseal, asked, results } = asking(() => ({ ok: true, box: 'Ym94' }));
  t.same(await unseal({ ...who, ...what }), { kind: 'box', box: 'Ym94' });
  const proof = { atMs: 1, jwt: 'a.b.c', signature: `of ${id}` };
  const ask = { v: 1, ...who, ...what, key, proof };
  t.match(asked, [{ subject: 'agent.h1.U1.unseal', ask, ms: limits.unsealTimeoutMs }]);
  await unseal({ ...who, registry: 'r.example' });
  t.match(asked[1]?.ask, { registry: 'r.example' });
  t.same(results, ['answered', 'answered']);
});

t.test('answers', async (t) => {
  for (const [answer, expected] of [
    [
      { ok: true, box: null },
      { kind: 'box', box: null },
    ],
    [
      { ok: false, error: 'refused', message: 'not here' },
      { kind: 'refused', message: 'not here' },
    ],
    [
      { ok: false, error: 'invalid' },
      { kind: 'refused', message: /invalid/ },
    ],
    [
      { ok: false, error: 'unavailable' },
      { kind: 'unavailable', message: /unavailable/ },
    ],
    [{ ok: true, box: 'no base64url!' }, { kind: 'unavailable' }],
    [{ ok: 'yes' }, { kind: 'unavailable' }],
    [new Error('no responders'), { kind: 'unavailable', message: /does not answer/ }],
  ] as const) {
    t.match(await asking(() => answer).unseal({ ...who, ...what }), expected, JSON.stringify(answer));
  }
});

t.test('after an ask without an answer all rest, longer each time, until one is answered', async (t) => {
  let isAway = true;
  const { unseal, asked, pass } = asking(() => (isAway ? new Error('timeout') : { ok: true, box: null }));
  const ask = () => unseal({ ...who, ...what });
  await ask();
  t.match(await ask(), { kind: 'unavailable' });
  t.equal(asked.length, 1, 'it rests');
  pass(100);
  await ask();
  pass(100);
  await ask();
  t.equal(asked.length, 2, 'for twice as long');
  pass(100);
  isAway = false;
  t.match(await ask(), { kind: 'box' });
  isAway = true;
  await ask();
  pass(100);
  await ask();
  t.equal(asked.length, 5, 'an answer ends the count');
});

t.test('so many are under way at a time', async (t) => {
  const waiting: (() => void)[] = [];
  let most = 0;
  const { unseal } = asking(() => ({}), {
    request: () =>
      new Promise((resolve) => {
        waiting.push(() => resolve(Buffer.from(JSON.stringify({ ...protocolFields, ok: true, box: null }))));
        most = Math.max(most, waiting.length);
      }),
  });
  const all = Promise.all(Array.from({ length: 3 * limits.concurrentUnseals }, () => unseal({ ...who, ...what })));
  let isOver = false;
  void all.then(() => (isOver = true));
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    waiting.shift()?.();
  }
  t.equal(most, limits.concurrentUnseals);
});
