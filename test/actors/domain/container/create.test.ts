/** Membership of containers in the network of their tenant, and what their status shows of it. */
import t from 'tap';
import { create, type Creation } from '../../../../actors/domain/container/create.ts';
import * as documents from '../../../../actors/domain/container/spec.ts';
import { handleUpdate } from '../../../../actors/domain/container/updates.ts';
import { containerStatusView } from '../../../../actors/domain/container/view.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import { memberOf } from '../../../../actors/domain/members.ts';
import type { TurnContext } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord, NetworkSeen } from '../../../../schemas/api/container.ts';
import type { ContainerSpec } from '../../../../schemas/api/fields/container.ts';
import { defaultPolicy } from '../../../../schemas/api/policy.ts';
import { defaultTenant, type TenantRecord } from '../../../../schemas/api/tenant.ts';
import { quotaDimensions } from '../../../../schemas/errors.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { containerId, operation, specOf } from '../../support.ts';
import {
  acme,
  apply,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  itemOf,
  observation,
  region,
  stateOf,
} from '../../support/records.ts';

const ride = { rid: 'r', budgetMs: 1000 };
const none = { network: { mode: 'none' } } as const;
const tenant = { network: { mode: 'tenant' } } as const;
const first = 0x0a_c1_00_40;

/** @param free number of free IPv4 addresses; `undefined` if the cluster gives none */
function world(free?: number) {
  const caps = Object.fromEntries(
    quotaDimensions.map((dimension) => [dimension, null]),
  ) as unknown as TenantRecord['caps'];
  const state = stateOf({ ...defaultTenant(acme), regions: [region('default')], caps });
  let addresses = free;
  const context = (): TurnContext => ({
    ...contextOf(fleetOf(fleetHost(h1))),
    tenantIpv4:
      addresses === undefined ? undefined : { range: '10.193.0.0/16', sliceOf: () => ({ first, count: addresses! }) },
  });
  const get = (id: ContainerId): ContainerRecord => state.tenant(acme).containers.get(id)!;
  const make = (name: string, spec: Partial<ContainerSpec> = {}): ContainerId => {
    const id = containerId();
    const given: Creation = { ...ride, op: operation(), tenant: acme, id, spec: specOf(name), idempotency: null };
    const turn = create(state, { ...given, spec: { ...given.spec, ...spec } }, context());
    t.equal(turn.reply.code, 'created', turn.reply.body);
    apply(state, turn.changes);
    return id;
  };
  const put = (id: ContainerId, spec: Partial<ContainerSpec>, more: object = {}): void => {
    const { leftOut: _, ...before } = get(id).spec;
    const declaration = {
      spec: { ...before, ...spec },
      policy: defaultPolicy,
      secrets: { env: {}, files: {} },
      ...more,
    };
    const ask = { type: 'spec.put', tenant: acme, id, op: operation(), declaration, ...ride } as const;
    const turn = documents.put(state, ask, context());
    t.equal(turn.reply.code, 'ok', turn.reply.body);
    apply(state, turn.changes);
  };
  const runs = (id: ContainerId, network?: NetworkSeen): void => {
    const record = get(id);
    const seen = observation('running', network === undefined ? {} : { network });
    apply(state, { records: [{ ...record, observed: seen }], deletes: [], events: [], effects: [] });
  };
  /** Ends an update as its host reports it: the newest version runs, or the former one. */
  const settle = (id: ContainerId, phase: 'done' | 'rolled_back'): void => {
    const update = { since: get(id).update?.since ?? 0, phase, reason: null, message: null };
    const next = handleUpdate(get(id), itemOf(get(id), { update }), context());
    apply(state, { records: [next], deletes: [], events: [], effects: [] });
  };
  return {
    state,
    get,
    make,
    put,
    runs,
    settle,
    give: (count: number | undefined) => void (addresses = count),
    isIn: (id: ContainerId): boolean => memberOf(get(id)) !== undefined,
    members: () => state.tenant(acme).members,
    desired: (id: ContainerId) => [...desiredOf([get(id)], h1)][0],
    network: (id: ContainerId) => containerStatusView(get(id), context(), { upSinceMs: 0 }).network,
  };
}

const ready: NetworkSeen = { state: 'ready', message: null };

t.test('mode none: no member, no address, and its host gives it no network', (t) => {
  const { make, get, network, desired, members, isIn } = world(9);
  const id = make('web', none);
  t.same([isIn(id), members(), get(id).ipv4, network(id)], [false, 0, undefined, null]);
  t.match(desired(id), none);
  t.match(documents.specOf(get(id)), none);
  const usual = make('store');
  t.match(documents.specOf(get(usual)), tenant, 'the usual mode is shown');
  t.notOk('network' in get(usual).spec, 'and not stored');
  t.notOk('network' in desired(usual)!);
  t.end();
});

t.test('another mode is an update, and either version may run until it is over', (t) => {
  const { make, get, put, runs, settle, network, desired, isIn, members } = world(9);
  const id = make('web');
  const { generation, ipv4 } = get(id);
  runs(id, ready);
  t.match(network(id), { state: 'ready', ipv4, names: ['web', 'web.internal'] });
  put(id, none);
  t.match(get(id), { generation: generation + 1, update: { from: tenant, to: none, phase: 'preparing' } });
  t.match(desired(id), { ...none, update: { previous: { network: undefined } } });
  t.same([isIn(id), network(id)], [true, null], 'what runs is in the network until the new version is');
  settle(id, 'done');
  t.same([isIn(id), members()], [false, 0]);
  put(id, tenant);
  t.same([isIn(id), get(id).ipv4], [true, ipv4], 'an address is for life');
  settle(id, 'rolled_back');
  t.same([isIn(id), network(id)], [false, null]);
  put(id, { tag: '2', ...none });
  t.match(get(id).update?.to, { tag: '2', network: undefined }, 'without a change of the mode');
  t.end();
});

t.test('a tenant has so many members, and a later container is none until an update finds room', (t) => {
  const { state, make, get, put, runs, settle, network, desired, isIn, members } = world(99);
  const last = container({}, 'last');
  for (let at = 1; at < limits.networkMembers; at++) state.put(container({}, `m${at}`));
  state.put(last);
  t.equal(members(), limits.networkMembers);
  const apart = make('apart', none);
  const id = make('late');
  t.same([isIn(id), members(), get(id).ipv4], [false, limits.networkMembers, undefined]);
  runs(id);
  t.match(network(id), { ipv4: null, names: [], state: 'unavailable', reason: 'too_many_members' });
  t.match(network(id)?.message, /10000 members/);
  t.match(desired(id), none, 'its host gives it no network');
  t.match(documents.specOf(get(id)), tenant, 'what it declares stays');
  put(id, { labels: { a: 'b' } });
  t.equal(get(id).spec.leftOut, true, 'labels are no update');
  put(id, { env: { A: '1' } });
  settle(id, 'done');
  t.notOk(isIn(id));

  state.put({ ...last, desired: 'removed' });
  t.notOk(isIn(id), 'one that goes changes nothing about it');
  runs(id);
  put(id, { env: { A: '2' } });
  t.same([isIn(id), members()], [true, limits.networkMembers]);
  t.match(desired(id), { network: undefined, update: { previous: none } });
  t.match(get(id), { ipv4: /^10\.193\.0\./ });
  put(apart, tenant);
  t.match(network(apart), { reason: 'too_many_members' }, 'a change of the mode finds none, either');
  put(id, { env: { A: '3' } });
  t.ok(isIn(id), 'a member stays one');
  t.end();
});

t.test('IPv4: none was free, or there was no range yet; an update gives one', (t) => {
  const { make, get, put, runs, network, give } = world();
  const early = make('early');
  t.notOk('ipv4' in get(early));
  runs(early, ready);
  t.match(network(early), { ipv4: null, reason: null, message: null }, 'the cluster gives none');
  give(1);
  t.match(network(early), { reason: 'made_before_network', message: /before the cluster gave IPv4/ });
  const next = make('next');
  const late = make('late');
  for (const id of [next, late]) runs(id, ready);
  t.match(network(next), { ipv4: '10.193.0.64', reason: null });
  t.equal(get(late).ipv4, null);
  t.match(network(late), { ipv4: null, reason: 'no_ipv4' });
  put(late, { env: { A: '1' } });
  t.match(network(late), { ipv4: null, reason: 'no_ipv4' });
  give(3);
  for (const id of [early, late]) put(id, { env: { A: '2' } });
  t.same([get(early).ipv4, get(late).ipv4], ['10.193.0.65', '10.193.0.66']);
  t.match([network(early), network(late)], [{ reason: null }, { reason: null }]);
  t.end();
});

t.test('a container made before its host had the network has no names yet', (t) => {
  const { make, runs, network } = world(9);
  const id = make('web');
  runs(id, { ...ready, made_before: true });
  t.match(network(id), { state: 'ready', reason: 'made_before_network', message: /finds names from its next update/ });
  runs(id, { state: 'unavailable', message: 'why' });
  t.match(network(id), { state: 'unavailable', reason: 'not_attached', message: 'why' });
  t.end();
});
