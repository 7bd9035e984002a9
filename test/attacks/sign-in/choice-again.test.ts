/**
 * Somebody has a copy of what a person in several tenants holds while choosing one: the cookie, or
 * the handle of a command line. It makes one session at one gateway, and none after the operator
 * has revoked the person.
 */
import t from 'tap';
import { sleep } from '../../../lib/time/backoff.ts';
import { cookiesOf, claimsOf, startSignIn, tokenIn } from './support.ts';

const { gateway, start, send, signIn, operator, statusOf, provider } = await startSignIn(t);
const other = await start();

const choose = (tenant: string, cookie: string, at = gateway) =>
  send(`/login/tenants/${tenant}`, { method: 'POST', cookie, at });
const revoke = async (sub: string): Promise<number> =>
  (await send('/api/v2/operator/tenants/acme/revocations', { token: await operator(), body: { sub } })).status;
const chosenAlready = /was chosen at this sign-in already/;

t.test('a choice makes one session, at whichever gateway', async (t) => {
  const cookie = cookiesOf(await signIn('bob', 'acme', 'beta'));
  const first = await choose('acme', cookie);
  t.equal(first.status, 303);
  t.equal(await statusOf({ cookie: cookiesOf(first) }), 200);
  for (const at of [gateway, other]) {
    for (const tenant of ['acme', 'beta']) {
      const again = await choose(tenant, cookie, at);
      t.match(again, { status: 409, text: chosenAlready }, tenant);
      t.equal(tokenIn(again), '');
    }
  }
  const both = cookiesOf(await signIn('bob', 'acme', 'beta'));
  const seen = await Promise.all([gateway, other, gateway, other].map((at) => choose('beta', both, at)));
  t.same(seen.map(({ status }) => status).sort(), [303, 409, 409, 409], 'of several at one time, one signs in');
});

t.test('a revocation that came after the sign-in meets its choice', async (t) => {
  const before = cookiesOf(await signIn('eve', 'acme', 'beta'));
  t.equal(await revoke('eve'), 201);
  const refused = await choose('acme', before);
  t.match(refused, { status: 403, text: /revoked after this sign-in/ });
  t.equal(tokenIn(refused), '');
  // Tokens of the second of the revocation are refused.
  await sleep(1100);
  const later = await choose('acme', cookiesOf(await signIn('eve', 'acme', 'beta')));
  t.equal(await statusOf({ cookie: cookiesOf(later) }), 200, 'a later sign-in');
});

t.test('a session of a choice is as old as the sign-in', async (t) => {
  const cookie = cookiesOf(await signIn('carol', 'acme', 'beta'));
  await sleep(2100);
  const { iat = 0, exp = 0 } = claimsOf(tokenIn(await choose('acme', cookie)));
  t.ok(iat <= Date.now() / 1000 - 2);
  t.equal(exp - iat, 12 * 3600);
});

t.test('the same for a command line', async (t) => {
  provider.mistakes = { claims: { sub: 'dave', groups: ['acme', 'beta'] } };
  provider.isConfirmed = true;
  const ask = async (body: object): Promise<Record<string, unknown> & { handle: string }> => {
    const { text } = await send('/api/v2/sign-in/device/token', { body });
    const answer = JSON.parse(text) as Record<string, unknown> & { data?: Record<string, unknown> };
    return { handle: '', ...answer, ...answer.data };
  };
  const begun = JSON.parse((await send('/api/v2/sign-in/device', { body: {} })).text) as { data: { handle: string } };
  const { handle, status, tenants } = await ask({ handle: begun.data.handle });
  t.same([status, tenants], ['choose', ['acme', 'beta']]);
  t.match(
    await choose('acme', `__Host-longshore_sign_in=${handle}`),
    { status: 400 },
    'a browser can’t use its handle',
  );
  t.match(await ask({ handle, tenant: 'acme' }), { status: 'done', tenant: 'acme' });
  t.match(await ask({ handle, tenant: 'acme' }), { error: 'conflict', message: chosenAlready });
  t.match(await ask({ handle, tenant: 'beta' }), { error: 'conflict', message: chosenAlready });
  const cookie = cookiesOf(await signIn('dave', 'acme', 'beta')).replace(/^[^=]*=/, '');
  t.match(await ask({ handle: cookie, tenant: 'acme' }), { status: 'expired' }, 'nor it a cookie');
});
