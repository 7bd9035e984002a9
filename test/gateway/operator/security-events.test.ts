import t from 'tap';
import { securityEventOf } from '../../../gateway/operator/security-events.ts';
import { errorStatus, type ErrorCode } from '../../../schemas/errors.ts';
import { callOf } from '../calls.ts';
import { peerId } from '../vpn/support.ts';

const params = { peer: peerId };
const rotate = callOf('peer.rotate', { params });
const ok = { code: 'ok', body: '' } as const;

t.test('successes and unknown outcomes are logged, refusals are not', (t) => {
  const done = { tenant: 'acme', peer: peerId, outcome: 'done', requestId: 'r' };
  t.same(securityEventOf(rotate, ok), { event: 'peer_rotated', fields: done });
  const unknown = { event: 'peer_rotated', fields: { ...done, outcome: 'unknown' } };
  for (const code of Object.keys(errorStatus) as ErrorCode[]) {
    const isUnknown = errorStatus[code] >= 500;
    t.same(securityEventOf(rotate, { code, body: '' }), isUnknown ? unknown : undefined, code);
  }
  t.equal(securityEventOf(rotate, 'streamed'), undefined);
  t.equal(securityEventOf(callOf('peer.get', { params }), ok), undefined, 'a read');
  t.end();
});

t.test('of a change of a peer only what decides whether it may connect', (t) => {
  const fieldsOf = (body: Parameters<typeof callOf<'peer.update'>>[1]) =>
    securityEventOf(callOf('peer.update', { params, ...body }), ok)?.fields;
  const same = { tenant: 'acme', peer: peerId, outcome: 'done', requestId: 'r' };
  t.same(fieldsOf({ body: { enabled: false, name: 'phone' } }), { ...same, enabled: false });
  t.same(fieldsOf({ body: { expiresAtMs: 0 } }), { ...same, expires_at: '1970-01-01T00:00:00.000Z' });
  t.same(fieldsOf({ body: { expiresAtMs: null } }), { ...same, expires_at: null }, 'it never expires now');
  t.equal(fieldsOf({ body: { name: 'phone' } }), undefined);
  t.end();
});

t.test('an enrolment names its host, and a text that is no join token names none', (t) => {
  const enrol = (join_token: string) =>
    securityEventOf(callOf('host.enrol', { identity: undefined, body: { join_token, public_key: 'U' } }), ok);
  t.match(enrol(`lsj_h1_${'s'.repeat(43)}`), { event: 'host_enrolled', fields: { host: 'h1' } });
  t.equal(enrol('rubbish'), undefined);
  t.end();
});
