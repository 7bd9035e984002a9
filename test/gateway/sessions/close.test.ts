import t from 'tap';
import { closeOf, refusalOf, closeReasonBytes } from '../../../gateway/sessions/close.ts';
import { sessionReasons, type SessionReason } from '../../../schemas/wire/session.ts';

t.test('every reason has a code that RFC 6455 permits a server', (t) => {
  for (const reason of sessionReasons) {
    const { code } = closeOf({ reason });
    t.ok([1000, 1001, 1008, 1009, 1011].includes(code) || (code >= 4000 && code < 5000), `${reason}: ${code}`);
  }
  t.end();
});

t.test('the reason is a word and then words, as many as a frame holds', (t) => {
  t.equal(closeOf({ reason: 'done' }).reason, 'done');
  t.equal(closeOf({ reason: 'lost', message: 'gone' }).reason, 'lost: gone');
  for (const message of ['x'.repeat(500), 'é'.repeat(100), '🚢'.repeat(60)]) {
    const { reason } = closeOf({ reason: 'failed', message });
    t.ok(Buffer.byteLength(reason) <= closeReasonBytes);
    t.ok(Buffer.byteLength(reason) > closeReasonBytes - 4);
  }
  t.end();
});

t.test('before it is open, a reason is an answer over HTTP', (t) => {
  const rows: [SessionReason, string][] = [
    ['not_running', 'conflict'],
    ['refused', 'conflict'],
    ['unsupported', 'conflict'],
    ['too_many', 'rate_limited'],
    ['unauthenticated', 'unauthenticated'],
    ['lost', 'unavailable'],
    ['stopping', 'unavailable'],
    ['failed', 'unavailable'],
  ];
  for (const [reason, code] of rows) t.equal(refusalOf({ reason, message: 'why' }).code, code, reason);
  t.match(refusalOf({ reason: 'not_running', message: 'why' }).body, /"message":"why"/);
  t.end();
});
