/** The list of a tenant's containers with filters, and what changes in it. */
import t from 'tap';
import { overview, watch } from '../../../../actors/domain/container/overview.ts';
import { sweep } from '../../../../actors/domain/sweep.ts';
import type { HostCondition } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import { decodeCursor, type ListCursor } from '../../../../schemas/api/cursor.ts';
import { limits } from '../../../../schemas/limits.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import type { OverviewFilter, WatchPage, WatchPosition } from '../../../../schemas/wire/answers.ts';
import { specOf, tenantId } from '../../support.ts';
import {
  acme,
  apply,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  observation,
  placedOn,
  stateOf,
  unplaced,
} from '../../support/records.ts';
import { itemChanges } from '../../../../actors/domain/state.ts';

const context = contextOf(fleetOf(fleetHost(h1), fleetHost(h2)));
const asker = { tenant: acme, rid: 'r', budgetMs: 1000 };
const made = (at: number, more: Partial<ContainerRecord> = {}) =>
  container({ insertedAtMs: 1000 + at, spec: specOf(`c${at}`), ...more });

interface Named {
  readonly name: string;
  readonly status: string;
}

interface Item {
  readonly container: Named;
  readonly status?: { readonly status: string };
  readonly spec?: { readonly name: string };
  readonly etag?: string;
}

function listOf(records: readonly ContainerRecord[]) {
  const state = stateOf(defaultTenant(acme), ...records);
  return (only: OverviewFilter, more: { limit?: number; before?: ListCursor | null; include?: string[] } = {}) => {
    const ask = { type: 'container.overview', limit: 100, before: null, only, ...more, ...asker } as const;
    const { data, next_cursor } = JSON.parse(String(overview(state, ask, context).reply.body)) as {
      data: Item[];
      next_cursor?: string;
    };
    const next = next_cursor === undefined ? undefined : decodeCursor(next_cursor);
    return { data, next, names: data.map((one) => one.container.name) };
  };
}

t.test('several of one filter are alternatives, and different ones must all hold', (t) => {
  const list = listOf([
    made(0, { spec: { ...specOf('c0'), project: 'shop' } }),
    made(1, { observed: observation('failed'), placement: placedOn(h2) }),
    made(2, { observed: observation('failed'), spec: { ...specOf('c2'), project: 'shop' } }),
    made(3, { placement: unplaced, observed: observation('pending') }),
  ]);
  t.same(list({}).names, ['c3', 'c2', 'c1', 'c0']);
  t.same(list({ status: ['failed'] }).names, ['c2', 'c1']);
  t.same(list({ status: ['failed', 'pending'] }).names, ['c3', 'c2', 'c1']);
  t.same(list({ status: ['failed'], project: ['shop'] }).names, ['c2']);
  t.same(list({ host: [h2] }).names, ['c1']);
  t.same(list({ name: ['c3', 'c0', 'none'] }).names, ['c3', 'c0'], 'newest first');
  t.same(list({ name: ['c3', 'c0'], status: ['pending'] }).names, ['c3']);
  const first = list({ name: ['c3', 'c1', 'c0'] }, { limit: 2 });
  t.same(list({ name: ['c3', 'c1', 'c0'] }, { before: first.next ?? null }).names, ['c0']);
  const [bare] = list({}).data;
  t.same([bare?.status, bare?.spec, bare?.etag], [undefined, undefined, undefined]);
  const [full] = list({ name: ['c1'] }, { include: ['status', 'spec'] }).data;
  t.match(full, { status: { status: 'failed' }, spec: { name: 'c1' }, etag: /^"[0-9a-f]{16}"$/ });
  t.end();
});

t.test('a filtered page looks at a bounded number', (t) => {
  const records = Array.from({ length: limits.listScan + 1 }, (_, at) =>
    made(at, at === 0 ? { observed: observation('failed') } : {}),
  );
  const list = listOf(records);
  const empty = list({ status: ['failed'] });
  t.same(empty.names, []);
  t.same(list({ status: ['failed'] }, { before: empty.next ?? null }).names, ['c0']);
  t.end();
});

function watching(...records: readonly ContainerRecord[]) {
  const state = stateOf(defaultTenant(acme), ...records);
  const look = (from: { before: ListCursor | null } | { after: WatchPosition }): WatchPage => {
    const ask = { type: 'container.watch', from, ...asker } as const;
    return JSON.parse(String(watch(state, ask, context).reply.body)) as WatchPage;
  };
  return {
    look,
    put: (...changed: readonly ContainerRecord[]) =>
      apply(state, { records: changed, deletes: [], events: [], effects: [] }),
    changed: (after: WatchPosition) =>
      look({ after }).data.map((item) =>
        'removed' in item ? `-${item.removed}` : (item.container as { name: string }).name,
      ),
  };
}

t.test('changes while pages are read come after them', (t) => {
  const [one, two, three] = [made(1), made(2), made(3)] as const;
  const { look, put, changed } = watching(one, two, three);
  const page = look({ before: null });
  t.equal(page.data.length, 3);
  t.match(page.data[0], { container: { name: 'c3' }, status: { desired: 'running' } });
  t.same(changed(page.position), []);
  put({ ...two, desired: 'stopped' }, { ...made(9), tenant: tenantId('other') });
  put(made(4), { ...one, desired: 'stopped' }, { ...two, desired: 'running' });
  t.same(changed(page.position), ['c4', 'c1', 'c2'], 'each once, of this tenant alone');
  const { position } = look({ after: page.position });
  put({ kind: 'tombstone', id: three.id, tenant: acme, history: [], goneAtMs: 1, idempotency: null } as never);
  t.same(changed(position), [`-${three.id}`]);
  t.same(look({ after: look({ after: position }).position }).data, []);
  t.end();
});

t.test('only matching containers are followed, and one that ceases to match is removed', (t) => {
  const ours = made(1, { spec: { ...specOf('c1'), labels: { team: 'a' } } });
  const theirs = made(2);
  const state = stateOf(defaultTenant(acme), ours, theirs);
  const put = (...records: readonly ContainerRecord[]) =>
    apply(state, { records, deletes: [], events: [], effects: [] });
  const look = (
    from: { before: null } | { after: WatchPosition },
    wanted: { only?: OverviewFilter; labels?: string[] },
  ): { position: WatchPosition; told: string[] } => {
    const ask = { type: 'container.watch', from, ...wanted, ...asker } as const;
    const { data, position } = JSON.parse(String(watch(state, ask, context).reply.body)) as WatchPage;
    const told = data.map((item) =>
      'removed' in item ? `-${item.removed}` : (item.container as { name: string }).name,
    );
    return { position, told };
  };
  const wishes = [{ labels: ['team=a'] }, { only: { name: ['c1'] } }, { only: { status: ['running'], name: ['c1'] } }];
  for (const wish of wishes) t.same(look({ before: null }, wish).told, ['c1'], JSON.stringify(wish));
  t.same(look({ before: null }, { only: { project: ['none'] } }).told, []);
  const { position: after } = look({ before: null }, {});
  put(theirs, { ...ours, spec: specOf('c1') });
  t.same(look({ after }, { labels: ['team=a'] }).told, [`-${theirs.id}`, `-${ours.id}`]);
  t.same(look({ after }, { only: { name: ['c1'] } }).told, [`-${theirs.id}`, 'c1']);
  t.end();
});

t.test('a host that is lost, and one that is back, changes what is shown of its containers', (t) => {
  const kept = { volumes: [{ name: 'data', path: '/data' }] };
  const [stays, other] = [made(1, { spec: { ...specOf('c1'), ...kept } }), made(2, { placement: placedOn(h2) })];
  const state = stateOf(defaultTenant(acme), stays, other);
  let position: WatchPosition | undefined;
  const told = (condition: HostCondition): { names: string[]; rung: string[] } => {
    const of = contextOf(fleetOf(fleetHost(h1, { condition }), fleetHost(h2)));
    const onFault = (_: unknown, error: unknown): never => {
      throw error;
    };
    const rung: string[] = [];
    const never = { silentMs: () => 0, regionIsSilent: () => false, hostLostMs: Infinity, onFault };
    for (const changes of sweep(state, { ...of, ...never })) {
      apply(state, changes);
      for (const effect of changes.effects) if (effect.kind === 'changed') rung.push(effect.id);
    }
    const from = position === undefined ? { before: null } : { after: position };
    const ask = { type: 'container.watch', from, ...asker } as const;
    const page = JSON.parse(String(watch(state, ask, of).reply.body)) as WatchPage;
    position = page.position;
    const names = page.data.map((item) =>
      'removed' in item ? item.removed : `${(item.container as Named).name} ${(item.container as Named).status}`,
    );
    return { names, rung };
  };
  t.same(told('up'), { names: ['c2 running', 'c1 running'], rung: [] });
  t.same(told('fenced'), { names: ['c1 lost'], rung: [stays.id] });
  t.same(told('fenced'), { names: [], rung: [] }, 'once');
  t.same(told('up'), { names: ['c1 running'], rung: [stays.id] });
  t.end();
});

t.test('changes come in pages, and none between two is left out', (t) => {
  const large = (at: number) => made(at, { spec: { ...specOf(`c${at}`), env: { A: 'a'.repeat(30_000) } } });
  const { look, put, changed } = watching();
  const start = look({ before: null }).position;
  put(...Array.from({ length: 10 }, (_, at) => large(at)));
  const first = look({ after: start });
  t.ok(first.more && first.data.length < 10);
  let { position, more } = first;
  const seen = first.data.length;
  const rest: string[] = [];
  while (more) {
    rest.push(...changed(position));
    ({ position, more } = look({ after: position }));
  }
  t.equal(seen + rest.length, 10);
  t.end();
});

t.test('a position that is too old, or of another memory, begins again', (t) => {
  const one = made(1);
  const { look, put } = watching(one);
  const { position } = look({ before: null });
  t.match(look({ after: { ...position, epoch: 7 } }), { reset: 'unknown', data: [] });
  t.match(look({ after: { ...position, revision: position.revision + 1 } }), { reset: 'expired' });
  for (let count = 0; count <= itemChanges; count++) put(one);
  t.match(look({ after: position }), { reset: 'expired', data: [] });
  t.end();
});
