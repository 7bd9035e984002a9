/** Requests that are sent again with their `Idempotency-Key`. */
import t from 'tap';
import type { Handler } from '../../../gateway/call.ts';
import type { AppRoute } from '../../../gateway/pipeline/app-route.ts';
import { keyIn, onlyOnce } from '../../../gateway/pipeline/once.ts';
import { conflict, created, invalid } from '../../../gateway/http/respond.ts';
import { Vault } from '../../../gateway/vault/vault.ts';
import type { Question } from '../../../lib/rpc/partition-client.ts';
import { callOf, exchangeOf } from '../calls.ts';

t.test('a key that cannot be one is refused', (t) => {
  const keyOf = (idempotencyKey: string) => keyIn({ exchange: exchangeOf({ headers: { idempotencyKey } }) });
  for (const key of ['', 'a b', 'ü', 'x'.repeat(256)]) t.match(keyOf(key), { code: 'invalid' }, key.slice(0, 5));
  t.equal(keyOf('x'.repeat(255)), 'x'.repeat(255));
  t.equal(keyIn({ exchange: exchangeOf() }), undefined);
  t.end();
});

const vault = (byte: number) => new Vault([{ id: `k${byte}`, key: Buffer.alloc(32, byte) }]);
const identity = {
  ...{ tenant: 'acme', subject: 'alice', scopes: [], tokenId: 't', tokenName: 't' },
  ...{ issuedAtS: 0, expiresAtS: 0 },
};
const view = { id: 'key-1', name: 'ci' };

/** An owner that keeps one answer, and a handler that shows a token once. */
function world(refusal = conflict('key_used', 'a request with this key was executed already')) {
  let kept: { readonly body: string; readonly sealed: string | null } | null = null;
  let made = 0;
  const asked: Question[] = [];
  const handler: Handler = (call) => {
    const token = `token-${++made}`;
    const { repeatable } = call.keep?.(view.id, { token }).origin ?? {};
    if (kept !== null) return refusal;
    kept = { body: JSON.stringify({ data: view }), sealed: repeatable?.secret?.sealed ?? null };
    return created({ ...view, token });
  };
  const route = { name: 'key.create', success: 'created', handler } as AppRoute;
  const send = (opener = vault(1), late = false) =>
    onlyOnce(route, callOf('key.create', { identity } as object), 'k', {
      ask: (_lane, question) => {
        asked.push(question);
        const answer = late && asked.length % 2 === 1 ? null : kept;
        return Promise.resolve({ code: 'ok', body: JSON.stringify({ data: answer }) });
      },
      vault: opener,
    });
  return { send, asked, made: () => made };
}

t.test('the answer of the first time is given again, with its secret', async (t) => {
  const { send, asked, made } = world();
  const first = await send();
  t.same(await send(), first);
  t.equal(made(), 1);
  t.match(asked[0], { type: 'answer.get', key: 'k', request: /^[\w-]{43}$/, by: /^[\w-]{43}$/ });
});

t.test('the second of two at one time gets the answer of the first', async (t) => {
  // A check before the write may find what the first has made.
  for (const refusal of [undefined, invalid({ name: ['has already been taken'] })]) {
    const { send, asked } = world(refusal);
    const first = await send();
    asked.length = 0;
    t.same(await send(vault(1), true), first);
    t.equal(asked.length, 2, 'it is looked up again');
  }
});

t.test('an answer sealed under a key that is gone is not given again', async (t) => {
  const { send } = world();
  await send();
  t.match(await send(vault(2)), { code: 'conflict', body: /"reason":"key_used"/ });
});
