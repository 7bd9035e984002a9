/** Whom a sweep looks at; host.test.ts has how much it does, vpn-property.test.ts what expires. */
import t from 'tap';
import { goneFrom } from '../../../actors/domain/host/strangers.ts';
import { expiredKeys, sweep, type SweepContext, sweepStepRecords } from '../../../actors/domain/sweep.ts';
import type { PartitionState } from '../../../actors/domain/state.ts';
import { noChanges, type FleetHost, type HostCondition, type TurnContext } from '../../../actors/domain/turn.ts';
import type { RevokedKeyRecord } from '../../../schemas/api/host.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { defaultPolicy, type Policy } from '../../../schemas/api/policy.ts';
import { limits } from '../../../schemas/limits.ts';
import { tenantId } from '../support.ts';
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
} from '../support/records.ts';

const unharmed: Omit<SweepContext, keyof TurnContext> = {
  silentMs: () => 0,
  regionIsSilent: () => false,
  hostLostMs: 1000,
  onFault: (_, error) => {
    throw error;
  },
};

const sweepOf = (hosts: readonly FleetHost[], ...records: readonly ContainerRecord[]) => {
  const state = stateOf(...records);
  const context: SweepContext = { ...contextOf(fleetOf(...hosts)), ...unharmed };
  const steps = [];
  for (const changes of sweep(state, context)) {
    apply(state, changes);
    steps.push(changes);
  }
  const hostOf = ({ tenant, id }: ContainerRecord) => {
    const placement = state.tenant(tenant).containers.get(id)?.placement;
    return placement?.phase === 'placed' ? placement.host : undefined;
  };
  return { steps, hosts: records.map(hostOf) };
};

t.test('from which hosts containers are placed elsewhere', (t) => {
  const other = fleetHost(h2);
  const conditions: [HostCondition, HostKey][] = [
    ['up', h1],
    ['silent', h1],
    ['unheard', h1],
    ['fenced', h1],
    ['lost', h2],
    ['removed', h2],
  ];
  for (const [condition, host] of conditions) {
    const { hosts } = sweepOf([fleetHost(h1, { condition }), other], container());
    t.same(hosts, [host], condition);
  }
  t.same(sweepOf([other], container()).hosts, [h2], 'one that the directory does not have any more');
  t.end();
});

t.test('a silent host, and one that is heard again, are events of its containers, once each', (t) => {
  const records = [container({}, 'a'), container({ desired: 'removed' }, 'b')];
  let state = stateOf(...records);
  const swept = (condition: HostCondition): string[] => {
    const none = { silentMs: () => 0, regionIsSilent: () => false, hostLostMs: 1000, onFault: () => t.fail() };
    const context = contextOf(fleetOf(fleetHost(h1, { condition })));
    const events = [];
    for (const changes of sweep(state, { ...context, ...none })) {
      apply(state, changes);
      events.push(...changes.events);
    }
    return events.map(({ type, status }) => `${type} ${status}`);
  };
  t.same(swept('up'), []);
  t.same(swept('unheard'), [], 'a process that has just started knows nothing');
  t.same(swept('silent'), ['status_unknown unknown'], 'what is being removed is shown the same');
  t.same(swept('silent'), []);
  state = stateOf(...records.map(({ tenant, id }) => state.tenant(tenant).containers.get(id)!));
  t.same(swept('silent'), [], 'another owner knows what has been told');
  t.same(swept('up'), ['status_known running']);
  t.same(swept('up'), []);
  t.equal(state.toldSilent(h1), 0);
  t.end();
});

t.test('a job that has ended is removed once its time is over, and nothing else is', (t) => {
  const policy: Policy = { ...defaultPolicy, restart: 'on_failure', remove_after_seconds: 60 };
  const done = observation('stopped', { reason: 'completed', exit_code: 0 });
  const failed = observation('failed', { reason: 'exited', exit_code: 3 });
  const { nowMs } = contextOf(fleetOf());
  const ended = { desired: 'stopped', policy, observed: done, observedAtMs: nowMs - 60_000 } as const;
  const rows: [what: string, record: Partial<ContainerRecord>, isRemoved: boolean][] = [
    ['completed', ended, true],
    ['failed', { ...ended, observed: failed }, true],
    ['a second too early', { ...ended, observedAtMs: nowMs - 59_000 }, false],
    ['at once', { ...ended, policy: { ...policy, remove_after_seconds: 0 }, observedAtMs: nowMs }, true],
    ['without such a policy', { ...ended, policy: { ...defaultPolicy, restart: 'never' } }, false],
    ['no job', { ...ended, policy: { ...policy, restart: 'always' } }, false],
    ['stopped by its tenant', { ...ended, observed: observation('stopped') }, false],
    ['broken off by its host', { ...ended, observed: { ...failed, exit_code: null } }, false],
    ['lost with its host', { ...ended, observed: observation('failed', { reason: 'host_lost' }) }, false],
    ['to run again', { ...ended, desired: 'running' }, false],
    ['is being removed', { ...ended, desired: 'removed' }, false],
  ];
  for (const [what, record, isRemoved] of rows) {
    const { steps } = sweepOf([fleetHost(h1)], container(record));
    const events = steps.flatMap((step) => step.events.map(({ type }) => type));
    t.same(events, isRemoved ? ['delete_requested'] : [], what);
  }
  const { steps } = sweepOf([], container({ ...ended, placement: unplaced }));
  t.same(
    steps.flatMap((step) => step.events.map(({ type }) => type)),
    ['delete_requested', 'removed'],
    'no host has it',
  );
  t.end();
});

t.test('a container that is lost with its only host comes back to its copy', (t) => {
  const lost = sweepOf([fleetHost(h1, { condition: 'lost' })], container());
  const [record] = lost.steps.flatMap(({ records }) => records) as ContainerRecord[];
  t.match(record?.placement, { phase: 'unplaced', since: 3, lostWith: { host: h1, since: 2 } });
  const stranger = { id: record!.id, tenant: record!.tenant, placement: 2 };
  t.same(goneFrom(stateOf(record!), h1, [stranger], 0, true), [], 'its copy may stay');
  t.same(goneFrom(stateOf(record!), h1, [stranger], 0, false), [stranger], 'the host takes none');
  const placements = (...hosts: FleetHost[]) =>
    sweepOf(hosts, record!).steps.flatMap(({ records }) =>
      (records as ContainerRecord[]).map((each) => each.placement),
    );
  t.match(placements(fleetHost(h1), fleetHost(h2)), [{ host: h1, since: 2 }], 'the same placement');
  t.match(placements(fleetHost(h1, { schedulable: false }), fleetHost(h2)), [{ host: h2, since: 4 }], 'another one');
  t.end();
});

t.test('a container that changes in the middle of a sweep is judged as it is then', (t) => {
  const [first, second, third] = [container({}, 'a'), container({}, 'b'), container({}, 'c')];
  const state = stateOf(first, second, third);
  const context = contextOf(fleetOf(fleetHost(h1, { condition: 'lost' }), fleetHost(h2)));
  const none = { silentMs: () => 0, regionIsSilent: () => false, hostLostMs: 1000, onFault: () => t.fail() };
  const now = ({ tenant, id }: ContainerRecord) => state.tenant(tenant).containers.get(id);
  let steps = 0;
  for (const changes of sweep(state, { ...context, ...none })) {
    apply(state, changes);
    if (steps++ > 0) continue;
    state.put({ ...second, desired: 'stopped', generation: 3 });
    state.delete(keys.container(third.tenant, third.id));
  }
  t.match(now(first), { generation: 3, placement: { host: h2 } });
  t.match(now(second), { generation: 4, desired: 'stopped' }, 'a stop is not lost');
  t.equal(now(third), undefined, 'what is gone does not come back');
  t.end();
});

t.test('a waiting container is placed if it should run', (t) => {
  const waiting = container({ placement: unplaced });
  const stopped = container({ placement: unplaced, desired: 'stopped' }, 'stopped');
  const { hosts } = sweepOf([fleetHost(h1)], stopped, waiting);
  t.same(hosts, [undefined, h1]);
  t.end();
});

const manyOn = (count: number, more: Partial<ContainerRecord> = {}) =>
  Array.from({ length: count }, (_, index) => container(more, `c${index}`));

/** Steps of a sweep, and hosts that it looked at. */
function cost(state: PartitionState, hosts: readonly FleetHost[]): { steps: number; looks: number } {
  let [steps, looks] = [0, 0];
  const fleet = fleetOf(...hosts);
  const counting = {
    ...fleet,
    condition: (key: HostKey) => (looks++, fleet.condition(key)),
    host: (key: HostKey) => (looks++, fleet.host(key)),
  };
  for (const changes of sweep(state, { ...contextOf(counting), ...unharmed })) {
    apply(state, changes);
    steps++;
  }
  return { steps, looks };
}

t.test('what is to leave its host costs a sweep one look for each kind, and what can not, nothing', (t) => {
  const [lost, drained] = [
    [fleetHost(h1, { condition: 'lost' })],
    [fleetHost(h1, { draining: true, schedulable: false })],
  ];
  const rows: [string, readonly FleetHost[], Partial<ContainerRecord>][] = [
    ['pinned to a lost host', lost, { placement: placedOn(h1, 'tenant') }],
    ['on a drained host, where no other has room', drained, {}],
    [
      'on its way from a drained host',
      [...drained, fleetHost(h2)],
      { leaving: { host: h1, since: 2, atMs: 1 }, placement: placedOn(h2) },
    ],
  ];
  const count = 10 * sweepStepRecords + 1;
  for (const [what, hosts, more] of rows) {
    const [one, many] = [stateOf(...manyOn(1, more)), stateOf(...manyOn(count, more))];
    const first = [cost(one, hosts), cost(many, hosts)];
    t.ok(first[1]!.steps >= first[0]!.steps + 10, `${what}: noted in ${first[1]!.steps} steps`);
    t.same(cost(many, hosts), cost(one, hosts), what);
  }
  t.end();
});

t.test('tenants take turns at what leaves a lost host', (t) => {
  const lost = [fleetHost(h1, { condition: 'lost' }), fleetHost(h2)];
  const last = container({ tenant: tenantId('bolt') }, 'last');
  const { hosts } = sweepOf(lost, ...manyOn(2 * limits.sweepChanges), last);
  t.equal(hosts.filter((host) => host === h2).length, limits.sweepChanges);
  t.equal(hosts.at(-1), h2);
  t.end();
});

t.test('a job that its tenant pinned is lost with its host beside a service of the same size', (t) => {
  const pinned = { placement: placedOn(h1, 'tenant') };
  const job = container({ ...pinned, policy: { ...defaultPolicy, restart: 'never' } }, 'job');
  const { steps } = sweepOf([fleetHost(h1, { condition: 'lost' })], container(pinned), job);
  t.match(
    steps.flatMap(({ records }) => records),
    [{ id: job.id, observed: { status: 'failed' } }],
  );
  t.end();
});

t.test('containers leave a host as long as it is lost or drained', (t) => {
  const [pinned, moved] = [container({ placement: placedOn(h1, 'tenant') }, 'a'), container({}, 'b')];
  const state = stateOf(pinned, moved);
  const now = ({ tenant, id }: ContainerRecord) => state.tenant(tenant).containers.get(id)!;
  cost(state, [fleetHost(h1, { draining: true, schedulable: false })]);
  t.match(now(moved).placement, { host: h1 }, 'no other has room');
  cost(state, [fleetHost(h1)]);
  cost(state, [fleetHost(h1), fleetHost(h2)]);
  t.match(now(moved).placement, { host: h1 });
  cost(state, [fleetHost(h1, { draining: true, schedulable: false })]);
  state.put({ ...now(moved), observed: observation('stopped') });
  const later = container({ observed: observation('stopped') }, 'c');
  state.put(later);
  cost(state, [fleetHost(h1, { draining: true, schedulable: false }), fleetHost(h2)]);
  for (const record of [moved, later]) t.match(now(record).placement, { host: h2 });
  cost(state, [fleetHost(h1, { condition: 'lost' }), fleetHost(h2)]);
  for (const record of [moved, later]) t.match(now(record), { leaving: undefined }, 'the lost host runs nothing');
  state.put({ ...now(pinned), desired: 'removed' });
  cost(state, [fleetHost(h1, { condition: 'lost' }), fleetHost(h2)]);
  t.equal(state.tenant(acme).containers.get(pinned.id), undefined);
  t.same([...state.wantedOn(h1)], []);
  t.end();
});

t.test('waiting containers cost a sweep one look for each kind, however many wait', (t) => {
  const waiting = (count: number) =>
    Array.from({ length: count }, (_, index) => container({ placement: unplaced }, `c${index}`));
  t.equal(sweepOf([], ...waiting(1000)).steps.length, sweepOf([], ...waiting(1)).steps.length);
  t.end();
});

t.test('a key is forgotten when all that it has signed for has expired, a few at a time', (t) => {
  const keyAt = (publicKey: string, atMs: number): RevokedKeyRecord => ({
    kind: 'revoked_key',
    publicKey,
    host: h1,
    atMs,
  });
  const ttlMs = 1000;
  t.same(expiredKeys(stateOf(keyAt('U1', 500)), 1500, ttlMs), noChanges, 'to its last millisecond');
  t.same(expiredKeys(stateOf(keyAt('U1', 500), keyAt('U2', 501)), 1501, ttlMs).deletes, ['revoked_key.U1']);
  const many = Array.from({ length: limits.sweepChanges + 5 }, (_, index) => keyAt(`U${index}`, 1));
  const state = stateOf(...many);
  for (const left of [5, 0]) {
    apply(state, expiredKeys(state, 5000, ttlMs));
    t.equal(state.revokedKeys().size, left);
  }
  t.end();
});
