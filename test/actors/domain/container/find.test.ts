/** An operator finds every container once, in one order, in pages of bounded work. */
import fc from 'fast-check';
import t from 'tap';
import { find } from '../../../../actors/domain/container/find.ts';
import * as decide from '../../../../actors/domain/container/decide.ts';
import type { PartitionState } from '../../../../actors/domain/state.ts';
import type { FleetView } from '../../../../actors/domain/turn.ts';
import type { Container, ContainerRecord, OperatorContainer } from '../../../../schemas/api/container.ts';
import type { Place } from '../../../../schemas/api/cursor.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { FindFilter } from '../../../../schemas/wire/answers.ts';
import { containerStatuses } from '../../../../schemas/words.ts';
import { tenantId } from '../../support.ts';
import {
  acme,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  h3,
  observation,
  placedOn,
  stateOf,
  unplaced,
} from '../../support/records.ts';

const asker = { rid: 'r', budgetMs: 1000 };
const fleet = fleetOf(fleetHost(h1), fleetHost(h2, { condition: 'silent' }), fleetHost(h3, { condition: 'lost' }));
const tenants = ['acme', 'Zeta', 'b-1', '_x'].map(tenantId);

interface Page {
  readonly data: readonly OperatorContainer[];
  readonly next: Place | null;
}

const pageOf = (
  state: PartitionState,
  from: Place | null,
  only: FindFilter,
  limit: number,
  seen: FleetView = fleet,
): Page =>
  JSON.parse(
    find(state, { type: 'container.find', partition: 0, limit, from, only, ...asker }, contextOf(seen)).reply.body,
  ) as Page;

const records = fc.array(
  fc
    .record({
      tenant: fc.constantFrom(...tenants),
      host: fc.constantFrom(undefined, h1, h2, h3),
      status: fc.constantFrom('pending', 'running', 'failed', 'stopped'),
      insertedAtMs: fc.integer({ min: 1, max: 5 }),
      desired: fc.constantFrom('running', 'stopped', 'removed'),
    })
    .map(({ host, status, ...rest }) =>
      container({ ...rest, observed: observation(status), placement: host === undefined ? unplaced : placedOn(host) }),
    ),
  { maxLength: 30 },
);
const filters: fc.Arbitrary<FindFilter> = fc.record(
  {
    tenant: fc.constantFrom(...tenants),
    host: fc.constantFrom(h1, h2, h3),
    status: fc.constantFrom(...containerStatuses),
  },
  { requiredKeys: [] },
);

/** Containers of one tenant in the order of their creation, as its owner creates them. */
const inOrder = (all: readonly ContainerRecord[]): ContainerRecord[] =>
  all.toSorted((one, other) => one.insertedAtMs - other.insertedAtMs || (one.id < other.id ? -1 : 1));

t.test('pages have what a tenant’s GET shows of each container that matches, once', (t) => {
  fc.assert(
    fc.property(records, filters, fc.integer({ min: 1, max: 5 }), (all, only, limit) => {
      const state = stateOf(...inOrder(all));
      const shown = all.map(({ tenant, id }) => {
        const { body } = decide.get(state, { type: 'container.get', tenant, id, ...asker }, contextOf(fleet)).reply;
        return (JSON.parse(body) as { data: Container }).data;
      });
      const wanted = shown
        .filter((one) => only.tenant === undefined || one.tenant_id === only.tenant)
        .filter((one) => only.host === undefined || one.host_key === only.host)
        .filter((one) => only.status === undefined || one.status === only.status);
      const seen: Container[] = [];
      const places: string[] = [];
      let from: Place | null = null;
      do {
        const page: Page = pageOf(state, from, only, limit);
        if (page.data.length > limit) throw new Error('more than asked for');
        for (const { container: one, status } of page.data) {
          if (one.status !== status.status || one.id !== status.id) throw new Error('two views of one container');
          seen.push(one);
          places.push(`${one.tenant_id} ${one.inserted_at} ${one.id}`);
        }
        from = page.next;
      } while (from !== null);
      const sort = (list: readonly Container[]) => JSON.stringify(list.toSorted((a, b) => (a.id < b.id ? -1 : 1)));
      if (sort(seen) !== sort(wanted)) throw new Error(`${sort(seen)} of ${sort(wanted)}`);
      if (places.join() !== places.toSorted().join()) throw new Error(`not in order: ${places.join()}`);
    }),
    { numRuns: 500 },
  );
  t.pass('500 lists');
  t.end();
});

t.test('a change between two pages moves nothing else', (t) => {
  const all = [1, 2, 3, 4, 5].map((insertedAtMs) => container({ insertedAtMs }));
  const state = stateOf(...all);
  const first = pageOf(state, null, {}, 2);
  t.same(first.next?.id, all[2]?.id);
  const before = container({ tenant: tenantId('a') });
  const after = container({ tenant: tenantId('zulu') });
  for (const record of [before, after]) state.put(record);
  for (const gone of [all[0], all[2]]) state.delete(keys.container(acme, gone!.id));
  const rest = pageOf(state, first.next, {}, 10);
  t.same(
    rest.data.map(({ container: { id } }) => id),
    [all[3]?.id, all[4]?.id, after.id],
  );
  t.equal(rest.next, null);
  t.end();
});

t.test('one ask looks at a bounded number of containers and tenants', (t) => {
  const many = Array.from({ length: limits.operatorScan + 5 }, (_, n) => container({ insertedAtMs: n + 1 }));
  const rare = container({ insertedAtMs: many.length + 1, observed: observation('failed') });
  const state = stateOf(...many, rare);
  const only = { status: 'failed' } as const;
  const first = pageOf(state, null, only, 100);
  t.same(first.data, []);
  // The place where the tenant begins counts too.
  t.equal(first.next?.id, many[limits.operatorScan - 1]?.id);
  const second = pageOf(state, first.next, only, 100);
  t.same(
    second.data.map(({ container: { id } }) => id),
    [rare.id],
  );
  t.equal(second.next, null);

  const empty = stateOf();
  for (let n = 0; n <= limits.operatorScan; n++)
    empty.quarantine(keys.tenant(tenantId(`t${String(n).padStart(6, '0')}`)));
  const last = `t${String(limits.operatorScan).padStart(6, '0')}`;
  t.match(pageOf(empty, null, {}, 100), { data: [], next: { tenant: last, id: '' } });
  t.end();
});

t.test('a page fits a message', (t) => {
  const env = { A: 'x'.repeat(60_000) };
  const all = Array.from({ length: 30 }, (_, n) => {
    const record = container({ insertedAtMs: n + 1 });
    return { ...record, spec: { ...record.spec, env } };
  });
  const page = pageOf(stateOf(...all), null, {}, 100);
  t.equal(page.data.length, Math.floor(limits.answerPartBytes / JSON.stringify(page.data[0]).length));
  t.equal(page.next?.id, all[page.data.length]?.id);
  t.end();
});
