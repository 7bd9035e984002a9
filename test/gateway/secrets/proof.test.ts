/** Proofs that the enrolled agent of a host asks for a value: every part of one counts. */
import { encodeUser } from '@nats-io/jwt';
import { createAccount, createCurve, createUser } from '@nats-io/nkeys';
import t from 'tap';
import { faultOfProof, type Proving } from '../../../gateway/secrets/proof.ts';
import { signHostJwt } from '../../../lib/nats/host-credentials.ts';
import { createProver, unsealText } from '../../../lib/nats/host-proof.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { UnprovedAsk } from '../../../schemas/wire/unseal.ts';

const nowMs = Date.now();
const [account, signing, foreign] = [createAccount(), createAccount(), createAccount()];
const host = 'h1' as HostKey;
const user = createUser();
const sender = { host, user: user.getPublicKey() };
const issuers: Proving['issuers'] = {
  has: (issuer, of) => of === account.getPublicKey() && issuer === signing.getPublicKey(),
};
const accountOf = (by = signing, publicKey = account.getPublicKey()) => ({
  publicKey,
  signingSeed: new TextDecoder().decode(by.getSeed()),
});
const expiresAtS = nowMs / 1000 + 3600;
const jwtOf = (more: object = {}, issuer = accountOf()): Promise<string> =>
  signHostJwt(issuer, { host, publicKey: sender.user, expiresAtS, ...more });
const jwt = await jwtOf();

const ask: UnprovedAsk = {
  v: 1,
  tenant: 'acme' as TenantId,
  id: 'c1' as ContainerId,
  key: createCurve().getPublicKey(),
  secret: { name: 'db', version: 1 },
};
const proofWith = (of: string, by = user, atMs = nowMs) =>
  createProver({ sender, seed: by.getSeed(), jwt: () => of, nowMs: () => atMs })(ask);
const faultOf = (more: Partial<Proving> = {}) =>
  faultOfProof({ sender, ask, proof: proofWith(jwt), issuers, nowMs, ...more });

t.test('the enrolled agent', (t) => {
  t.equal(faultOf(), undefined);
  const skewed = proofWith(jwt, user, nowMs + limits.unsealSkewMs);
  t.equal(faultOf({ proof: skewed }), undefined, 'with a clock that is nearly right');
  t.end();
});

const unsealLines = (what: string): string =>
  `longshore-unseal-1\nh1\n${sender.user}\nacme\nc1\n${ask.key}\n${what}\n5\n`;

t.test('the signature covers all that is asked, and who asks', (t) => {
  for (const more of [
    { tenant: 'rival' as TenantId },
    { id: 'c2' as ContainerId },
    { key: createCurve().getPublicKey() },
    { secret: { name: 'other', version: 1 } },
    { secret: { name: 'db', version: 2 } },
    { secret: undefined, registry: 'db' },
  ]) {
    t.match(faultOf({ ask: { ...ask, ...more } as UnprovedAsk }), /signature/, JSON.stringify(more));
  }
  t.match(faultOf({ proof: { ...proofWith(jwt), atMs: nowMs + 1 } }), /signature/, 'and when');
  t.match(faultOf({ proof: proofWith(jwt, createUser()) }), /signature/, 'by another key');
  const login = { ...ask, secret: undefined, registry: 'r.example' } as UnprovedAsk;
  t.equal(unsealText(sender, login, 5).toString(), unsealLines('login\nr.example'));
  t.equal(unsealText(sender, ask, 5).toString(), unsealLines('secret\ndb\n1'));
  t.end();
});
t.test('credentials of another host, key, account or time', async (t) => {
  const by = async (jwt: Promise<string>, signer = user): Promise<string | undefined> =>
    faultOf({ proof: proofWith(await jwt, signer) });
  const thief = createUser();
  t.match(await by(jwtOf({ host: 'h2' as HostKey })), /another agent/);
  t.match(await by(jwtOf({ publicKey: thief.getPublicKey() }), thief), /another agent/);
  t.match(await by(jwtOf({}, accountOf(foreign))), /not issued by the account HOSTS/, 'another signing key');
  t.match(await by(jwtOf({}, accountOf(signing, foreign.getPublicKey()))), /not issued/, 'of another account');
  const ofCp = encodeUser(`host ${host}`, user, foreign, {});
  t.match(await by(ofCp), /not issued/, 'a user of the account CP, which names no other issuer');
  t.match(await by(jwtOf({ expiresAtS: (nowMs - limits.unsealSkewMs) / 1000 - 1 })), /have expired/);
});

t.test('credentials that were changed, or are none', (t) => {
  const [head, body = '', signature] = jwt.split('.');
  const changed = Buffer.from(body, 'base64url').toString().replace('"name":"host h1"', '"name":"host h1" ');
  const forged = [head, Buffer.from(changed).toString('base64url'), signature].join('.');
  t.match(faultOf({ proof: proofWith(forged) }), /forged/);
  for (const none of ['a.b.c', `a.${Buffer.from('{}').toString('base64url')}.c`])
    t.match(faultOf({ proof: proofWith(none) }), /cannot be read/);
  t.end();
});

t.test('an ask of another time, which says what is wrong with the clock', (t) => {
  const late = limits.unsealSkewMs + 1000;
  t.match(faultOf({ proof: proofWith(jwt, user, nowMs - late) }), /clock is -301 seconds ahead .* set the clock/);
  t.match(faultOf({ proof: proofWith(jwt, user, nowMs + late) }), /clock is 301 seconds ahead/);
  t.end();
});
