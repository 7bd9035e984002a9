/** The document of a container, as its owner reads and writes it. */
import t from 'tap';
import * as documents from '../../../../actors/domain/container/spec.ts';
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
  observation,
  placedOn,
  region,
  stateOf,
} from '../../support/records.ts';

const ride = { rid: 'r', budgetMs: 1000 };
const fleet = fleetOf(fleetHost(h1));

function world(more: Partial<ContainerRecord> = {}) {
  const first = container({ placement: placedOn(h1), observed: observation('running'), ...more });
  const state = stateOf({ ...defaultTenant(acme), regions: [region('default')] }, first);
  const record = () => state.tenant(acme).containers.get(first.id)!;
  const ask = <Type extends string>(type: Type) =>
    ({ type, tenant: acme, id: first.id, op: operation(), ...ride }) as const;
  const as = (made: Turn): Turn => {
    apply(state, made.changes);
    return made;
  };
  /** As it is, with these parts. */
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
      as(documents.put(state, { ...ask('spec.put'), declaration: declaration(parts) }, contextOf(fleet))),
    plan: (parts: Partial<Declaration>) =>
      documents.plan(state, { ...ask('spec.plan'), declaration: declaration(parts) }, contextOf(fleet)),
    create: (id: ContainerId, name: string, parts: Partial<Declaration> = {}) =>
      as(
        documents.create(
          state,
          {
            ...ask('spec.create'),
            id,
            declaration: declaration({ spec: { ...specOf(name) }, ...parts }),
            idempotency: null,
          },
          contextOf(fleet),
        ),
      ),
  };
}
const typesOf = ({ changes }: Turn): string[] => changes.events.map(({ type }) => type);
const bodyOf = ({ reply }: Turn) => JSON.parse(reply.body) as { data: Record<string, unknown>; plan?: object };

t.test('what changes everything is one generation and one update', (t) => {
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

t.test('what nothing runs by makes no generation; a policy makes one, and no update', (t) => {
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

t.test('what cannot change', (t) => {
  const { put, spec } = world();
  t.match(put({ spec: spec({ name: 'other' }) }).reply.body, /"name":\["can't be changed"\]/);
  t.match(put({ host_key: 'h9' as typeof h1 }).reply.body, /"host_key":\["can't be changed: /);
  t.equal(put({ host_key: h1 }).reply.code, 'ok');
  const secrets = { env: { A: 'none' }, files: {} };
  t.match(put({ secrets }).reply.body, /"secrets\.env\.A":\["\\"none\\" is not a secret that you have"\]/);
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
