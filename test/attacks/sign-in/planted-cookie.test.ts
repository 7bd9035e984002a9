/**
 * An attacker controls another host of the domain (evil.example.com beside longshore.example.com),
 * and sets a cookie for the whole domain, with a path, so that the browser sends it before ours:
 * the victim would work in the attacker's tenant, and put secrets there.
 */
import t from 'tap';
import { cookieName } from '../../../gateway/auth/credentials.ts';
import { startSignIn, tokenIn, twinIn } from './support.ts';

const { send, signIn, statusOf, ground } = await startSignIn(t);
const of = (token: string): string => `${cookieName}=${token}`;
const victim = await signIn('victim', 'acme');
const attacker = await signIn('attacker', 'beta');

/** The person for whom the gateway takes the sender of these cookies. */
async function whoIs(...cookies: string[]): Promise<string> {
  const { text } = await send('/login/session', { cookie: cookies.join('; ') });
  return /signed in as <b>(\w+)<\/b>/.exec(text)?.[1] ?? 'nobody';
}

t.test('beside a session of ours, a planted one does not count, wherever it stands', async (t) => {
  const own = [of(tokenIn(victim)), twinIn(victim)];
  t.equal(await whoIs(...own), 'victim');
  t.equal(await whoIs(of(tokenIn(attacker)), ...own), 'victim');
  t.equal(await whoIs(...own, of(tokenIn(attacker))), 'victim');
  const key = await ground.issuer.mint({ tenant_id: 'beta', sub: 'attacker' });
  t.equal(await whoIs(of(key), ...own), 'victim', 'nor does another token');
  t.equal(await whoIs(of(key), twinIn(victim)), 'nobody', 'also if the browser has lost ours');
});

t.test('a session counts only in the browser that signed in', async (t) => {
  t.equal(await whoIs(of(tokenIn(attacker))), 'nobody');
  t.equal(await statusOf({ cookie: of(tokenIn(attacker)) }), 401);
  t.equal(await statusOf({ token: tokenIn(attacker) }), 200, 'it is a good token');
});

t.test('of two tokens of which neither is ours, none counts', async (t) => {
  const [one, two] = await Promise.all([ground.issuer.mint(), ground.issuer.mint()]);
  t.equal(await statusOf({ cookie: of(one) }), 200, 'a token of an issuer, as ever');
  t.equal(await statusOf({ cookie: `${of(one)}; ${of(two)}` }), 401);
  t.equal(await statusOf({ cookie: `${of(one)}; ${of(one)}` }), 200);
});

t.test('sign-out removes both cookies', async (t) => {
  const { status, cookies } = await send('/logout', {
    method: 'POST',
    cookie: `${of(tokenIn(victim))}; ${twinIn(victim)}`,
  });
  t.equal(status, 303);
  t.same(
    cookies.map((cookie) => cookie.split('; Path')[0]),
    ['_dro_token=', '__Host-longshore_session=', '__Host-longshore_sign_in='],
  );
  t.ok(cookies.every((cookie) => /; Max-Age=0; HttpOnly; SameSite=Lax; Secure$/.test(cookie)));
  t.equal(await whoIs(of(tokenIn(victim)), twinIn(victim)), 'nobody');
});
