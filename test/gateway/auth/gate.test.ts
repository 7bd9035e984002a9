import t, { type Test } from 'tap';
import { createAccess } from '../../../gateway/access.ts';
import type { Knowledge } from '../../../gateway/auth/revocation-feed.ts';
import { issuersOf } from '../../../gateway/configuration/issuers.ts';
import { settings } from '../../../gateway/configuration/settings.ts';
import { ownTokens } from '../../../gateway/keys/signing-keys.ts';
import { createMeters } from '../../../gateway/metrics.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { readSettings } from '../../../lib/config.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { Registry } from 'prom-client';
import { headOf } from '../calls.ts';
import { quietLog, stoppableClock } from '../support.ts';
import { createIssuer, createKey, nowS } from '../tokens.ts';

async function gateOf(t: Test, more: Record<string, string> = {}) {
  const issuer = await createIssuer(temporaryFolder(t));
  const configuration = readSettings(settings, {
    AUTH_ISSUER: issuer.name,
    AUTH_AUDIENCE: issuer.audience,
    AUTH_JWKS_FILE: issuer.jwksFile,
    ...more,
  });
  const knowledge: { now: Knowledge; onLook?: () => void } = { now: 'known' };
  const clock = stoppableClock();
  clock.stop();
  const access = createAccess({
    configuration,
    issuers: issuersOf(configuration),
    ownIssuer: { ...ownTokens, keys: { find: () => Promise.resolve({ kind: 'unavailable' as const }) } },
    knowledgeOf: () => {
      knowledge.onLook?.();
      return knowledge.now;
    },
    clock,
    log: quietLog,
    meters: createMeters(new Registry()),
  });
  access.startKeys();
  t.teardown(() => access.stopKeys());
  const verdictOf = async (token: string, headers = {}, method = 'GET'): Promise<string> => {
    const head = headOf({ method, headers: { authorization: `Bearer ${token}`, ...headers } });
    const admission = await access.gate.admit(head);
    return admission.kind === 'refused' ? admission.result.code : admission.kind;
  };
  return { issuer, gate: access.gate, knowledge, revocations: access.revocations, verdictOf };
}

t.test('a valid token is admitted, a missing or wrong one is 401', async (t) => {
  const { issuer, gate, verdictOf } = await gateOf(t);
  t.equal(await verdictOf(await issuer.mint()), 'admitted');
  t.equal(await verdictOf(await issuer.mint({ exp: nowS() - 1 })), 'unauthenticated');
  t.match(await gate.admit(headOf()), { kind: 'refused', result: { code: 'unauthenticated' } });
});

t.test('a revocation that comes with the knowledge, after the verdict, refuses the token', async (t) => {
  const { issuer, knowledge, revocations, verdictOf } = await gateOf(t);
  knowledge.onLook = () =>
    void revocations.add(
      { tenant: 'acme' as TenantId, match: { by: 'tenant' }, issuedUntilS: 10 ** 10, untilMs: 10 ** 13 },
      0,
    );
  const token = await issuer.mint();
  t.equal(await verdictOf(token), 'unauthenticated');
  t.equal(await verdictOf(token), 'unauthenticated', 'and from then on');
});

t.test('while revocations are unknown a valid token is 503, a wrong one is 401', async (t) => {
  const { issuer, knowledge, verdictOf } = await gateOf(t);
  for (const now of ['unheard', 'damaged', 'too_many'] as const) {
    knowledge.now = now;
    t.equal(await verdictOf(await issuer.mint()), 'unavailable', now);
    t.equal(await verdictOf(issuer.unsecured()), 'unauthenticated', now);
  }
});

t.test('forged signatures use up the budget of their key; a token that was verified before gets in', async (t) => {
  const { issuer, verdictOf } = await gateOf(t, { RATE_LIMIT_AUTH_FAILURES_BURST: '2' });
  const known = await issuer.mint();
  t.equal(await verdictOf(known), 'admitted');
  const forger = await createKey('EdDSA', issuer.keys.EdDSA.kid);
  const verdicts = [];
  for (let n = 0; n < 3; n++) verdicts.push(await verdictOf(await issuer.mint({}, { key: forger })));
  t.same(verdicts, ['unauthenticated', 'unauthenticated', 'rate_limited']);
  t.equal(await verdictOf(known), 'admitted');
  t.equal(await verdictOf(await issuer.mint({}, { key: issuer.keys.ES256 })), 'admitted', 'another key');
});

t.test('a tenant over its rate is 429', async (t) => {
  const { issuer, verdictOf } = await gateOf(t, { RATE_LIMIT_TENANT_BURST: '1' });
  t.equal(await verdictOf(await issuer.mint()), 'admitted');
  t.equal(await verdictOf(await issuer.mint()), 'rate_limited');
  t.equal(await verdictOf(await issuer.mint({ tenant_id: 'other' })), 'admitted');
});

t.test('a cookie from another site is admitted as cross-site', async (t) => {
  const { issuer, gate } = await gateOf(t);
  const cookie = `_dro_token=${await issuer.mint()}`;
  const admit = (secFetchSite: string) => gate.admit(headOf({ method: 'POST', headers: { cookie, secFetchSite } }));
  t.match(await admit('cross-site'), { kind: 'admitted', crossSite: true });
  t.match(await admit('same-origin'), { kind: 'admitted', crossSite: false });
});
