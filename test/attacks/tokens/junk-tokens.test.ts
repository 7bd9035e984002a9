/**
 * A client behind the same proxy as the tenants sends junk in place of tokens. Tenants with a token
 * must still be admitted: refusals that cost nothing are not limited, and wrong signatures use up
 * only the budget of their key.
 */
import t, { type Test } from 'tap';
import { newToken } from '../../../gateway/auth/random-tokens.ts';
import type { TokenScope } from '../../../schemas/api/peer.ts';
import { limits } from '../../../schemas/limits.ts';
import { memoryOwner, okData, recordingLog, refusal, serveOwner, stoppableClock } from '../../gateway/support.ts';
import { runGateway, startGround, type Environment } from '../../integration/gateway/support.ts';
import { createKey, type TestAlgorithm } from '../../gateway/tokens.ts';

const compute = '/api/v2/compute';
const pac = '/api/forage/pac';
const ground = await startGround(t);
/** The valid URL tokens, by hash; and the hashes that the owner was asked about. */
const good = new Map<string, TokenScope>();
let resolved: string[] = [];
const owner = memoryOwner();
serveOwner(ground.nc, (ask) => {
  // The gateway's own ask, which checks whether owners answer.
  if (ask.type !== 'token.resolve' || ask.hash === '') return owner(ask);
  resolved.push(ask.hash);
  const scope = good.get(ask.hash);
  const peer = '01980000-0000-7000-8000-000000000001';
  return scope === undefined ? refusal('unauthenticated') : okData({ tenant: 'acme', peer, scope });
});
const { issuer } = ground;

const statusOf = async (url: string, headers: Record<string, string> = {}): Promise<number> => {
  const response = await fetch(url, { headers });
  await response.text();
  return response.status;
};
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

const burst = 3;
/** A gateway whose clock stands still once it is ready: budgets of failures are not refilled. */
async function start(t: Test, more: Environment = {}) {
  const clock = stoppableClock();
  const log = recordingLog();
  const env = { RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '1', RATE_LIMIT_AUTH_FAILURES_BURST: String(burst), ...more };
  const { url } = await runGateway(t, ground, { env, log, clock });
  t.teardown(() => clock.goOn());
  clock.stop();
  return { url, log };
}

/** Sends as many requests as the budget has, and one more. */
const spend = async (ask: () => Promise<number>): Promise<number[]> => {
  const statuses: number[] = [];
  while (statuses.length <= burst) statuses.push(await ask());
  return statuses;
};
const spent = [...Array<number>(burst).fill(401), 429];

t.test('tokens that can be refused without a key never lock their address out', async (t) => {
  const { url } = await start(t);
  const unknownKey = await createKey('EdDSA', 'nobody-published-this');
  const junk: readonly (readonly [what: string, token: string])[] = [
    ['no token at all', 'x'],
    ['three parts of nothing', 'a.b.c'],
    ['unsigned', issuer.unsecured()],
    ['another issuer', await issuer.mint({ iss: 'https://other.test' })],
    ['another audience', await issuer.mint({ aud: 'other' })],
    ['expired', await issuer.mint({ exp: 1 })],
    ['an unknown key', await issuer.mint({}, { key: unknownKey })],
  ];
  for (const [what, token] of junk) {
    const statuses = new Set<number>();
    for (let n = 0; n < 8; n++) statuses.add(await statusOf(`${url}${compute}`, bearer(token)));
    t.same([...statuses], [401], what);
  }
  t.equal(await statusOf(`${url}${compute}`, bearer(await issuer.mint())), 200, 'a token seen for the first time');
});

t.test('wrong signatures use up the budget of their key and address only', async (t) => {
  const { url, log } = await start(t, { TRUSTED_PROXIES: '192.0.2.0/24' });
  const known = await issuer.mint();
  t.equal(await statusOf(`${url}${compute}`, bearer(known)), 200);
  const forged = (algorithm: TestAlgorithm): Promise<string> =>
    createKey(algorithm, issuer.keys[algorithm].kid).then((key) => issuer.mint({}, { key }));
  const bad = await forged('EdDSA');
  const statuses = await spend(() => statusOf(`${url}${compute}`, bearer(bad)));
  t.same(statuses, spent, 'signatures are not verified without end');

  t.equal(await statusOf(`${url}${compute}`, bearer(known)), 200, 'a token that was verified before');
  const otherKey = await issuer.mint({}, { key: issuer.keys.ES256 });
  t.equal(await statusOf(`${url}${compute}`, bearer(otherKey)), 200, 'a new token of another key');
  t.equal(await statusOf(`${url}${pac}?token=${newToken('pac', 0).text}`), 401, 'tokens in a URL');
  t.equal(await statusOf(`${url}/api/forage/crl/default`), 503, 'public routes');

  const spoofed = { ...bearer(bad), 'x-forwarded-for': '198.51.100.7' };
  t.equal(await statusOf(`${url}${compute}`, spoofed), 429, 'a client’s own header does not make it another client');
  const warnings = log.events.filter(({ event }) => event === 'forwarded_for_untrusted');
  t.match(warnings, [{ fields: { address: '127.0.0.1' } }]);
  t.equal(warnings.length, 1, `said once in ${limits.forwardedWarnMs} ms`);
});

t.test('a text in a URL that cannot be a token is refused without an ask', async (t) => {
  const { url } = await start(t);
  const { text } = newToken('pac', 0);
  const junk: readonly (readonly [what: string, token: string])[] = [
    ['a word', 'junk'],
    ['too short', text.slice(0, -1)],
    ['too long', `${text}x`],
    ['of a partition that does not exist', newToken('pac', ground.partitions).text],
    ['for other files', newToken('download', 0).text],
    ['half a URL', 'x'.repeat(limits.urlBytes / 2)],
  ];
  resolved = [];
  for (const [what, token] of junk) {
    const statuses = new Set<number>();
    for (let n = 0; n < 8; n++) statuses.add(await statusOf(`${url}${pac}?token=${token}`));
    t.same([...statuses], [401], what);
  }
  t.same(resolved, [], 'the owner got no ask');
  t.same(await spend(() => statusOf(`${url}${pac}?token=${newToken('pac', 0).text}`)), spent, 'guesses are limited');
  t.equal(resolved.length, burst);
  t.equal(await statusOf(`${url}${pac}?token=junk`), 401);
});

t.test('a URL token that was valid before uses a budget of its own', async (t) => {
  const { url } = await start(t);
  const [dead, alive] = [newToken('pac', 0), newToken('pac', 0)];
  for (const { hash } of [dead, alive]) good.set(hash, 'pac');
  const ask = ({ text }: { readonly text: string }): Promise<number> => statusOf(`${url}${pac}?token=${text}`);
  const granted = await ask(alive);
  t.notOk([401, 429].includes(granted), `${granted}`);
  t.equal(await ask(dead), granted);

  good.delete(dead.hash);
  t.same(await spend(() => ask(dead)), spent, 'a phone that keeps using a token that has ended');
  t.same(await spend(() => ask(newToken('pac', 0))), spent, 'guesses still have their whole budget');
  t.equal(await ask(alive), granted, 'guesses do not affect a token that was valid before');
});
