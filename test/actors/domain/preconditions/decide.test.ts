import t from 'tap';
import { decideRead, decideWrite } from '../../../../actors/domain/decide.ts';
import type { Changes } from '../../../../actors/domain/turn.ts';
import { isMet, splitHead, withHead, type Conditions } from '../../../../schemas/api/etag.ts';
import type { Ask, WriteAsk } from '../../../../schemas/wire/asks.ts';
import { operation, specOf } from '../../support.ts';
import { acme, apply, container, contextOf, fleetHost, fleetOf, h1, stateOf } from '../../support/records.ts';

const ride = { rid: 'r', budgetMs: 1000, tenant: acme };
const context = contextOf(fleetOf(fleetHost(h1)));

function world() {
  const record = container({ spec: { ...specOf('web'), repository: 'web' } });
  const state = stateOf(record);
  const { id } = record;
  const done = (changes: Changes): void => apply(state, changes);
  const read = () =>
    splitHead(String(decideRead(state, { type: 'container.get', id, head: true, ...ride }, context).reply.body));
  const write = (type: WriteAsk['type'], more: object) => {
    const ask = { type, id, op: operation(), ...ride, ...more } as Ask as WriteAsk;
    const { reply, changes } = decideWrite(state, ask, context, undefined);
    done(changes);
    return { code: reply.code, changes, ...splitHead(String(reply.body)) };
  };
  const now = () => state.tenant(acme).containers.get(id);
  return { record, state, read, write, now, done };
}

t.test('a write counts only for what is declared as its conditions say', (t) => {
  const { read, write, now } = world();
  const { etag = '' } = read().head ?? {};
  t.match(etag, /^"[0-9a-f]{16}"$/);
  const patch = (tag: string, when?: Conditions) =>
    write('container.update', { patch: { tag }, head: true, ...(when === undefined ? {} : { when }) });
  const refused = patch('2', { match: ['"other"'] });
  t.match(refused, { code: 'precondition_failed', body: /read it again/ });
  t.same([refused.changes.records, refused.head, now()?.spec.tag], [[], undefined, '1']);
  const done = patch('2', { match: ['"other"', etag] });
  t.equal(done.code, 'ok');
  t.same([done.head, now()?.spec.tag], [read().head, '2'], 'the answer has the new one');
  t.not(read().head?.etag, etag);
  t.equal(patch('3', { match: [etag] }).code, 'precondition_failed');
  t.equal(patch('3', { noneMatch: ['*'] }).code, 'precondition_failed');
  const { generation = 0 } = read().head ?? {};
  t.equal(write('container.delete', { when: { match: [etag] } }).code, 'precondition_failed');
  t.equal(write('container.delete', { id: container().id, when: { match: [etag] } }).code, 'not_found');
  t.match(write('container.delete', { head: true }), { code: 'accepted', head: { generation: generation + 1 } });
  t.end();
});

t.test('changes by hosts, clocks and placement are not declared', (t) => {
  const { read, done, now } = world();
  const before = read();
  const record = now();
  if (record === undefined) throw new Error('no container');
  const { observed, generation, updatedAtMs } = record;
  const next = {
    ...record,
    observed: { ...observed, status: 'failed', restart_count: 3 },
    generation: generation + 1,
    updatedAtMs: updatedAtMs + 1,
    placement: { phase: 'unplaced' },
  } as const;
  done({ records: [next], deletes: [], events: [], effects: [] });
  t.same(read().head, { ...before.head, generation: generation + 1 });
  t.not(read().body, before.body);
  t.end();
});

t.test('conditions', (t) => {
  const rows: readonly (readonly [Conditions, etag: string | undefined, isMet: boolean])[] = [
    [{}, '"a"', true],
    [{ match: ['"a"'] }, '"a"', true],
    [{ match: ['*'] }, '"a"', true],
    [{ match: ['W/"a"'] }, '"a"', false],
    [{ match: [] }, '"a"', false],
    [{ match: ['*'] }, undefined, false],
    [{ noneMatch: ['*'] }, undefined, true],
    [{ noneMatch: ['*'] }, '"a"', false],
    [{ noneMatch: ['W/"a"'] }, '"a"', false],
    [{ noneMatch: ['"b"'] }, '"a"', true],
    [{ match: ['"a"'], noneMatch: ['"a"'] }, '"a"', false],
  ];
  for (const [when, etag, met] of rows) t.equal(isMet(when, etag), met, `${JSON.stringify(when)} of ${etag}`);
  t.end();
});

t.test('a head beside a body', (t) => {
  t.same(splitHead('{"data":{"head":{"etag":"x"}}}'), { body: '{"data":{"head":{"etag":"x"}}}' });
  for (const head of [{ etag: '"0123456789abcdef"' }, { etag: '"0123456789abcdef"', generation: 7 }, { generation: 7 }])
    t.same(splitHead(withHead('{"data":[]}', head.etag, head.generation)), { body: '{"data":[]}', head });
  const later = '{"head":{"etag":"\\"0123456789abcdef\\"","more":1},"data":[]}';
  t.same(splitHead(later), { body: '{"data":[]}', head: { etag: '"0123456789abcdef"' } });
  t.same(splitHead(''), { body: '' });
  t.end();
});
