/**
 * A stranger begins a sign-in of a command line, and sends its link to somebody else (RFC 8628
 * section 5.4). The page says who asks and from where; the session has no scope of the operator,
 * is short and is named in the audit; and an operator can switch this way off.
 */
import t from 'tap';
import { claimsOf, rules, startSignIn, twinIn } from './support.ts';
import { cookieName } from '../../../gateway/auth/credentials.ts';

const world = await startSignIn(t);
const { provider, log, send, start, statusOf, ground, gateway } = world;
const [stranger, victim] = ['203.0.113.66', '198.51.100.7'];

interface Begun {
  readonly handle: string;
  readonly verification_uri_complete: string;
}

async function attack(at = gateway) {
  const { text } = await send('/api/v2/sign-in/device', { body: {}, address: stranger, at });
  const begun = (JSON.parse(text) as { data: Begun }).data;
  const poll = async (tenant?: string): Promise<Record<string, unknown> & { token: string }> => {
    const body = { handle: begun.handle, ...(tenant === undefined ? {} : { tenant }) };
    const answer = await send('/api/v2/sign-in/device/token', { body, address: stranger, at });
    const said = JSON.parse(answer.text) as Record<string, unknown> & { data?: Record<string, unknown> };
    return { token: '', ...said, ...said.data };
  };
  return {
    path: new URL(begun.verification_uri_complete).pathname + new URL(begun.verification_uri_complete).search,
    poll,
  };
}

const confirm = (sub: string, ...groups: string[]): void => {
  provider.mistakes = { claims: { sub, groups } };
  provider.isConfirmed = true;
};
t.afterEach(() => void (provider.isConfirmed = false));

t.test('the link leads to a page that says who asks, and from where', async (t) => {
  const { path, poll } = await attack();
  t.match(await poll(), { status: 'pending' });
  const { text, status } = await send(path, { address: victim });
  t.equal(status, 200);
  t.match(text, /at the address <b>203\.0\.113\.66<\/b> asked to sign in less than a minute ago/);
  t.match(text, /This browser is at another address: <b>198\.51\.100\.7<\/b>/);
  t.match(text, /code <b>WDJB-MJHT<\/b>/);
  t.match(text, `href="${provider.issuer}/go?code=WDJB-MJHT"`);
  t.match((await send(path, { address: stranger })).text, /That is the address of this browser, too/);
  t.match(await send(`${path}A`), { status: 400, text: /too old, or not whole/ });
});

t.test('the session has no scope of the operator, and is short', async (t) => {
  confirm('olga', 'platform');
  const { poll } = await attack();
  t.match(await poll(), { error: 'forbidden', message: /not open to a command line/ });

  confirm('olga', 'platform', 'acme');
  const { token, tenant } = await (await attack()).poll();
  t.equal(tenant, 'acme');
  const { scope, iat = 0, exp = 0 } = claimsOf(token);
  t.equal(scope, 'read admin');
  t.equal(exp - iat, 4 * 3600);
  t.equal(await statusOf({ token }), 200);
  t.equal((await send('/api/v2/operator/hosts', { token })).status, 403);
});

t.test('a rule may say otherwise, either way', async (t) => {
  const [acme, beta, platform] = rules;
  const at = await start([acme, { ...beta, device: false }, { ...platform, device: true }]);
  confirm('olga', 'platform', 'beta');
  const { token } = await (await attack(at)).poll();
  t.equal(claimsOf(token)['scope'], 'operator');
});

t.test('the token opens nothing in a cookie, so nobody can plant it in a browser', async (t) => {
  confirm('mallory', 'acme');
  const { token } = await (await attack()).poll();
  t.equal(await statusOf({ token }), 200);
  t.equal(await statusOf({ cookie: `${cookieName}=${token}` }), 401);
});

t.test('audit and log say that it was a command line, and who began it', async (t) => {
  confirm('alice', 'acme');
  const { jti } = claimsOf((await (await attack()).poll()).token);
  const browser = await world.signIn('alice', 'acme');
  t.not(twinIn(browser), '');
  const { text } = await send('/api/v2/audit?action=sign_in&subject=alice', { token: await ground.issuer.mint() });
  const { data } = JSON.parse(text) as { data: { by: { token: string }; target: Record<string, string> }[] };
  t.same(data.find(({ by }) => by.token === jti)?.target, { by: 'device', from: stranger });
  t.same(data.find(({ by }) => by.token !== jti)?.target, { by: 'browser' });
  const told = log.events.filter(({ event }) => event === 'signed_in').map(({ fields }) => fields);
  t.match(
    told.find(({ token }) => token === jti),
    { by: 'device', from: stranger, subject: 'alice' },
  );
});

t.test('it can be switched off', async (t) => {
  const at = await start(rules, { SIGN_IN_DEVICE: 'off' });
  const { path } = await attack();
  const off = { status: 404, text: /command lines do not sign in at this server/i };
  t.match(await send('/api/v2/sign-in/device', { body: {}, at }), off);
  t.match(await send('/api/v2/sign-in/device/token', { body: { handle: 'x' }, at }), off);
  t.match(await send(path, { at }), off);
  t.equal((await send('/login', { at })).status, 303);
});
