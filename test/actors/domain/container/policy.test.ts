/** The policy of a container, and the containers that it does not start again (ADR 36). */
import t from 'tap';
import * as decide from '../../../../actors/domain/container/decide.ts';
import { observe, settle } from '../../../../actors/domain/container/observe.ts';
import * as policies from '../../../../actors/domain/container/policy.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import { drain } from '../../../../actors/domain/host/drain.ts';
import type { Changes, FleetView, Turn } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord, Observation } from '../../../../schemas/api/container.ts';
import { defaultPolicy, healthDefaults, policyShown, type Policy } from '../../../../schemas/api/policy.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { operation } from '../../support.ts';
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
  itemOf,
  observation,
  stateOf,
} from '../../support/records.ts';

const asker = { rid: 'r', budgetMs: 1000 };
const oneHost = fleetOf(fleetHost(h1));
const policyOf = (changes: Partial<Policy>): Policy => ({ ...defaultPolicy, ...changes });
const command = { ...healthDefaults, command: ['true'] };
const tcp = { ...healthDefaults, tcp: { port: 80 } };
const completed: Partial<Observation> = { reason: 'completed', message: 'ended with exit code 0', exit_code: 0 };

function world(first: ContainerRecord, fleet: FleetView = oneHost) {
  const state = stateOf(defaultTenant(acme), first);
  let seq = 2;
  const record = (): ContainerRecord => state.tenant(acme).containers.get(first.id)!;
  const after = (changes: Changes): Changes => {
    apply(state, changes);
    return changes;
  };
  const turn = (made: Turn): Turn => {
    after(made.changes);
    return made;
  };
  const ask = <Type extends string>(type: Type) =>
    ({ type, tenant: acme, id: first.id, op: operation(), ...asker }) as const;
  return {
    state,
    record,
    put: (policy: Policy) => turn(policies.put(state, { ...ask('policy.put'), policy }, contextOf(fleet))),
    get: (): unknown => {
      const { reply } = policies.get(state, ask('policy.get'));
      return JSON.parse(String(reply.body));
    },
    start: () => turn(decide.start(state, ask('container.start'), contextOf(fleet))),
    remove: () => turn(decide.remove(state, ask('container.delete'), contextOf(fleet))),
    sweep: (seen = fleet) => after(settle(state, record(), contextOf(seen))),
    tell: (status: Observation['status'], seen: Partial<Observation> = {}, more: object = {}, host: HostKey = h1) => {
      const item = itemOf(record(), { observation: { ...observation(status), ...seen }, seq: ++seq, ...more });
      return after(observe(state, host, 1, item, contextOf(fleet)));
    },
    told: (host: HostKey = h1) => [...desiredOf(state.wantedOn(host), host)][0],
    drainOf: (host: HostKey, seen: FleetView): unknown =>
      JSON.parse(String(drain(state, { ...ask('host.drain'), of: host, partition: 0 }, contextOf(seen)).reply.body)),
  };
}

const job = (restart: Policy['restart'], more: Partial<ContainerRecord> = {}) =>
  container({ policy: policyOf({ restart }), ...more });

t.test('it is set whole, and its host hears of it', (t) => {
  const { put, get, record, told } = world(container());
  t.same(get(), { data: policyShown(defaultPolicy) });
  t.equal(told()?.policy, undefined, 'the default is not said');
  const { generation } = record();
  const policy = policyOf({ restart: 'on_failure', stop_grace_seconds: 30, health: tcp });
  const { reply, changes } = put(policy);
  t.same([reply.code, JSON.parse(String(reply.body))], ['ok', { data: policyShown(policy) }]);
  t.same(get(), { data: policyShown(policy) });
  t.same(
    changes.events.map(({ type }) => type),
    ['policy_changed'],
  );
  t.same(doorbellsOf(changes), [h1]);
  t.match(record(), { generation: generation + 1, observed: { status: 'running' } });
  t.equal(record().update, undefined, 'the engine needs no other container');
  t.same(told()?.policy, policy);
  t.same(put(policy).changes.records, [], 'the same again changes nothing');
  put(defaultPolicy);
  t.equal(told()?.policy, undefined);
  t.end();
});

t.test('the time of an ended job’s removal is a change of its policy, of which its host needs no update', (t) => {
  const { put, get, record } = world(container({ policy: policyOf({ restart: 'never' }) }));
  const policy = policyOf({ restart: 'never', remove_after_seconds: 60 });
  t.same(
    put(policy).changes.events.map(({ type }) => type),
    ['policy_changed'],
  );
  t.match(get(), { data: { remove_after_seconds: 60 } });
  t.equal(record().update, undefined);
  t.same(put(policy).changes.records, []);
  put(policyOf({ restart: 'never' }));
  t.match(get(), { data: { remove_after_seconds: null } });
  t.end();
});

t.test('a check that the engine carries out comes with an update, and goes with its roll-back', (t) => {
  const { put, record, told, tell } = world(container({ policy: policyOf({ restart: 'on_failure' }) }));
  put(policyOf({ restart: 'on_failure', health: command }));
  t.match(record().update, { phase: 'preparing', from: { health: null }, to: { health: command } });
  t.match(told(), { policy: { health: command }, update: { previous: { policy: { health: null } } } });
  put(policyOf({ restart: 'never', health: command }));
  t.match(record().update, { phase: 'preparing', previous: { policy: { restart: 'never', health: null } } });
  const update = { since: record().update?.since, phase: 'rolled_back', reason: 'unhealthy', message: 'x' };
  tell('running', {}, { update });
  t.match(record(), { policy: { restart: 'never', health: null }, update: { phase: 'rolled_back' } });
  t.equal(told()?.update, undefined);
  t.end();
});

t.test('an image whose check is switched off: an update, and stored beside `health`', (t) => {
  const { put, get, record, told, tell } = world(container({ policy: policyOf({ health: tcp }) }));
  put(policyOf({ no_check: true }));
  t.match(get(), { data: { health: { none: true } } });
  t.notMatch(get(), { data: { no_check: true } });
  t.match(record().update, { phase: 'preparing', from: { health: tcp }, to: { health: { none: true } } });
  t.match(told(), { policy: { health: null, no_check: true }, update: { previous: { policy: { health: tcp } } } });
  put(policyOf({ restart: 'never', no_check: true }));
  t.match(record().update?.previous?.policy, { restart: 'never', health: tcp, no_check: undefined });
  const update = { since: record().update?.since, phase: 'rolled_back', reason: 'unhealthy', message: 'x' };
  tell('running', {}, { update });
  t.match(record().policy, { restart: 'never', health: tcp, no_check: undefined });
  t.end();
});

t.test('one that is being removed has none to set', (t) => {
  const { put, remove } = world(container());
  remove();
  t.equal(put(policyOf({ restart: 'never' })).reply.code, 'conflict');
  t.end();
});

t.test('a container that has run to its end counts as stopped', (t) => {
  const { record, tell, start, told } = world(job('on_failure'));
  const { generation } = record();
  const changes = tell('stopped', completed, { ended: true });
  t.match(record(), { desired: 'stopped', generation: generation + 1, observed: { status: 'stopped', ...completed } });
  t.match(changes.events, [{ type: 'status', status: 'stopped' }]);
  t.same(doorbellsOf(changes), [h1]);
  t.equal(told()?.desired, 'stopped');
  tell('stopped', completed, { ended: true });
  t.match(record(), { generation: generation + 1, observed: completed }, 'it is said again, and changes nothing');
  start();
  t.match(record(), { desired: 'running', generation: generation + 2, observed: { status: 'pending', reason: null } });
  t.end();
});

t.test('its host hears with which generation it was last started', (t) => {
  const { record, tell, start, told, put } = world(job('on_failure'));
  t.equal(told()?.start, undefined, 'a record of before 0.2.0');
  tell('stopped', completed, { ended: true });
  start();
  const { generation } = record();
  t.match(told(), { generation, start: generation });
  put(policyOf({ restart: 'on_failure', stop_grace_seconds: 30 }));
  t.match(told(), { generation: generation + 1, start: generation }, 'another change is none');
  tell('backoff', { reason: 'exited', exit_code: 1 });
  start();
  t.match(told(), { generation: generation + 2, start: generation + 2 });
  t.end();
});

t.test('a host cannot end what should always run', (t) => {
  const { record, tell } = world(container());
  tell('stopped', completed, { ended: true });
  t.equal(record().desired, 'running');
  t.end();
});

t.test('a lost host', (t) => {
  const twoHosts = fleetOf(fleetHost(h1, { condition: 'lost' }), fleetHost(h2));
  t.test('on_failure: it runs elsewhere', (t) => {
    const { sweep, record } = world(job('on_failure'), twoHosts);
    sweep();
    t.match(record(), { desired: 'running', placement: { host: h2 } });
    t.end();
  });
  t.test('never: nothing runs it again but a start', (t) => {
    const { sweep, record, start } = world(job('never'), twoHosts);
    const changes = sweep();
    t.match(record(), {
      desired: 'stopped',
      placement: { phase: 'unplaced' },
      observed: { status: 'failed', reason: 'host_lost' },
    });
    t.match(changes.events, [{ type: 'unplaced', status: 'failed' }]);
    t.same(sweep().records, []);
    start();
    t.match(record(), { desired: 'running', placement: { host: h2 } });
    t.end();
  });
  t.test('completed: it stays completed', (t) => {
    const { tell, sweep, record } = world(job('on_failure'));
    tell('stopped', completed, { ended: true });
    sweep(twoHosts);
    t.match(record(), { desired: 'stopped', observed: { status: 'stopped' } });
    t.not(record().placement.phase === 'placed' && record().desired === 'running', true);
    t.end();
  });
  t.end();
});

t.test('a drain', (t) => {
  const drained = fleetOf(fleetHost(h1, { draining: true, schedulable: false }), fleetHost(h2));
  t.test('waits for what may run once', (t) => {
    for (const exit_code of [3, null]) {
      const { sweep, record, drainOf, tell } = world(job('never'), drained);
      t.same(sweep().records, []);
      t.match(drainOf(h1, drained), { data: { left: 1, blocked: [{ reason: 'runs_once' }] } });
      tell('failed', { reason: 'exited', exit_code }, { ended: true });
      sweep();
      t.match(record(), { desired: 'stopped', placement: { host: h2 }, leaving: { host: h1 } });
      tell('failed', { reason: 'exited', exit_code }, { ended: true });
      t.equal(record().leaving, undefined, 'the former host says that it is down');
      tell('stopped', {}, {}, h2);
      t.match(record().observed, { status: 'failed', reason: 'exited', exit_code }, 'its end is not forgotten');
    }
    t.end();
  });
  t.end();
});
