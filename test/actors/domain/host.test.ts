/** Decisions about a host, a tenant, a placement, and what time alone changes. */
import t from 'tap';
import { desiredOf } from '../../../actors/domain/desired.ts';
import { faultsOfCeiling } from '../../../actors/domain/host/ceiling.ts';
import * as host from '../../../actors/domain/host/decide.ts';
import { isEnrolled, sessionAheadMs } from '../../../actors/domain/host/sender.ts';
import { inParts, partText } from '../../../lib/rpc/parts.ts';
import { choose, fits } from '../../../actors/domain/placement.ts';
import { expired, sweep, type SweepContext } from '../../../actors/domain/sweep.ts';
import * as tenantDecide from '../../../actors/domain/tenant/decide.ts';
import { noChanges, type Changes, type FleetView, type HostCondition } from '../../../actors/domain/turn.ts';
import { runAtOnce } from '../../../lib/time/slices.ts';
import { WaitingByTenant } from '../../../actors/domain/tenant/turns.ts';
import type { ContainerRecord, TombstoneRecord } from '../../../schemas/api/container.ts';
import type { Capacity, HostRecord } from '../../../schemas/api/host.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { defaultTenant, type Revocation } from '../../../schemas/api/tenant.ts';
import { containerId, operation, specOf } from '../support.ts';
import {
  acme,
  apply,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  hostRecord,
  none,
  observation,
  placedOn,
  region,
  roomy,
  stateOf,
  unplaced,
} from '../support/records.ts';

const asker = { rid: 'r', budgetMs: 1000, op: operation() };
const context = contextOf(fleetOf());
/** The agent whose key is enrolled. */
const speaker = { host: h1, user: 'U' };
const recordOf = ({ changes }: { readonly changes: Changes }) => changes.records[0] as HostRecord;

t.test('host: made, enrolled, greeted, changed, removed', (t) => {
  const state = stateOf();
  const create = {
    type: 'host.create',
    host: h1,
    region: region('default'),
    joinTokenHash: 'right',
    ...asker,
  } as const;
  const made = host.create(state, create, context);
  t.match(recordOf(made), { publicKey: null, capacity: null, session: context.nowMs + sessionAheadMs + 1 });
  t.match(made.changes.effects, [{ kind: 'directory', host: h1, entry: { key: h1, lost: false } }]);
  apply(state, made.changes);
  t.equal(host.create(state, create, context).reply.code, 'conflict');

  const enrolment = { cluster: 'c', natsUrls: ['nats://x'], jwt: 'jwt' };
  const enrol = { type: 'host.enrol', host: h1, joinTokenHash: 'right', publicKey: 'U', ...asker } as const;
  const late = contextOf(fleetOf(), context.nowMs + limits.joinTokenTtlMs);
  t.equal(host.enrol(state, { ...enrol, joinTokenHash: 'wrong' }, enrolment, context).reply.code, 'unauthenticated');
  t.equal(host.enrol(state, { ...enrol, host: h2 }, enrolment, context).reply.code, 'unauthenticated');
  t.equal(host.enrol(state, enrol, enrolment, late).reply.code, 'unauthenticated', 'the token has expired');
  const unsigned = host.enrol(state, enrol, { ...enrolment, jwt: '' }, context);
  t.match(
    unsigned,
    { reply: { code: 'unavailable' }, changes: noChanges },
    'nothing was signed → the token is not spent',
  );
  apply(state, host.enrol(state, enrol, enrolment, context).changes);
  t.match(state.host(h1), { publicKey: 'U', join: { spentBy: 'U' } });
  t.equal(host.enrol(state, enrol, enrolment, context).reply.code, 'created', 'an answer that was lost is given again');
  const thief = { ...enrol, publicKey: 'UTHIEF' };
  t.equal(host.enrol(state, thief, enrolment, context).reply.code, 'unauthenticated', 'spent for any other key');

  const greeting = { v: 1 as const, agent_version: '1', capacity: roomy };
  for (const session of [1, 2]) {
    const greeted = host.hello(state, speaker, greeting, context);
    t.match(greeted?.record, { session: context.nowMs + sessionAheadMs + 1 + session, capacity: roomy });
    if (greeted !== undefined) apply(state, greeted.changes);
  }
  const used = context.nowMs + 20 * 86_400_000;
  const restored = host.hello(state, speaker, { ...greeting, highest_session: used }, context);
  t.equal(restored?.record.session, used + 1, 'above what the host has used, also where a restore has forgotten it');
  t.equal(host.hello(state, { ...speaker, host: h2 }, greeting, context), undefined, 'a host that is not there');

  const updates: [object, object][] = [
    [{ draining: true }, { draining: true, cordoned: true }],
    [
      { draining: true, cordoned: false },
      { draining: true, cordoned: true },
    ],
    [{ cordoned: true }, { draining: false, cordoned: true }],
    [{ remove_orphans: true }, { orphanWord: context.nowMs }],
    [{}, { draining: false, cordoned: false, orphanWord: 0 }],
  ];
  for (const [update, next] of updates) {
    const turn = host.update(state, { type: 'host.update', host: h1, update, ...asker }, context);
    t.match(recordOf(turn), next, JSON.stringify(update));
  }
  const drains: [object, number | undefined, object][] = [
    [{ draining: true }, 7, { draining: true, drainTotal: 7 }],
    [{ draining: true, drain_at_once: 3 }, 5, { drainTotal: 7, drainAtOnce: 3 }],
    [{ cordoned: true }, undefined, { draining: true, drainTotal: 7, drainAtOnce: 3 }],
    [{ drain_at_once: null, draining: false }, undefined, { draining: false }],
    [{ draining: true }, undefined, { draining: true }],
  ];
  for (const [update, placed, next] of drains) {
    const known = placed === undefined ? {} : { placed };
    const turn = host.update(state, { type: 'host.update', host: h1, update, ...known, ...asker }, context);
    const { draining, drainTotal, drainAtOnce } = recordOf(turn);
    t.match({ draining, drainTotal, drainAtOnce }, next, JSON.stringify(update));
    if (!('drainTotal' in next)) t.equal(drainTotal, undefined, 'unknown, or of a drain that is over');
    apply(state, turn.changes);
  }
  const removal = { type: 'host.remove', host: h1, force: true, dead: true, ...asker } as const;
  const removed = host.remove(state, removal, context);
  t.match(removed.changes, { deletes: ['host.h1'], effects: [{ kind: 'directory', host: h1, entry: null }] });
  t.end();
});

t.test('a message counts only from the key that is enrolled now', (t) => {
  const rows: [string, Partial<HostRecord> | undefined, string, boolean][] = [
    ['the enrolled key', { publicKey: 'U' }, 'U', true],
    ['another key', { publicKey: 'U' }, 'UOLD', false],
    ['any key, of a host that nobody enrolled', { publicKey: null }, 'U', false],
    ['any key, of a host that is not there', undefined, 'U', false],
  ];
  for (const [name, more, user, isBelieved] of rows) {
    const record = more === undefined ? undefined : hostRecord(h1, more);
    t.equal(isEnrolled(record, { user }), isBelieved, name);
    const state = record === undefined ? stateOf() : stateOf(record);
    const greeted = host.hello(state, { host: h1, user }, { v: 1, agent_version: '1', capacity: roomy }, context);
    t.equal(greeted !== undefined, isBelieved, `hello: ${name}`);
  }
  t.end();
});

t.test('an enrolment with another key revokes the one before', (t) => {
  const join = { tokenHash: 'x', untilMs: 10 ** 12, spentBy: null };
  const enrolment = { cluster: 'c', natsUrls: ['nats://x'], jwt: 'jwt' };
  for (const [publicKey, revoked] of [
    ['UNEW', [{ kind: 'revoked_key', publicKey: 'U', host: h1 }]],
    ['U', []],
  ] as const) {
    const state = stateOf(hostRecord(h1, { join }));
    const ask = { type: 'host.enrol', host: h1, joinTokenHash: 'x', publicKey, ...asker } as const;
    const { records } = host.enrol(state, ask, enrolment, context).changes;
    t.match(records[0], { kind: 'host', publicKey });
    t.match(records.slice(1), revoked);
    t.equal(records.length, 1 + revoked.length);
  }
  t.end();
});

t.test('expired credentials are renewed for the enrolled key alone', (t) => {
  const enrolment = { cluster: 'c', natsUrls: ['nats://x'], jwt: 'jwt' };
  const { nowMs } = context;
  const prepared = { enrolment, nowMs };
  const ask = { type: 'host.renew', host: h1, publicKey: 'U', atMs: nowMs, nonce: 'n1', ...asker } as const;
  const skew = limits.renewSkewMs;
  const used = (nonce: string, atMs = nowMs) => ({ renewals: [{ nonce, atMs }] });
  const rows: [string, Partial<HostRecord> | undefined, Partial<typeof ask>, string][] = [
    ['the enrolled key', {}, {}, 'ok'],
    ['of a host that was lost', { lostSinceMs: 1 }, {}, 'ok'],
    ['another key', {}, { publicKey: 'UOTHER' } as object, 'unauthenticated'],
    ['a host that nobody enrolled', { publicKey: null }, {}, 'unauthenticated'],
    ['a host that is not there', undefined, {}, 'unauthenticated'],
    ['a fenced host', { fencedAtMs: 1 }, {}, 'unauthenticated'],
    ['an operator forbids it', { renewExpired: false }, {}, 'unauthenticated'],
    ['a clock a minute behind', {}, { atMs: nowMs - skew }, 'ok'],
    ['a clock more than a minute behind', {}, { atMs: nowMs - skew - 1 }, 'unauthenticated'],
    ['a clock more than a minute ahead', {}, { atMs: nowMs + skew + 1 }, 'unauthenticated'],
    ['no time', {}, { atMs: Number.NaN }, 'unauthenticated'],
    ['a nonce that was used', used('n1'), {}, 'unauthenticated'],
    ['a nonce that was used by a clock ahead', used('n1', nowMs + skew), {}, 'unauthenticated'],
    ['another nonce', used('n0'), {}, 'ok'],
  ];
  for (const [name, more, different, code] of rows) {
    const state = more === undefined ? stateOf() : stateOf(hostRecord(h1, { publicKey: 'U', ...more }));
    t.equal(host.renew(state, { ...ask, ...different }, prepared, context).reply.code, code, name);
  }

  const state = stateOf(hostRecord(h1, { publicKey: 'U' }));
  const unsigned = host.renew(state, ask, { nowMs, enrolment: { ...enrolment, jwt: '' } }, context);
  t.match(
    unsigned,
    { reply: { code: 'unavailable' }, changes: noChanges },
    'nothing was signed: the nonce is not used',
  );
  for (let count = 0; count < limits.renewalsKept; count++) {
    const turn = host.renew(state, { ...ask, nonce: `n${count}` }, prepared, context);
    t.match(JSON.parse(turn.reply.body), { data: { host: h1, ...enrolment } });
    apply(state, turn.changes);
  }
  t.match(host.renew(state, { ...ask, nonce: 'n9' }, prepared, context).reply.code, 'rate_limited');
  t.equal(host.renew(state, ask, prepared, context).reply.code, 'unauthenticated', 'used, and too often: used');
  const later = contextOf(fleetOf(), nowMs + skew + 1);
  const again = host.renew(state, { ...ask, atMs: later.nowMs, nonce: 'n9' }, { enrolment, nowMs: later.nowMs }, later);
  t.match(recordOf(again), { renewals: [{ nonce: 'n9' }] }, 'nonces that the clock refuses are forgotten');

  const jumped = contextOf(fleetOf(), nowMs + 1_800_000);
  const fresh = stateOf(hostRecord(h1, { publicKey: 'U', ...used('n1') }));
  const renewed = host.renew(fresh, { ...ask, nonce: 'n2' }, prepared, { ...jumped, expiryMs: nowMs });
  t.equal(renewed.reply.code, 'ok', 'the time of the partition is ahead since a jump');
  t.match(recordOf(renewed), { renewals: [{ nonce: 'n1' }, { nonce: 'n2' }] }, 'and no nonce is forgotten by it');
  t.end();
});

t.test('an operator forbids the renewal of expired credentials, and allows it again', (t) => {
  const state = stateOf(hostRecord(h1));
  const shown = (update: object): unknown => {
    const turn = host.update(state, { type: 'host.update', host: h1, update, ...asker }, context);
    apply(state, turn.changes);
    return (JSON.parse(turn.reply.body) as { data: { renew_expired: boolean } }).data.renew_expired;
  };
  t.same([{}, { renew_expired: false }, {}, { renew_expired: true }].map(shown), [true, false, false, true]);
  t.end();
});

t.test('a host offers no more than its ceiling', (t) => {
  const greedy = { cpu_millis: 9e15, mem_bytes: 9e15, containers: 9e15 };
  const platform = { cpu_millis: 1000, mem_bytes: 2000, containers: 30 };
  const rows: [string, Partial<HostRecord>, Capacity, string[]][] = [
    [
      'within it',
      { capacity: { cpu_millis: 1000, mem_bytes: 1, containers: 3 } },
      { cpu_millis: 1000, mem_bytes: 1, containers: 3 },
      [],
    ],
    ['above it', { capacity: greedy }, platform, ['over_ceiling']],
    [
      'a ceiling of its own counts in place of it',
      { capacity: greedy, ceiling: { cpu_millis: 5, mem_bytes: 3000, containers: 7 } },
      { cpu_millis: 5, mem_bytes: 3000, containers: 7 },
      [],
    ],
    [
      'in one dimension',
      { capacity: { ...greedy, mem_bytes: 1 }, ceiling: { cpu_millis: 5 } },
      { cpu_millis: 5, mem_bytes: 1, containers: 30 },
      ['over_ceiling'],
    ],
  ];
  for (const [name, more, capacity, faults] of rows) {
    const view = host.hostView(hostRecord(h1, more), { ...fleetOf(), ceiling: platform });
    t.same(view.capacity, capacity, name);
    t.same(
      view.faults.map(({ kind }) => kind),
      faults,
      name,
    );
  }
  const used = { ...none, containers: 31 };
  t.match(faultsOfCeiling(hostRecord(h1, { capacity: none }), platform, used), [
    { message: /claims containers 31 \(HOST_MAX_\* allows 30\).*set max_containers/ },
  ]);

  const state = stateOf(hostRecord(h1));
  const set = (update: object): void =>
    apply(state, host.update(state, { type: 'host.update', host: h1, update, ...asker }, context).changes);
  set({ max_cpu_millis: 5, max_containers: 0 });
  t.same(state.host(h1)?.ceiling, { cpu_millis: 5, containers: 0 });
  set({ cordoned: true });
  t.same(state.host(h1)?.ceiling, { cpu_millis: 5, containers: 0 }, 'what is absent stays');
  set({ max_cpu_millis: null, max_mem_bytes: 9 });
  t.same(state.host(h1)?.ceiling, { mem_bytes: 9, containers: 0 });
  set({ max_mem_bytes: null, max_containers: null });
  t.equal(state.host(h1)?.ceiling, undefined);
  t.end();
});

t.test('host: lost after silence, found by a heartbeat', (t) => {
  const heard = { ...fleetOf(), lastHeardMs: () => 1 };
  const rows: [string, Partial<HostRecord>, number, boolean, boolean, number | null | undefined][] = [
    ['silent for the whole grace → lost', {}, 100, false, true, context.nowMs],
    ['not yet → as it was', {}, 99, false, true, undefined],
    ['its region is silent too → as it was', {}, 100, true, true, undefined],
    ['never enrolled → as it was', { publicKey: null }, 100, false, true, undefined],
    ['lost, heard again → found', { lostSinceMs: 5 }, 0, false, true, null],
    ['lost, still silent → as it was', { lostSinceMs: 5 }, 100, false, true, undefined],
    ['lost, and a new owner has not heard it → as it was', { lostSinceMs: 5 }, 0, false, false, undefined],
  ];
  for (const [name, record, silentMs, isRegionSilent, isHeard, lostSinceMs] of rows) {
    const { records } = host.observeSilence(hostRecord(h1, record), {
      ...contextOf(isHeard ? heard : fleetOf()),
      silentMs: () => silentMs,
      regionIsSilent: () => isRegionSilent,
      hostLostMs: 100,
    });
    t.same(
      records.map((changed) => (changed as HostRecord).lostSinceMs),
      lostSinceMs === undefined ? [] : [lostSinceMs],
      name,
    );
  }
  t.end();
});

t.test('tenant: quota, settings, revocations', (t) => {
  const pinned = container({ placement: placedOn(h1) });
  const waiting = container({ placement: unplaced }, 'waiting');
  const state = stateOf(pinned, waiting);
  const quota = (name: string) =>
    JSON.parse(
      tenantDecide.quota(state, { type: 'tenant.quota', tenant: acme, region: name, ...asker }, contextOf(fleetOf()))
        .reply.body,
    ) as {
      data?: { usage: object; caps: object };
      details?: object;
    };
  t.match(quota('*').data, { usage: { containers: 2, cpu_millis: 200 }, caps: { containers: 20 } });
  t.match(quota('default').data, { usage: { containers: 1, cpu_millis: 100 }, caps: { containers: null } });
  t.same(quota('eu').details, { region: ['is not an allocated region'] });

  const put = (settings: object, repair?: Revocation) =>
    tenantDecide.put(
      state,
      { type: 'tenant.put', tenant: acme, settings, ...asker, ...(repair === undefined ? {} : { repair }) },
      context,
    ).changes.records[0];
  t.match(put({ regions: ['eu'], caps: { containers: 1, mem_bytes: null } }), {
    regions: ['eu'],
    caps: { containers: 1, mem_bytes: null },
    regionCaps: {},
  });
  t.match(put({}), { regions: ['default'] }, 'what is absent has its default again');
  const revocation: Revocation = { tenant: acme, match: { by: 'tenant' }, issuedUntilS: 1, untilMs: context.nowMs + 1 };
  t.match(put({}, revocation), { revocations: { length: 0 } }, 'a record that can be read needs no repair');

  const of = (n: number): Revocation => ({ ...revocation, match: { by: 'sub', value: String(n) } });
  const ofToken = (n: number): Revocation => ({ ...revocation, match: { by: 'jti', value: String(n) } });
  const holding = (revocations: readonly Revocation[]) => ({ ...defaultTenant(acme), revocations });
  const many = Array.from({ length: 1000 }, (_, n) => of(n));
  const revoke = (nowMs: number, next = of(1000), before: readonly Revocation[] = many) =>
    tenantDecide.revoke(
      stateOf(holding(before)),
      { type: 'tenant.revoke', tenant: acme, revocation: next, ...asker },
      contextOf(fleetOf(), nowMs),
    );
  t.equal(revoke(context.nowMs).reply.code, 'conflict', 'bounded');
  t.match(
    revoke(context.nowMs + 1).changes.records,
    [{ revocations: { length: 1 } }],
    'those that are over are dropped',
  );
  t.match(revoke(context.nowMs, of(7)).changes.records, [{ revocations: { length: 1000 } }], 'the same again');
  t.match(
    revoke(context.nowMs, revocation).changes.records,
    [{ revocations: { length: 1 } }],
    'one of the whole tenant takes the place of all that it covers',
  );
  const tokens = many.map((_, n) => ofToken(n));
  const all = revoke(context.nowMs, revocation, tokens).changes.records;
  t.match(all, [{ revocations: { length: 1001 } }], 'and stands beside those of tokens, over the bound too');
  t.match(
    revoke(context.nowMs, revocation, [...tokens, revocation]).changes.records,
    [{ revocations: { length: 1001 } }],
    'once',
  );
  t.end();
});

t.test('placement: fits', (t) => {
  const need = { id: containerId(), cpuMillis: 100, memBytes: 100, ports: 2, diskBytes: 100 };
  const tight = { cpu_millis: 100, mem_bytes: 100, containers: 1 };
  const rows: [string, Parameters<typeof fleetHost>[1], boolean][] = [
    ['exactly full', { capacity: tight }, true],
    ['cpu short', { capacity: { ...tight, cpu_millis: 99 } }, false],
    ['memory short', { capacity: tight, used: { ...none, mem_bytes: 1 } }, false],
    ['as many containers as it may have', { capacity: tight, used: { ...none, containers: 1 } }, false],
    ['cordoned', { schedulable: false }, false],
    ['silent', { condition: 'silent' }, false],
    ['lost', { condition: 'lost' }, false],
    ['not started yet', { capacity: null }, false],
    ['as many free ports as it needs', { freePorts: 2 }, true],
    ['ports short', { freePorts: 1 }, false],
    ['less free disk than it may write', { freeDiskBytes: 0 }, true],
    ['its engine is away', { hasEngine: false }, false],
    ['it tells of faults, and may be the only one', { isSound: false }, true],
    ['no message has named it yet, as after a start of everything', { condition: 'unheard' }, true],
  ];
  for (const [name, more, expected] of rows) t.equal(fits(fleetHost(h1, more), need), expected, name);
  t.end();
});

t.test('placement: choose', (t) => {
  const need = { id: containerId(), cpuMillis: 100, memBytes: 100, ports: 2, diskBytes: 100 };
  const used = { cpu_millis: 32_000, mem_bytes: 0, containers: 0 };
  const two = fleetOf(fleetHost(h1, { used }), fleetHost(h2));
  const here = [region('default')];
  t.equal(choose(two, here, need, new Set())?.key, h2, 'the emptier');
  t.equal(choose(two, here, need, new Set([h2]))?.key, h1, 'without the excluded');
  for (const doubtful of [{ isSound: false }, { condition: 'unheard' as const }]) {
    const pair = fleetOf(fleetHost(h1, doubtful), fleetHost(h2, { used }));
    t.equal(choose(pair, here, need, new Set())?.key, h2, `another first, however full: ${JSON.stringify(doubtful)}`);
    t.equal(choose(pair, here, need, new Set([h2]))?.key, h1, 'and that one where there is no other');
  }
  t.equal(choose(two, [region('eu')], need, new Set()), undefined, 'in the regions given');
  t.equal(choose(two, [], need, new Set()), undefined);
  const full = Array.from({ length: 300 }, (_, index) =>
    fleetHost(`n${index}` as HostKey, index === 7 ? {} : { schedulable: false }),
  );
  for (let tries = 0; tries < 20; tries++) {
    t.equal(choose(fleetOf(...full), here, { ...need, id: containerId() }, new Set())?.key, 'n7', 'the one that fits');
  }
  t.end();
});

const sweepContext = (
  fleet = fleetOf(fleetHost(h1), fleetHost(h2)),
  more: Partial<SweepContext> = {},
): SweepContext => ({
  ...contextOf(fleet),
  silentMs: () => 0,
  regionIsSilent: () => false,
  hostLostMs: 1000,
  onFault: (_, error) => {
    throw error;
  },
  ...more,
});

t.test('sweep: bounded, fair to kinds, and unharmed by a record that it can’t decide', (t) => {
  const waiting = (index: number, more: Partial<ContainerRecord> = {}) =>
    container({ placement: unplaced, observed: observation('pending'), ...more }, `c${index}`);
  const many = Array.from({ length: limits.sweepChanges + 50 }, (_, index) => waiting(index));
  const swept = (state: ReturnType<typeof stateOf>, context = sweepContext()): ContainerRecord[] => {
    const placed: ContainerRecord[] = [];
    for (const changes of sweep(state, context)) {
      apply(state, changes);
      placed.push(...(changes.records as ContainerRecord[]));
    }
    return placed;
  };
  t.equal(swept(stateOf(...many)).length, limits.sweepChanges, 'no more at a time than this');

  let looks = 0;
  const small = fleetHost(h1, { capacity: { cpu_millis: 50, mem_bytes: 16 * 1024 ** 2, containers: 10 } });
  const fleet = { ...fleetOf(small), hostsIn: () => (looks++, [h1]) };
  const tiny = { spec: specOf('tiny', { cpu_limit: '0.05' }) };
  t.equal(
    swept(stateOf(...many, waiting(999, tiny)), sweepContext(fleet)).length,
    1,
    'what fits is placed behind what does not',
  );
  t.equal(looks, 2, 'and what does not costs one look for all of its kind');

  looks = 0;
  const refused = many.map((record) => ({ ...record, rejections: [{ host: h2, atMs: 999_999 }] }));
  t.same(swept(stateOf(...refused), sweepContext(fleet)), []);
  t.equal(looks, 1, 'those that were refused too');

  const elsewhere = waiting(1, { spec: specOf('elsewhere', { registry: 'other.example' }) });
  const narrowed = { ...defaultTenant(acme), registries: [waiting(2).spec.registry] };
  t.equal(swept(stateOf(narrowed, elsewhere, waiting(2))).length, 1, 'one of another registry holds up nobody');

  const other = waiting(1, { tenant: 'other' as typeof acme });
  const [, second] = swept(stateOf(...many, other));
  t.equal(second?.id, other.id, 'nobody waits because another has much');

  const outcomes: string[] = [];
  const [poisoned, sound] = [waiting(1), waiting(2, { desired: 'running', tenant: 'sound' as typeof acme })];
  const state = stateOf(poisoned, sound);
  const faulty = Object.assign(Object.create(state) as typeof state, {
    preparationSeen: () => undefined,
    waitingForHost: () => state.waitingForHost(),
    tenant: (tenant: typeof acme) => {
      if (tenant === acme) throw new Error('a bug');
      return state.tenant(tenant);
    },
  });
  const onFault = ({ id }: ContainerRecord): void => void outcomes.push(`fault ${id}`);
  faulty.hosts = () => [];
  faulty.secretsToSettle = () => new WaitingByTenant();
  faulty.loginsToTry = () => new WaitingByTenant();
  faulty.hostsWithContainers = () => [];
  faulty.beingProved = () => [];
  faulty.endedJobs = () => [];
  faulty.leavers = () => new WaitingByTenant();
  for (const { records } of sweep(faulty, sweepContext(undefined, { onFault }))) {
    for (const record of records) outcomes.push(`placed ${(record as ContainerRecord).id}`);
  }
  t.same(outcomes, [`fault ${poisoned.id}`, `placed ${sound.id}`]);
  t.end();
});

t.test('sweep: at rest it changes nothing', (t) => {
  const state = stateOf(hostRecord(h1), hostRecord(h2), container(), container({ placement: placedOn(h2) }, 'b'));
  t.same(
    [...sweep(state, sweepContext())].filter((changes) => changes !== noChanges),
    [],
  );
  t.end();
});

t.test('tombstones expire in the order in which they were made, across tenants', (t) => {
  const state = stateOf();
  const tombstone = (index: number): TombstoneRecord => ({
    kind: 'tombstone',
    id: containerId(),
    tenant: `t${index % 7}` as TombstoneRecord['tenant'],
    history: [],
    goneAtMs: index,
    idempotency: null,
  });
  const all = Array.from({ length: 500 }, (_, index) => tombstone(index));
  for (const record of all) state.put(record);
  const dueMs = limits.tombstoneTtlMs + 449;
  let deleted = 0;
  for (let sweeps = 0; sweeps < 10; sweeps++) {
    const changes = expired(state, dueMs);
    t.ok(changes.deletes.length <= limits.sweepChanges);
    apply(state, changes);
    deleted += changes.deletes.length;
  }
  t.equal(deleted, 450);
  t.equal([...state.tombstones()].length, 50);
  t.equal(state.tenant('t0' as TombstoneRecord['tenant']).tombstones.size, 7);
  t.end();
});

t.test('desired: what is placed on a host, in parts that fit a message', (t) => {
  const big = (index: number) =>
    container({ spec: specOf(`c${index}`, { env: { BIG: 'x'.repeat(64 * 1024) } }) }, `c${index}`);
  const all = Array.from({ length: 40 }, (_, index) => big(index));
  const state = stateOf(
    ...all,
    container({ placement: placedOn(h2) }, 'other'),
    container({ placement: unplaced }, 'w'),
  );
  const desired = [...desiredOf(state.wantedOn(h1), h1)];
  t.same(
    desired.map(({ id }) => id),
    all.map(({ id }) => id),
  );
  t.match(desired[0], { generation: 2, placement: 2, desired: 'running', cpu_millis: 100, mem_bytes: 16 * 1024 ** 2 });
  const hold = Array.from({ length: 30_000 }, containerId);
  const texts = runAtOnce(inParts({ containers: desired, hold })).map((part) => partText({ v: 1 }, part));
  t.ok(texts.length > 1);
  for (const text of texts) t.ok(Buffer.byteLength(text) < limits.answerPartBytes + 100);
  const parts = texts.map((text) => JSON.parse(text) as { containers: unknown[]; hold: unknown[] });
  t.same(
    parts.flatMap(({ containers }) => containers),
    desired,
  );
  t.same(
    parts.flatMap((part) => part.hold),
    hold,
  );
  t.same(runAtOnce(inParts({ containers: [], hold: [] })), [{ containers: [], hold: [] }], 'one part at least');
  t.end();
});

const fleetWithBeat = (condition: HostCondition, containers: number): FleetView => ({
  ...fleetOf(fleetHost(h1, { condition, used: { ...none, containers } })),
  beat: () => ({ used: { ...none, containers }, engine: 'test', orphansHeld: 0, volumesLeft: 0, faults: [], room: {} }),
});

for (const [name, record, fleet, options, outcome] of [
  ['up, with containers', {}, fleetWithBeat('up', 2), {}, 'conflict'],
  ['up, without containers, and not drained', {}, fleetWithBeat('up', 0), {}, 'conflict'],
  ['drained, and empty', { draining: true }, fleetWithBeat('up', 0), {}, 'forgotten'],
  ['drained, with a container left', { draining: true }, fleetWithBeat('up', 1), {}, 'conflict'],
  ['drained, and silent since', { draining: true }, fleetWithBeat('silent', 0), {}, 'conflict'],
  ['lost', { lostSinceMs: 1 }, fleetWithBeat('lost', 2), {}, 'forgotten'],
  ['never joined', { capacity: null, publicKey: null }, fleetWithBeat('up', 0), {}, 'forgotten'],
  ['up, by force', {}, fleetWithBeat('up', 2), { force: true }, 'fenced'],
  ['silent, by force', {}, fleetWithBeat('silent', 2), { force: true }, 'fenced'],
  ['drained and empty, by force', { draining: true }, fleetWithBeat('up', 0), { force: true }, 'forgotten'],
  ['up, said to be dead without force', {}, fleetWithBeat('up', 2), { dead: true }, 'conflict'],
  ['up, by force and dead', {}, fleetWithBeat('up', 2), { force: true, dead: true }, 'forgotten'],
  ['fenced', { fencedAtMs: 5 }, fleetWithBeat('fenced', 2), {}, 'unchanged'],
  ['fenced, by force again', { fencedAtMs: 5 }, fleetWithBeat('fenced', 2), { force: true }, 'unchanged'],
  ['fenced, now dead', { fencedAtMs: 5 }, fleetWithBeat('fenced', 2), { force: true, dead: true }, 'forgotten'],
] as const) {
  t.test(`removal of a host: ${name} → ${outcome}`, (t) => {
    const ask = { type: 'host.remove', host: h1, ...options, ...asker } as const;
    const { reply, changes } = host.remove(stateOf(hostRecord(h1, record)), ask, contextOf(fleet));
    t.equal(reply.code, outcome === 'conflict' ? 'conflict' : 'accepted');
    t.same(changes.deletes, outcome === 'forgotten' ? ['host.h1'] : []);
    const key = name === 'never joined' ? null : hostRecord(h1, record).publicKey;
    const isRevoked = key !== null && (outcome === 'fenced' || outcome === 'forgotten');
    const revoked = changes.records.filter(({ kind }) => kind === 'revoked_key');
    t.same(revoked, isRevoked ? [{ kind: 'revoked_key', publicKey: key, host: h1, atMs: 1_000_000 }] : []);
    t.equal(changes.records.length - revoked.length, outcome === 'fenced' ? 1 : 0);
    if (outcome === 'fenced')
      t.match(changes, { records: [{ fencedAtMs: 1_000_000 }], effects: [{}, { kind: 'doorbell' }] });
    t.end();
  });
}

const waitMs = 60_000 + limits.fenceMarginMs;
for (const [name, more, silentMs, nowMs, isForgotten] of [
  ['its agent stops them, and both clocks say so', { stopsAfterMs: 60_000 }, waitMs, waitMs, true],
  ['silent for less', { stopsAfterMs: 60_000 }, waitMs - 1, waitMs, false],
  ['fenced for less, and silent for long before', { stopsAfterMs: 60_000 }, 10 * waitMs, waitMs - 1, false],
  ['its agent never stops them', { stopsAfterMs: null }, 10 ** 9, 10 ** 9, false],
  ['its agent did not say', {}, 10 ** 9, 10 ** 9, false],
] as const) {
  t.test(`fenced: ${name} → ${isForgotten ? 'placed again' : 'it stays'}`, (t) => {
    const record = hostRecord(h1, { fencedAtMs: 0, ...more });
    const silence = { silentMs: () => silentMs, regionIsSilent: () => true, hostLostMs: 1 };
    const changes = host.observeSilence(record, { ...contextOf(fleetOf(), nowMs), ...silence });
    t.same(changes.deletes, isForgotten ? ['host.h1'] : []);
    t.match(changes.records, isForgotten ? [{ kind: 'revoked_key', host: h1 }] : []);
    t.equal(changes.records.length, isForgotten ? 1 : 0);
    t.end();
  });
}

t.test('a fenced host is given nothing: no session, no token, no change', (t) => {
  const join = { tokenHash: 'x', untilMs: 10 ** 12, spentBy: null };
  const state = stateOf(hostRecord(h1, { fencedAtMs: 1, join }));
  const context = contextOf(fleetWithBeat('fenced', 1));
  t.equal(host.hello(state, speaker, { v: 1, agent_version: '1', capacity: roomy }, context), undefined);
  const enrol = { type: 'host.enrol', host: h1, joinTokenHash: 'x', publicKey: 'U', ...asker } as const;
  t.equal(host.mayEnrol(state, enrol, 1), false);
  const token = host.joinToken(state, { type: 'host.join_token', host: h1, joinTokenHash: 'y', ...asker }, context);
  t.equal(token.reply.code, 'conflict');
  const update = host.update(state, { type: 'host.update', host: h1, update: { cordoned: false }, ...asker }, context);
  t.equal(update.reply.code, 'conflict');
  t.end();
});
