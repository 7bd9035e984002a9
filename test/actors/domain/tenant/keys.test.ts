/** Keys of a tenant: made, listed, revoked (ADR 41). */
import t from 'tap';
import type { KeyId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import type { Revocation } from '../../../../schemas/api/tenant.ts';
import { acme } from '../../support/records.ts';
import { bodyOf, secretWorld } from '../../support/secrets.ts';

const idOf = (index: number) => `01890000-0000-7000-8000-${String(index).padStart(12, '0')}` as KeyId;
const laterS = 10_000;

function keyWorld() {
  const world = secretWorld();
  const revocation = (value: string, untilMs = 9e12): Revocation => ({
    tenant: acme,
    match: { by: 'jti', value },
    issuedUntilS: 900,
    untilMs,
  });
  return {
    ...world,
    revocation,
    make: (index: number, more: object = {}) =>
      world.write({
        type: 'key.create',
        tenant: acme,
        made: {
          id: idOf(index),
          name: `key-${index}`,
          scopes: ['read'],
          subject: 'alice',
          issuedAtS: 900,
          expiresAtS: laterS,
          ...more,
        },
      }).reply,
    list: () => bodyOf(world.read({ type: 'key.list', tenant: acme })) as { data: { id: string }[] },
    drop: (index: number, untilMs?: number) =>
      world.write({ type: 'key.remove', tenant: acme, key: idOf(index), revocation: revocation(idOf(index), untilMs) })
        .reply,
    revoke: (one: Revocation) => world.write({ type: 'tenant.revoke', tenant: acme, revocation: one }).reply,
    revocations: () => world.state.tenant(acme).record.revocations,
  };
}

t.test('a key is listed until it is deleted, and then its token is revoked', (t) => {
  const world = keyWorld();
  t.match(bodyOf(world.make(1)), { data: { id: idOf(1), name: 'key-1', scopes: ['read'], revoked: false } });
  world.make(2);
  t.same(
    world.list().data.map(({ id }) => id),
    [idOf(2), idOf(1)],
    'newest first',
  );
  t.same(bodyOf(world.drop(1)), { data: { untilMs: laterS * 1000 } }, 'as long as its token would live');
  t.same(
    world.list().data.map(({ id }) => id),
    [idOf(2)],
  );
  t.match(world.revocations(), [{ match: { by: 'jti', value: idOf(1) }, untilMs: laterS * 1000 }]);
  t.equal(world.drop(1).code, 'not_found');
  t.equal(world.revocations().length, 1);
  t.end();
});

t.test('a name is taken until its key is deleted or has ended', (t) => {
  const world = keyWorld();
  world.make(1);
  t.match(world.make(2, { name: 'key-1' }), { code: 'invalid', body: /already been taken/ });
  world.drop(1);
  t.equal(world.make(2, { name: 'key-1', expiresAtS: 1000 }).code, 'created');
  t.equal(world.make(3, { name: 'key-1' }).code, 'created', 'the other has ended');
  t.same(
    world.list().data.map(({ id }) => id),
    [idOf(3)],
  );
  t.end();
});

t.test('a tenant has a bounded number of keys, and room for the revocation of each', (t) => {
  const world = keyWorld();
  for (let index = 0; index < limits.keysPerTenant; index++) t.equal(world.make(index).code, 'created');
  t.match(world.make(1000), { code: 'conflict', body: /delete one first/ });
  for (let index = 0; index < limits.revocationsPerTenant; index++) world.revoke(world.revocation(`token-${index}`));
  t.equal(world.drop(0).code, 'ok', 'a key can be revoked always');
  t.match(world.make(1000), { code: 'conflict', body: /ask an operator/ });
  t.end();
});

t.test('it shows which keys an operator has revoked', (t) => {
  const world = keyWorld();
  world.make(1);
  world.make(2, { subject: 'bob' });
  world.make(3, { subject: 'bob', issuedAtS: 901 });
  world.revoke({ ...world.revocation(''), match: { by: 'sub', value: 'bob' } });
  t.match(world.list().data, [{ revoked: false }, { revoked: true }, { revoked: false }]);
  t.end();
});

t.test('a damaged key counts, and can be deleted; a damaged tenant has unknown keys', (t) => {
  const world = keyWorld();
  world.make(1);
  world.state.quarantine(keys.key(acme, idOf(1)));
  t.match(world.list().data, [{ id: idOf(1), name: null, scopes: null, expires_at: null }]);
  t.same(bodyOf(world.drop(1, 7e12)), { data: { untilMs: 7e12 } }, 'until any token has ended');
  world.make(2);
  world.state.quarantine(keys.tenant(acme));
  t.equal(world.make(3).code, 'internal');
  t.equal(world.drop(2).code, 'internal');
  t.end();
});
