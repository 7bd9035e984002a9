/** The right of a host to a sealed value (ADR 37, invariant A7). */
import t from 'tap';
import type { StateRecord } from '../../../../actors/domain/records.ts';
import type { FleetView } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { specOf } from '../../support.ts';
import { acme, agentKeyOf, container, fleetHost, fleetOf, h1, h2, placedOn } from '../../support/records.ts';
import { bodyOf, sealedAs, secretWorld, using } from '../../support/secrets.ts';

const both = fleetOf(fleetHost(h1), fleetHost(h2));
const secret = { name: 'db', version: 1 };

function asked(
  web: ContainerRecord,
  {
    fleet = both,
    records = [],
    ...more
  }: { fleet?: FleetView; records?: readonly StateRecord[] } & Partial<{
    host: HostKey;
    user: string;
    secret: typeof secret | null;
    registry: string;
    tenant: typeof acme;
  }> = {},
) {
  const world = secretWorld([web, ...records], fleet);
  if (world.versions('db').length === 0) world.put('db', 1);
  const { host = h1, user = agentKeyOf(host), tenant = acme, registry } = more;
  const wanted = more.secret === null || registry !== undefined ? {} : { secret: more.secret ?? secret };
  const { code, body } = world.read({
    type: 'secret.unseal',
    tenant,
    container: web.id,
    by: { host, user },
    ...wanted,
    ...(registry === undefined ? {} : { registry }),
  });
  return { code, data: (bodyOf({ code, body }) as { data?: unknown }).data };
}

t.test('the host of the container gets what it uses, sealed', (t) => {
  t.same(asked(using('db', 1)), { code: 'ok', data: { version: 1, sealed: sealedAs('db@1') } });
  t.end();
});

t.test('so do the host that prepares it, and the one that it leaves', (t) => {
  const atMs = 1;
  const preparing = using('db', 1, { preparing: { host: h2, region: fleetHost(h2).region, since: 3, atMs } });
  t.equal(asked(preparing, { host: h2 }).code, 'ok');
  const leaving = using('db', 1, { placement: placedOn(h2), leaving: { host: h1, since: 1, atMs } });
  t.equal(asked(leaving).code, 'ok');
  t.end();
});

t.test('the value that it may go back to is needed too', (t) => {
  const web = using('db', 1);
  const world = secretWorld([web], both);
  world.put('db', 1);
  world.put('db');
  world.roll();
  const codeOf = (version: number) =>
    world.read({
      type: 'secret.unseal',
      tenant: acme,
      container: web.id,
      by: { host: h1, user: agentKeyOf(h1) },
      secret: { name: 'db', version },
    }).code;
  t.same([1, 2, 3].map(codeOf), ['ok', 'ok', 'forbidden']);
  t.end();
});

t.test('nobody else gets it', (t) => {
  const web = using('db', 1);
  t.match(asked(web, { host: h2 }), { code: 'forbidden' }, 'a host that does not run the container');
  t.match(asked(web, { user: agentKeyOf(h2) }), { code: 'forbidden' }, 'a key that is not enrolled (any more)');
  t.match(asked(web, { host: 'h9' as HostKey }), { code: 'forbidden' }, 'a host that was removed');
  for (const condition of ['fenced', 'removed'] as const) {
    const fleet = fleetOf(fleetHost(h1, { condition }));
    t.match(asked(web, { fleet }), { code: 'forbidden' }, condition);
  }
  t.match(asked(container()), { code: 'forbidden' }, 'a container that does not use it');
  t.match(asked(web, { secret: { name: 'db', version: 2 } }), { code: 'forbidden' }, 'another version');
  t.match(asked(web, { secret: { name: 'other', version: 1 } }), { code: 'forbidden' }, 'another secret');
  t.match(asked(web, { tenant: 'evil' as typeof acme }), { code: 'forbidden' }, 'another tenant');
  t.match(asked(web, { secret: null }), { code: 'forbidden' }, 'nothing in particular');
  t.end();
});

t.test('an owner that does not know enough yet does not refuse for good', (t) => {
  const web = using('db', 1);
  const unheard = { ...both, condition: () => 'unheard' as const, enrolledKey: () => undefined };
  t.match(asked(web, { fleet: unheard }), { code: 'unavailable' }, 'an owner that has just started');
  const unkeyed = { ...both, enrolledKey: () => null };
  t.match(asked(web, { fleet: unkeyed }), { code: 'forbidden' }, 'a host that never enrolled');

  const world = secretWorld([web], both);
  world.put('db', 1);
  const ask = {
    type: 'secret.unseal',
    tenant: acme,
    container: web.id,
    by: { host: h1, user: agentKeyOf(h1) },
  } as const;
  world.state.quarantine(keys.secret(acme, 'db', 1));
  t.match(world.read({ ...ask, secret }), { code: 'internal', body: /put it again/ });
  world.state.delete(keys.secret(acme, 'db', 1));
  t.match(world.read({ ...ask, secret }), { code: 'not_found' });
  world.state.quarantine(keys.container(acme, web.id));
  t.match(world.read({ ...ask, secret }), { code: 'internal' });
  t.end();
});

t.test('a login, for the registry of the container only', (t) => {
  const registry = 'registry.example';
  const web = container({ spec: { ...specOf('web'), registry: 'Registry.example:443' } });
  t.same(asked(web, { registry }), { code: 'ok', data: null }, 'there is none');
  const login = {
    kind: 'login',
    tenant: acme,
    registry,
    version: 3,
    username: 'ci',
    sealed: sealedAs('pass'),
    updatedAtMs: 1,
  } as const;
  const data = { version: 3, username: 'ci', sealed: sealedAs('pass') };
  t.same(asked(web, { records: [login], registry }), { code: 'ok', data });
  t.same(asked(web, { records: [login], registry: 'REGISTRY.EXAMPLE' }), { code: 'ok', data });
  t.match(asked(web, { records: [login], registry: 'docker.io' }), { code: 'forbidden' });
  t.match(asked(container(), { records: [login], registry }), { code: 'forbidden' });
  const world = secretWorld([web], both);
  world.state.quarantine(keys.login(acme, registry));
  const by = { host: h1, user: agentKeyOf(h1) };
  t.match(world.read({ type: 'secret.unseal', tenant: acme, container: web.id, by, registry }), { code: 'internal' });
  t.end();
});
