/** Metadata of containers: labels and other fields that change nothing that runs. */
import t from 'tap';
import * as decide from '../../../../actors/domain/container/decide.ts';
import { overview } from '../../../../actors/domain/container/overview.ts';
import * as metadata from '../../../../actors/domain/container/metadata.ts';
import { leaveTombstone } from '../../../../actors/domain/container/transitions.ts';
import { rolledBack } from '../../../../actors/domain/container/updates.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import { isWellFormed } from '../../../../actors/domain/record-shapes.ts';
import type { Turn } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import type { Metadata } from '../../../../schemas/api/fields/container.ts';
import type { TextsPatch } from '../../../../schemas/api/fields/kinds.ts';
import { decodeCursor, type ListCursor } from '../../../../schemas/api/cursor.ts';
import { limits } from '../../../../schemas/limits.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import { containerId, operation } from '../../support.ts';
import { acme, apply, container, contextOf, fleetHost, fleetOf, h1, stateOf } from '../../support/records.ts';

const asker = { rid: 'r', budgetMs: 1000 };
const fleet = fleetOf(fleetHost(h1));

function world(...records: readonly ContainerRecord[]) {
  const [first = container()] = records;
  const state = stateOf(defaultTenant(acme), ...(records.length === 0 ? [first] : records));
  const record = (): ContainerRecord => state.tenant(acme).containers.get(first.id)!;
  const ask = <Type extends string>(type: Type) =>
    ({ type, tenant: acme, id: first.id, op: operation(), ...asker }) as const;
  const turn = (made: Turn): Turn => {
    apply(state, made.changes);
    return made;
  };
  return {
    state,
    record,
    put: (fields: Partial<Metadata>) => turn(metadata.put(state, { ...ask('metadata.put'), fields }, contextOf(fleet))),
    merge: (labels: TextsPatch) =>
      turn(metadata.put(state, { ...ask('metadata.put'), fields: {}, labels }, contextOf(fleet))),
    patch: (tag: string) =>
      turn(decide.update(state, { ...ask('container.update'), patch: { tag } }, contextOf(fleet))),
    remove: () => turn(decide.remove(state, ask('container.delete'), contextOf(fleet))),
    read: (turn: Turn): unknown => JSON.parse(String(turn.reply.body)),
    get: () => metadata.get(state, ask('metadata.get')),
    status: () => decide.status(state, ask('container.status'), contextOf(fleet)),
    told: () => JSON.stringify([...desiredOf(state.wantedOn(h1), h1)]),
  };
}

t.test('a label changes nothing that runs', (t) => {
  const one = world();
  const before = one.told();
  const { generation, insertedAtMs } = one.record();
  const { reply, changes } = one.put({ labels: { team: 'web' } });
  t.match(JSON.parse(String(reply.body)), { data: { labels: { team: 'web' } } });
  t.same(
    [changes.events.map(({ type }) => type), changes.effects.map(({ kind }) => kind)],
    [['labels_changed'], ['changed']],
    'no host hears of it',
  );
  t.match(one.record(), { generation, insertedAtMs, spec: { labels: { team: 'web' } } });
  t.equal(one.told(), before);
  t.ok(isWellFormed(one.record()));
  t.match(one.read(one.get()), { data: { labels: { team: 'web' } } });
  t.match(one.read(one.status()), { data: { labels: { team: 'web' } } });
  t.match(one.put({ labels: { team: 'web' } }).changes, { records: [], events: [] }, 'the same again');
  one.put({ labels: {} });
  t.notOk('labels' in one.record().spec, 'the default is not stored');
  t.end();
});

t.test('a record of before 0.2.0 has none', (t) => {
  const one = world();
  t.ok(isWellFormed(one.record()));
  t.match(one.read(one.get()), { data: { labels: {} } });
  t.notOk(isWellFormed({ ...one.record(), spec: { ...one.record().spec, labels: { a: 1 } } }));
  t.end();
});

t.test('a roll-back brings no earlier labels back', (t) => {
  const one = world();
  one.patch('2');
  t.ok(one.record().update?.previous, 'an update is under way');
  one.put({ labels: { team: 'web' } });
  const back = rolledBack(one.record(), { reason: null, message: null }, contextOf(fleet));
  t.match(back.spec, { labels: { team: 'web' } });
  t.end();
});

t.test('a container that is being removed keeps its labels, for a week after its end', (t) => {
  const one = world();
  one.put({ labels: { team: 'web' } });
  one.remove();
  t.match(one.put({ labels: {} }).reply, { code: 'conflict' });
  const { id } = one.record();
  apply(one.state, leaveTombstone(one.record(), contextOf(fleet)));
  const { reply } = metadata.list(one.state, {
    type: 'metadata.list',
    tenant: acme,
    ids: [id, containerId()],
    ...asker,
  });
  t.match(JSON.parse(String(reply.body)), { data: [{ id, labels: { team: 'web' } }], more: false });
  t.equal((JSON.parse(String(reply.body)) as { data: unknown[] }).data.length, 1, 'nothing of what is unknown');
  t.end();
});

t.test('a list says what it left out', (t) => {
  const labels = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`k${at}`, 'v'.repeat(256)]));
  const records = Array.from({ length: 60 }, () => {
    const record = container({ id: containerId() });
    return { ...record, spec: { ...record.spec, name: record.id, labels } };
  });
  const { state } = world(...records);
  let left = records.map(({ id }) => id);
  let pages = 0;
  while (left.length > 0) {
    const { reply } = metadata.list(state, { type: 'metadata.list', tenant: acme, ids: left, ...asker });
    const { data, more } = JSON.parse(String(reply.body)) as { data: { id: string }[]; more: boolean };
    t.same(
      data.map(({ id }) => id),
      left.slice(0, data.length),
    );
    left = left.slice(data.length);
    t.equal(more, left.length > 0);
    pages++;
  }
  t.ok(pages > 1);
  t.end();
});

t.test('each change of a field is one event', (t) => {
  const one = world();
  const typesOf = ({ changes }: Turn): string[] => changes.events.map(({ type }) => type);
  t.same(typesOf(one.put({ project: 'shop' })), ['project_changed']);
  t.same(typesOf(one.put({ project: 'shop', labels: { a: '' } })), ['labels_changed']);
  t.same(typesOf(one.put({ project: null, labels: {} })), ['labels_changed', 'project_changed']);
  t.end();
});

t.test('a merge patch sets and removes single labels', (t) => {
  const one = world();
  one.put({ labels: { a: '1', b: '2' }, project: 'shop' });
  t.match(one.read(one.merge({ b: null, c: '3' })), { data: { labels: { a: '1', c: '3' }, project: 'shop' } });
  t.same(one.record().spec.labels, { a: '1', c: '3' });
  t.same(one.merge({ b: null }).changes.events, [], 'it was not there');
  const many = Object.fromEntries(Array.from({ length: 63 }, (_, at) => [`k${at}`, '']));
  const { reply, changes } = one.merge(many);
  t.match([reply.code, JSON.parse(String(reply.body))], ['invalid', { details: { _: ['must be at most 64 keys'] } }]);
  t.same(changes.records, []);
  t.end();
});

t.test('a list of those with a label, a bounded number of looks at a time', (t) => {
  const labelled = (at: number, labels: Readonly<Record<string, string>>): ContainerRecord => {
    const record = container({ id: containerId(), insertedAtMs: at });
    return { ...record, spec: { ...record.spec, name: `c${at}`, labels } };
  };
  const few = [{ team: 'a' }, { team: 'b' }, { tier: 'a' }, {}, { team: 'a', tier: '' }];
  const { state } = world(...few.map((labels, at) => labelled(at, labels)));
  const page = (labels: string[], before: ListCursor | null = null, from = state) => {
    const ask = { tenant: acme, limit: 2, before, labels, ...asker } as const;
    const { reply } = decide.list(from, { type: 'container.list', ...ask }, contextOf(fleet));
    const { body } = overview(from, { type: 'container.overview', ...ask }, contextOf(fleet)).reply;
    const { data, next_cursor } = JSON.parse(reply.body) as { data: { name: string }[]; next_cursor?: string };
    const items = (JSON.parse(body) as { data: { container: { name: string } }[] }).data;
    const names = data.map(({ name }) => name);
    t.same(
      items.map((item) => item.container.name),
      names,
      'both lists',
    );
    return { names, next: next_cursor === undefined ? undefined : decodeCursor(next_cursor) };
  };
  const rows = [
    [['team'], ['c4', 'c1']],
    [['team=a'], ['c4', 'c0']],
    [
      ['team=b', 'tier=a'],
      ['c2', 'c1'],
    ],
    [['tier='], ['c4']],
    [['toString'], []],
  ] as const;
  for (const [labels, names] of rows) t.same(page([...labels]).names, names, labels.join());
  const first = page(['team']);
  t.same(page(['team'], first.next ?? null), { names: ['c0'], next: undefined });

  const many = Array.from({ length: limits.listScan + 1 }, (_, at) => labelled(at, at === 0 ? { team: 'a' } : {}));
  const { state: large } = world(...many);
  const empty = page(['team'], null, large);
  t.same(empty.names, [], 'it is not the end');
  t.same(page(['team'], empty.next ?? null, large), { names: ['c0'], next: undefined });
  t.end();
});
