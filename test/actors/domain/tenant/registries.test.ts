/** Registries that a tenant's containers may name, checked at the declaration and at the start. */
import t from 'tap';
import { create as createContainer } from '../../../../actors/domain/container/create.ts';
import * as decide from '../../../../actors/domain/container/decide.ts';
import type { PartitionState } from '../../../../actors/domain/state.ts';
import type { FleetView, Turn } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import type { ContainerSpec } from '../../../../schemas/api/fields/container.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { defaultTenant, type TenantRecord } from '../../../../schemas/api/tenant.ts';
import { containerId, operation, specOf } from '../../support.ts';
import {
  acme,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  observation,
  placedOn,
  region,
  stateOf,
  unplaced,
} from '../../support/records.ts';
import { read, write } from '../../support/vpn.ts';

const [eu, us] = [region('eu'), region('us')];
const fleet = fleetOf(fleetHost(h1, { region: eu }), fleetHost(h2, { region: us }));
const tenant = (more: Partial<TenantRecord>): TenantRecord => ({ ...defaultTenant(acme), regions: [eu, us], ...more });
const asker = { rid: 'r', budgetMs: 1000 };
const refusal = { error: 'invalid', details: { registry: [/is not allowed/] } };

function create(state: PartitionState, spec: Partial<ContainerSpec>, seen: FleetView = fleet): Turn {
  const ask = { type: 'container.create' as const, tenant: acme, id: containerId(), op: operation(), ...asker };
  return createContainer(state, { ...ask, spec: specOf('web', spec), idempotency: null }, contextOf(seen));
}
const start = (state: PartitionState, { id }: ContainerRecord): Turn =>
  decide.start(state, { type: 'container.start', tenant: acme, id, op: operation(), ...asker }, contextOf(fleet));
const hostOf = ({ changes }: Turn) => {
  const [record] = changes.records as ContainerRecord[];
  return record?.placement.phase === 'placed' ? record.placement.host : undefined;
};

t.test('create', (t) => {
  for (const [name, settings, spec, expected] of [
    ['no list: any registry', {}, { registry: '10.0.0.1:6379' }, 'any'],
    ['on the list', { registries: ['ghcr.io'] }, { registry: 'ghcr.io' }, 'any'],
    ['not on the list', { registries: ['ghcr.io'] }, { registry: 'quay.io' }, 'refused'],
    ['an empty list', { registries: [] }, { registry: 'docker.io' }, 'refused'],
    ['public names alone', { registries: ['public'] }, { registry: '10.0.0.1:6379' }, 'refused'],
    ['a public name', { registries: ['public'] }, { registry: 'quay.io' }, 'any'],
    ['allowed in one region: placed there', { regionRegistries: { eu: ['ghcr.io'] } }, { registry: 'quay.io' }, h2],
    [
      'a region’s list stands in place of the tenant’s',
      { registries: ['quay.io'], regionRegistries: { us: ['ghcr.io'] } },
      { registry: 'ghcr.io' },
      h2,
    ],
    [
      'null in a region: no list there',
      { registries: [], regionRegistries: { eu: null } },
      { registry: 'ghcr.io' },
      h1,
    ],
    [
      'a host of a region that refuses it',
      { regionRegistries: { eu: ['ghcr.io'] } },
      { registry: 'quay.io', host_key: h1 },
      'refused',
    ],
    ['no image is asked of no registry', { registries: [] }, { repository: null }, 'any'],
  ] as const) {
    t.test(name, (t) => {
      const turn = create(stateOf(tenant(settings)), spec);
      if (expected === 'refused') {
        t.equal(turn.reply.code, 'invalid');
        t.match(JSON.parse(turn.reply.body), refusal);
        t.same(turn.changes.records, []);
      } else {
        t.equal(turn.reply.code, 'created');
        if (expected !== 'any') t.equal(hostOf(turn), expected);
      }
      t.end();
    });
  }
  t.test('only regions that may pull it count for caps', (t) => {
    const placement = { ...placedOn(h2), region: us } as ContainerRecord['placement'];
    const one = container({ placement }, 'other');
    const settings = tenant({ regionRegistries: { eu: [] }, regionCaps: { us: { containers: 1 } } });
    const full = create(stateOf(settings, one), {});
    t.match(JSON.parse(full.reply.body), {
      error: 'over_quota',
      detail: { dimension: 'containers', requested: 2, max: 1 },
    });
    const both = { eu: { containers: 0 }, us: { containers: 1 } };
    const told = create(stateOf({ ...settings, regionCaps: both }, one), {});
    t.match(JSON.parse(told.reply.body), { detail: { max: 1 } }, 'the cap of the region where it would run is told');
    const room = create(stateOf({ ...settings, regionCaps: { eu: { containers: 0 } } }, one), {});
    t.equal(hostOf(room), h2);
    t.end();
  });
  t.test('one without an image is placed whatever the lists', (t) => {
    t.equal(hostOf(create(stateOf(tenant({ registries: [], regions: [us] })), { repository: null })), h2);
    t.end();
  });
  t.test('told together with other faults', (t) => {
    const state = stateOf(tenant({ registries: [] }), container());
    t.match(JSON.parse(create(state, {}).reply.body), { details: { name: [/taken/], registry: [/not allowed/] } });
    t.end();
  });
  t.end();
});

t.test('start', (t) => {
  const rests = { desired: 'stopped', observed: observation('stopped') } as const;
  const settings = tenant({ registries: ['ghcr.io'] });
  const stopped = container({ ...rests, placement: placedOn(h1) });
  const refused = start(stateOf(settings, stopped), stopped);
  t.match(JSON.parse(refused.reply.body), refusal, 'a list that came after the container');
  t.same(refused.changes.records, []);
  const running = container();
  t.equal(start(stateOf(settings, running), running).reply.code, 'ok', 'what runs goes on');
  const failed = container({ observed: observation('failed') });
  t.equal(start(stateOf(settings, failed), failed).reply.code, 'invalid', 'what failed is not tried again');
  const elsewhere = tenant({ registries: [], regionRegistries: { us: ['registry.test'] } });
  const waits = container({ ...rests, placement: unplaced });
  t.equal(hostOf(start(stateOf(elsewhere, waits), waits)), h2, 'placed where it may be');
  const damaged = stateOf(stopped);
  damaged.quarantine(keys.tenant(acme));
  t.equal(start(damaged, stopped).reply.code, 'internal', 'nobody knows what the tenant may pull');
  t.end();
});

t.test('the operator sets and sees the lists', (t) => {
  const state = stateOf();
  const lists = { registries: ['public', '10.0.0.1:5000'], region_registries: { eu: ['ghcr.io'], us: null } };
  t.match(write(state, { type: 'tenant.put', tenant: acme, settings: lists }).body, { data: lists });
  t.match(read(state, { type: 'tenant.get', tenant: acme }).body, { data: lists });
  write(state, { type: 'tenant.put', tenant: acme, settings: {} });
  t.match(read(state, { type: 'tenant.get', tenant: acme }).body, {
    data: { registries: null, region_registries: {} },
  });
  const { registries: _, regionRegistries: __, ...older } = defaultTenant(acme) as TenantRecord & { registries?: null };
  t.match(read(stateOf(older), { type: 'tenant.get', tenant: acme }).body, { data: { registries: null } });
  t.end();
});
