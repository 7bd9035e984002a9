/** Moves of containers off a host that is up (ADR 32): no two hosts may ever run one container. */
import t from 'tap';
import { placeOn, want } from '../../../../actors/domain/container/transitions.ts';
import { goneFrom } from '../../../../actors/domain/host/strangers.ts';
import { containerStatusView } from '../../../../actors/domain/container/view.ts';
import { observe, observePull, settle } from '../../../../actors/domain/container/observe.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import { isEmpty, type Changes, type FleetHost, type FleetView } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord, Observation } from '../../../../schemas/api/container.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { PullItem } from '../../../../schemas/wire/host.ts';
import { defaultTenant, type TenantRecord } from '../../../../schemas/api/tenant.ts';
import {
  acme,
  apply,
  container,
  contextOf,
  doorbellsOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  h3,
  itemOf,
  observation,
  placedOn,
  region,
  stateOf,
} from '../../support/records.ts';

const tenant = (more: Partial<TenantRecord> = {}): TenantRecord => ({ ...defaultTenant(acme), ...more });
const leaves: Partial<FleetHost> = { draining: true, schedulable: false };
const drained = (...others: FleetHost[]): FleetView => fleetOf(fleetHost(h1, leaves), ...others);

function world(first: ContainerRecord, fleet: FleetView = drained(fleetHost(h2)), settings = tenant()) {
  const state = stateOf(settings, first);
  let seq = 2;
  const record = (): ContainerRecord => state.tenant(first.tenant).containers.get(first.id)!;
  const after = (changes: Changes): Changes => {
    apply(state, changes);
    return changes;
  };
  return {
    state,
    record,
    sweep: (seen = fleet, nowMs?: number) => after(settle(state, record(), contextOf(seen, nowMs))),
    report: (host: HostKey, seen: Observation, more: Parameters<typeof itemOf>[1] = {}, of = fleet) =>
      after(observe(state, host, 1, itemOf(record(), { observation: seen, seq: ++seq, ...more }), contextOf(of))),
    /** Orders for each host; `ready` is a copy that the host makes but does not start. */
    told: () =>
      Object.fromEntries(
        [h1, h2, h3].flatMap((host) =>
          [...desiredOf(state.wantedOn(host), host)].map((one) => [
            host,
            `${one.prepare === true ? 'ready' : one.desired} ${one.placement}`,
          ]),
        ),
      ),
    put: (more: Partial<ContainerRecord>) => state.put({ ...record(), ...more }),
  };
}

t.test('a drain: prepared elsewhere, stopped here, started there', (t) => {
  const one = world(container());
  t.same(doorbellsOf(one.sweep()).sort(), [h1, h2], 'prepared');
  t.same(one.told(), { h1: 'running 2', h2: 'ready 3' });
  t.match(one.record(), { generation: 2, placement: { host: h1 } }, 'the tenant sees no change');
  one.report(h2, observation('pulling'), { prepared: 3 });
  one.report(h2, observation('stopped'), { prepared: 2 });
  t.same(one.told(), { h1: 'running 2', h2: 'ready 3' }, 'of an earlier preparation: not ready');

  const placed = one.report(h2, observation('stopped'), { prepared: 3 });
  t.match(placed, { events: [{ type: 'placed' }] });
  t.same(doorbellsOf(placed).sort(), [h1, h2]);
  t.same(one.told(), { h1: 'stopped 2', h2: 'ready 3' }, 'it starts nowhere before it has stopped');
  t.match(one.record(), { generation: 3, placement: { host: h2, since: 3 } });
  t.equal(one.record().preparing, undefined);

  one.report(h2, observation('stopped'), { prepared: 3 });
  t.match(one.record().observed, { status: 'stopping' }, 'a copy that is ready is not a container that was stopped');
  one.report(h1, observation('stopping'));
  one.report(h1, observation('stopped'), { generation: 2 });
  t.same(one.told(), { h1: 'stopped 2', h2: 'ready 3' }, 'said of an earlier generation, it may have started since');
  t.same(doorbellsOf(one.report(h1, observation('stopped'))).sort(), [h1, h2]);
  t.same(one.told(), { h2: 'running 3' }, 'released');
  t.match(one.record().observed, { status: 'pending' });
  one.report(h2, observation('running'));
  t.match(one.record(), { generation: 3, observed: { status: 'running' } });
  t.equal(one.record().leaving, undefined);
  t.end();
});

t.test('the status says what stays behind on the host that it left', (t) => {
  const one = world(container());
  const withData = (status: Observation['status']): Observation => ({ ...observation(status), volumes: ['/data'] });
  const shown = (fleet = drained(fleetHost(h2))) =>
    containerStatusView(one.record(), contextOf(fleet), { upSinceMs: 0 });
  one.report(h1, withData('running'));
  t.match(shown(), { volumes: ['/data'], left: undefined });
  one.sweep();
  one.report(h2, withData('stopped'), { prepared: 3 });
  t.match(shown(), { host_key: h2, volumes: undefined, left: { host_key: h1, volumes: ['/data'] } });
  one.report(h1, observation('stopped'));
  one.report(h2, withData('running'));
  t.match(shown(), { volumes: ['/data'], left: { host_key: h1 } });

  const back = fleetOf(fleetHost(h2, { condition: 'lost', schedulable: false }), fleetHost(h1));
  one.sweep(back);
  t.match(shown(back), { host_key: h1, left: { host_key: h2, volumes: ['/data'] } }, 'of the host that it left last');
  t.end();
});

t.test('every host that it has left data on is named, until it is gone there', (t) => {
  const names = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'h7', 'h8', 'h9', 'h10', 'h11'] as HostKey[];
  let record = container();
  const everyHost = fleetOf(...names.map((key) => fleetHost(key)));
  const at = (ms: number, fleet = everyHost) => contextOf(fleet, ms);
  let nowMs = 0;
  const go = (key: HostKey, volumes?: readonly string[]): void => {
    const observed = { ...observation('running'), ...(volumes === undefined ? {} : { volumes: [...volumes] }) };
    record = placeOn({ ...record, observed }, fleetHost(key), 'platform', at(++nowMs));
  };
  const shown = (context = at(nowMs)): { newest: string | undefined; hosts: string[] } => {
    const { left, left_on } = containerStatusView(record, context, { upSinceMs: 0 });
    t.same(left, left_on?.[0], 'the newest is what `left` says');
    return { newest: left?.host_key, hosts: (left_on ?? []).map(({ host_key }) => host_key) };
  };
  t.same(shown(), { newest: undefined, hosts: [] });
  go(h2, ['/data']);
  go(names[2]!, ['/data']);
  t.same(shown(), { newest: h2, hosts: [h2, h1] });
  go(h1, ['/data']);
  t.same(shown().hosts, ['h3', h2], 'where it is nothing is left');
  go(names[3]!);
  t.same(shown().hosts, [h1, 'h3', h2], 'it was away before its copy there said what it has');
  const { left: _, leftBefore: __, ...old } = record;
  record = { ...old, left: { host: h1, volumes: ['/data'], atMs: nowMs } };
  t.same(shown().hosts, [h1], 'a record of before 0.2.0');
  for (const key of names.slice(4)) go(key, ['/data']);
  t.same(shown().hosts, ['h10', 'h9', 'h8', 'h7', 'h6', 'h5', 'h4', h1]);
  go(h2, ['/data']);
  t.same(shown().hosts, ['h11', 'h10', 'h9', 'h8', 'h7', 'h6', 'h5', 'h4'], 'the newest eight');

  const laterMs = nowMs - 1 + limits.volumesLeftMs;
  t.same(shown(at(laterMs)).hosts, ['h11'], 'the others have removed it');
  const silent = fleetOf(...names.map((key) => fleetHost(key, { condition: key === 'h9' ? 'silent' : 'up' })));
  t.same(shown(at(laterMs + 1, silent)).hosts, ['h9'], 'a host that is away has not');
  t.end();
});

t.test('the host that it leaves is gone for good: then it is released', (t) => {
  for (const condition of ['silent', 'fenced', 'lost', 'removed'] as const) {
    const leaving = { host: h1, since: 2, atMs: 1 };
    const one = world(container({ placement: placedOn(h2, 'platform', 3), generation: 3, leaving }));
    one.sweep(fleetOf(fleetHost(h1, { condition }), fleetHost(h2)));
    const isReleased = condition === 'lost' || condition === 'removed';
    t.equal(one.told()[h2], isReleased ? 'running 3' : 'ready 3', condition);
  }
  t.end();
});

t.test('a stopped container is not prepared: it leaves at once, and its host says so', (t) => {
  for (const status of ['pending', 'pulling', 'backoff', 'failed'] as const) {
    const one = world(container({ observed: observation(status) }));
    one.sweep();
    t.same(one.told(), { h1: 'stopped 2', h2: 'ready 3' }, status);
  }
  const stopped = world(container({ desired: 'stopped', observed: observation('stopped') }));
  stopped.sweep();
  t.same(stopped.told(), { h1: 'stopped 2', h2: 'stopped 3' }, 'stopped');
  t.match(stopped.record().observed, { status: 'stopped' });
  stopped.report(h1, observation('stopped'));
  t.same(stopped.told(), { h2: 'stopped 3' });
  const alone = world(container({ desired: 'stopped', observed: observation('stopped') }), drained());
  t.match(alone.sweep(), { events: [{ type: 'unplaced' }] }, 'stopped, and no room elsewhere: it rests without a host');
  t.match(alone.record(), { placement: { phase: 'unplaced', since: 3 }, observed: { status: 'stopped' } });
  const stopping = world(container({ desired: 'stopped', observed: observation('stopping') }));
  t.same(stopping.sweep().records, [], 'not stopped yet: it stays');
  t.end();
});

t.test('containers that do not leave', (t) => {
  const rows: [string, Partial<ContainerRecord>, FleetView][] = [
    ['pinned by its tenant', { placement: placedOn(h1, 'tenant') }, drained(fleetHost(h2))],
    ['being removed', { desired: 'removed' }, drained(fleetHost(h2))],
    ['no other host', {}, drained()],
    ['the engine is away', {}, fleetOf(fleetHost(h1, { ...leaves, hasEngine: false }), fleetHost(h2))],
    ['the host is silent', {}, fleetOf(fleetHost(h1, { ...leaves, condition: 'silent' }), fleetHost(h2))],
    ['the pace', {}, { ...drained(fleetHost(h2)), mayLeave: () => false }],
  ];
  for (const [name, record, fleet] of rows) t.same(world(container(record), fleet).sweep().records, [], name);
  t.end();
});

t.test('a preparation that is given up', (t) => {
  const prepared = (settings = tenant(), fleet = drained(fleetHost(h2))) => {
    const one = world(container(), fleet, settings);
    one.sweep();
    // The first look at the preparation.
    one.sweep();
    return one;
  };
  const stays = { h1: 'running 2' };
  for (const status of ['failed', 'backoff'] as const) {
    const one = prepared();
    one.report(h2, observation(status, { reason: 'image_pull' }));
    t.same(one.told(), stays, status);
    t.match(one.record(), { preparing: { givenUp: 'image_pull' }, rejections: [{ host: h2 }] });
    one.sweep(drained(fleetHost(h2), fleetHost(h3)));
    t.same(one.told(), { h1: 'running 2', h3: 'ready 4' }, 'another host is next');
  }
  const rejected = prepared();
  rejected.report(h2, observation('failed', { reason: 'rejected' }), { gone: true });
  t.same(rejected.told(), stays, 'no room there');

  const sweeps: [string, FleetView, number?][] = [
    ['the drain is called off', fleetOf(fleetHost(h1), fleetHost(h2))],
    ['it is lost', drained(fleetHost(h2, { condition: 'lost' }))],
    ['it is drained too', drained(fleetHost(h2, leaves))],
    ['it takes too long', drained(fleetHost(h2)), 1_000_000 + limits.preparationMs],
  ];
  for (const [name, fleet, nowMs] of sweeps) {
    const one = prepared();
    one.sweep(fleet, nowMs);
    t.same(one.told(), stays, name);
  }
  const unheard = prepared();
  unheard.sweep(drained(fleetHost(h2, { condition: 'unheard' })));
  t.same(unheard.told(), { h1: 'running 2', h2: 'ready 3' }, 'an owner that has just started decides nothing');
  unheard.report(h2, observation('stopped'), { prepared: 3 }, drained(fleetHost(h2, { condition: 'unheard' })));
  t.same(unheard.told(), { h1: 'running 2', h2: 'ready 3' });
  unheard.sweep();
  t.same(unheard.told(), { h1: 'stopped 2', h2: 'ready 3' }, 'and remembers that the copy is ready');

  const stopped = prepared();
  const copy = { tenant: acme, id: stopped.record().id, placement: 3 };
  t.same(goneFrom(stopped.state, h2, [copy], 0), [], 'the copy is wanted');
  stopped.put(want(stopped.record(), 'stopped', contextOf(drained(fleetHost(h2)))));
  t.same(stopped.told(), { h1: 'stopped 2' }, 'the tenant stops it');
  t.same(goneFrom(stopped.state, h2, [copy], 0), [copy], 'and the copy goes');
  t.same(goneFrom(stopped.state, h2, [copy], 1_000_000), [], 'unless a restore may have forgotten that it moved');
  stopped.put(want(stopped.record(), 'running', contextOf(drained(fleetHost(h2)))));
  t.same(stopped.told(), { h1: 'running 2' }, 'a start prepares nothing by itself');
  t.end();
});

t.test('while its image arrives, a preparation is not given up', (t) => {
  const fleet = drained(fleetHost(h2), fleetHost(h3));
  const one = world(container(), fleet);
  const prepares = { h1: 'running 2', h2: 'ready 3' };
  const startMs = 1_000_000;
  const half = limits.preparationMs / 2;
  const pull = (host: HostKey, nowMs: number, more: Partial<PullItem> = {}) => {
    const { tenant, id, generation } = one.record();
    const item = { tenant, id, generation, layers: 3, bytes: 10, total: 40, ...more };
    const changes = observePull(one.state, host, item, contextOf(fleet, nowMs));
    t.ok(isEmpty(changes), 'nothing is stored');
    apply(one.state, changes);
  };
  one.sweep(fleet, startMs);
  one.sweep(fleet, startMs);
  t.same(one.told(), prepares);
  for (let passed = 0; passed < 10; passed++) {
    pull(h2, startMs + passed * half);
    one.sweep(fleet, startMs + (passed + 1) * half);
    t.same(one.told(), prepares);
  }
  t.equal(one.state.inMemory(one.record().id).pull, undefined, 'the tenant’s container runs, and does not pull');
  const lastMs = startMs + 9 * half;
  // Another change of the container.
  one.put({ updatedAtMs: lastMs });
  pull(h3, lastMs + half);
  pull(h2, lastMs + half, { generation: 1 });
  one.sweep(fleet, lastMs + limits.preparationMs - 1);
  t.same(one.told(), prepares);
  one.sweep(fleet, lastMs + limits.preparationMs);
  t.same(one.told(), { h1: 'running 2' }, 'another host’s pull, and that of another generation, do not count');

  one.sweep(fleet, lastMs + limits.preparationMs);
  t.same(one.told(), { h1: 'running 2', h3: 'ready 4' });
  one.sweep(fleet, lastMs + limits.preparationMs);
  t.same(one.told(), { h1: 'running 2', h3: 'ready 4' }, 'the next preparation has its own time');
  t.end();
});

t.test('an owner that has just loaded a preparation gives it its time', (t) => {
  const before = world(container());
  before.sweep();
  const loaded = world(before.record());
  const lateMs = 1_000_000 + 2 * limits.preparationMs;
  loaded.sweep(drained(fleetHost(h2)), lateMs);
  t.same(loaded.told(), { h1: 'running 2', h2: 'ready 3' });
  loaded.sweep(drained(fleetHost(h2)), lateMs + limits.preparationMs);
  t.same(loaded.told(), { h1: 'running 2' });
  t.end();
});

t.test('caps of regions hold when it moves, not only when it is prepared', (t) => {
  const eu = region('eu');
  const settings = tenant({ regions: [region('default'), eu], regionCaps: { eu: { containers: 1 } } });
  const fleet = drained(fleetHost(h2, { region: eu }));
  const one = world(container(), fleet, settings);
  one.sweep();
  t.same(one.told(), { h1: 'running 2', h2: 'ready 3' });
  const full = tenant({ regions: [region('default'), eu], regionCaps: { eu: { containers: 0 } } });
  const state = stateOf(full, one.record());
  const seen = itemOf(one.record(), { observation: observation('stopped'), prepared: 3 });
  t.match(observe(state, h2, 1, seen, contextOf(fleet)).records, [
    { placement: { host: h1 }, preparing: { givenUp: 'no_host' } },
  ]);
  t.end();
});

t.test('while it leaves: the other host fails, the tenant deletes it', (t) => {
  const leaving = () => {
    const one = world(container());
    one.sweep();
    one.report(h2, observation('stopped'));
    return one;
  };
  const elsewhere = leaving();
  elsewhere.report(h2, observation('backoff', { reason: 'host_fault' }), {}, drained(fleetHost(h2), fleetHost(h3)));
  t.same(elsewhere.told(), { h1: 'stopped 2', h3: 'ready 4' }, 'a third host waits for the first, too');
  const removed = leaving();
  removed.put({ desired: 'removed', generation: 4 });
  t.same(removed.told(), { h1: 'stopped 2', h2: 'stopped 3' });
  removed.sweep(fleetOf(fleetHost(h1, leaves), fleetHost(h2, { condition: 'lost' })));
  t.equal(removed.record().kind, 'container', 'it may still run on the first');
  removed.report(h1, observation('stopped'));
  t.same(removed.told(), { h2: 'removed 3' });
  t.end();
});
