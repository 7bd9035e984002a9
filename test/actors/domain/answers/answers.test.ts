/** Answers that are kept for requests with an `Idempotency-Key`. */
import t from 'tap';
import type { KeyId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { AnswerRecord, Once } from '../../../../schemas/records/kept-answer.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { expiredAnswers } from '../../../../actors/domain/answers/answers.ts';
import { acme, container } from '../../support/records.ts';
import { bodyOf, sealedAs, secretWorld } from '../../support/secrets.ts';

const cause = {
  by: { tenant: acme, subject: 'alice', token: 't', address: '192.0.2.1' },
  action: 'key.create',
  target: {},
};
const id = '01890000-0000-7000-8000-000000000001' as KeyId;
const kept = (of = id as string): NonNullable<Once['secret']> => ({ by: 'alice', sealed: sealedAs('token'), of });
const of = { tenant: acme };

function world() {
  const web = container({ desired: 'stopped' });
  const made = secretWorld([web]);
  return {
    ...made,
    web,
    stop: (once?: Once, parts: object = { cause }) =>
      made.write({
        type: 'container.stop',
        ...of,
        id: web.id,
        ...parts,
        ...(once === undefined ? {} : { repeatable: once }),
      }).reply,
    key: (once: Once, name = 'ci') =>
      made.write({
        ...{ type: 'key.create', ...of, cause, repeatable: once },
        made: { id, name, scopes: ['read'], subject: 'alice', issuedAtS: 900, expiresAtS: 10_000 },
      }).reply,
    again: (key: string, request = 'r', by = 'alice') => made.read({ type: 'answer.get', ...of, key, request, by }),
    kept: (key: string): AnswerRecord | undefined => made.state.tenant(acme).answers.get(key),
  };
}

t.test('an answer is kept with its write, and given to the same request alone', (t) => {
  const { stop, again } = world();
  t.same(bodyOf(again('k')), { data: null }, 'before');
  t.equal(stop({ key: 'k', request: 'r' }).code, 'ok');
  t.match(bodyOf(again('k')), { data: { body: /"etag":.*"name":"/, sealed: null } });
  t.match(bodyOf(again('k', 'r', 'bob')), { data: { sealed: null } }, 'anybody of the tenant');
  t.match(again('k', 'other'), { code: 'invalid', body: /was used with a different body/ });
  t.match(stop({ key: 'k', request: 'r' }), { code: 'conflict', body: /key_used/ }, 'never twice');
  t.same(bodyOf(again('other')), { data: null });
  t.end();
});

t.test('writes that are a part of a request, and refusals, keep nothing', (t) => {
  const { stop, key, kept: found, again } = world();
  stop({ key: 'part', request: 'r' }, {});
  t.equal(found('part'), undefined);
  key({ key: 'first', request: 'r' });
  t.equal(key({ key: 'second', request: 'r' }).code, 'invalid', 'the name is taken');
  t.same(bodyOf(again('second')), { data: null }, 'so the request may be sent again');
  t.end();
});

t.test('an answer with a secret is its maker’s, and ends with its resource', (t) => {
  const { key, again, write, kept: found } = world();
  key({ key: 'k', request: 'r', secret: kept() });
  t.match(bodyOf(again('k')), { data: { sealed: sealedAs('token') } });
  t.match(again('k', 'r', 'bob'), { code: 'conflict', body: /"reason":"key_used"/ });
  const revocation = { ...of, match: { by: 'jti', value: id }, issuedUntilS: 1, untilMs: 9e12 } as const;
  write({ type: 'key.remove', ...of, key: id, revocation });
  t.match(again('k'), { code: 'conflict', body: /no longer exists/ });
  t.equal(found('k')?.secret?.sealed, null, 'it is not stored any more');
  t.end();
});

t.test('a key of a create is no other request’s, and the other way round', (t) => {
  const made = container({ idempotency: { key: 'create', bodyHash: 'h', untilMs: 9e12 } }, 'made');
  const { write, read } = secretWorld([made]);
  const once = { key: 'create', request: 'r' };
  t.match(write({ type: 'container.stop', ...of, id: made.id, cause, repeatable: once }).reply, { code: 'invalid' });
  t.match(read({ type: 'answer.get', ...of, ...once, by: 'alice' }), { code: 'invalid' });
  t.end();
});

t.test('a tenant can’t fill the record: its bytes are bounded, and end after a day', (t) => {
  const { stop, state, kept: found } = world();
  let count = 0;
  while (stop({ key: `key-${count}`, request: 'r'.repeat(100_000) }).code === 'ok') count++;
  t.equal(count, Math.ceil(limits.keptAnswersBytesPerTenant / 100_343));
  t.match(stop({ key: 'more', request: 'r' }), { code: 'rate_limited', body: /Retry-After/ });
  t.equal(stop().code, 'ok', 'without a key');
  const { untilMs = 0 } = found('key-0') ?? {};
  t.same(expiredAnswers(state, untilMs - 1).deletes, []);
  t.same(expiredAnswers(state, untilMs).deletes, [keys.answer(acme, 'key-0')]);
  state.delete(keys.answer(acme, 'key-0'));
  t.equal(stop({ key: 'more', request: 'r' }).code, 'ok', 'there is room again');
  t.end();
});
