/** The document of a container, as its owner reads and writes it. */
import t from 'tap';
import * as documents from '../../../../actors/domain/container/spec.ts';
import { moveView } from '../../../../actors/domain/container/moving.ts';
import { handlePreparation, keepMoving } from '../../../../actors/domain/container/moves.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import type { Turn } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import { defaultPolicy } from '../../../../schemas/api/policy.ts';
import type { Declaration } from '../../../../schemas/api/spec.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { containerId, operation, specOf } from '../../support.ts';
import {
  acme,
  apply,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  itemOf,
  observation,
  placedOn,
  region,
  stateOf,
} from '../../support/records.ts';

const ride = { rid: 'r', budgetMs: 1000 };
const fleet = fleetOf(fleetHost(h1));

function world(more: Partial<ContainerRecord> = {}, hosts = fleet) {
  const first = container({ placement: placedOn(h1), observed: observation('running'), ...more });
  const state = stateOf({ ...defaultTenant(acme), regions: [region('default')] }, first);
  const record = () => state.tenant(acme).containers.get(first.id)!;
  const ask = <Type extends string>(type: Type) =>
    ({ type, tenant: acme, id: first.id, op: operation(), ...ride }) as const;
  const as = (made: Turn): Turn => {
    apply(state, made.changes);
    return made;
  };
  /** The present declaration with other parts. */
  const declaration = (parts: Partial<Declaration> = {}): Declaration => ({
    spec: record().spec,
    policy: record().policy ?? defaultPolicy,
    secrets: { env: {}, files: {} },
    ...parts,
  });
  const spec = (parts: object) => ({ ...record().spec, ...parts });
  return {
    state,
    record,
    spec,
    declaration,
    put: (parts: Partial<Declaration>) =>
      as(documents.put(state, { ...ask('spec.put'), declaration: declaration(parts) }, contextOf(hosts))),
    plan: (parts: Partial<Declaration>) =>
      documents.plan(state, { ...ask('spec.plan'), declaration: declaration(parts) }, contextOf(hosts)),
    create: (id: ContainerId, name: string, parts: Partial<Declaration> = {}, pull?: 'always') =>
      as(
        documents.create(
          state,
          {
            ...ask('spec.create'),
            id,
            declaration: declaration({ spec: { ...specOf(name) }, ...parts }),
            idempotency: null,
            ...(pull === undefined ? {} : { pull }),
          },
          contextOf(fleet),
        ),
      ),
  };
}
const typesOf = ({ changes }: Turn): string[] => changes.events.map(({ type }) => type);
const bodyOf = ({ reply }: Turn) => JSON.parse(reply.body) as { data: Record<string, unknown>; plan?: object };

t.test('a change of everything is one generation and one update', (t) => {
  const { put, record, spec } = world();
  const { generation } = record();
  const turn = put({
    spec: spec({ tag: '2', labels: { team: 'a' }, project: 'shop', process: { user: '7' } }),
    policy: { ...defaultPolicy, restart: 'never' },
  });
  t.equal(turn.reply.code, 'ok');
  t.equal(record().generation, generation + 1);
  t.match(record(), {
    spec: { tag: '2', labels: { team: 'a' }, process: { user: '7' } },
    policy: { restart: 'never' },
    update: {
      since: generation + 1,
      phase: 'preparing',
      from: { process: {} },
      to: { tag: '2', process: { user: '7' } },
    },
  });
  t.same(typesOf(turn), ['labels_changed', 'project_changed', 'update_requested']);
  t.match([...desiredOf([record()], h1)][0], { process: { user: '7' }, update: { previous: { tag: '1' } } });
  const again = put({});
  t.same([again.reply.code, again.changes.records, record().generation], ['ok', [], generation + 1], 'idempotent');
  t.end();
});

t.test('fields that nothing runs by make no generation; a policy makes one, and no update', (t) => {
  const { put, record, spec } = world();
  const { generation } = record();
  t.same(typesOf(put({ spec: spec({ labels: { a: 'b' } }) })), ['labels_changed']);
  t.equal(record().generation, generation);
  t.same(typesOf(put({ policy: { ...defaultPolicy, stop_grace_seconds: 1 } })), ['policy_changed']);
  t.same([record().generation, record().update], [generation + 1, undefined]);
  t.end();
});

t.test('an absent part is its default, and what is the default is not stored', (t) => {
  const { put, record, spec } = world();
  put({ spec: spec({ labels: { a: 'b' }, process: { init: true } }) });
  t.match(record().spec, { labels: { a: 'b' }, process: { init: true } });
  const { labels: _labels, process: _process, ...plain } = record().spec;
  put({ spec: plain });
  t.notOk('labels' in record().spec);
  t.notOk('process' in record().spec);
  t.end();
});

t.test('desired: with a change, and alone', (t) => {
  const { put, record, spec } = world();
  const { generation } = record();
  t.same(typesOf(put({ desired: 'stopped' })), ['stop_requested']);
  t.match(record(), { desired: 'stopped', generation: generation + 1 });
  const started = put({ desired: 'running', spec: spec({ tag: '2' }) });
  t.same(typesOf(started), ['start_requested', 'update_requested']);
  t.match(record(), { desired: 'running', generation: generation + 2, update: { since: generation + 2 } });
  put({ desired: 'stopped' });
  t.same(typesOf(put({ desired: 'running' })), ['start_requested']);
  t.end();
});

t.test('fields that cannot change', (t) => {
  const { put, spec } = world();
  t.match(put({ spec: spec({ name: 'other' }) }).reply.body, /"name":\["can't be changed"\]/);
  t.match(put({ host_key: 'h9' as typeof h1 }).reply.body, /"host_key":\["is not a host in an allocated region/);
  t.equal(put({ host_key: h1 }).reply.code, 'ok');
  const secrets = { env: { A: 'none' }, files: {} };
  t.match(put({ secrets }).reply.body, /"secrets\.env\.A":\["\\"none\\" is not a secret that you have"\]/);
  t.end();
});

t.test('aliases change the record alone, and make an event', (t) => {
  const { put, record, spec } = world();
  const { generation } = record();
  const turn = put({ spec: spec({ aliases: ['db', 'cache'] }) });
  t.same(typesOf(turn), ['aliases_changed']);
  t.match(bodyOf(turn).data, { aliases: ['db', 'cache'] });
  t.same([record().generation, record().spec.aliases], [generation, ['db', 'cache']]);
  t.same(typesOf(put({ spec: spec({ aliases: ['cache', 'db'] }) })), [], 'in any order');
  t.same([...desiredOf([record()], h1)][0], [...desiredOf([{ ...record(), spec: spec({ aliases: [] }) }], h1)][0]);
  const { aliases: _, ...plain } = record().spec;
  t.match(bodyOf(put({ spec: plain })).data, { aliases: [] });
  t.notOk('aliases' in record().spec);
  t.end();
});

t.test('another host is a move: prepared there while it runs, and of this host from then on', (t) => {
  const two = fleetOf(fleetHost(h1), fleetHost(h2));
  const running = world({}, two);
  const { generation } = running.record();
  t.match(bodyOf(running.plan({ host_key: h2 })), { data: { host_key: h2 }, plan: { changed: ['host_key'] } });
  const turn = running.put({ host_key: h2 });
  t.match(bodyOf(turn).data, { host_key: h2 });
  t.match(running.record(), { placement: { host: h1 }, preparing: { host: h2, chosenBy: 'tenant' }, generation });
  t.same(moveView(running.record()), { host_key: h2, phase: 'preparing', generation, reason: null });
  t.same(running.put({ host_key: h2 }).changes.records, [], 'idempotent');
  t.match(running.put({ host_key: h1 }).reply, { code: 'conflict', body: /moving to another host already/ });
  const kept = keepMoving(running.record(), running.state.tenant(acme), undefined, contextOf(two));
  t.same(kept?.records, [], 'it goes on, though its host is not drained');
  const ready = itemOf(running.record(), { observation: observation('stopped'), generation });
  apply(running.state, handlePreparation(running.record(), ready, running.state.tenant(acme), contextOf(two)));
  t.match(running.record(), { placement: { host: h2, chosenBy: 'tenant' }, leaving: { host: h1 } });
  t.match(moveView(running.record()), { host_key: h2, phase: 'stopping' });

  const failing = world({}, two);
  failing.put({ host_key: h2 });
  const failed = itemOf(failing.record(), { observation: observation('failed', { reason: 'image_auth' }), generation });
  apply(failing.state, handlePreparation(failing.record(), failed, failing.state.tenant(acme), contextOf(two)));
  t.same(moveView(failing.record()), { host_key: h2, phase: 'failed', generation, reason: 'image_auth' });
  t.match(bodyOf(failing.plan({})).data, { host_key: h1 }, 'it stays where it is');

  const changing = world({}, two);
  changing.put({ host_key: h2, spec: changing.spec({ tag: '2' }) });
  t.match(changing.record(), {
    generation: generation + 1,
    preparing: { host: h2 },
    spec: { tag: '2', host_key: h2 },
    update: { since: generation + 1, previous: { spec: { tag: '1' } } },
  });
  t.end();
});

t.test('a stopped container is on the other host at once, in one generation', (t) => {
  const two = fleetOf(fleetHost(h1), fleetHost(h2));
  const stopped = world({ desired: 'stopped', observed: observation('stopped') }, two);
  const { generation } = stopped.record();
  stopped.put({ host_key: h2, spec: stopped.spec({ tag: '2' }) });
  t.match(stopped.record(), {
    generation: generation + 1,
    placement: { host: h2, chosenBy: 'tenant' },
    leaving: { host: h1 },
    desired: 'stopped',
    spec: { tag: '2' },
  });
  const nowhere = world({ placement: { phase: 'unplaced' }, observed: observation('pending') }, two);
  const turn = nowhere.put({ host_key: h2 });
  t.same(typesOf(turn), ['placed']);
  t.match(nowhere.record(), { placement: { host: h2, chosenBy: 'tenant' } });
  t.end();
});

t.test('a host that cannot take it is refused, and nothing is changed', (t) => {
  const busy = { cpu_millis: 64_000, mem_bytes: 0, containers: 0 };
  for (const [hosts, code] of [
    [fleetOf(fleetHost(h1), fleetHost(h2, { used: busy })), 'conflict'],
    [fleetOf(fleetHost(h1), fleetHost(h2, { schedulable: false })), 'conflict'],
    [fleetOf(fleetHost(h1), fleetHost(h2, { condition: 'silent' })), 'conflict'],
    [fleetOf(fleetHost(h1, { condition: 'silent' }), fleetHost(h2)), 'conflict'],
    [fleetOf(fleetHost(h1), fleetHost(h2, { region: region('other') })), 'invalid'],
    [fleetOf(fleetHost(h1), fleetHost(h2, { condition: 'fenced' })), 'invalid'],
  ] as const) {
    const { put, record } = world({}, hosts);
    const before = record();
    t.equal(put({ host_key: h2 }).reply.code, code);
    t.equal(record(), before);
  }
  t.end();
});

t.test('a container is made with a look at its tag, if that is asked for', (t) => {
  const one = world();
  const id = containerId();
  one.create(id, 'pulled', {}, 'always');
  const record = one.state.tenant(acme).containers.get(id);
  t.equal(record?.spec.repull, 1);
  const [told] = [...desiredOf(one.state.wantedOn(h1), h1)].filter((container) => container.id === id);
  t.equal(told?.repull, 1, 'its host is told');
  const digest = `sha256:${'a'.repeat(64)}` as never;
  const pinned = { spec: { ...specOf('pinned'), tag: null, digest } };
  t.match(one.create(containerId(), 'pinned', pinned, 'always').reply, { code: 'invalid', body: /has no tag/ });
  t.end();
});

t.test('a plan says that the container leaves its host, and what stays there', (t) => {
  const room = { cpu_millis: 4000, mem_bytes: 2 ** 30, containers: 9 };
  const [small, large] = [room, { ...room, mem_bytes: 2 ** 34 }];
  const observed = observation('running', { volumes: ['/data'] });
  const two = fleetOf(fleetHost(h1, { capacity: small }), fleetHost(h2, { capacity: large }));
  const one = world({ observed, placement: placedOn(h1) }, two);
  const move = { from: h1, to: h2, volumes: ['/data'] };
  t.match(bodyOf(one.plan({ host_key: h2 })).plan, { action: 'replace', changed: ['host_key'], move });
  const larger = one.spec({ mem_limit: '4g' });
  t.match(bodyOf(one.plan({ spec: larger })).plan, { action: 'replace', changed: ['mem_limit'], move }, 'for its room');
  t.notOk('move' in bodyOf(one.plan({ spec: one.spec({ tag: '2' }) })).plan!);
  one.put({ host_key: h2 });
  t.match(bodyOf(one.plan({ spec: one.spec({ project: 'x' }) })).plan, { action: 'change' }, 'it moves already');
  t.notOk('move' in bodyOf(one.plan({})).plan!);

  const stopped = world({ desired: 'stopped', observed: observation('stopped') }, two);
  t.match(bodyOf(stopped.plan({ host_key: h2 })).plan, { action: 'replace', move: { from: h1, to: h2, volumes: [] } });
  const nowhere = world({ placement: { phase: 'unplaced' }, observed: observation('pending') }, two);
  t.notOk('move' in bodyOf(nowhere.plan({ host_key: h2 })).plan!, 'it has no host to leave');
  t.end();
});

t.test('a plan is what the write does, and changes nothing', (t) => {
  const { plan, put, record, spec, state, create } = world();
  const before = record();
  const planned = plan({ spec: spec({ tag: '2', labels: { a: 'b' } }) });
  t.match(bodyOf(planned), {
    data: { image: { tag: '2' } },
    plan: { action: 'replace', changed: ['image', 'labels'] },
  });
  t.same(planned.changes.records, []);
  t.equal(record(), before);
  t.same(bodyOf(planned).data, bodyOf(put({ spec: spec({ tag: '2', labels: { a: 'b' } }) })).data);
  t.match(bodyOf(plan({})), { plan: { action: 'none', changed: [] } });
  t.match(bodyOf(plan({ spec: spec({ project: 'x' }) })), { plan: { action: 'change', changed: ['project'] } });
  t.equal(plan({ spec: spec({ name: 'other' }) }).reply.code, 'invalid');

  const [second, third] = [containerId(), containerId()];
  const made = create(second, 'second', { policy: { ...defaultPolicy, restart: 'never' }, desired: 'stopped' });
  t.equal(made.reply.code, 'created');
  t.match(state.tenant(acme).containers.get(second), { policy: { restart: 'never' }, desired: 'stopped' });
  t.match(create(third, 'third').reply.code, 'created');
  t.notOk('policy' in state.tenant(acme).containers.get(third)!);
  t.end();
});
