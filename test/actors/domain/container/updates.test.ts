/** Updates of what a container is made from (ADR 35). */
import t from 'tap';
import * as decide from '../../../../actors/domain/container/decide.ts';
import { observe, observePull, settle } from '../../../../actors/domain/container/observe.ts';
import { silence } from '../../../../actors/domain/container/silence.ts';
import * as policies from '../../../../actors/domain/container/policy.ts';
import { proveUpdates } from '../../../../actors/domain/sweep.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import { createDomain } from '../../../../actors/domain/domain.ts';
import { noChanges, type Changes, type FleetHost, type FleetView, type Turn } from '../../../../actors/domain/turn.ts';
import type {
  ContainerRecord,
  ContainerStatusView,
  Observation,
  OperatorFields,
} from '../../../../schemas/api/container.ts';
import type { ContainerPatch } from '../../../../schemas/api/fields/container.ts';
import { defaultPolicy, type Policy } from '../../../../schemas/api/policy.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import { limits } from '../../../../schemas/limits.ts';
import { defaultTenant, type TenantRecord } from '../../../../schemas/api/tenant.ts';
import type { ReportItem } from '../../../../schemas/wire/host.ts';
import { operation, specOf } from '../../support.ts';
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
  noLedger,
  none,
  observation,
  placedOn,
  region,
  stateOf,
  unplaced,
} from '../../support/records.ts';

const asker = { rid: 'r', budgetMs: 1000 };
const oneHost = fleetOf(fleetHost(h1));
const tagged = (tag: string, more: Partial<ContainerRecord> = {}) =>
  container({
    spec: { ...specOf('web'), repository: 'web', tag, pull_policy: 'if_not_present', cpu_limit: '0.5' },
    ...more,
  });

function world(first: ContainerRecord, fleet: FleetView = oneHost, settings: Partial<TenantRecord> = {}) {
  const state = stateOf({ ...defaultTenant(acme), ...settings }, first);
  let seq = 2;
  let nowMs = 1_000_000;
  let servedMs = 0;
  const context = () => contextOf(fleet, nowMs, servedMs);
  const record = (): ContainerRecord => state.tenant(acme).containers.get(first.id)!;
  const after = (changes: Changes): Changes => {
    apply(state, changes);
    return changes;
  };
  const ask = <Type extends string>(type: Type) =>
    ({ type, tenant: acme, id: first.id, op: operation(), ...asker }) as const;
  const turn = (made: Turn): Turn => {
    after(made.changes);
    return made;
  };
  return {
    state,
    record,
    patch: (patch: ContainerPatch) =>
      turn(decide.update(state, { ...ask('container.update'), patch }, contextOf(fleet))),
    put: (policy: Policy) => turn(policies.put(state, { ...ask('policy.put'), policy }, contextOf(fleet))),
    operate: (fields: OperatorFields) =>
      turn(decide.operate(state, { ...ask('container.operate'), fields }, contextOf(fleet))),
    status: () => {
      const { reply } = decide.status(state, ask('container.status'), context());
      return (JSON.parse(String(reply.body)) as { readonly data: ContainerStatusView }).data;
    },
    stop: () => turn(decide.stop(state, ask('container.stop'), contextOf(fleet))),
    sweep: (seen = fleet) => after(settle(state, record(), contextOf(seen))),
    tell: (
      phase: NonNullable<ReportItem['update']>['phase'] | undefined,
      seen: Observation = observation('running'),
      more: Parameters<typeof itemOf>[1] = {},
      host: HostKey = h1,
    ) => {
      const { update } = record();
      const told = { since: update?.since ?? 0, phase: phase ?? 'done', reason: null, message: null };
      const item = itemOf(record(), {
        observation: seen,
        seq: ++seq,
        ...(phase === undefined ? {} : { update: told }),
        ...more,
      });
      return after(observe(state, host, 1, item, context()));
    },
    /** This owner serves for so long, while its wall clock moves so far; then it sweeps. */
    pass: (ms: number, wallMs = ms, seen = fleet) => {
      servedMs += ms;
      nowMs += wallMs;
      for (const changes of proveUpdates(state, { ...context(), fleet: seen })) after(changes);
    },
    /**
     * Order for a host: the tag of the new version, the tag that it replaces, and the desired
     * state.
     */
    told: (host: HostKey = h1) => {
      const [one] = [...desiredOf(state.wantedOn(host), host)];
      return [one?.tag, one?.update?.previous.tag, one?.prepare === true ? 'prepare' : one?.desired];
    },
    usage: () => state.tenant(acme).usage('*'),
  };
}

const typesOf = ({ events }: Changes): string[] => events.map(({ type }) => type);

t.test('an update: prepared, verified, done', (t) => {
  const one = world(tagged('1'));
  const { reply, changes } = one.patch({ tag: '2' });
  t.match(reply, { code: 'ok', body: /"tag":"2"/ });
  t.same(typesOf(changes), ['update_requested']);
  t.same(doorbellsOf(changes), [h1]);
  t.match(one.record(), { generation: 3, placement: { host: h1, since: 2 }, observed: { status: 'running' } });
  t.match(one.record().update, { since: 3, phase: 'preparing', from: { tag: '1' }, to: { tag: '2' } });
  t.same(one.told(), ['2', '1', 'running'], 'the host has both');

  t.same(typesOf(one.tell('preparing')), []);
  one.tell('verifying', observation('starting'));
  t.match(one.record().update, { phase: 'verifying' });
  one.tell('verifying');
  const done = one.tell('done');
  t.same(typesOf(done), ['updated']);
  t.same(doorbellsOf(done), [h1], 'the host may remove the old copy');
  t.match(one.record(), { generation: 3, update: { phase: 'done', reason: null } });
  t.equal(one.record().update?.previous, undefined);
  t.same(one.told(), ['2', undefined, 'running']);
  t.end();
});

t.test('the end of an update is a change of what its host should have', (t) => {
  for (const phase of ['done', 'rolled_back'] as const) {
    const one = world(tagged('1'));
    one.patch({ tag: '2' });
    const before = one.state.revisionOf(h1);
    const { generation } = one.record();
    const told = { since: generation, phase, reason: null, message: null };
    const item = itemOf(one.record(), { observation: observation('running'), seq: 9, update: told });
    const domain = createDomain({ cluster: 'c', incarnation: 0, fleet: oneHost, ledger: noLedger });
    domain.apply(one.state, observe(one.state, h1, 1, item, contextOf(oneHost)), { markDirty: () => {} });
    t.equal(one.state.revisionOf(h1), before + 1, phase);
  }
  t.end();
});

t.test('an update is done only when its version runs, or has ended with 0', (t) => {
  const phaseOf = (one: ReturnType<typeof world>) => one.status().update?.phase;
  const crashing = observation('backoff', { reason: 'crash_loop', message: 'exited with code 3' });
  const replaced = (tag = '2') => {
    const down = world(tagged('1', { observed: observation('backoff', { reason: 'exited' }) }));
    down.patch({ tag });
    return down;
  };
  const down = replaced();
  down.pass(60_000);
  t.equal(phaseOf(down), 'verifying', 'replaced at once, and not seen yet');
  down.tell(undefined, observation('running'));
  down.pass(4999);
  t.equal(phaseOf(down), 'verifying');
  down.pass(1);
  t.equal(phaseOf(down), 'done');
  down.tell(undefined, crashing);
  t.equal(phaseOf(down), 'done', 'and stays so');

  const crashed = replaced();
  crashed.tell(undefined, crashing);
  t.match(crashed.status().update, {
    phase: 'failed',
    reason: 'crash_loop',
    message: 'exited with code 3',
    generation: 3,
  });

  for (const [reason, failures, phase] of [
    ['start_failed', 2, 'verifying'],
    ['start_failed', 3, 'failed'],
    ['oom_killed', 3, 'failed'],
    ['unhealthy', 3, 'failed'],
    ['secret_missing', 3, 'verifying'],
  ] as const) {
    const one = replaced();
    one.tell(undefined, observation('backoff', { reason, failures }));
    t.equal(phaseOf(one), phase, `${reason}, ${failures} in a row`);
    t.equal(one.status().failures, failures);
  }

  const missing = world(tagged('1', { observed: observation('starting') }));
  missing.patch({ tag: 'nope' });
  missing.tell(undefined, observation('failed', { reason: 'image_not_found' }));
  t.match(missing.status().update, { phase: 'failed', reason: 'image_not_found' });

  const stopped = world(tagged('1', { desired: 'stopped', observed: observation('stopped') }));
  stopped.patch({ tag: '2' });
  stopped.tell(undefined, observation('stopped'));
  t.equal(phaseOf(stopped), 'stopped');

  const job = (restart: Policy['restart']) => world(tagged('1', { policy: { ...defaultPolicy, restart } }));
  const failed = job('never');
  failed.patch({ tag: '2' });
  const end = observation('failed', { reason: 'exited', exit_code: 3 });
  t.match(typesOf(failed.tell('done', end, { ended: true })), ['status', 'update_failed']);
  t.match(failed.status().update, { phase: 'failed', reason: 'exited' });
  const ended = job('on_failure');
  ended.patch({ tag: '2' });
  const completed = observation('stopped', { reason: 'completed', exit_code: 0 });
  t.match(typesOf(ended.tell('done', completed, { ended: true })), ['status', 'updated']);
  t.equal(phaseOf(ended), 'done');
  const early = job('on_failure');
  early.patch({ tag: '2' });
  early.tell('preparing', completed, { ended: true });
  t.match(early.status().update, { phase: 'stopped' }, 'it ended before its new version was made');
  t.end();
});

t.test('for how long a version is up, no wall clock says', (t) => {
  const up = (restart_count = 0) => observation('running', { started_at: '2026-01-01T00:00:00.000Z', restart_count });
  const replaced = () => {
    const down = world(tagged('1', { observed: observation('backoff', { reason: 'exited' }) }));
    down.patch({ tag: '2' });
    down.pass(60_000);
    down.tell(undefined, up());
    return down;
  };
  const dayMs = 86_400_000;
  const seen = (one: ReturnType<typeof world>) => [one.status().update?.phase, one.status().up_seconds];
  for (const [name, wallMs] of Object.entries({ stands: 0, 'a day back': -dayMs, 'a day ahead': dayMs })) {
    const one = replaced();
    one.pass(4000, wallMs);
    t.same(seen(one), ['verifying', 4], name);
    one.pass(1000, 0);
    t.same(seen(one), ['done', 5], name);
  }
  const restarted = replaced();
  restarted.pass(4000);
  restarted.tell(undefined, up(1));
  restarted.pass(4000);
  t.same(seen(restarted), ['verifying', 4], 'another run');
  restarted.tell(undefined, { ...up(1), addresses: [{ port: '80/tcp', address: '192.0.2.1:80' }] });
  restarted.pass(1000);
  t.same(seen(restarted), ['done', 5], 'the same run, of which its host says more');
  restarted.pass(dayMs);
  t.same(seen(restarted), ['done', limits.waitStableMaxSeconds]);

  const back = replaced();
  back.pass(4000);
  apply(back.state, silence(back.record(), undefined, contextOf(oneHost, 1_000_000, 64_000)));
  back.pass(4000);
  t.same(seen(back), ['verifying', 4], 'its host was silent, and is heard again');

  const loaded = world(replaced().record());
  t.same(seen(loaded), ['verifying', 0], 'another owner measures afresh');
  loaded.pass(5000, 0, fleetOf(fleetHost(h1, { condition: 'silent' })));
  t.same(seen(loaded)[0], 'verifying', 'its host is not heard');
  loaded.pass(0);
  t.same(seen(loaded), ['done', 5]);
  t.end();
});

t.test('a container that is up and not yet healthy runs on while its update is made', (t) => {
  const started_at = '2026-01-01T00:00:00.000Z';
  const one = world(tagged('1', { observed: observation('starting', { started_at }) }));
  one.patch({ tag: '2' });
  t.same(one.told(), ['2', '1', 'running']);
  t.end();
});

t.test('a second update of what runs once falls back on the version that runs', (t) => {
  const one = world(tagged('1', { policy: { ...defaultPolicy, restart: 'never' } }));
  one.patch({ tag: '2' });
  one.tell('preparing');
  one.patch({ tag: '3' });
  t.same(one.told(), ['3', '1', 'running'], 'the first was not swapped yet');
  one.tell('verifying');
  one.patch({ tag: '4' });
  t.same(one.told(), ['4', '3', 'running']);
  t.end();
});

t.test("an operator's pull policy lives through a roll back", (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2' });
  one.operate({ pull_policy: 'never' });
  one.tell('rolled_back');
  t.match(one.record().spec, { tag: '1', pull_policy: 'never' });
  one.operate({ pull_policy: 'always', secret_refs: [{ env: 'A', secret: 'a' }] });
  one.tell('rolled_back');
  t.match(one.record(), { spec: { pull_policy: 'always' }, secretRefs: [] });
  t.end();
});

t.test('a change that comes while an update is under way shares its outcome', (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2' });
  one.operate({ pull_policy: 'always' });
  const seen = () => one.status().update;
  t.match(seen(), { generation: 3, last_generation: 4, phase: 'preparing' });
  one.tell('rolled_back');
  t.match(one.record(), { generation: 5 });
  t.match(seen(), { generation: 3, last_generation: 4, phase: 'rolled_back' });
  one.operate({ pull_policy: 'if_not_present' });
  t.match(seen(), { last_generation: 4 }, 'and one that comes later does not');
  t.end();
});

t.test('an update that fails is rolled back', (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2', env: { A: 'b' } });
  one.tell('verifying');
  const told = { since: 3, phase: 'rolled_back', reason: 'crash_loop', message: 'exited\u001b with code 3' } as const;
  const back = one.tell(undefined, observation('running'), { update: told });
  t.match(back.events.at(-1), { type: 'update_failed' });
  t.same(doorbellsOf(back), [h1]);
  t.match(one.record(), {
    generation: 4,
    spec: { tag: '1', env: {} },
    update: { phase: 'rolled_back', reason: 'crash_loop', message: 'exited\ufffd with code 3', from: { tag: '1' } },
  });
  t.same(one.told(), ['1', undefined, 'running']);
  t.end();
});

t.test('the second of two updates falls back on what ran before both', (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2' });
  one.tell('verifying');
  one.patch({ tag: '3' });
  t.same(one.told(), ['3', '1', 'running']);
  t.match(one.record().update, { since: 4, phase: 'preparing', from: { tag: '1' }, to: { tag: '3' } });
  const late = { since: 3, phase: 'done', reason: null, message: null } as const;
  one.tell(undefined, observation('running'), { update: late });
  t.match(one.record().update, { phase: 'preparing' }, 'the end of the first is not that of the second');
  one.patch({ tag: '1' });
  t.same(one.told(), ['1', undefined, 'running'], 'back to what ran');
  t.match(one.record().update, { phase: 'done', from: {}, to: {} });
  t.end();
});

t.test('a stopped container is replaced at once', (t) => {
  for (const [name, more] of [
    ['stopped', { desired: 'stopped', observed: observation('stopped') }],
    ['in back-off', { observed: observation('backoff', { reason: 'exited' }) }],
    ['without a host', { placement: unplaced, observed: observation('pending', { reason: 'no_host' }) }],
  ] as const satisfies readonly (readonly [string, Partial<ContainerRecord>])[]) {
    const one = world(tagged('1', more));
    t.equal(one.patch({ tag: '2' }).reply.code, 'ok', name);
    t.match(one.record(), { generation: 3, spec: { tag: '2' }, update: { phase: 'done' } }, name);
    t.equal(one.record().update?.previous, undefined, name);
  }
  const failed = world(tagged('1', { observed: observation('failed', { reason: 'image_not_found' }) }));
  failed.patch({ tag: '2' });
  t.match(failed.record().observed, { status: 'pending', reason: null }, 'a failed one is tried again');
  for (const [name, more] of [
    ['a job that failed', { observed: observation('failed', { reason: 'exited', exit_code: 3 }) }],
    ['one whose host was lost', { placement: unplaced, observed: observation('failed', { reason: 'host_lost' }) }],
    ['a job that completed', { observed: observation('stopped', { reason: 'completed', exit_code: 0 }) }],
  ] as const satisfies readonly (readonly [string, Partial<ContainerRecord>])[]) {
    const over = world(tagged('1', { desired: 'stopped', policy: { ...defaultPolicy, restart: 'never' }, ...more }));
    over.patch({ tag: '2' });
    t.match(over.record(), { spec: { tag: '2' }, observed: more.observed }, `${name}: its end stays known`);
  }
  t.end();
});

t.test('a stop ends the update, and the new version stays', (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2' });
  one.tell('verifying');
  const before = one.record();
  t.same(typesOf(one.stop().changes), ['stop_requested']);
  t.same(one.told(), ['2', undefined, 'stopped']);
  t.match(one.record().update, { phase: 'done', message: /stopped before/ });
  for (const phase of ['done', 'rolled_back'] as const) {
    const late = { since: before.update?.since ?? 0, phase, reason: null, message: null };
    const more = { generation: before.generation, update: late };
    t.same(one.tell(undefined, observation('running'), more), noChanges, `${phase}: said before the stop was known`);
  }
  t.end();
});

t.test('the end of a job ends its update', (t) => {
  for (const [phase, events] of [
    ['preparing', ['status']],
    ['done', ['status', 'updated']],
  ] as const) {
    const one = world(tagged('1', { policy: { ...defaultPolicy, restart: 'on_failure' } }));
    one.patch({ tag: '2' });
    const end = observation('stopped', { reason: 'completed', exit_code: 0 });
    t.same(typesOf(one.tell(phase, end, { ended: true })), events, phase);
    t.match(one.record(), { desired: 'stopped', spec: { tag: '2' }, update: { phase: 'done' }, observed: end }, phase);
  }
  t.end();
});

t.test('an agent that says nothing of updates has replaced the container', (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2' });
  t.same(typesOf(one.tell(undefined)), ['updated']);
  t.match(one.record().update, { phase: 'done' });
  t.end();
});

t.test('the merge (RFC 7396)', (t) => {
  const spec = { ...specOf('web'), repository: 'web', tag: '1', env: { A: '1', B: '2' }, cpu_limit: '1.0' };
  const after = (patch: ContainerPatch, more: Partial<ContainerRecord['spec']> = {}) => {
    const one = world(tagged('1', { spec: { ...spec, ...more } }));
    const { reply } = one.patch(patch);
    return reply.code === 'ok' ? one.record().spec : (JSON.parse(reply.body) as object);
  };
  t.match(after({ env: { A: null, C: '3' } }), { env: { B: '2', C: '3' } });
  t.same((after({ env: { A: null } }) as typeof spec).env, { B: '2' });
  t.same((after({ env: null }) as typeof spec).env, {});
  t.match(after({ cpu_limit: null, mem_limit: '1g', ports: [80] }), { cpu_limit: '0.5', mem_limit: '1g', ports: [80] });
  t.match(after({ tag: null }), { tag: 'latest', pull_policy: 'always' });
  const digest = `sha256:${'a'.repeat(64)}`;
  t.match(after({ digest }), { tag: '1', digest, pull_policy: 'if_not_present' });
  t.match(after({ tag: '2' }, { digest, tag: null }), { error: 'invalid', details: { digest: [/set it to null/] } });
  t.match(after({ tag: '2', digest: null }, { digest, tag: null }), { tag: '2', digest: null });
  t.match(after({ digest: null }, { digest, tag: null }), { tag: 'latest', digest: null, pull_policy: 'always' });
  t.match(after({ tag: 'latest' }, { pull_policy: 'never' }), { pull_policy: 'never' }, "the operator's choice stays");
  const env = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`K${index}`, 'v']));
  t.match(after({ env }), { error: 'invalid', details: { env: ['must be at most 200 keys'] } });
  t.match(after({ env: { A: 'x'.repeat(32_000), B: 'x'.repeat(32_000), C: 'x'.repeat(2000) } }), {
    details: { env: ['must be at most 65536 bytes in all'] },
  });
  t.end();
});

t.test('nothing new makes no generation', (t) => {
  const one = world(tagged('1'));
  for (const patch of [{}, { tag: '1' }, { env: {} }]) {
    const { reply, changes } = one.patch(patch);
    t.equal(reply.code, 'ok');
    t.same(changes.records, []);
  }
  t.end();
});

t.test('caps count the larger version until the update is over', (t) => {
  const caps = { containers: null, cpu_millis: 1500, mem_bytes: null };
  const one = world(tagged('1'), oneHost, { caps });
  t.equal(one.usage().cpu_millis, 500);
  t.match(one.patch({ cpu_limit: '2.0' }).reply, { code: 'over_quota', body: /"requested":2000,"max":1500/ });
  t.equal(one.patch({ cpu_limit: '1.5' }).reply.code, 'ok');
  t.equal(one.usage().cpu_millis, 1500);
  t.equal(one.patch({ cpu_limit: '0.1', ports: [80, 81] }).reply.code, 'ok');
  t.match(one.usage(), { cpu_millis: 500, ports: 2 }, 'what ran before');
  one.tell('done');
  t.match(one.usage(), { cpu_millis: 100, ports: 2 });
  one.patch({ ports: null });
  t.equal(one.usage().ports, 2);
  one.tell('rolled_back');
  t.match([one.usage(), one.record().spec], [{ ports: 2 }, { ports: [80, 81] }]);
  t.end();
});

t.test('a container that its host has no room for goes to another one', (t) => {
  const small = { cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 };
  const full = fleetHost(h1, { capacity: small, used: { cpu_millis: 600, mem_bytes: 0, containers: 1 } });
  t.test('prepared there while the old version runs here', (t) => {
    const one = world(tagged('1'), fleetOf(full, fleetHost(h2)));
    t.equal(one.patch({ cpu_limit: '1.0' }).reply.code, 'ok');
    t.match(one.record(), { placement: { host: h1 }, preparing: { host: h2 }, update: { phase: 'preparing' } });
    const [here] = [...desiredOf(one.state.wantedOn(h1), h1)];
    t.match(here, { desired: 'running', cpu_millis: 500, update: undefined });
    t.match([...desiredOf(one.state.wantedOn(h2), h2)], [{ prepare: true, cpu_millis: 1000 }]);
    one.sweep();
    t.match(one.record().preparing, { givenUp: undefined }, 'its host is not drained, and it moves all the same');
    one.tell(undefined, observation('stopped'), { prepared: one.record().preparing?.since ?? 0 }, h2);
    t.match(one.record(), { placement: { host: h2 }, leaving: { host: h1 } });
    t.end();
  });
  t.test('given up: rolled back', (t) => {
    const one = world(tagged('1'), fleetOf(full, fleetHost(h2)));
    one.patch({ cpu_limit: '1.0' });
    const failed = observation('failed', { reason: 'image_not_found' });
    const { since = 0 } = one.record().preparing ?? {};
    t.same(typesOf(one.tell(undefined, failed, { prepared: since }, h2)), ['update_failed']);
    t.match(one.record(), {
      placement: { host: h1 },
      spec: { cpu_limit: '0.5' },
      update: { phase: 'rolled_back', reason: 'image_not_found' },
    });
    t.end();
  });
  t.test('no other host, or pinned: refused', (t) => {
    for (const [fleet, chosenBy] of [
      [fleetOf(full), 'platform'],
      [fleetOf(full, fleetHost(h2)), 'tenant'],
    ] as const) {
      const one = world(tagged('1', { placement: placedOn(h1, chosenBy) }), fleet);
      t.match(one.patch({ cpu_limit: '1.0' }).reply, { code: 'conflict', body: /no host has room/ });
      t.equal(one.record().generation, 2);
      t.equal(one.patch({ cpu_limit: '0.4' }).reply.code, 'ok', 'less always fits');
    }
    t.end();
  });
  t.end();
});

t.test('other ports need room beside those that the old version keeps', (t) => {
  const few = fleetHost(h1, { freePorts: 1 });
  const here = (more: Partial<ContainerRecord> = {}, ...others: readonly FleetHost[]) => {
    const { spec } = tagged('1');
    return world(tagged('1', { spec: { ...spec, ports: [80] }, ...more }), fleetOf(few, ...others));
  };
  t.equal(here().patch({ ports: [81] }).reply.code, 'ok');
  t.match(here().patch({ ports: [80, 81] }).reply, { code: 'conflict', body: /no host has room/ });
  t.equal(here().patch({ tag: '2' }).reply.code, 'ok', 'the same ports stay published');
  t.equal(here().patch({ ports: [] }).reply.code, 'ok');
  const stopped = { desired: 'stopped', observed: observation('stopped') } as const;
  t.equal(here(stopped).patch({ ports: [80, 81] }).reply.code, 'ok', 'what does not run gives its own back');
  t.equal(here(stopped).patch({ ports: [80, 81, 82] }).reply.code, 'conflict');
  const moving = here({}, fleetHost(h2));
  moving.patch({ ports: [80, 81] });
  t.match(moving.record(), { placement: { host: h1 }, preparing: { host: h2 } });
  t.end();
});

t.test('while a drain prepares it elsewhere', (t) => {
  const from = fleetHost(h1, { draining: true, schedulable: false });
  const small = { cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 };
  const draining = (to: Partial<FleetHost> = {}) => {
    const one = world(tagged('1'), fleetOf(from, fleetHost(h2, to)));
    one.sweep();
    return one;
  };
  t.test('the new version is made there, and the old one runs on here', (t) => {
    const one = draining();
    const since = one.record().preparing?.since ?? 0;
    const { generation } = one.record();
    one.patch({ tag: '2' });
    t.same(
      [one.told(), one.told(h2)],
      [
        ['1', undefined, 'running'],
        ['2', undefined, 'prepare'],
      ],
    );
    one.tell(undefined);
    t.match(one.record().update, { phase: 'preparing' }, 'its host was told of no update, and ends none');
    t.same(one.told(), ['1', undefined, 'running']);
    one.tell(undefined, observation('stopped'), { prepared: since, generation }, h2);
    t.match(one.record().placement, { host: h1 }, 'a copy of the old version is ready there: that does not count');
    one.tell(undefined, observation('stopped'), { prepared: since }, h2);
    t.match(one.record(), { placement: { host: h2 }, leaving: { host: h1 }, update: { phase: 'preparing' } });
    const ready = { prepared: since, generation: one.record().generation };
    one.tell(undefined, observation('stopped'), ready, h2);
    t.match(one.record().update, { phase: 'preparing' }, 'a copy that is kept ready ends nothing');
    one.tell(undefined, observation('stopped'), {}, h2);
    t.match(one.record().update, { phase: 'preparing' }, 'nor the word of an older agent while it waits');
    one.tell(undefined, observation('stopped'), {}, h1);
    t.same(one.told(h2), ['2', '1', 'running'], 'it is verified there');
    one.tell(undefined, observation('stopped'), ready, h2);
    t.match(one.record().update, { phase: 'preparing' }, 'said before it was released');
    one.tell('done', observation('running'), {}, h2);
    t.match(one.record(), { spec: { tag: '2' }, update: { phase: 'done' } });
    t.end();
  });
  t.test('there must be room there', (t) => {
    const full = { capacity: small, used: { cpu_millis: 500, mem_bytes: 0, containers: 1 } };
    t.match(draining(full).patch({ cpu_limit: '1.1' }).reply, { code: 'conflict', body: /no host has room/ });
    t.equal(draining({ capacity: small }).patch({ cpu_limit: '1.1' }).reply.code, 'ok');
    t.end();
  });
  t.end();
});

t.test('its host is silent: the update waits for it', (t) => {
  const one = world(tagged('1'), fleetOf(fleetHost(h1, { condition: 'silent' }), fleetHost(h2)));
  t.equal(one.patch({ tag: '2' }).reply.code, 'ok');
  one.sweep();
  t.match(one.record(), { placement: { host: h1 }, preparing: undefined, update: { phase: 'preparing' } });
  t.same(one.told(), ['2', '1', 'running']);
  one.tell('rolled_back');
  t.match(one.record(), { spec: { tag: '1' }, update: { phase: 'rolled_back' } });
  t.end();
});

t.test('its host is lost, and the new version needs more', (t) => {
  const small = { cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 };
  const lost = fleetHost(h1, { condition: 'lost', capacity: small, used: small });
  for (const [chosenBy, placed] of [
    ['platform', { host: h2 }],
    ['tenant', { host: h1 }],
  ] as const) {
    const one = world(tagged('1', { placement: placedOn(h1, chosenBy) }), fleetOf(lost, fleetHost(h2)));
    t.equal(one.patch({ cpu_limit: '1.0' }).reply.code, chosenBy === 'platform' ? 'ok' : 'conflict');
    const { since } = one.record().preparing ?? { since: 0 };
    one.tell(undefined, observation('stopped'), { prepared: since }, h2);
    one.sweep();
    t.match(one.record(), { placement: placed, leaving: undefined }, chosenBy);
  }
  t.end();
});

t.test('a stopped container leaves a full host for one in another region of its tenant', (t) => {
  const small = { cpu_millis: 1000, mem_bytes: 1024 ** 3, containers: 10 };
  const full = fleetHost(h1, { capacity: small, used: small });
  const fleet = fleetOf(full, fleetHost(h2, { region: region('west') }));
  const stopped = tagged('1', { desired: 'stopped', observed: observation('stopped') });
  const both = [region('default'), region('west')];
  const elsewhere = world(stopped, fleet, { regions: both });
  t.equal(elsewhere.patch({ cpu_limit: '1.0' }).reply.code, 'ok');
  t.match(elsewhere.record(), {
    desired: 'stopped',
    placement: { host: h2, region: 'west' },
    leaving: { host: h1 },
    observed: { status: 'stopped' },
    update: { phase: 'done' },
  });
  t.equal(world(stopped, fleet).patch({ cpu_limit: '1.0' }).reply.code, 'conflict', 'not one in a foreign region');
  const capped = { regions: both, regionCaps: { west: { ...defaultTenant(acme).caps, cpu_millis: 900 } } };
  t.equal(world(stopped, fleet, capped as Partial<TenantRecord>).patch({ cpu_limit: '1.0' }).reply.code, 'conflict');
  t.end();
});

t.test('the pull of a new version shows in its update', (t) => {
  const one = world(tagged('1'));
  const pulled = (): unknown => one.status().update?.pull;
  const pull = { layers: 2, bytes: 100, total: 300 };
  const tell = () => {
    const { tenant, id, generation } = one.record();
    apply(one.state, observePull(one.state, h1, { tenant, id, generation, ...pull }, contextOf(oneHost)));
  };
  tell();
  t.equal(one.status().update, undefined);
  one.patch({ tag: '2' });
  t.equal(pulled(), undefined, 'the host has not told');
  tell();
  t.same(pulled(), pull);
  t.equal(one.status().pull, undefined, 'the container runs');
  one.tell('verifying');
  t.equal(pulled(), undefined);
  t.end();
});

t.test('a policy that changes during an update is that of both versions', (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2' });
  one.tell('verifying');
  const policy = { ...defaultPolicy, stop_grace_seconds: 1 };
  one.put(policy);
  t.match(one.record(), { generation: 4, update: { since: 3, phase: 'verifying', previous: { policy } } });
  one.tell('rolled_back');
  t.match(one.record(), { spec: { tag: '1' }, policy });
  t.end();
});

t.test('a drain waits for the update', (t) => {
  const drained = fleetOf(fleetHost(h1, { draining: true, schedulable: false }), fleetHost(h2));
  const one = world(tagged('1'), drained);
  one.patch({ tag: '2' });
  one.sweep();
  t.equal(one.record().preparing, undefined);
  one.tell('done');
  one.sweep();
  t.match(one.record().preparing, { host: h2 });
  t.end();
});

t.test('its host is lost: the other one has both versions', (t) => {
  const one = world(tagged('1'));
  one.patch({ tag: '2' });
  one.sweep(fleetOf(fleetHost(h1, { condition: 'lost' }), fleetHost(h2, { used: none })));
  t.match(one.record(), { placement: { host: h2 }, update: { phase: 'preparing' } });
  t.same(one.told(h2), ['2', '1', 'running']);
  t.end();
});
