/**
 * A stranger behind the same proxy as the tenants sends tokens that are none. Who has a token must get in all the same:
 * what costs nothing to refuse is not limited, and wrong signatures use up a budget of their key alone.
 */
import t from 'tap';
import { limits } from '../../schemas/limits.ts';
import { memoryOwner, recordingLog, refusal, runGateway, serveOwner, startGround } from '../gateway/support.ts';
import { createKey, type TestAlgorithm } from '../gateway/tokens.ts';

const compute = '/api/v2/compute';
const ground = await startGround(t);
const owner = memoryOwner();
serveOwner(ground.nc, (ask) => (ask.type === 'token.resolve' ? refusal('unauthenticated') : owner(ask)));
const { issuer } = ground;
/** No more of them come back while the test runs. */
const env = { RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '1', RATE_LIMIT_AUTH_FAILURES_BURST: '3' };

const statusOf = async (url: string, headers: Record<string, string>): Promise<number> => {
  const response = await fetch(url, { headers });
  await response.text();
  return response.status;
};
const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

t.test('tokens that can be refused without a key never lock their address out', async (t) => {
  const { url } = await runGateway(t, ground, { env });
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

t.test('wrong signatures use up the budget of their key and their address, and no other', async (t) => {
  const log = recordingLog();
  const { url } = await runGateway(t, ground, { env: { ...env, TRUSTED_PROXIES: '192.0.2.0/24' }, log });
  const known = await issuer.mint();
  t.equal(await statusOf(`${url}${compute}`, bearer(known)), 200);
  const forged = (algorithm: TestAlgorithm): Promise<string> =>
    createKey(algorithm, issuer.keys[algorithm].kid).then((key) => issuer.mint({}, { key }));
  const bad = await forged('EdDSA');
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length < 60)
    statuses.push(await statusOf(`${url}${compute}`, bearer(bad)));
  t.equal(statuses.at(-1), 429, 'signatures are not verified without end');
  t.ok(statuses.slice(0, -1).every((status) => status === 401));

  t.equal(await statusOf(`${url}${compute}`, bearer(known)), 200, 'a token that was verified before');
  const otherKey = await issuer.mint({}, { key: issuer.keys.ES256 });
  t.equal(await statusOf(`${url}${compute}`, bearer(otherKey)), 200, 'a new token of another key');
  t.equal(await statusOf(`${url}/api/forage/pac?token=junk`, {}), 401, 'tokens in a URL');
  t.equal(await statusOf(`${url}/api/forage/crl/default`, {}), 503, 'what is public');

  const spoofed = { ...bearer(bad), 'x-forwarded-for': '198.51.100.7' };
  t.equal(await statusOf(`${url}${compute}`, spoofed), 429, 'a header of one’s own makes nobody another client');
  const warnings = log.events.filter(({ event }) => event === 'forwarded_for_untrusted');
  t.match(warnings, [{ fields: { address: '127.0.0.1' } }]);
  t.equal(warnings.length, 1, `said once in ${limits.forwardedWarnMs} ms`);
});
