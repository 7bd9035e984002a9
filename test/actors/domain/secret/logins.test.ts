/** Logins at registries, and the pulls that wait for them (ADR 37). */
import t from 'tap';
import type { Changes } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import { limits } from '../../../../schemas/limits.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { specOf, tenantId } from '../../support.ts';
import { acme, container, doorbellsOf, h1, observation } from '../../support/records.ts';
import { bodyOf, sealedAs, secretWorld } from '../../support/secrets.ts';

const registry = 'registry.example:5000';
const of = (host = registry) => ({ tenant: acme, registry: host });

function loginWorld(records: readonly ContainerRecord[] = []) {
  const world = secretWorld(records);
  const material = (host?: string) =>
    (bodyOf(world.read({ type: 'login.material', ...of(host) })) as { data: { next: number; current: unknown } }).data;
  return {
    ...world,
    material,
    login: (host?: string, version = material(host).next) =>
      world.write({ type: 'login.put', ...of(host), version, username: 'ci', sealed: sealedAs(`login@${version}`) }),
    logins: () => (bodyOf(world.read({ type: 'login.list', tenant: acme })) as { data: unknown[] }).data,
    logout: (host?: string) => world.write({ type: 'login.remove', ...of(host) }),
  };
}

t.test('a login comes, changes and goes; its password is never shown', (t) => {
  const world = loginWorld();
  t.same(world.material(), { next: 1, current: null });
  t.match(bodyOf(world.login().reply), { data: { host: registry, username: 'ci', updated_at: /Z$/ } });
  t.match(world.material(), { next: 2, current: { version: 1, username: 'ci', sealed: sealedAs('login@1') } });
  t.match(world.login(registry, 1).reply, { code: 'precondition_failed' });
  world.login();
  t.same(Object.keys(world.logins()[0] as object), ['host', 'username', 'updated_at']);
  t.equal(world.logout().reply.code, 'no_content');
  t.same(world.logins(), []);
  t.equal(world.logout().reply.code, 'not_found');
  t.equal(world.material().next, 3, 'a version never comes again');
  t.end();
});

t.test('a tenant has a bounded number of logins; a damaged one can be replaced and removed', (t) => {
  const world = loginWorld();
  for (let index = 0; index < limits.registriesPerTenant; index++) world.login(`r${index}.example`);
  t.match(world.login().reply, { code: 'conflict', body: /delete one first/ });
  world.state.quarantine(keys.login(acme, 'r0.example'));
  t.match(world.logins()[0], { host: 'r0.example', username: null, updated_at: null });
  t.equal(world.login('r0.example').reply.code, 'ok');
  world.state.quarantine(keys.login(acme, 'r0.example'));
  t.equal(world.logout('r0.example').reply.code, 'no_content');
  t.end();
});

const refused = (host: string, more: Partial<ContainerRecord> = {}, status: 'failed' | 'backoff' = 'failed') =>
  container({
    spec: { ...specOf(host), registry: host },
    observed: observation(status, { reason: 'image_auth' }),
    ...more,
  });

const tried = (changes: readonly Changes[]): string[] =>
  changes.flatMap(({ records }) => records.flatMap((record) => (record.kind === 'container' ? [record.id] : [])));

t.test('a new login tries again what the registry refused, and nothing else', (t) => {
  const [failed, waits] = [refused(registry), refused('REGISTRY.example:5000', {}, 'backoff')];
  const others = [
    refused('elsewhere.example'),
    refused(`${registry}`, { desired: 'stopped', spec: { ...specOf('stopped'), registry } }),
    container({ spec: { ...specOf('crash'), registry }, observed: observation('failed', { reason: 'crash_loop' }) }),
    container({ spec: { ...specOf('runs'), registry } }),
  ];
  const world = loginWorld([failed, waits, ...others]);
  world.login();
  const changes = world.tryAgain();
  t.same(tried(changes), [failed.id, waits.id]);
  t.match(changes[0]?.events, [{ type: 'registry_changed' }]);
  t.same(doorbellsOf(changes[0]!), [h1]);
  t.match(world.record(failed.id), { generation: 3, observed: { status: 'pending', reason: null } });
  t.same(world.tryAgain(), [], 'once');
  world.login();
  t.same(world.tryAgain(), [], 'they have not been refused since');
  t.end();
});

t.test('the version of the refused login decides, and no clock', (t) => {
  const world = loginWorld([refused(registry)]);
  const [{ id }] = [...world.state.tenant(acme).containers.values()] as [ContainerRecord];
  const say = (refused_login?: number) => {
    const login = refused_login === undefined ? {} : { refused_login };
    world.tell(id, undefined, observation('failed', { reason: 'image_auth', ...login }));
    return tried(world.tryAgain());
  };
  world.login();
  t.same(tried(world.tryAgain()), [id]);
  t.same(say(), [], 'an agent of before 0.2.0 did not say');
  t.same(say(0), [id], 'told after the login was put, and pulled without one');
  t.same(world.record(id).observed.refused_login, undefined, 'of another pull');
  t.same(say(1), [], 'refused with this login');
  world.login();
  t.same(tried(world.tryAgain()), [id]);
  t.same(say(1), [id], 'its host told late of the one before');
  t.same(say(2), []);
  world.logout();
  t.same(say(2), [], 'there is none to try');
  world.login();
  t.same(tried(world.tryAgain()), [id]);
  t.same(say(2), [id], 'refused before it was removed');

  const loaded = loginWorld([
    refused(registry, { observed: observation('failed', { reason: 'image_auth', refused_login: 1 }) }),
  ]);
  loaded.login();
  t.same(tried(loaded.tryAgain()), [], 'whatever times its owners before have stored');
  t.end();
});

t.test('a refusal of the new login is not tried again; a sweep tries a bounded number', (t) => {
  const late = refused(registry, { observedAtMs: 2_000_000 });
  const world = loginWorld([late]);
  world.login();
  t.same(world.tryAgain(), []);

  const many = Array.from({ length: limits.secretRollsPerSweep + 1 }, (_, index) =>
    refused(registry, { spec: { ...specOf(`c${index}`), registry } }),
  );
  const crowd = loginWorld(many);
  crowd.login();
  t.equal(tried(crowd.tryAgain()).length, limits.secretRollsPerSweep);
  t.equal(tried(crowd.tryAgain()).length, 1);
  t.same([...crowd.state.loginsToTry().tenants()], [], 'then nobody looks any more');
  t.end();
});

t.test('a login that is put again and again holds up no login of another tenant', (t) => {
  const others = tenantId('zeta');
  const many = Array.from({ length: 4 * limits.secretRollsPerSweep }, (_, index) =>
    refused(registry, { spec: { ...specOf(`c${index}`), registry } }),
  );
  const theirs = Array.from({ length: 3 }, (_, index) =>
    refused(registry, { tenant: others, spec: { ...specOf(`t${index}`), registry } }),
  );
  const world = loginWorld([...many, ...theirs]);
  world.login();
  world.state.put({
    kind: 'login',
    tenant: others,
    registry,
    version: 1,
    username: 'ci',
    sealed: sealedAs('login@1'),
    updatedAtMs: 1_000_000,
  });
  const first = tried(world.tryAgain());
  for (const { id } of theirs) t.ok(first.includes(id));
  t.equal(first.length, limits.secretRollsPerSweep);

  const { containers } = world.state.tenant(acme);
  let looks = 0;
  const { get } = containers;
  containers.get = (id) => {
    looks++;
    return get.call(containers, id);
  };
  world.login();
  t.equal(tried(world.tryAgain()).length, limits.secretRollsPerSweep);
  t.ok(looks <= 4 * limits.secretRollsPerSweep, `the walk goes on where it ended: ${looks} looks`);
  t.end();
});
