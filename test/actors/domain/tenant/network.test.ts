/** The network of a tenant, as the tenant sees it. */
import t from 'tap';
import { names, network } from '../../../../actors/domain/tenant/network.ts';
import { PartitionState } from '../../../../actors/domain/state.ts';
import type { TurnContext } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import { isNameKey, keyOfName, type TenantName, type TenantNetwork } from '../../../../schemas/api/tenant-network.ts';
import { ipv6Of, ipv6RangeOf } from '../../../../schemas/tenant-network.ts';
import { specOf, tenantId } from '../../support.ts';
import { acme, contextOf, container, fleetOf, noLedger } from '../../support/records.ts';

const asker = { rid: 'r', budgetMs: 1000 };
const context: TurnContext = contextOf(fleetOf());
const range = { range: '10.193.0.0/16', sliceOf: () => ({ first: 0, count: 0 }) };

const named = (name: string, spec: Partial<ContainerRecord['spec']> = {}, more: Partial<ContainerRecord> = {}) =>
  container({ spec: { ...specOf(name), ...spec }, ...more }, name);

function stateOf(...records: readonly ContainerRecord[]) {
  const state = new PartitionState(noLedger);
  for (const record of records) state.put(record);
  const page = (limit = 100, after = '') =>
    JSON.parse(names(state, { type: 'tenant.names', tenant: acme, limit, after, ...asker }, context).reply.body) as {
      readonly data: readonly TenantName[];
      readonly more: boolean;
    };
  const view = (given: TurnContext = context) =>
    (
      JSON.parse(network(state, { type: 'tenant.network', tenant: acme, ...asker }, given).reply.body) as {
        readonly data: TenantNetwork;
      }
    ).data;
  return { state, page, view, list: () => page().data.map(({ name, kind }) => `${kind} ${name}`) };
}

t.test('its ranges, and how many containers are in it', (t) => {
  const going = named('going', {}, { desired: 'removed' });
  const other = named('other', {}, { tenant: tenantId('other') });
  const web = named('web');
  const { state, view } = stateOf(web, named('store'), going, other);
  const ranges = { ipv6: ipv6RangeOf('c'), domain: 'internal' };
  t.same(view(), { ipv4: null, ...ranges, members: 2 });
  t.same(view({ ...context, tenantIpv4: range }), { ipv4: '10.193.0.0/16', ...ranges, members: 2 });
  state.put({ ...web, desired: 'removed' });
  t.equal(view().members, 1);
  state.delete(`container.${acme}.${web.id}`);
  t.equal(view().members, 1, 'counted once');
  t.end();
});

t.test('names, and aliases of a project, with addresses', (t) => {
  const store = named('store', { project: 'shop', aliases: ['db', 'a'] }, { ipv4: '10.193.0.9' });
  const lone = named('lone', { aliases: ['nobody'] });
  const { page, list } = stateOf(lone, store, named('going', {}, { desired: 'removed' }));
  t.same(list(), ['alias a', 'alias db', 'name lone', 'name store'], 'an alias is of a project');
  const of = { container_id: store.id, project: 'shop', ipv4: '10.193.0.9', ipv6: ipv6Of('c', store.id) };
  t.same(
    page().data.filter(({ container_id: id }) => id === store.id),
    [
      { name: 'a', kind: 'alias', ...of },
      { name: 'db', kind: 'alias', ...of },
      { name: 'store', kind: 'name', ...of },
    ],
  );
  t.match(page().data[2], { project: null, ipv4: null });
  t.end();
});

t.test('a name that DNS does not allow is refused', (t) => {
  const [upper, lower] = [named('Web'), named('web')];
  t.same(stateOf(named('a_b'), named('x.y'), named('Store')).list(), ['name store']);
  for (const records of [
    [upper, lower],
    [lower, upper],
  ])
    t.match(stateOf(...records).page().data, [{ name: 'web', container_id: lower.id }]);
  const [first, second] = [named('WEB'), named('Web')].toSorted((one, other) => (one.id < other.id ? -1 : 1));
  if (first === undefined || second === undefined) throw new Error('no records');
  t.match(stateOf(second, first).page().data, [{ name: 'web', container_id: first.id }], 'the older one has it');
  t.equal(stateOf(second, first).page().data.length, 1);
  t.end();
});

t.test('pages have each name once, in order', (t) => {
  const records = Array.from({ length: 23 }, (_, at) =>
    named(`c-${at}`, { project: 'shop', aliases: ['all', `c-${at}-also`] }),
  );
  const { page } = stateOf(...records);
  const seen: TenantName[] = [];
  for (let after = '', more = true; more;) {
    const next = page(5, after);
    t.ok(next.data.length <= 5);
    seen.push(...next.data);
    more = next.more;
    after = keyOfName(next.data.at(-1)!);
    t.ok(isNameKey(after));
  }
  const keys = seen.map(keyOfName);
  t.equal(keys.length, 3 * 23);
  t.same(keys, [...new Set(keys)].toSorted());
  t.same(page(3 * 23).more, false);
  for (const wrong of ['', 'web', 'web name  nobody', `web other  ${records[0]!.id}`, ` name  ${records[0]!.id}`])
    t.notOk(isNameKey(wrong), wrong);
  t.end();
});

t.test('a page looks at no more containers than it shows', (t) => {
  const looked = new Set<string>();
  const watched = (record: ContainerRecord) =>
    new Proxy(record, { get: (target, key) => (looked.add(target.id), Reflect.get(target, key) as unknown) });
  const records = Array.from({ length: 1000 }, (_, at) =>
    watched(named(`c-${at}`, { project: 'shop', aliases: ['all', `c-${at}-also`] })),
  );
  const { page } = stateOf(...records);
  for (let after = '', pages = 0; pages < 3; pages++) {
    looked.clear();
    const { data } = page(10, after);
    t.equal(data.length, 10);
    t.ok(looked.size <= 10, `${looked.size} looked at`);
    after = keyOfName(data.at(-1)!);
  }
  t.end();
});

t.test('a name goes to the next container of its label, and changes with its container', (t) => {
  const [upper, lower] = [named('Web'), named('web')];
  const { state, page, list } = stateOf(upper, lower);
  const holder = () => page().data.find(({ kind }) => kind === 'name')?.container_id;
  t.equal(holder(), lower.id);
  state.put({ ...lower, desired: 'removed' });
  t.equal(holder(), upper.id);
  state.put({ ...lower, spec: { ...lower.spec, project: 'shop', aliases: ['a', 'b'] } });
  t.same(list(), ['alias a', 'alias b', 'name web']);
  t.match(page().data[2], { container_id: lower.id, project: 'shop' });
  t.same(page(100, keyOfName(page().data[2]!)).data, [], 'the other container of the label is on no page');
  state.put({ ...lower, spec: { ...lower.spec, project: 'shop', aliases: ['b'] }, ipv4: '10.193.0.7' });
  t.match(page().data, [{ name: 'b', ipv4: '10.193.0.7' }, { name: 'web' }]);
  for (const { tenant, id } of [lower, upper]) state.delete(`container.${tenant}.${id}`);
  t.same(list(), []);
  t.end();
});
