/**
 * A restore brings the tenants' partition and the network's back as of different moments (ADR 13).
 * Whatever was done between: no address is two peers' in silence, none stays allocated without a
 * peer, every certificate that either side knows to be revoked stays so, and each peer is either as
 * its network has it, or says what is wrong with it.
 */
import fc from 'fast-check';
import t from 'tap';
import { decideWrite } from '../../../actors/domain/decide.ts';
import { lapse } from '../../../actors/domain/network/learn.ts';
import { outboxOf, outcomeOf, problemOf, questionOf, reservationTtlMs } from '../../../actors/outbox/outbox.ts';
import { peerView, peerNoticeOf } from '../../../actors/domain/peer/view.ts';
import { PartitionState } from '../../../actors/domain/state.ts';
import { recordKey, type StateRecord } from '../../../actors/domain/records.ts';
import type { Changes, Turn } from '../../../actors/domain/turn.ts';
import type { PeerId, TenantId } from '../../../schemas/ids.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import type { Reservation, RevocationEntry } from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import { operation, tenantId } from '../support.ts';
import { acme, apply, contextOf, fleetOf, noLedger } from '../support/records.ts';
import {
  certificate,
  dataOf,
  farMs,
  home,
  newSecrets,
  leaseOf,
  madePeer,
  networkRecord,
  peerId,
  peerRecord,
  read,
  write,
} from '../support/vpn.ts';

const tenants = [tenantId('acme'), tenantId('bolt')];
type Side = 'tenants' | 'network';
const sides: readonly Side[] = ['tenants', 'network'];
const other = { tenants: 'network', network: 'tenants' } as const;

type Step =
  | { do: 'create'; tenant: number }
  | { do: 'disable' | 'rotate' | 'certify' | 'remove'; which: number }
  | { do: 'outbox'; side: number; which: number }
  | { do: 'copy'; side: number }
  | { do: 'settle' | 'pass' };

const which = fc.nat({ max: 30 });
const use: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('create' as const), tenant: fc.nat({ max: 1 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('disable' as const, 'rotate' as const, 'certify' as const, 'remove' as const),
      which,
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('outbox' as const), side: fc.nat({ max: 1 }), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('settle' as const, 'pass' as const) }) },
);
const copy: fc.Arbitrary<Step> = fc.record({ do: fc.constant('copy' as const), side: fc.nat({ max: 1 }) });

function createWorld() {
  let nowMs = 1_000_000;
  let incarnation = 0;
  const stored = { tenants: new Map<string, StateRecord>(), network: new Map<string, StateRecord>() };
  const copies = { ...stored };
  const fresh = () => new PartitionState(noLedger, { epoch: 1, incarnation });
  const states = { tenants: fresh(), network: fresh() };

  function apply(side: Side, { records, deletes }: Changes): void {
    for (const record of records) {
      states[side].put(record);
      stored[side].set(recordKey(record), record);
    }
    for (const key of deletes) {
      states[side].delete(key);
      stored[side].delete(key);
    }
  }
  function take(side: Side, ask: Record<string, unknown>): Turn {
    const whole = { rid: 'r', budgetMs: 1, op: operation(), ...ask } as unknown as WriteAsk;
    const turn = decideWrite(states[side], whole, contextOf(fleetOf(), nowMs), undefined);
    apply(side, turn.changes);
    return turn;
  }
  apply('network', { records: [networkRecord({ ipv4_pool: '10.86.0.0/29' })], deletes: [], events: [], effects: [] });

  const live = (): PeerRecord[] =>
    tenants.flatMap((tenant) => [...states.tenants.tenant(tenant).peers.records.values()]);
  const fail = (what: string): never => {
    throw new Error(what);
  };

  /** @returns true if the item is settled, or there is none */
  function sendItem(side: Side, which: number): boolean {
    const all = [...outboxOf(states[side], nowMs)];
    const found = all[which % Math.max(1, all.length)];
    if (found === undefined) return true;
    const { reply } = take(other[side], questionOf(found));
    const outcome = outcomeOf(found, reply);
    if (outcome !== undefined) apply(side, outcome(states[side], { nowMs }));
    return outcome !== undefined && problemOf(found, reply) === null;
  }
  function settle(): void {
    for (let round = 0; round < 8; round++) {
      for (const side of sides) {
        const count = [...outboxOf(states[side], nowMs)].length;
        // One that is settled leaves its place to the next.
        for (let at = 0, n = 0; n < count; n++) if (!sendItem(side, at)) at++;
      }
      nowMs += reservationTtlMs;
    }
  }

  let names = 0;
  function create(tenant: TenantId): void {
    const peer: PeerId = peerId();
    const { reply } = take('network', { type: 'network.reserve', network: home, by: { tenant, peer } });
    if (reply.code !== 'ok') return;
    const { index } = (JSON.parse(reply.body) as { data: Reservation }).data;
    take('tenants', { type: 'peer.create', tenant, peer, made: madePeer(`p${++names}`, index) });
  }
  function walk(next: Step): void {
    switch (next.do) {
      case 'create':
        create(tenants[next.tenant] as TenantId);
        return;
      case 'outbox':
        sendItem(sides[next.side] as Side, next.which);
        return;
      case 'copy':
        copies[sides[next.side] as Side] = new Map(stored[sides[next.side] as Side]);
        return;
      case 'settle':
        settle();
        return;
      case 'pass':
        nowMs += reservationTtlMs / 2 + 1;
        return;
      default: {
        const all = live();
        const record = all[next.which % Math.max(1, all.length)];
        if (record !== undefined) change(record, next.do);
        return;
      }
    }
  }
  function change(record: PeerRecord, how: 'disable' | 'rotate' | 'certify' | 'remove'): void {
    const peer = { tenant: record.tenant, peer: record.id };
    const { serial: replaces } = record.certificate;
    if (how === 'disable') take('tenants', { type: 'peer.update', ...peer, update: { enabled: false } });
    if (how === 'rotate') take('tenants', { type: 'peer.rotate', ...peer, replaces, ...newSecrets() });
    if (how === 'certify') take('tenants', { type: 'peer.certify', ...peer, replaces, certificate: certificate() });
    if (how === 'remove') take('tenants', { type: 'peer.remove', ...peer });
  }

  /** Serials that must stay refused for ever, and serials in use when the copy was made. */
  const refused = new Set<string>();
  const issued = new Set<string>();
  function restore(): void {
    incarnation++;
    for (const side of sides) {
      stored[side] = new Map(copies[side]);
      states[side] = fresh();
      for (const record of stored[side].values()) {
        states[side].put(record);
        if (record.kind === 'peer_tombstone' || record.kind === 'peer') {
          for (const { serial } of record.revoked) refused.add(serial);
        }
        if (record.kind === 'revoked') refused.add(record.serial);
        if (record.kind === 'lease' && record.state.phase === 'held') {
          for (const { serial } of record.state.certificates) issued.add(serial);
        }
      }
    }
  }

  function check(): void {
    const network = states.network.vpn.network(home);
    const peers = live();
    const byId = new Map(peers.map((record) => [`${record.tenant} ${record.id}`, record]));
    for (const lease of network.leases(0)) {
      const peer = byId.get(`${lease.tenant} ${lease.peer}`);
      if (peer === undefined) fail(`address ${lease.index} is allocated without a peer`);
    }
    const whole = peers.filter((record) => peerView(record, { nowMs }, true).problem === null);
    if (new Set(whole.map(({ index }) => index)).size < whole.length) fail('an address is allocated twice, in silence');
    for (const record of whole) {
      const { there: _there, index, revoked, ...told } = { index: 0, ...peerNoticeOf(record, incarnation) };
      const state = network.lease(index)?.state;
      if (revoked.length > 0) fail('a revocation is not told');
      if (JSON.stringify(state) !== JSON.stringify({ phase: 'held', ...told })) fail(`lease ${index} is of old`);
    }
    const entries = dataOf<RevocationEntry[]>(
      read(states.network, { type: 'network.revocations', network: home, after: '' }, nowMs),
    );
    const listed = new Set(entries.map(({ serial }) => serial));
    for (const serial of refused) if (!listed.has(serial)) fail(`${serial} was revoked, and is not`);
    const named = new Set(
      peers.flatMap((record) => [...record.renewed, record.certificate].map(({ serial }) => serial)),
    );
    for (const serial of issued) if (!named.has(serial) && !listed.has(serial)) fail(`${serial} is nobody's, and good`);
  }

  /** Follows the advice in the problem of each peer, as a person would. */
  function heed(): void {
    // One with new keys may find that its address is another's by now.
    for (let round = 0; round < 2; round++) {
      for (const record of live()) {
        if (record.problem === 'address') change(record, 'remove');
        if (record.problem === 'keys') change(record, 'rotate');
      }
      settle();
    }
    if (live().some(({ problem }) => problem !== undefined)) fail('a problem stays');
    for (const side of sides) if ([...outboxOf(states[side], nowMs)].length > 0) fail('it does not come to rest');
    check();
  }

  return { walk, restore, settle, check, heed, copies, live, states, now: () => nowMs };
}

t.test('partitions of different moments come to agree, or say where they do not', (t) => {
  let problems = 0;
  const walks = fc.tuple(
    fc.array(use, { minLength: 5, maxLength: 40, size: 'max' }),
    copy,
    fc.array(use, { maxLength: 15, size: 'max' }),
    fc.array(use, { maxLength: 10, size: 'max' }),
    fc.boolean(),
  );
  fc.assert(
    fc.property(walks, ([before, first, between, after, again]) => {
      const world = createWorld();
      for (let round = 0; round < (again ? 2 : 1); round++) {
        for (const next of before) world.walk(next);
        world.walk(first);
        for (const next of between) world.walk(next);
        world.walk({ do: 'copy', side: first.do === 'copy' ? 1 - first.side : 0 });
        world.restore();
        for (const next of after) world.walk(next);
        world.settle();
        world.check();
        problems += world.live().filter(({ problem }) => problem !== undefined).length;
        world.heed();
      }
    }),
    { numRuns: 1500 },
  );
  t.ok(problems > 0, `${problems} peers were told what is wrong`);
  t.end();
});

/** The network's partition after a restore, with what it had stored before. */
function restored(incarnation: number, ...records: StateRecord[]) {
  const state = new PartitionState(noLedger, { epoch: 1, incarnation });
  for (const record of [networkRecord(), ...records]) state.put(record);
  const nowMs = 1_000_000;
  const hear = (record: PeerRecord) => {
    const { tenant, id } = record;
    const told = peerNoticeOf(record, incarnation);
    const ask = { type: 'network.learn', network: home, by: { tenant, peer: id }, told, incarnation } as const;
    return write(state, ask, nowMs);
  };
  return { state, hear, asked: () => [...outboxOf(state, nowMs)] };
}

t.test('the holder of a reservation from before a restore is asked at once', (t) => {
  // Made while the clock was days ahead.
  const atMs = 10 ** 12;
  const reserved = leaseOf(4, acme, peerId(), { phase: 'reserved', atMs });
  const { state, hear, asked } = restored(1, reserved);
  const other = peerRecord({ index: 4 });
  t.equal(hear(other).code, 'unavailable');
  t.match(asked(), [{ kind: 'release', lease: reserved }]);
  apply(state, lapse(state, reserved, { nowMs: 1_000_000 }));
  t.equal(hear(other).code, 'ok');
  t.same(asked(), []);
  t.end();
});

t.test('a reservation whose peer has lost its keys is confirmed, so nobody asks for ever', (t) => {
  const peer = peerRecord({ index: 4 });
  const { serial } = peer.certificate;
  const reserved = { ...leaseOf(4, acme, peer.id), confirmedIn: 1 };
  const revoked = { kind: 'revoked', network: home, serial, notAfterMs: farMs, atMs: 5, reason: 'superseded' } as const;
  const { hear, asked } = restored(2, reserved, revoked);
  t.equal(asked().length, 1);
  t.same(dataOf(hear(peer)), { problem: 'keys' });
  t.same(
    asked().filter(({ version }) => version === 0),
    [],
  );
  t.end();
});
