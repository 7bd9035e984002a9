import { decode } from '@nats-io/jwt';
import { createOperator } from '@nats-io/nkeys';
import t from 'tap';
import {
  claimsOf,
  nextClaims,
  revocationsOf,
  signClaims,
  type AccountClaims,
} from '../../../../lib/nats/accounts/claims.ts';

const claims = (iat: number, revocations?: Record<string, number>): AccountClaims => ({
  iat,
  nats: revocations === undefined ? {} : { revocations },
});
const next = (held: AccountClaims[], wanted: Record<string, number>, more: { nowS?: number; most?: number } = {}) =>
  nextClaims(held, { wanted: new Map(Object.entries(wanted)), nowS: 100, keptForS: 50, most: 10, ...more });

t.test('nothing is pushed where every server holds what is wanted', async (t) => {
  t.equal(next([claims(5, { a: 90 }), claims(6, { a: 95, b: 80 })], { a: 90 }), undefined);
  t.equal(next([claims(5)], {}), undefined);
});

t.test('a push holds what any server holds, and is newer than all', async (t) => {
  t.match(next([claims(5, { a: 90 }), claims(200, { b: 80 })], { a: 90 }), claims(201, { a: 90, b: 80 }));
  t.match(next([claims(5)], { a: 90 }), claims(100, { a: 90 }));
  t.match(next([claims(5, { a: 60 })], { a: 90 }), claims(100, { a: 90 }), 'revoked again, later');
});

t.test('revocations without effect are dropped, and of too many the newest stay', async (t) => {
  t.same(revocationsOf(next([claims(5, { old: 49, edge: 50 })], { a: 90 })!), { a: 90, edge: 50 });
  t.same(revocationsOf(next([claims(5)], { a: 90, b: 91, c: 92 }, { most: 2 })!), { b: 91, c: 92 });
  t.equal(next([claims(5, { b: 91, c: 92 })], { a: 90, b: 91, c: 92 }, { most: 2 }), undefined, 'a has no room');
});

t.test('what the account is to be is pushed where a server has it otherwise, or of another operator', async (t) => {
  const account = { claims: { iat: 1, nats: { signing_keys: ['new', 'old'] } }, issuers: new Set(['O1']) };
  const by = (iss: string, signing_keys: string[], revocations = {}): AccountClaims => ({
    iat: 5,
    iss,
    nats: { signing_keys, revocations },
  });
  const wanted = { wanted: new Map<string, number>(), nowS: 100, keptForS: Infinity, most: 10, account };
  t.equal(nextClaims([by('O1', ['new', 'old'], { a: 1 })], wanted), undefined, 'revocations of others are theirs');
  t.same(nextClaims([by('O1', ['new', 'old']), by('O1', ['old'], { a: 1 })], wanted), {
    iat: 100,
    nats: { signing_keys: ['new', 'old'], revocations: { a: 1 } },
  });
  t.ok(nextClaims([by('O2', ['new', 'old'])], wanted), 'a key of the operator that is no longer valid');
});

t.test('signed claims are those of the operator’s key, with their own time', async (t) => {
  const operator = createOperator();
  const jwt = signClaims(claims(123, { a: 7 }), new TextDecoder().decode(operator.getSeed()));
  t.match(decode(jwt), { iss: operator.getPublicKey(), iat: 123, nats: { revocations: { a: 7 } } });
  t.match(claimsOf(jwt), claims(123, { a: 7 }));
});
