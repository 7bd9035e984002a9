/**
 * Decisions about a container, as tables: what is asked, in every status and condition of its host.
 */
import t from 'tap';
import { create as createContainer } from '../../../actors/domain/container/create.ts';
import * as decide from '../../../actors/domain/container/decide.ts';
import { isAhead, observe, observePull, settle } from '../../../actors/domain/container/observe.ts';
import type { PartitionState } from '../../../actors/domain/state.ts';
import { isEmpty, noChanges, type Changes, type HostCondition, type Turn } from '../../../actors/domain/turn.ts';
import type {
  ContainerRecord,
  ContainerStatus,
  Observation,
  Reason,
  TombstoneRecord,
} from '../../../schemas/api/container.ts';
import type { ContainerSpec } from '../../../schemas/api/fields/container.ts';
import { limits } from '../../../schemas/limits.ts';
import { decodeCursor } from '../../../schemas/api/cursor.ts';
import { defaultTenant, type TenantRecord } from '../../../schemas/api/tenant.ts';
import { containerId, hostKey, operation, specOf } from '../support.ts';
import {
  acme,
  apply,
  doorbellsOf,
  container,
  contextOf,
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
  unplaced,
} from '../support/records.ts';

const asker = { rid: 'r', budgetMs: 1000 };
const empty = fleetOf();
const oneHost = fleetOf(fleetHost(h1));
const twoHosts = fleetOf(fleetHost(h1), fleetHost(h2));

const changedRecord = ({ changes }: Pick<Turn, 'changes'>) => changes.records[0] as ContainerRecord;
const dataOf = ({ reply }: Turn) => (JSON.parse(reply.body) as { data: Record<string, unknown> }).data;
const ask = <Type extends string>(type: Type, { id }: { id: ContainerRecord['id'] }) =>
  ({ type, tenant: acme, id, op: operation(), ...asker }) as const;

const createAsk = (
  spec: ContainerSpec = specOf('web'),
  idempotency: { key: string; bodyHash: string } | null = null,
  id = containerId(),
) => ({ type: 'container.create' as const, tenant: acme, id, op: operation(), spec, idempotency, ...asker });

const tenant = (more: Partial<TenantRecord>): TenantRecord => ({ ...defaultTenant(acme), ...more });

t.test('the progress of a pull', (t) => {
  const pull = { layers: 3, bytes: 10, total: 40 };
  const pulling = container({ observed: observation('pulling') });
  const { tenant, id, generation } = pulling;
  const item = { tenant, id, generation, ...pull };
  const shown = (state: PartitionState, fleet = oneHost) =>
    dataOf(decide.status(state, ask('container.status', pulling), contextOf(fleet)))['pull'];

  const state = stateOf(pulling);
  t.equal(shown(state), undefined, 'unknown until the host tells it');
  const told = observePull(state, h1, { ...item, note: 'of the host' } as typeof item, contextOf(oneHost));
  t.ok(isEmpty(told), 'nothing is stored');
  t.same([told.events, told.effects], [[], []], 'and nobody is told');
  apply(state, told);
  t.same(shown(state), pull);
  t.equal(shown(state, fleetOf(fleetHost(h1, { condition: 'silent' }))), undefined, 'not while the host is silent');
  state.put({ ...pulling, observed: observation('starting') });
  state.put(pulling);
  t.equal(shown(state), undefined, 'not that of an earlier pull');

  for (const [name, of, host, said] of [
    ['of another host', pulling, h2, item],
    ['of another generation', pulling, h1, { ...item, generation: generation + 1 }],
    ['of an unknown container', pulling, h1, { ...item, id: containerId() }],
    ['of a container that runs', { ...pulling, observed: observation('running') }, h1, item],
    ['of a container without a host', { ...pulling, placement: unplaced }, h1, item],
  ] as const) {
    t.same(observePull(stateOf(of), host, said, contextOf(oneHost)), noChanges, name);
  }
  t.end();
});

t.test('create', (t) => {
  const create = (state: PartitionState, fleet = oneHost, spec = specOf('web')) =>
    createContainer(state, createAsk(spec), contextOf(fleet));

  t.test('without a start → stopped, on a host or without one', (t) => {
    const ask = { ...createAsk(), stopped: true as const };
    const placed = changedRecord(createContainer(stateOf(), ask, contextOf(oneHost)));
    const stopped = { desired: 'stopped', observed: { status: 'stopped', reason: null } };
    t.match(placed, { ...stopped, placement: { phase: 'placed', host: h1 } });
    const waiting = changedRecord(createContainer(stateOf(), ask, contextOf(empty)));
    t.match(waiting, { ...stopped, placement: { phase: 'unplaced' } });
    const started = decide.start(
      stateOf(waiting),
      { ...asker, type: 'container.start', tenant: acme, id: waiting.id, op: operation() },
      contextOf(oneHost),
    );
    t.match(changedRecord(started), {
      desired: 'running',
      placement: { phase: 'placed' },
      observed: { status: 'pending' },
    });
    t.end();
  });

  t.test('placed by the platform → pending on a host, its doorbell rung', (t) => {
    const turn = create(stateOf());
    t.equal(turn.reply.code, 'created');
    t.match(changedRecord(turn), {
      desired: 'running',
      generation: 2,
      placement: { phase: 'placed', host: h1, since: 2, chosenBy: 'platform' },
      observed: { status: 'pending', reason: null },
    });
    t.same(doorbellsOf(turn.changes), [h1]);
    t.same(
      turn.changes.events.map(({ type }) => type),
      ['created', 'placed'],
    );
    t.end();
  });

  t.test('no host fits → pending, no_host, and no doorbell', (t) => {
    const turn = create(stateOf(), empty);
    t.equal(turn.reply.code, 'created');
    t.match(changedRecord(turn), { placement: unplaced, observed: { status: 'pending', reason: 'no_host' } });
    t.same(doorbellsOf(turn.changes), []);
    t.end();
  });

  const region1 = { region: region('eu') };
  const refusals: [string, Turn, string, object][] = [
    [
      'name taken → invalid',
      create(stateOf(container())),
      'invalid',
      { details: { name: ['has already been taken'] } },
    ],
    [
      'host unknown → invalid',
      create(stateOf(), oneHost, specOf('x', { host_key: h2 })),
      'invalid',
      { details: { host_key: ['is not a host in an allocated region'] } },
    ],
    [
      'host in another region → invalid',
      create(stateOf(), fleetOf(fleetHost(h1, region1)), specOf('x', { host_key: h1 })),
      'invalid',
      { details: { host_key: ['is not a host in an allocated region'] } },
    ],
    [
      'host of which nothing is known yet → unavailable',
      create(stateOf(), { ...empty, condition: () => 'unheard' }, specOf('x', { host_key: h1 })),
      'unavailable',
      {},
    ],
    [
      'name and host wrong → both at once',
      create(stateOf(container()), oneHost, specOf('web', { host_key: h2 })),
      'invalid',
      { details: { name: Array, host_key: Array } },
    ],
    [
      'over a cap → the first dimension exceeded',
      create(stateOf(tenant({ caps: { containers: 0, cpu_millis: 0, mem_bytes: null, vpn_peers: null } }))),
      'over_quota',
      { detail: { dimension: 'containers', requested: 1, max: 0 } },
    ],
    [
      'over a region’s cap, pinned there → over_quota',
      create(stateOf(tenant({ regionCaps: { default: { cpu_millis: 50 } } })), oneHost, specOf('x', { host_key: h1 })),
      'over_quota',
      { detail: { dimension: 'cpu_millis', requested: 100, max: 50 } },
    ],
    [
      'over the cap of ports → over_quota',
      create(stateOf(tenant({ caps: { ports: 1 } })), oneHost, specOf('x', { ports: [80, '53/udp'] })),
      'over_quota',
      { detail: { dimension: 'ports', requested: 2, max: 1 } },
    ],
    [
      'over the cap of disk, which each container takes alike → over_quota',
      create(stateOf(tenant({ caps: { disk_bytes: 1 } }))),
      'over_quota',
      { detail: { dimension: 'disk_bytes', requested: limits.containerDiskBytes, max: 1 } },
    ],
    [
      'the first four dimensions before ports and disk',
      create(
        stateOf(tenant({ caps: { mem_bytes: 0, ports: 0, disk_bytes: 0 } })),
        oneHost,
        specOf('x', { ports: [1] }),
      ),
      'over_quota',
      { detail: { dimension: 'mem_bytes' } },
    ],
    [
      'every region full → over_quota',
      create(stateOf(tenant({ regionCaps: { default: { containers: 0 } } }))),
      'over_quota',
      { detail: { dimension: 'containers', requested: 1, max: 0 } },
    ],
  ];
  for (const [name, { reply, changes }, code, body] of refusals) {
    t.test(name, (t) => {
      t.equal(reply.code, code);
      t.match(JSON.parse(reply.body), body);
      t.ok(isEmpty(changes));
      t.end();
    });
  }

  t.test('a region that is full is passed over for one that is not', (t) => {
    const state = stateOf(tenant({ regions: [region('eu'), region('us')], regionCaps: { eu: { containers: 0 } } }));
    const fleet = fleetOf(fleetHost(h1, region1), fleetHost(h2, { region: region('us') }));
    t.match(changedRecord(create(state, fleet)), { placement: { host: h2, region: 'us' } });
    t.end();
  });

  t.test('damaged settings → internal; damaged containers count', (t) => {
    const state = stateOf(tenant({ caps: { containers: 1, cpu_millis: null, mem_bytes: null, vpn_peers: null } }));
    state.quarantine(`container.acme.${containerId()}`);
    t.equal(create(state).reply.code, 'over_quota');
    const capped = stateOf(tenant({ caps: { containers: 9, cpu_millis: 9000, mem_bytes: null, vpn_peers: null } }));
    t.equal(create(capped).reply.code, 'created');
    capped.quarantine(`container.acme.${containerId()}`);
    t.equal(create(capped).reply.code, 'internal', 'what it takes of the CPU is unknown');
    const inRegion = stateOf(
      tenant({
        caps: { containers: null, cpu_millis: null, mem_bytes: null, vpn_peers: null },
        regionCaps: { default: { containers: 9 } },
      }),
    );
    inRegion.quarantine(`container.acme.${containerId()}`);
    t.equal(create(inRegion).reply.code, 'internal', 'and in which region it is');
    const free = stateOf(tenant({ caps: { containers: 9, cpu_millis: null, mem_bytes: null, vpn_peers: null } }));
    free.quarantine(`container.acme.${containerId()}`);
    t.equal(create(free).reply.code, 'created', 'no cap, nothing to exceed');
    state.quarantine('tenant.acme');
    t.equal(create(state).reply.code, 'internal');
    t.end();
  });
  t.end();
});

t.test('idempotency key', (t) => {
  const key = { key: 'k', bodyHash: 'a' };
  const state = stateOf();
  const at = (nowMs: number) => contextOf(empty, nowMs);
  const first = createContainer(state, createAsk(specOf('one'), key), at(0));
  apply(state, first.changes);
  const id = changedRecord(first).id;

  const again = createContainer(state, createAsk(specOf('one'), key), at(1000));
  t.equal(dataOf(again)['id'], id, 'used again → the same container');
  t.ok(isEmpty(again.changes));
  t.equal(createContainer(state, createAsk(specOf('two'), { ...key, bodyHash: 'b' }), at(1000)).reply.code, 'invalid');

  const later = limits.idempotencyTtlMs + 1;
  const second = createContainer(state, createAsk(specOf('two'), { ...key, bodyHash: 'b' }), at(later));
  t.equal(second.reply.code, 'created', 'after a day it is a new key');
  apply(state, second.changes);
  const stopped = decide.stop(state, ask('container.stop', { id }), at(later));
  apply(state, stopped.changes);
  const retry = createContainer(state, createAsk(specOf('two'), { ...key, bodyHash: 'b' }), at(later + 1));
  t.equal(dataOf(retry)['id'], changedRecord(second).id, 'and stays so when the older container changes');
  apply(state, decide.remove(state, ask('container.delete', { id }), at(later + 2)).changes);
  t.equal(
    dataOf(createContainer(state, createAsk(specOf('two'), { ...key, bodyHash: 'b' }), at(later + 3)))['id'],
    changedRecord(second).id,
    'or goes',
  );
  apply(state, decide.remove(state, ask('container.delete', changedRecord(second)), at(later + 4)).changes);
  const gone = createContainer(state, createAsk(specOf('two'), { ...key, bodyHash: 'b' }), at(later + 5));
  t.equal(gone.reply.code, 'conflict', 'what was created under it is gone → conflict');
  t.end();
});

const conditions: HostCondition[] = ['up', 'silent', 'lost', 'fenced', 'removed', 'unheard'];
const gone = new Set<HostCondition>(['lost', 'removed']);
const statuses: ContainerStatus[] = [
  'pending',
  'pulling',
  'starting',
  'running',
  'backoff',
  'stopping',
  'stopped',
  'failed',
];
const fleetWith = (condition: HostCondition) => fleetOf(fleetHost(h1, { condition }), fleetHost(h2));

t.test('a report from before a restore is said again, until the host has the restored generation', (t) => {
  const record = container({ generation: 4, placement: placedOn(h1) });
  const isAheadAt = (generation: number, host = h1, state = stateOf(record)): boolean =>
    isAhead(state, host, itemOf(record, { generation }));
  t.ok(isAheadAt(5));
  t.notOk(isAheadAt(4));
  t.notOk(isAheadAt(3), 'an older one is of no use any more');
  t.notOk(isAheadAt(5, h2), 'what another host says counts not at all');
  t.notOk(isAheadAt(5, h1, stateOf({ ...record, placement: unplaced })));
  t.notOk(isAheadAt(5, h1, stateOf()), 'an orphan');
  t.end();
});

t.test('start, in every status and condition', (t) => {
  for (const desired of ['running', 'stopped', 'removed'] as const) {
    for (const status of statuses) {
      for (const condition of conditions) {
        const record = container({ desired, observed: observation(status) });
        const context = contextOf(fleetWith(condition));
        const turn = decide.start(stateOf(record), ask('container.start', record), context);
        const name = `${desired}, ${status}, host ${condition}`;
        if (desired === 'removed') {
          t.equal(turn.reply.code, 'conflict', name);
          continue;
        }
        t.equal(turn.reply.code, 'ok', name);
        if (desired === 'running' && status !== 'failed' && status !== 'backoff') {
          t.ok(isEmpty(turn.changes), `${name} → nothing changes`);
          t.same(doorbellsOf(turn.changes), [h1], `${name} → the doorbell is rung all the same`);
          continue;
        }
        const next = changedRecord(turn);
        t.equal(next.desired, 'running', name);
        t.ok(next.generation > record.generation, `${name} → a new generation`);
        const host = next.placement.phase === 'placed' ? next.placement.host : undefined;
        t.equal(host, gone.has(condition) ? h2 : h1, `${name} → ${String(host)}`);
        const keeps = !gone.has(condition) && !['stopped', 'failed'].includes(status);
        t.equal(next.observed.status, keeps ? status : 'pending', name);
      }
    }
  }
  t.end();
});

t.test('start of what the tenant pinned stays where it was pinned', (t) => {
  const record = container({ desired: 'stopped', placement: placedOn(h1, 'tenant') });
  const turn = decide.start(stateOf(record), ask('container.start', record), contextOf(fleetWith('lost')));
  t.match(changedRecord(turn), { placement: { host: h1 }, observed: { status: 'pending' } });
  t.equal(dataOf(turn)['status'], 'lost');
  t.end();
});

t.test('start of what has no host: placed, or it waits and says why', (t) => {
  const record = container({ desired: 'stopped', placement: unplaced, observed: observation('stopped') });
  const start = (fleet = oneHost) =>
    decide.start(stateOf(record), ask('container.start', record), contextOf(fleet)).changes;
  const told = ({ events }: Changes) => events.map(({ type, container }) => [type, container.generation]);
  const placed = start();
  t.match(placed.records, [
    { placement: { host: h1, since: 4 }, generation: 4, observed: { status: 'pending', reason: null } },
  ]);
  t.same(
    told(placed),
    [
      ['start_requested', 3],
      ['placed', 4],
    ],
    'each generation has its event',
  );
  const waiting = start(empty);
  t.match(waiting.records, [
    { placement: unplaced, generation: 3, observed: { status: 'pending', reason: 'no_host' } },
  ]);
  t.same(told(waiting), [['start_requested', 3]]);
  t.end();
});

t.test('start of a rejected container forgets the rejections', (t) => {
  const record = container({
    placement: placedOn(h1, 'tenant'),
    observed: observation('failed', { reason: 'rejected' }),
    rejections: [{ host: h1, atMs: 1 }],
  });
  const next = changedRecord(decide.start(stateOf(record), ask('container.start', record), contextOf(oneHost)));
  t.same(next.rejections, []);
  t.end();
});

t.test('stop, in every status and condition', (t) => {
  for (const status of statuses) {
    for (const condition of conditions) {
      const record = container({ observed: observation(status) });
      const context = contextOf(fleetWith(condition));
      const next = changedRecord(decide.stop(stateOf(record), ask('container.stop', record), context));
      t.match(next, { desired: 'stopped', generation: 3, placement: record.placement });
      t.equal(next.observed.status, gone.has(condition) ? 'stopped' : status, `${status}, host ${condition}`);
    }
  }
  const stopped = container({ desired: 'stopped' });
  t.ok(isEmpty(decide.stop(stateOf(stopped), ask('container.stop', stopped), contextOf(oneHost)).changes));
  const removed = container({ desired: 'removed' });
  t.equal(
    decide.stop(stateOf(removed), ask('container.stop', removed), contextOf(oneHost)).reply.code,
    'conflict',
    'removing → conflict',
  );
  t.end();
});

t.test('delete, in every condition', (t) => {
  for (const condition of conditions) {
    const record = container();
    const context = contextOf(fleetWith(condition));
    const turn = decide.remove(stateOf(record), ask('container.delete', record), context);
    t.equal(turn.reply.code, 'accepted');
    t.equal(dataOf(turn)['status'], 'removing');
    const [next] = turn.changes.records;
    t.equal(next?.kind, gone.has(condition) ? 'tombstone' : 'container', `host ${condition}`);
    if (next?.kind === 'container') t.match(next, { desired: 'removed', generation: 3 });
  }
  const waiting = container({ placement: unplaced });
  const turn = decide.remove(stateOf(waiting), ask('container.delete', waiting), contextOf(oneHost));
  t.match(
    turn.changes.records,
    [{ kind: 'tombstone', id: waiting.id, history: [h1] }],
    'without a host → gone at once',
  );
  t.same(
    turn.changes.events.map(({ type }) => type),
    ['delete_requested', 'removed'],
  );
  const removing = container({ desired: 'removed' });
  const again = decide.remove(stateOf(removing), ask('container.delete', removing), contextOf(oneHost));
  t.ok(isEmpty(again.changes), 'again → nothing changes');
  t.same(doorbellsOf(again.changes), [h1]);
  t.end();
});

t.test('operate changes what is run under a new generation, and keeps what it does not name', (t) => {
  const record = container({ secretRefs: [{ env: 'A', secret: 'a' }] });
  const fields = { pull_policy: 'never' as const };
  const turn = decide.operate(stateOf(record), { ...ask('container.operate', record), fields }, contextOf(oneHost));
  t.match(changedRecord(turn), { generation: 3, spec: { pull_policy: 'never' }, secretRefs: [{ env: 'A' }] });
  t.same(doorbellsOf(turn.changes), [h1]);
  const removed = container({ desired: 'removed' });
  t.equal(
    decide.operate(stateOf(removed), { ...ask('container.operate', removed), fields }, contextOf(oneHost)).reply.code,
    'conflict',
  );
  t.end();
});

t.test('a container that is not there, of another tenant, or damaged', (t) => {
  const record = container();
  const state = stateOf(record);
  const other = { ...ask('container.get', record), tenant: hostKey('other') as unknown as typeof acme };
  t.equal(decide.get(state, ask('container.get', { id: containerId() }), contextOf(empty)).reply.code, 'not_found');
  t.equal(decide.get(state, other, contextOf(empty)).reply.code, 'not_found');
  t.equal(decide.trace(state, { ...other, type: 'container.trace' }).reply.code, 'not_found');
  const damaged = containerId();
  state.quarantine(`container.acme.${damaged}`);
  t.equal(decide.get(state, ask('container.get', { id: damaged }), contextOf(empty)).reply.code, 'internal');
  t.end();
});

t.test('observe', (t) => {
  const context = contextOf(twoHosts);
  const accepted = { records: { length: 1 } };
  const nothing = { records: { length: 0 }, deletes: { length: 0 }, events: { length: 0 }, effects: { length: 0 } };
  const late = { generation: 2, seq: 9, observation: observation('stopped') };
  const refused = { gone: true, observation: observation('failed', { reason: 'rejected' }) };
  const rows: [string, Partial<ContainerRecord>, Parameters<typeof itemOf>[1] & { host?: typeof h1 }, object][] = [
    ['newer seq → stored', {}, { seq: 2 }, accepted],
    ['same seq → ignored', {}, { seq: 1 }, nothing],
    ['older generation → ignored', {}, { generation: 1, seq: 9 }, nothing],
    ['a generation that is not wanted yet → ignored', {}, { generation: 3, seq: 9 }, nothing],
    ['of the generation before, which no report has replaced yet → ignored', { generation: 3 }, late, nothing],
    ['a refusal of the generation before → ignored', { generation: 3 }, { ...late, ...refused }, nothing],
    [
      'gone, of the generation before → ignored',
      { generation: 3, desired: 'removed' },
      { ...late, gone: true },
      nothing,
    ],
    ['of another host → ignored', { placement: placedOn(h2) }, {}, nothing],
    ['of no host → ignored', { placement: unplaced }, {}, nothing],
    ['a status that is not an agent’s → ignored', {}, { observation: observation('lost') }, nothing],
    ['gone while removing → tombstone', { desired: 'removed' }, { gone: true }, { records: [{ kind: 'tombstone' }] }],
    ['gone while wanted → ignored', {}, { gone: true }, nothing],
    [
      'rejected, the platform’s choice → placed elsewhere',
      {},
      { gone: true, observation: observation('failed', { reason: 'rejected' }) },
      { records: [{ placement: { host: h2 }, generation: 3, rejections: [{ host: h1 }] }] },
    ],
    [
      'rejected, the tenant’s choice → failed',
      { placement: placedOn(h1, 'tenant') },
      { gone: true, observation: observation('stopped', { reason: 'rejected', message: 'full' }) },
      { records: [{ placement: { host: h1 }, observed: { status: 'failed', reason: 'rejected', message: 'full' } }] },
    ],
    [
      'a message that would give orders to a terminal → kept without them',
      { placement: placedOn(h1, 'tenant') },
      { gone: true, observation: observation('stopped', { reason: 'rejected', message: 'a\u001b[2J\r\nb\u202e' }) },
      { records: [{ observed: { message: 'a\ufffd[2J\nb\ufffd' } }] },
    ],
    [
      'rejected, and to be stopped → rests without a host',
      { desired: 'stopped' },
      { gone: true, observation: observation('failed', { reason: 'rejected' }) },
      { records: [{ placement: unplaced, observed: { status: 'stopped', reason: null } }] },
    ],
  ];
  for (const [name, record, item, changes] of rows) {
    const before = container(record);
    t.match(observe(stateOf(before), h1, 1, itemOf(before, item), context), changes, name);
  }

  const before = container({ observedOrder: { generation: 2, session: 2, seq: 5 } });
  t.ok(isEmpty(observe(stateOf(before), h1, 1, itemOf(before, { seq: 99 }), context)), 'an older session → ignored');
  const stopped = observation('stopped');
  const newer = (more: object = {}) => itemOf(before, { seq: 1, observation: stopped, ...more });
  t.notOk(isEmpty(observe(stateOf(before), h1, 3, newer(), context)), 'a newer one → stored');

  const repeated = stateOf(before);
  const same = observe(repeated, h1, 3, itemOf(before, { seq: 1 }), context);
  t.ok(isEmpty(same), 'a newer one that says the same → nothing is stored');
  t.same([same.events, same.effects], [[], []], 'and nobody is told');
  apply(repeated, same);
  t.same(observe(repeated, h1, 2, newer({ seq: 9 }), context), noChanges, 'but the older session is over');
  const [confirmed] = observe(repeated, h1, 3, itemOf(before, { seq: 3 }), context).records;
  t.match(confirmed, { observedOrder: { session: 3, seq: 3 } }, 'the same with a new number in one session → stored');
  const between = stateOf(confirmed as ContainerRecord);
  t.same(observe(between, h1, 3, newer({ seq: 2 }), context), noChanges, 'for what was sent before it may come later');
  const wanted = container({ ...before, generation: 3 });
  t.notOk(isEmpty(observe(stateOf(wanted), h1, 2, itemOf(wanted), context)), 'the same of a new generation → stored');
  const crashed = itemOf(before, { observation: observation('running', { restart_count: 1 }) });
  t.equal(observe(stateOf(before), h1, 3, crashed, context).events.length, 1, 'a restart is news');

  t.match(
    observe(stateOf(before), h1, 3, crashed, contextOf(fleetWith('silent'))).events,
    [{ status: 'running' }],
    'what a host says is news of a host that is not silent',
  );

  const stuffed = { ...observation('running'), extra: 'x', addresses: [{ port: '80/tcp', address: 'a:1', more: 'x' }] };
  const stored = observe(stateOf(before), h1, 3, itemOf(before, { observation: stuffed }), context)
    .records[0] as ContainerRecord;
  t.same(stored.observed, observation('running', { addresses: [{ port: '80/tcp', address: 'a:1' }] }));

  const pinned = container({ placement: placedOn(h1, 'tenant') });
  const state = stateOf(pinned);
  const refusal = itemOf(pinned, { gone: true, observation: observation('failed', { reason: 'rejected' }) });
  apply(state, observe(state, h1, 1, refusal, context));
  t.ok(isEmpty(observe(state, h1, 1, refusal, context)), 'a rejection that is said again is none');
  t.end();
});

t.test('observe: what the host is at fault for', (t) => {
  const fault = { seq: 9, observation: observation('backoff', { reason: 'host_fault', message: 'no space left' }) };
  const ofReason = (reason: Reason, status: ContainerStatus = 'backoff') => ({
    ...fault,
    observation: observation(status, { reason }),
  });
  const never: Partial<ContainerRecord> = { spec: specOf('web', { pull_policy: 'never' }) };
  const elsewhere = { records: [{ generation: 3, placement: { host: h2, chosenBy: 'platform' } }] };
  const stays = { records: [{ generation: 2, placement: { host: h1 } }] };
  const rejectedBy = (...hosts: (typeof h1)[]) => ({ rejections: hosts.map((host) => ({ host, atMs: 999_000 })) });
  const rows: [string, Partial<ContainerRecord>, Parameters<typeof itemOf>[1], ReturnType<typeof fleetOf>, object][] = [
    ['a fault of the host → elsewhere', {}, fault, twoHosts, elsewhere],
    ['a secret that it lacks → elsewhere', {}, ofReason('secret_missing'), twoHosts, elsewhere],
    ['the same from an agent that gave up → elsewhere', {}, ofReason('secret_missing', 'failed'), twoHosts, elsewhere],
    ['an image that only a host can have → elsewhere', never, ofReason('image_not_found'), twoHosts, elsewhere],
    ['an image that no registry has → stays', {}, ofReason('image_not_found', 'failed'), twoHosts, stays],
    ['a fault of the container → stays', {}, ofReason('create_failed'), twoHosts, stays],
    ['no other host → waits, with the reason', {}, fault, oneHost, stays],
    ['the others have refused it → waits', rejectedBy(h2), fault, twoHosts, stays],
    ['the tenant’s choice → waits', { placement: placedOn(h1, 'tenant') }, fault, twoHosts, stays],
    ['to be stopped → stays', { desired: 'stopped' }, fault, twoHosts, stays],
    ['it runs all the same → stays', {}, ofReason('host_fault', 'running'), twoHosts, stays],
    [
      'the other’s engine is away → waits',
      {},
      fault,
      fleetOf(fleetHost(h1), fleetHost(h2, { hasEngine: false })),
      stays,
    ],
  ];
  for (const [name, record, item, fleet, changes] of rows) {
    const before = container(record);
    const found = observe(stateOf(before), h1, 1, itemOf(before, item), contextOf(fleet));
    t.match(found, changes, name);
    const next = changedRecord({ changes: found });
    if (next.placement.phase === 'placed' && next.placement.host === h1) {
      t.match(next.observed, item?.observation ?? {}, `${name}: as it was told`);
    }
  }
  const before = container();
  const found = observe(stateOf(before), h1, 1, itemOf(before, fault), contextOf(twoHosts));
  t.match(changedRecord({ changes: found }).rejections, [{ host: h1, atMs: 1_000_000 }], 'not back there at once');
  t.same(doorbellsOf(found).sort(), [h1, h2], 'both hosts hear');
  t.match(
    found.events.map(({ type, container: { observed } }) => [type, observed.reason]),
    [
      ['status', 'host_fault'],
      ['placed', null],
    ],
    'and the tenant reads why',
  );
  t.end();
});

t.test('a container that every host fails goes round them, a host a time, and is never given up', (t) => {
  const hosts = fleetOf(...[h1, h2, h3].map((key) => fleetHost(key)));
  const state = stateOf(container());
  const [first] = [...state.tenant(acme).containers.values()] as [ContainerRecord];
  const visited: string[] = [];
  for (let minute = 0; minute < 30; minute++) {
    const record = state.tenant(acme).containers.get(first.id) as ContainerRecord;
    if (record.placement.phase !== 'placed') return t.fail('it has no host');
    visited.push(record.placement.host);
    const seen = observation('backoff', { reason: 'host_fault' });
    const item = itemOf(record, { seq: minute + 2, observation: seen });
    apply(state, observe(state, record.placement.host, 1, item, contextOf(hosts, 1_000_000 + minute * 60_000)));
  }
  t.same(new Set(visited), new Set([h1, h2, h3]));
  const moves = visited.filter((host, index) => index > 0 && host !== visited[index - 1]).length;
  t.ok(moves <= (30 / (limits.rejectionTtlMs / 60_000)) * 3, `${moves} moves in half an hour`);
  t.end();
});

t.test('observe: a removal that does not get ahead', (t) => {
  const removing = container({ desired: 'removed', observed: observation('running') });
  const state = stateOf(removing);
  const context = contextOf(oneHost);
  const say = (seq: number, more: Partial<Observation> = {}) => {
    const changes = observe(
      state,
      h1,
      1,
      itemOf(removing, { seq, observation: observation('removing', more) }),
      context,
    );
    apply(state, changes);
    return changes;
  };
  const held = { reason: 'engine_unavailable', message: 'device or resource busy' } as const;
  t.ok(isEmpty(say(2)), 'under way → nothing is written');
  t.match(say(3, held).events, [{ type: 'status', status: 'removing' }], 'held up → an event');
  const status = dataOf(decide.status(state, ask('container.status', removing), context));
  t.match(status, { status: 'removing', observed_status: 'removing', ...held });
  t.match(say(4, { ...held, message: 'still busy' }), { records: [{}], events: { length: 0 } }, 'new words → no event');
  t.ok(isEmpty(say(3, held)), 'an older one → ignored');
  t.match(say(5).events, [{ type: 'status' }], 'under way again → an event');
  t.match(dataOf(decide.status(state, ask('container.status', removing), context)), { reason: null, message: null });
  const wanted = container();
  const told = itemOf(wanted, { observation: observation('removing', held) });
  t.ok(isEmpty(observe(stateOf(wanted), h1, 1, told, context)), 'of what is wanted → ignored');
  t.end();
});

t.test('settle: what waits, and what must leave', (t) => {
  const waiting = { placement: unplaced, observed: observation('pending', { reason: 'no_host' }) };
  const nothing = { records: { length: 0 }, deletes: { length: 0 } };
  const rows: [string, Partial<ContainerRecord>, ReturnType<typeof fleetOf>, object][] = [
    ['waits, a host fits → placed', waiting, oneHost, { records: [{ placement: { host: h1 }, generation: 3 }] }],
    ['waits, none fits → waits', waiting, empty, nothing],
    ['stopped without a host → rests', { ...waiting, desired: 'stopped' }, oneHost, nothing],
    ['on a host that is up → stays', {}, twoHosts, nothing],
    ['host silent → stays', {}, fleetWith('silent'), nothing],
    ['host unheard of → stays', {}, fleetWith('unheard'), nothing],
    ['host fenced → stays, for it may still run there', {}, fleetWith('fenced'), nothing],
    [
      'host fenced while it was drained → stays',
      {},
      fleetOf(fleetHost(h1, { condition: 'fenced', draining: true, schedulable: false }), fleetHost(h2)),
      nothing,
    ],
    ['host lost → placed elsewhere', {}, fleetWith('lost'), { records: [{ placement: { host: h2 } }] }],
    ['host removed → placed elsewhere', {}, fleetWith('removed'), { records: [{ placement: { host: h2 } }] }],
    [
      'host lost, no other → waits',
      {},
      fleetOf(fleetHost(h1, { condition: 'lost' })),
      { records: [{ placement: unplaced, observed: { status: 'pending', reason: 'no_host' } }] },
    ],
    [
      'host lost, to be stopped → rests',
      { desired: 'stopped' },
      fleetWith('lost'),
      { records: [{ placement: unplaced, observed: { status: 'stopped' } }] },
    ],
    ['host lost, removing → gone', { desired: 'removed' }, fleetWith('lost'), { records: [{ kind: 'tombstone' }] }],
    ['host lost, pinned → stays', { placement: placedOn(h1, 'tenant') }, fleetWith('lost'), nothing],
    [
      'host draining → another host prepares it',
      {},
      fleetOf(fleetHost(h1, { draining: true, schedulable: false }), fleetHost(h2)),
      { records: [{ placement: { host: h1 }, generation: 2, preparing: { host: h2, since: 3 } }] },
    ],
    ['host draining, no other → runs on', {}, fleetOf(fleetHost(h1, { draining: true, schedulable: false })), nothing],
    [
      'refused a moment ago by the only host → waits',
      { ...waiting, rejections: [{ host: h1, atMs: 999_999 }] },
      oneHost,
      nothing,
    ],
    [
      'refused long ago → tried again',
      { ...waiting, rejections: [{ host: h1, atMs: 1_000_000 - limits.rejectionTtlMs }] },
      oneHost,
      { records: [{ placement: { host: h1 } }] },
    ],
  ];
  for (const [name, record, fleet, changes] of rows) {
    const before = container(record);
    t.match(settle(stateOf(before), before, contextOf(fleet)), changes, name);
  }
  const moving = container();
  t.same(
    doorbellsOf(settle(stateOf(moving), moving, contextOf(fleetWith('lost')))).sort(),
    [h1, h2],
    'both hosts hear',
  );
  t.end();
});

t.test('settle keeps to the caps of the regions', (t) => {
  const settings = tenant({ regions: [region('default'), region('us')], regionCaps: { us: { containers: 0 } } });
  const before = container();
  const fleet = fleetOf(fleetHost(h1, { condition: 'lost' }), fleetHost(h2, { region: region('us') }));
  t.match(settle(stateOf(settings, before), before, contextOf(fleet)).records, [{ placement: unplaced }]);
  const full = tenant({ regionCaps: { default: { containers: 1 } } });
  t.match(
    settle(stateOf(full, before), before, contextOf(fleetWith('lost'))).records,
    [{ placement: { host: h2 } }],
    'what it takes in the region that it leaves is its own',
  );
  t.end();
});

t.test('list', (t) => {
  const state = stateOf();
  // The clock stands still and steps back, and the gateways' ids are in no order.
  const ids = ['c', 'a', 'f', 'b', 'e', 'd'].map((digit) => `0000000${digit}-0000-7000-8000-000000000000`);
  const times = [5000, 5000, 5000, 4000, 4000, 6000];
  for (const [index, id] of ids.entries()) {
    const made = createContainer(
      state,
      createAsk(specOf(`c${index}`), null, id as ContainerRecord['id']),
      contextOf(empty, times[index]),
    );
    apply(state, made.changes);
  }
  const page = (limit: number, before: ReturnType<typeof decodeCursor> | null) =>
    JSON.parse(
      decide.list(
        state,
        { type: 'container.list', tenant: acme, limit, before: before ?? null, ...asker },
        contextOf(empty),
      ).reply.body,
    ) as { data: { id: string }[]; next_cursor?: string };
  const newestFirst = [...ids].reverse();
  t.same(
    page(100, null).data.map(({ id }) => id),
    newestFirst,
  );
  for (const limit of [1, 2, 3]) {
    const seen: string[] = [];
    let cursor: ReturnType<typeof decodeCursor> | null = null;
    for (let pages = 0; pages < 10; pages++) {
      const { data, next_cursor: next } = page(limit, cursor);
      seen.push(...data.map(({ id }) => id));
      if (next === undefined) break;
      cursor = decodeCursor(next);
    }
    t.same(seen, newestFirst, `in pages of ${limit}, none twice and none left out`);
  }
  const reloaded = stateOf(
    ...[...state.tenant(acme).containers.values()].sort(
      (a, b) => a.insertedAtMs - b.insertedAtMs || (a.id < b.id ? -1 : 1),
    ),
  );
  t.same([...reloaded.tenant(acme).containers.keys()].reverse(), newestFirst, 'a load keeps the order');
  t.end();
});

t.test('a page ends before its answer outgrows a message', (t) => {
  const env = { BIG: 'x'.repeat(64 * 1024) };
  const records = Array.from({ length: 40 }, (_, index) => ({
    ...container({ insertedAtMs: index }, `c${index}`),
    spec: specOf(`c${index}`, { env }),
  }));
  const state = stateOf(...records);
  let before: ReturnType<typeof decodeCursor> | null = null;
  let seen = 0;
  for (let pages = 0; pages < 40; pages++) {
    const { reply } = decide.list(
      state,
      { type: 'container.list', tenant: acme, limit: 100, before: before ?? null, ...asker },
      contextOf(empty),
    );
    t.ok(reply.body.length < 1024 * 1024);
    const body = JSON.parse(reply.body) as { data: unknown[]; next_cursor?: string };
    seen += body.data.length;
    if (body.next_cursor === undefined) break;
    before = decodeCursor(body.next_cursor);
  }
  t.equal(seen, 40);
  t.end();
});

t.test('trace of a tombstone', (t) => {
  const record = container({ placement: unplaced });
  const state = stateOf(record);
  apply(state, decide.remove(state, ask('container.delete', record), contextOf(empty)).changes);
  const tombstone = state.tenant(acme).tombstones.get(record.id) as TombstoneRecord;
  t.match(tombstone, { history: [h1], goneAtMs: 1_000_000 });
  const traced = decide.trace(state, { ...ask('container.trace', record) });
  t.same(dataOf(traced), { history: [h1], gone: true });
  t.end();
});
