import t from 'tap';
import { version } from '../../../lib/version.ts';
import {
  conflict,
  created,
  failure,
  invalid,
  missingScope,
  ok,
  rateLimited,
  replyOf,
  type Result,
} from '../../../gateway/http/respond.ts';

const headersOf = (result: Result): Record<string, string> => {
  const { headers } = replyOf(result, 'r');
  const pairs: Record<string, string> = {};
  for (let at = 0; at + 1 < headers.length; at += 2) pairs[headers[at] ?? ''] = headers[at + 1] ?? '';
  const { 'longshore-version': release, ...others } = pairs;
  if (release !== version) throw new Error('each answer names the release');
  return others;
};

t.test('a 401 says how to authenticate', (t) => {
  t.match(headersOf({ code: 'unauthenticated', body: '' }), { 'www-authenticate': 'Bearer realm="longshore"' });
  t.end();
});

t.test('an outcome becomes a status, a body and its headers', (t) => {
  const usual = { 'x-request-id': 'r', 'cache-control': 'no-store', 'content-type': 'application/json' };
  t.match(replyOf(ok({ a: 1 }), 'r'), { status: 200, body: '{"data":{"a":1}}' });
  t.match(replyOf(created([]), 'r'), { status: 201, body: '{"data":[]}' });
  t.same(headersOf(ok(1)), usual);
  t.match(replyOf({ code: 'not_found', body: '' }, 'r'), { status: 404, body: '{"error":"not_found"}' });
  t.same(headersOf({ code: 'no_content', body: '' }), { 'x-request-id': 'r', 'cache-control': 'no-store' });
  const file = { code: 'ok', body: 'x', headers: ['content-type', 'text/plain', 'cache-control', 'private'] } as const;
  t.same(headersOf(file), { 'x-request-id': 'r', 'content-type': 'text/plain', 'cache-control': 'private' });
  t.end();
});

t.test('429 and 503 say when to try again', (t) => {
  t.equal(headersOf(failure('unavailable'))['retry-after'], '1');
  t.equal(headersOf(rateLimited(7))['retry-after'], '7');
  const body = '{"error":"unavailable","retry_after_seconds":30}';
  t.equal(headersOf({ code: 'unavailable', body })['retry-after'], '30');
  t.equal(headersOf(conflict('exists', 'x'))['retry-after'], undefined);
  t.end();
});

t.test('an error has its code, and a message, a reason, details or a scope', (t) => {
  const bodies = [
    failure('not_found'),
    conflict('exists', 'taken'),
    conflict('too_many', 'delete one first', { max: 2 }),
    invalid({ name: ['is bad'] }),
    missingScope('operator'),
  ];
  t.same(
    bodies.map(({ body }) => JSON.parse(body)),
    [
      { error: 'not_found' },
      { error: 'conflict', reason: 'exists', message: 'taken' },
      { error: 'conflict', reason: 'too_many', message: 'delete one first', detail: { max: 2 } },
      { error: 'invalid', details: { name: ['is bad'] } },
      { error: 'forbidden', detail: { scope: 'operator' } },
    ],
  );
  t.end();
});
