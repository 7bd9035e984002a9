/**
 * Secrets and logins of tenants under a new key of the vault; test/actors/domain/network.test.ts
 * has the VPN’s.
 */
import t from 'tap';
import type { StaleSecret } from '../../../../schemas/records/sealed.ts';
import { acme } from '../../support/records.ts';
import { bodyOf, sealedAs, secretWorld, using } from '../../support/secrets.ts';

const login = (version: number) =>
  ({
    type: 'login.put',
    tenant: acme,
    registry: 'r.example',
    version,
    username: 'ci',
    sealed: sealedAs('pass'),
  }) as const;

function stage() {
  const world = secretWorld([using('db', 1)]);
  world.put('db', 1);
  world.put('db');
  world.write(login(1));
  const stale = () => {
    const reply = world.read({ type: 'secret.stale', partition: 0, keyId: 'k2' });
    return (bodyOf(reply) as { data: StaleSecret[] }).data;
  };
  const replace = (items: readonly StaleSecret[]) => {
    const swapped = items.map(({ place, sealed: before }) => ({
      place,
      before,
      after: before.replace('.k1.', '.k2.') as typeof before,
    }));
    return bodyOf(world.write({ type: 'secret.replace', partition: 0, items: swapped }).reply);
  };
  return { world, stale, replace };
}

t.test('every value is found by the key that it is under, and replaced', (t) => {
  const { world, stale, replace } = stage();
  t.same(
    stale().map(({ place }) => place),
    [
      { of: 'secret', tenant: acme, name: 'db', version: 1 },
      { of: 'secret', tenant: acme, name: 'db', version: 2 },
      { of: 'login', tenant: acme, registry: 'r.example', version: 1 },
    ],
  );
  t.same(replace(stale()), { data: { replaced: 3 } });
  t.same(stale(), []);
  const { values, logins } = world.state.tenant(acme).secrets;
  t.equal(values.get('db')?.get(2)?.sealed, sealedAs('db@2', 'k2'));
  t.equal(logins.get('r.example')?.sealed, sealedAs('pass', 'k2'));
  t.end();
});

t.test('values that were changed or removed meanwhile are left alone', (t) => {
  const { world, stale, replace } = stage();
  const found = stale();
  world.put('db');
  world.write(login(2));
  t.same(replace(found), { data: { replaced: 1 } }, 'the value that its container is made from');
  t.same(
    stale().map(({ place }) => 'version' in place && place.version),
    [3, 2],
  );
  t.end();
});
