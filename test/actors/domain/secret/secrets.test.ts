/** Requests of a tenant about its secrets (ADR 37). */
import t from 'tap';
import { decideRead } from '../../../../actors/domain/decide.ts';
import { PartitionState } from '../../../../actors/domain/state.ts';
import { limits } from '../../../../schemas/limits.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { acme, container, contextOf, fleetOf, noLedger } from '../../support/records.ts';
import { bodyOf, sealedAs, secretRecord, secretWorld, using } from '../../support/secrets.ts';

const material = (name: string) => ({ type: 'secret.material', tenant: acme, name }) as const;

t.test('a value comes, changes and goes; nobody is shown it', (t) => {
  const world = secretWorld();
  t.same(bodyOf(world.read(material('db'))), { data: { next: 1, current: null } });
  const { reply } = world.put('db');
  t.match(bodyOf(reply), { data: { name: 'db', version: 1, used_by: [] } });
  t.match(bodyOf(world.read(material('db'))), {
    data: { next: 2, current: { version: 1, sealed: sealedAs('db@1'), view: { name: 'db', version: 1 } } },
  });
  world.put('db');
  t.same(world.versions('db'), [2], 'a value that nobody uses is forgotten at once');
  t.match(world.list(), [{ name: 'db', version: 2, updated_at: /Z$/, used_by: [] }]);
  t.notMatch(JSON.stringify(world.list()), /v1\./, 'not even sealed');
  t.equal(world.remove('db').reply.code, 'no_content');
  t.same(world.list(), []);
  t.equal(world.remove('db').reply.code, 'not_found');
  t.end();
});

t.test('a version never comes again under a name: hosts keep values by it', (t) => {
  const world = secretWorld();
  world.put('db');
  world.put('db');
  world.remove('db');
  t.equal(world.nextOf('db'), 3, 'after a delete');
  world.put('other');
  world.remove('other');
  t.equal(world.nextOf('db'), 4, 'the highest of all that were deleted');

  const restoredAtMs = 1_780_000_000_000;
  const restored = new PartitionState(noLedger, { epoch: 1, incarnation: restoredAtMs });
  const ask = { ...material('db'), rid: 'r', budgetMs: 1 };
  const { reply } = decideRead(restored, ask, contextOf(fleetOf()));
  t.match(bodyOf(reply), { data: { next: restoredAtMs + 1 } }, 'a restore forgets versions that hosts have seen');
  t.end();
});

t.test('only the next version is taken: two gateways do not overwrite each other', (t) => {
  const world = secretWorld();
  world.put('db');
  for (const version of [0, 1, 3]) {
    const { reply, changes } = world.put('db', version);
    t.match(reply, { code: 'precondition_failed' }, `version ${version}`);
    t.same(changes.records, []);
  }
  t.same(world.versions('db'), [1]);
  t.end();
});

t.test('a used secret is not deleted, and the refusal names its users', (t) => {
  const web = using('db', 1);
  const removed = using('db', 1, { desired: 'removed' }, 'gone');
  const world = secretWorld([web, removed]);
  world.put('db', 1);
  t.match(world.list(), [{ used_by: [web.id] }], 'not by what is being removed');
  t.match(world.remove('db').reply, { code: 'conflict', body: new RegExp(`used by ${web.spec.name}: `) });
  world.putUses(web.id, {});
  t.match(world.remove('db').reply, { code: 'conflict' }, 'it may be rolled back to the uses before');
  world.tell(web.id, 'done');
  t.equal(world.remove('db').reply.code, 'no_content');
  t.end();
});

t.test('a damaged container may use any secret: none is deleted or forgotten', (t) => {
  const world = secretWorld();
  world.put('db');
  world.state.quarantine(keys.container(acme, container().id));
  world.put('db');
  t.same(world.versions('db'), [1, 2]);
  t.match(world.remove('db').reply, { code: 'conflict', body: /damaged/ });
  t.end();
});

t.test('a tenant has a bounded number of secrets, and each a bounded number of values', (t) => {
  const world = secretWorld();
  for (let index = 0; index < limits.secretsPerTenant; index++) world.put(`s${index}`);
  t.match(world.put('more').reply, { code: 'conflict', body: /delete one first/ });
  t.equal(world.put('s0').reply.code, 'ok', 'another value of one of them is no more');

  const versions = [1, 2, 3, 4];
  const used = secretWorld([
    ...versions.map((version) => using('s1', version, {}, `c${version}`)),
    ...versions.map((version) => secretRecord('s1', version)),
  ]);
  t.same(used.versions('s1'), [1, 2, 3, 4]);
  t.match(used.put('s1').reply, { code: 'conflict', body: /under way/ });
  t.end();
});

t.test('a value that is no text is not put where a variable has it', (t) => {
  const world = secretWorld([using('db', 1)]);
  world.put('db', 1);
  t.match(world.put('db', 2, { binary: true }).reply, { code: 'invalid', body: /"value":\["must be text/ });
  t.equal(world.put('other', 1, { binary: true }).reply.code, 'created');
  t.end();
});

t.test('a damaged value is shown as such, and replaced by the next', (t) => {
  const world = secretWorld();
  world.put('db');
  world.state.quarantine(keys.secret(acme, 'db', 1));
  t.match(world.list(), [{ name: 'db', version: 1, updated_at: null }]);
  t.match(bodyOf(world.read(material('db'))), { data: { next: 2, current: { version: 1, sealed: null } } });
  t.equal(world.put('db').reply.code, 'ok');
  t.same(world.versions('db'), [2]);
  t.end();
});

t.test('uses: by name, each at the current value, and an update', (t) => {
  const web = container();
  const world = secretWorld([web]);
  world.put('db');
  const file = { secret: 'db', mode: 0o440, uid: 1000, gid: 1000 };
  const { reply, changes } = world.putUses(web.id, { env: { TOKEN: 'db' }, files: { '/run/token': file } });
  t.same(bodyOf(reply), { data: { env: { TOKEN: 'db' }, files: { '/run/token': file } } });
  t.same(bodyOf(world.read({ type: 'container.secrets', tenant: acme, id: web.id })), bodyOf(reply));
  t.match(changes.events, [{ type: 'secrets_changed' }]);
  t.match(world.record(web.id), {
    generation: 3,
    secrets: { env: { TOKEN: { name: 'db', version: 1 } }, files: { '/run/token': { name: 'db', version: 1 } } },
    update: { phase: 'preparing', from: { secrets: {} }, to: { secrets: { env: { TOKEN: { version: 1 } } } } },
  });
  const again = world.putUses(web.id, { env: { TOKEN: 'db' }, files: { '/run/token': file } });
  t.same(again.changes.records, [], 'the same uses change nothing');
  t.end();
});

t.test('every use that can’t be is named', (t) => {
  const web = container({ configFiles: [{ path: '/etc/app', content: 'x' }] });
  const world = secretWorld([web]);
  world.put('raw', 1, { binary: true });
  const file = (secret: string) => ({ secret, mode: 0o400, uid: 0, gid: 0 });
  const { reply } = world.putUses(web.id, {
    env: { A: 'none', B: 'raw' },
    files: { '/run/a': file('none'), '/etc/app': file('raw') },
  });
  t.equal(reply.code, 'invalid');
  t.same(bodyOf(reply), {
    error: 'invalid',
    details: {
      'env.A': ['"none" is not a secret that you have'],
      'env.B': ['is no text, or has a NUL: use it as a file'],
      'files./run/a.secret': ['"none" is not a secret that you have'],
      'files./etc/app': ['is a file that the operator puts there'],
    },
  });
  const removed = using('raw', 1, { desired: 'removed' });
  t.match(secretWorld([removed]).putUses(removed.id, {}).reply, { code: 'conflict' });
  t.match(secretWorld().putUses(removed.id, {}).reply, { code: 'not_found' });
  t.end();
});

t.test('an operator can’t put a file where a secret is', (t) => {
  const web = using('db', 1);
  const world = secretWorld([web]);
  const operate = (path: string) =>
    world.write({
      type: 'container.operate',
      tenant: acme,
      id: web.id,
      fields: { config_files: [{ path, content: 'x' }] },
    }).reply;
  t.match(operate('/run/token'), { code: 'invalid', body: /\/run\/token is the file of a secret/ });
  t.equal(operate('/run/other').code, 'ok');
  t.end();
});
