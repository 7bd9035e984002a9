import t from 'tap';
import { authorOf, causeOf } from '../../../gateway/audit/cause.ts';
import type { Identity } from '../../../gateway/auth/claims.ts';
import { limits } from '../../../schemas/limits.ts';
import { detailOf } from '../../../schemas/wire/audit.ts';
import { hasControls } from '../../../schemas/visible.ts';

const order = 'x\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u202e';

t.test('no line of the audit has a character that a terminal obeys', (t) => {
  const identity = { tenant: null, subject: order, tokenName: order } as unknown as Identity;
  const cause = causeOf('login.delete', { registry: order }, identity, order);
  t.notOk(hasControls(JSON.parse(JSON.stringify(Object.values({ ...cause.by, ...cause.target }).join(''))) as string));
  t.equal(cause.target['registry'], String.raw`x\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u202e`, 'and shows what was sent');
  const { subject } = authorOf({ ...identity, subject: '\u001b'.repeat(1000) }, '');
  t.equal(subject?.length, limits.auditTextChars);
  t.same(detailOf('invalid', JSON.stringify({ details: { ['a\u009b']: [] } })), { fields: [String.raw`a\u009b`] });
  t.end();
});
