/** Sign-ins that a gateway refuses: mistakes of the provider, and of people who return from it. */
import { randomBytes } from 'node:crypto';
import { writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { cookieName } from '../../../../gateway/auth/credentials.ts';
import { makeSignInLink } from '../../../../dev/demo/sign-in.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { limits } from '../../../../schemas/limits.ts';
import { memoryOwner, recordingLog, serveOwner } from '../../../gateway/support.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { runGateway, startGround } from '../support.ts';
import { startWrongProvider, type Mistakes } from './wrong-provider.ts';

const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const provider = await startWrongProvider(t);
const folder = temporaryFolder(t);
const rulesFile = join(folder, 'rules.json');
writeFileSync(
  rulesFile,
  JSON.stringify([
    { claim: 'groups', value: 'acme', tenant: 'acme', scopes: ['read'] },
    { claim: 'email', value: 'alice@example.com', tenant: 'acme', scopes: ['read'] },
  ]),
);
const links = join(folder, 'links');
mkdirSync(links);
const publicUrl = 'https://longshore.test';
const log = recordingLog();
const env = {
  VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  PUBLIC_URL: publicUrl,
  SIGN_IN_ISSUER: provider.issuer,
  SIGN_IN_CLIENT_ID: 'longshore',
  SIGN_IN_RULES_FILE: rulesFile,
  SIGN_IN_LINK_FOLDER: links,
  RATE_LIMIT_PUBLIC_PER_SECOND: '100000',
  RATE_LIMIT_PUBLIC_BURST: '100000',
};
let aheadMs = 0;
const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
const gateway = await runGateway(t, ground, { log, env, clock });

interface Seen {
  readonly status: number;
  readonly text: string;
  readonly location: string;
  readonly cookies: readonly string[];
}

async function get(path: string, cookie = '', method = 'GET', headers: Record<string, string> = {}): Promise<Seen> {
  const response = await fetch(gateway.url + path, { method, redirect: 'manual', headers: { cookie, ...headers } });
  const location = response.headers.get('location') ?? '';
  return { status: response.status, text: await response.text(), location, cookies: response.headers.getSetCookie() };
}

/** A sign-in as far as the provider. */
async function begin(query = '') {
  const { status, location, cookies } = await get(`/login${query}`);
  const asked = new URL(location, publicUrl).searchParams;
  provider.nonce = asked.get('nonce') ?? '';
  return { status, location, asked, cookie: cookies[0]?.split(';')[0] ?? '', whole: cookies[0] ?? '' };
}

const back = (state: string | null, more: Record<string, string> = {}): string =>
  `/login/callback?${new URLSearchParams({ code: 'c', iss: provider.issuer, ...(state === null ? {} : { state }), ...more }).toString()}`;

const tokenIn = ({ cookies }: Seen): string | undefined =>
  cookies.find((cookie) => cookie.startsWith(`${cookieName}=`));
const whyRefused = (): unknown => log.events.filter(({ event }) => event === 'sign_in_refused').at(-1)?.fields['why'];

t.test('without a mistake, a person signs in', async (t) => {
  const { location, asked, cookie, whole } = await begin('?return_to=/api/v2/openapi.json');
  t.ok(location.startsWith(`${provider.issuer}/authorize?`));
  t.match(Object.fromEntries(asked), { code_challenge_method: 'S256', redirect_uri: `${publicUrl}/login/callback` });
  t.match(whole, /^__Host-longshore_sign_in=.*; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/);
  const seen = await get(back(asked.get('state')), cookie);
  t.match(seen, { status: 303, location: '/api/v2/openapi.json' });
  t.match(tokenIn(seen), /; Path=\/; Max-Age=43[0-9]{3}; HttpOnly; SameSite=Lax; Secure$/);

  const again = await get(back(asked.get('state')), cookie);
  t.match(again, { status: 403, text: /used already/ }, 'a code counts once');
  t.equal(tokenIn(again), undefined);
});

const mistakes: Readonly<Record<string, Mistakes & { readonly why: RegExp }>> = {
  'another issuer in the ID token': { claims: { iss: 'https://evil.test' }, why: /unexpected JWT "iss"/ },
  'another audience': { claims: { aud: 'somebody-else' }, why: /unexpected JWT "aud"/ },
  'another nonce': { claims: { nonce: 'n' }, why: /unexpected ID Token "nonce"/ },
  'no nonce': { claims: { nonce: undefined }, why: /nonce/ },
  'an ID token that has ended': { claims: { exp: 1_000_000_000 }, why: /TIMESTAMP/ },
  'no subject': { claims: { sub: undefined }, why: /sub/ },
  'no signature': { signature: 'none', why: /alg/ },
  'the signature of another key': { signature: 'stranger', why: /signature/ },
  'no ID token': { answer: { status: 200, body: '{"access_token":"a","token_type":"Bearer"}' }, why: /id_token/ },
  'a claim of no rule': { claims: { groups: ['others'] }, why: /no tenant/ },
  'an address that is not verified': {
    claims: { groups: [], email: 'alice@example.com', email_verified: false },
    why: /no tenant/,
  },
  'a subject that no token can hold': { claims: { sub: 's'.repeat(300) }, why: /subject|sub/ },
};
for (const [name, { why, ...mistake }] of Object.entries(mistakes)) {
  t.test(`refused: ${name}`, async (t) => {
    t.teardown(() => (provider.mistakes = {}));
    const { asked, cookie } = await begin();
    provider.mistakes = mistake;
    const seen = await get(back(asked.get('state')), cookie);
    t.equal(seen.status, 403);
    t.match(seen.text, /<h1>That did not work<\/h1>/);
    t.equal(tokenIn(seen), undefined);
    t.match(String(whyRefused()), why);
  });
}

t.test('an address that the provider has verified counts', async (t) => {
  t.teardown(() => (provider.mistakes = {}));
  const { asked, cookie } = await begin();
  provider.mistakes = { claims: { groups: [], email: 'alice@example.com', email_verified: true } };
  t.equal((await get(back(asked.get('state')), cookie)).status, 303);
});

t.test('refused: what comes back in another way than it was begun', async (t) => {
  const other = await begin();
  const { asked, cookie } = await begin();
  const state = asked.get('state');
  t.match(await get(back(state)), { status: 400, text: /not begun in this browser/ }, 'without the cookie');
  t.match(await get(back(state), other.cookie), { status: 403 }, 'with the cookie of another browser');
  t.match(await get(back(state), `${cookie}A`), { status: 400 }, 'with a cookie that was changed');
  t.match(await get(back('s'), cookie), { status: 403 }, 'with another state');
  t.match(await get(back(null), cookie), { status: 403 }, 'without a state');
  t.match(await get(back(state, { iss: 'https://evil.test' }), cookie), { status: 403 }, 'from another issuer');
  const denied = await get(back(state, { error: 'access_denied' }), cookie);
  t.match(denied, { status: 403, text: /did not allow the sign-in/ });
  t.match(await get('/login/tenants', cookie), { status: 400 }, 'a cookie of another step');
});

t.test('a provider that errs or answers too much counts as away', async (t) => {
  t.teardown(() => (provider.mistakes = {}));
  for (const answer of [
    { status: 500, body: '{}' },
    { status: 200, body: `"${'x'.repeat(2_000_000)}"` },
    { status: 401, body: '{"error":"invalid_client"}' },
  ]) {
    const { asked, cookie } = await begin();
    provider.mistakes = { answer };
    t.match(await get(back(asked.get('state')), cookie), { status: 503, text: /does not answer/ });
    provider.mistakes = {};
    t.equal((await get(back(asked.get('state')), cookie)).status, 303, 'the same page, loaded again');
  }
});

t.test('refused: ways to another server after the sign-in', async (t) => {
  for (const path of ['https://evil.test/', '//evil.test', '/\\evil.test', '/\t/evil.test', '/.//evil.test', 'x']) {
    t.match(await get(`/login?return_to=${encodeURIComponent(path)}`), { status: 400, text: /path of this server/ });
  }
});

t.test('one-time links', async (t) => {
  const { pathname, search } = new URL(makeSignInLink(links, gateway.url, Date.now()));
  const seen = await Promise.all(Array.from({ length: 8 }, () => get(pathname + search)));
  t.same(
    seen.map(({ status }) => status).sort((one, other) => one - other),
    [303, ...Array.from({ length: 7 }, () => 404)],
    'one of those who come with it signs in',
  );
  const late = new URL(makeSignInLink(links, gateway.url, Date.now() - 2 * 3_600_000));
  t.match(await get(late.pathname + late.search), { status: 404, text: /too old/ });
  t.equal((await get('/login/once?code=../x')).status, 404);
  t.match(await get('/login/once'), { status: 422, text: /Code is required/ });
});

t.test('sign-out is refused to forms of other sites, and to keys', async (t) => {
  const token = `${cookieName}=${await ground.issuer.mint()}`;
  t.equal((await get('/logout', token, 'POST', { 'sec-fetch-site': 'cross-site' })).status, 403);
  t.equal((await get('/logout', token, 'POST', { origin: 'https://evil.test' })).status, 403);
  t.match(await get('/logout', token, 'POST'), { status: 409, text: /not of a sign-in/ });
  t.match(await get('/logout', '', 'POST'), { status: 303, location: `${publicUrl}/login/session` });
});

// The last one: the clock of the gateway stays ahead.
t.test('a session ends by itself', async (t) => {
  const { asked, cookie } = await begin();
  const { cookies } = await get(back(asked.get('state')), cookie);
  const session = cookies.map((one) => one.split(';')[0]).join('; ');
  const list = (): Promise<Seen> => get('/api/v2/compute', session);
  t.equal((await list()).status, 200);
  aheadMs = limits.sessionLifeMs - 60_000;
  t.equal((await list()).status, 200, 'up to its end');
  aheadMs = limits.sessionLifeMs + 60_000;
  t.equal((await list()).status, 401);
  t.match(await get('/login/session', session), { status: 200, text: /Sign in/ });
});
