/** What a container has beside what runs. */
import t from 'tap';
import * as decide from '../../../../actors/domain/container/decide.ts';
import * as metadata from '../../../../actors/domain/container/metadata.ts';
import { leaveTombstone } from '../../../../actors/domain/container/transitions.ts';
import { rolledBack } from '../../../../actors/domain/container/updates.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import { isWellFormed } from '../../../../actors/domain/record-shapes.ts';
import type { Turn } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import type { Metadata } from '../../../../schemas/api/fields/container.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import { containerId, operation } from '../../support.ts';
import { acme, apply, container, contextOf, fleetHost, fleetOf, h1, stateOf } from '../../support/records.ts';

const ride = { rid: 'r', budgetMs: 1000 };
const fleet = fleetOf(fleetHost(h1));

function world(...records: readonly ContainerRecord[]) {
  const [first = container()] = records;
  const state = stateOf(defaultTenant(acme), ...(records.length === 0 ? [first] : records));
  const record = (): ContainerRecord => state.tenant(acme).containers.get(first.id)!;
  const ask = <Type extends string>(type: Type) =>
    ({ type, tenant: acme, id: first.id, op: operation(), ...ride }) as const;
  const turn = (made: Turn): Turn => {
    apply(state, made.changes);
    return made;
  };
  return {
    state,
    record,
    put: (fields: Partial<Metadata>) => turn(metadata.put(state, { ...ask('metadata.put'), fields }, contextOf(fleet))),
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
  t.same([changes.events, changes.effects.map(({ kind }) => kind)], [[], ['changed']], 'no host hears of it');
  t.match(one.record(), { generation, insertedAtMs, spec: { labels: { team: 'web' } } });
  t.equal(one.told(), before);
  t.ok(isWellFormed(one.record()));
  t.match(one.read(one.get()), { data: { labels: { team: 'web' } } });
  t.match(one.read(one.status()), { data: { labels: { team: 'web' } } });
  t.same(one.put({ labels: { team: 'web' } }).changes.records, [], 'the same again');
  one.put({ labels: {} });
  t.notOk('labels' in one.record().spec, 'the default is not stored');
  t.end();
});

t.test('a record of the last release has none', (t) => {
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

t.test('what is being removed keeps its labels, for a week after its end', (t) => {
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
    ...ride,
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
    const { reply } = metadata.list(state, { type: 'metadata.list', tenant: acme, ids: left, ...ride });
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
