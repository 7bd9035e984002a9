/** Updates of containers to new values of their secrets, and values kept meanwhile (ADR 37). */
import t from 'tap';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import type { Changes } from '../../../../actors/domain/turn.ts';
import { defaultPolicy } from '../../../../schemas/api/policy.ts';
import { limits } from '../../../../schemas/limits.ts';
import { tenantId } from '../../support.ts';
import { acme, container, h1, observation, unplaced } from '../../support/records.ts';
import { secretRecord, secretWorld, using } from '../../support/secrets.ts';

const updated = (changes: readonly Changes[]): string[] =>
  changes.flatMap(({ records }) => records.flatMap((record) => (record.kind === 'container' ? [record.id] : [])));

t.test('another value is an update of each container that uses it', (t) => {
  const [web, other] = [using('db', 1), container({}, 'other')];
  const world = secretWorld([web, other]);
  world.put('db', 1);
  t.same(world.roll(), [], 'nobody is behind');
  world.put('db');
  t.equal(world.record(web.id).generation, 2, 'not in the turn of the value');
  const rolled = world.roll();
  t.same(updated(rolled), [web.id]);
  t.match(rolled[0]?.events, [{ type: 'secret_changed' }]);
  t.match(world.record(web.id).update, {
    phase: 'preparing',
    from: { secrets: { env: { TOKEN: { name: 'db', version: 1 } } } },
    to: { secrets: { env: { TOKEN: { name: 'db', version: 2 } } } },
    previous: { secrets: { env: { TOKEN: { version: 1 } } } },
  });
  const desired = [...desiredOf(world.state.wantedOn(h1), h1)].find(({ id }) => id === web.id);
  t.match(desired, {
    secrets: { files: { '/run/token': { version: 2 } } },
    update: { previous: { secrets: { files: { '/run/token': { version: 1 } } } } },
  });
  t.same(world.roll(), [], 'once');
  t.same(world.versions('db'), [1, 2], 'both values are there while it may go back');
  world.tell(web.id, 'done');
  t.match(world.roll(), [{ deletes: [/\.1$/] }]);
  t.same(world.versions('db'), [2]);
  t.same(world.roll(), []);
  t.end();
});

t.test('a value that fails is taken back, kept, and not tried again by itself', (t) => {
  const web = using('db', 1);
  const world = secretWorld([web]);
  world.put('db', 1);
  world.put('db');
  world.roll();
  world.tell(web.id, 'rolled_back');
  t.match(world.record(web.id), { secrets: { env: { TOKEN: { version: 1 } } }, update: { phase: 'rolled_back' } });
  t.same(world.roll(), []);
  t.same(world.versions('db'), [1, 2], 'it runs with the value before');
  world.put('db');
  t.same(world.versions('db'), [1, 3], 'the one that failed is needed by nobody');
  t.same(updated(world.roll()), [web.id], 'the next value is tried');
  world.tell(web.id, 'done');
  t.match(world.record(web.id), { secrets: { env: { TOKEN: { version: 3 } } } });
  t.end();
});

t.test('an update that is under way ends first', (t) => {
  const web = using('db', 1);
  const world = secretWorld([web]);
  world.put('db', 1);
  world.write({ type: 'container.update', tenant: acme, id: web.id, patch: { tag: 'next' } });
  world.put('db');
  t.same(world.roll(), []);
  world.tell(web.id, 'rolled_back');
  t.same(updated(world.roll()), [web.id], 'also if it failed');
  t.match(world.record(web.id), { secrets: { env: { TOKEN: { version: 2 } } }, spec: { tag: web.spec.tag } });
  t.end();
});

t.test('a container that runs once is not interrupted: its next run has the value', (t) => {
  for (const [status, desired, isRolled] of [
    ['running', 'running', false],
    ['starting', 'running', false],
    ['backoff', 'running', true],
    ['stopped', 'stopped', true],
  ] as const) {
    const policy = { ...defaultPolicy, restart: 'never' } as const;
    const job = using('db', 1, { policy, desired, observed: observation(status) });
    const world = secretWorld([job]);
    world.put('db', 1);
    world.put('db');
    t.same(updated(world.roll()), isRolled ? [job.id] : [], status);
    t.equal(world.versions('db').includes(1), !isRolled, 'the value that it runs with is kept');
  }
  t.end();
});

t.test('a stopped container gets the value at once; one that is being removed gets none', (t) => {
  const stopped = using('db', 1, { desired: 'stopped', observed: observation('stopped') }, 'stopped');
  const waiting = using('db', 1, { placement: unplaced, observed: observation('pending') }, 'waiting');
  const removed = using('db', 1, { desired: 'removed' }, 'removed');
  const world = secretWorld([stopped, waiting, removed]);
  world.put('db', 1);
  world.put('db');
  t.same(updated(world.roll()), [stopped.id, waiting.id]);
  t.match(world.record(stopped.id), { secrets: { env: { TOKEN: { version: 2 } } }, update: { phase: 'done' } });
  t.equal(world.record(stopped.id).update?.previous, undefined);
  t.same(world.versions('db'), [2]);
  t.end();
});

t.test('one sweep updates a bounded number, and no secret waits for another', (t) => {
  const many = Array.from({ length: 2 * limits.secretRollsPerSweep }, (_, index) => using('db', 1, {}, `c${index}`));
  const one = using('other', 1, {}, 'one');
  const world = secretWorld([...many, one]);
  for (const name of ['db', 'other']) {
    world.put(name, 1);
    world.put(name);
  }
  const first = updated(world.roll());
  t.ok(first.includes(one.id));
  t.equal(first.length, limits.secretRollsPerSweep);
  let sweeps = 1;
  const seen = new Set(first);
  for (; seen.size <= many.length && sweeps < 20; sweeps++) for (const id of updated(world.roll())) seen.add(id);
  t.equal(seen.size, many.length + 1, 'all of them in the end');
  t.equal(sweeps, 3);
  t.end();
});

t.test('containers whose value failed cost no sweep, list or next value a look', (t) => {
  const all = Array.from({ length: 20 }, (_, index) => using('db', 1, {}, `c${index}`));
  const world = secretWorld(all);
  world.put('db', 1);
  world.put('db');
  world.roll();
  for (const { id } of all) world.tell(id, 'rolled_back');
  const { containers } = world.state.tenant(acme);
  let looks = 0;
  const { get } = containers;
  containers.get = (id) => {
    looks++;
    return get.call(containers, id);
  };
  t.same(world.roll(), []);
  t.match(world.list(), [{ used_by: { length: all.length } }]);
  t.equal(looks, 0);
  world.put('db');
  t.equal(looks, 0, 'the turn of the next value goes through no users');
  t.equal(updated(world.roll()).length, all.length);
  t.end();
});

t.test('no tenant waits because another has many secrets', (t) => {
  const others = tenantId('zeta');
  const secrets = Array.from({ length: limits.secretRollsPerSweep + 10 }, (_, index) => `s${index}`);
  const many = secrets.flatMap((name) => [0, 1, 2].map((index) => using(name, 1, {}, `${name}-${index}`)));
  const one = using('db', 1, { tenant: others });
  const values = [1, 2].flatMap((version) => [
    ...secrets.map((name) => secretRecord(name, version)),
    { ...secretRecord('db', version), tenant: others },
  ]);
  const world = secretWorld([...many, one, ...values]);
  const first = updated(world.roll());
  t.ok(first.includes(one.id));
  t.equal(first.length, limits.secretRollsPerSweep);
  const both = [...first, ...updated(world.roll())];
  const nameOf = (id: string) => many.find((record) => record.id === id)?.secrets?.env['TOKEN']?.name;
  t.equal(new Set(both.map(nameOf)).size, secrets.length + 1, 'the next sweep begins with those that had no turn');
  t.end();
});

t.test('a rollback takes away secrets that the version before had not', (t) => {
  const web = container();
  const world = secretWorld([web]);
  world.put('db');
  world.putUses(web.id, { env: { TOKEN: 'db' } });
  world.tell(web.id, 'rolled_back');
  t.same(world.record(web.id).secrets, { env: {}, files: {} });
  t.match(world.list(), [{ used_by: [] }]);
  t.end();
});

t.test('a staged value waits for the next start or update of each container', (t) => {
  const [web, worker] = [
    using('db', 1),
    using('db', 1, { desired: 'stopped', observed: observation('stopped') }, 'worker'),
  ];
  const world = secretWorld([web, worker]);
  world.put('db', 1);
  world.put('db', 2, { stage: 'only' });
  t.same(world.roll(), [], 'nobody comes to it by itself');
  t.match(world.list(), [{ version: 2, staged: true, behind: [web.id, worker.id] }]);

  world.write({ type: 'container.start', tenant: acme, id: worker.id });
  t.match(world.record(worker.id), {
    desired: 'running',
    generation: worker.generation + 1,
    secrets: { env: { TOKEN: { version: 2 } } },
  });
  t.match(world.list(), [{ behind: [web.id] }]);
  world.write({ type: 'container.update', tenant: acme, id: web.id, patch: {} });
  t.match(world.record(web.id).secrets, { env: { TOKEN: { version: 1 } } }, 'nothing changes');
  world.write({ type: 'container.update', tenant: acme, id: web.id, patch: { env: { A: '1' } } });
  t.match(world.record(web.id).secrets, { env: { TOKEN: { version: 2 } } });
  t.match(world.list(), [{ staged: true, behind: [] }]);
  t.end();
});

t.test('a run that may not be broken off keeps its value, which the secret says, until it starts again', (t) => {
  const once = { policy: { ...defaultPolicy, restart: 'never' } } as const;
  const [job, web] = [using('db', 1, once, 'job'), using('db', 1, {}, 'web')];
  const world = secretWorld([job, web]);
  world.put('db', 1);
  t.notMatch(world.list(), [{ behind: [] }], 'nobody is');
  t.match(JSON.parse(world.put('db').reply.body), { data: { behind: [job.id] } });
  t.same(updated(world.roll()), [web.id]);
  t.match(world.list(), [{ version: 2, behind: [job.id] }]);
  t.notMatch(world.list(), [{ staged: true }]);

  world.write({ type: 'container.stop', tenant: acme, id: job.id });
  t.notMatch(world.list(), [{ behind: [] }], 'it comes to it by itself');
  world.write({ type: 'container.start', tenant: acme, id: job.id });
  t.match(world.record(job.id).secrets, { env: { TOKEN: { version: 2 } } }, 'no sweep came in between');

  world.put('db');
  world.write({ type: 'container.update', tenant: acme, id: job.id, patch: {}, pull: 'always' });
  t.match(world.record(job.id).secrets, { env: { TOKEN: { version: 2 } } }, 'its tag may name what runs');
  world.write({ type: 'container.update', tenant: acme, id: job.id, patch: { env: { A: '1' } } });
  t.match(world.record(job.id).secrets, { env: { TOKEN: { version: 3 } } }, 'the next run has it');
  t.end();
});

t.test('those that are behind a staged value are shown without a look at the others', (t) => {
  const [last, ...others] = Array.from({ length: 20 }, (_, index) => using('db', index === 0 ? 1 : 2, {}, `c${index}`));
  const world = secretWorld([...others, last!]);
  world.put('db', 1);
  world.put('db', 2, { stage: 'only' });
  const { containers } = world.state.tenant(acme) as unknown as { containers: Map<unknown, unknown> };
  let looks = 0;
  const get = containers.get.bind(containers);
  containers.get = (id) => {
    looks++;
    return get(id);
  };
  t.match(world.list(), [{ behind: [last!.id] }]);
  t.equal(looks, 0);
  t.end();
});

t.test('a value that is staged no longer is an update of those that are behind', (t) => {
  const web = using('db', 1);
  const world = secretWorld([web]);
  world.put('db', 1);
  world.put('db', 2, { stage: 'only' });
  t.equal(world.put('db', 1, { stage: 'over' }).reply.code, 'precondition_failed', 'another value came between');
  world.put('db', 2, { stage: 'over' });
  t.notMatch(world.list(), [{ staged: true }]);
  t.same(updated(world.roll()), [web.id]);
  world.put('db', 3, { stage: 'only' });
  world.tell(web.id, 'done');
  world.put('db', 4);
  t.same(updated(world.roll()), [web.id], 'a later value that is not staged takes all along');
  t.end();
});
