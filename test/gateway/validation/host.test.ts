import { createUser } from '@nats-io/nkeys';
import t from 'tap';
import { validateEnrol } from '../../../gateway/validation/host.ts';

const publicKey = createUser().getPublicKey();
const joinToken = `lsj_host-1_${'a'.repeat(43)}`;

t.test('an enrolment is a join token and a public key', (t) => {
  const body = { join_token: joinToken, public_key: publicKey };
  t.same(validateEnrol(body), { ok: true, value: body });
  t.same(validateEnrol({}), {
    ok: false,
    faults: { join_token: ["can't be blank"], public_key: ["can't be blank"] },
  });
  const wrong = `${publicKey.slice(0, -1)}${publicKey.endsWith('A') ? 'B' : 'A'}`;
  t.match(validateEnrol({ ...body, public_key: wrong }), { faults: { public_key: [/checksum/] } });
  t.end();
});

t.test('the form of a wrong join token is not judged: it is refused as a token, not as a body', (t) => {
  for (const text of ['', 'x', `${joinToken}x`]) {
    t.ok(validateEnrol({ join_token: text, public_key: publicKey }).ok, text);
  }
  t.match(validateEnrol({ join_token: 7, public_key: publicKey }), { faults: { join_token: ['must be a string'] } });
  t.end();
});
