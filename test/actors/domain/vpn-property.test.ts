/**
 * A tenant's partition and a network's. The messages between them are lost, repeated and delayed
 * without bound; gateways stop anywhere; owners restart. At every step each address has a peer that
 * claims it, no address has two, and no cap is exceeded. At rest each peer has its current lease,
 * there is no other lease, and every revoked serial is listed.
 */
import fc from 'fast-check';
import t from 'tap';
import { decideWrite } from '../../../actors/domain/decide.ts';
import { outboxOf, outcomeOf, questionOf, reservationTtlMs, type OutboxItem } from '../../../actors/outbox/outbox.ts';
import { peerNoticeOf } from '../../../actors/domain/peer/view.ts';
import { PartitionState } from '../../../actors/domain/state.ts';
import { membersOf } from '../../../actors/domain/members.ts';
import { recordKey, type StateRecord } from '../../../actors/domain/records.ts';
import { expiredOfVpn } from '../../../actors/domain/sweep.ts';
import { isSuccess, type Changes, type Turn } from '../../../actors/domain/turn.ts';
import type { PeerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import type { Reservation, RevocationEntry } from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import { operation, tenantId } from '../support.ts';
import { digestOfMembers } from '../../../schemas/wire/members.ts';
import { basisOf } from '../../../schemas/wire/set-digest.ts';
import { contextOf, fleetOf, noLedger } from '../support/records.ts';
import { certificate, dataOf, home, newSecrets, madePeer, networkRecord, peerId, read } from '../support/vpn.ts';

const tenants = [tenantId('acme'), tenantId('bolt')];
const cap = 3;
const addresses = 5;

type Side = 'tenants' | 'network';
const sides = ['tenants', 'network'] as const;

/**
 * On its way. `then`: what its sender does when it is answered, if it is still there to hear it.
 */
interface Message {
  readonly to: Side;
  readonly ask: WriteAsk;
  readonly then: (turn: Turn) => void;
}

type Step =
  | { do: 'create'; tenant: number; name: number }
  | { do: 'disable' | 'enable' | 'rotate' | 'certify' | 'remove' | 'rename'; which: number }
  | { do: 'deliver' | 'lose' | 'double' | 'answer'; which: number }
  | { do: 'outbox'; side: number; which: number }
  | { do: 'restart'; side: number }
  | { do: 'pass' };

const which = fc.nat({ max: 30 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('create' as const), tenant: fc.nat({ max: 1 }), name: fc.nat({ max: 6 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'disable' as const,
        'enable' as const,
        'rotate' as const,
        'certify' as const,
        'remove' as const,
        'remove' as const,
        'rename' as const,
      ),
      which,
    }),
  },
  {
    weight: 16,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'deliver' as const,
        'deliver' as const,
        'deliver' as const,
        'answer' as const,
        'answer' as const,
        'lose' as const,
        'double' as const,
      ),
      which,
    }),
  },
  { weight: 7, arbitrary: fc.record({ do: fc.constant('outbox' as const), side: fc.nat({ max: 1 }), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), side: fc.nat({ max: 1 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const) }) },
);

function createWorld() {
  let nowMs = 1_000_000;
  const stored = { tenants: new Map<string, StateRecord>(), network: new Map<string, StateRecord>() };
  const states = { tenants: new PartitionState(noLedger), network: new PartitionState(noLedger) };
  let messages: Message[] = [];
  const answers: (() => void)[] = [];
  /** Every serial that a peer's removal or rotation took out of use. */
  const revoked = new Set<string>();

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

  const take = (side: Side, ask: WriteAsk): Turn => {
    const turn = decideWrite(states[side], ask, contextOf(fleetOf(), nowMs), undefined);
    apply(side, turn.changes);
    return turn;
  };
  const whole = (ask: Record<string, unknown>) =>
    ({ rid: 'r', budgetMs: 1, op: operation(), ...ask }) as unknown as WriteAsk;
  const send = (to: Side, ask: Record<string, unknown>, then: Message['then'] = () => {}): void => {
    messages.push({ to, ask: whole(ask), then });
  };

  apply('network', { records: [networkRecord({ ipv4_pool: '10.86.0.0/29' })], deletes: [], events: [], effects: [] });
  for (const tenant of tenants)
    take('tenants', whole({ type: 'tenant.put', tenant, settings: { caps: { vpn_peers: cap } } }));

  const live = (): PeerRecord[] =>
    tenants.flatMap((tenant) => [...states.tenants.tenant(tenant).peers.records.values()]);

  /**
   * A gateway's request: it may be lost at any of its steps, and each of its messages may come
   * twice.
   */
  function create(tenant: TenantId, name: string): void {
    const peer: PeerId = peerId();
    const by = { tenant, peer };
    send('network', { type: 'network.reserve', network: home, by }, (reserved) => {
      if (!isSuccess(reserved.reply)) return;
      const { index } = (JSON.parse(reserved.reply.body) as { data: Reservation }).data;
      send('tenants', { type: 'peer.create', tenant, peer, made: madePeer(name, index) }, (created) => {
        if (!isSuccess(created.reply)) send('network', { type: 'network.release', network: home, by });
      });
    });
  }

  function sendItem(side: Side, found: OutboxItem): void {
    const to = side === 'tenants' ? 'network' : 'tenants';
    messages.push({
      to,
      ask: { ...questionOf(found), budgetMs: limits.outboxTimeoutMs } as WriteAsk,
      then: ({ reply }) => {
        const outcome = outcomeOf(found, reply);
        if (outcome !== undefined) apply(side, outcome(states[side], { nowMs }));
      },
    });
  }

  const deliver = ({ to, ask, then }: Message): void => {
    const turn = take(to, ask);
    answers.push(() => then(turn));
  };

  function change(
    next: Extract<Step, { do: 'disable' | 'enable' | 'rotate' | 'certify' | 'remove' | 'rename' }>,
  ): void {
    const all = live();
    const record = all[next.which % Math.max(1, all.length)];
    if (record === undefined) return;
    const peer = { tenant: record.tenant, peer: record.id };
    const { serial } = record.certificate;
    const serials = [serial, ...record.renewed.map((ref) => ref.serial)];
    switch (next.do) {
      case 'disable':
      case 'enable':
        take('tenants', whole({ type: 'peer.update', ...peer, update: { enabled: next.do === 'enable' } }));
        return;
      case 'rename':
        take('tenants', whole({ type: 'peer.update', ...peer, update: { name: `r${next.which}` } }));
        return;
      case 'rotate':
        take('tenants', whole({ type: 'peer.rotate', ...peer, replaces: serial, ...newSecrets() }));
        for (const each of serials) revoked.add(each);
        return;
      case 'certify':
        take('tenants', whole({ type: 'peer.certify', ...peer, replaces: serial, certificate: certificate() }));
        return;
      case 'remove':
        take('tenants', whole({ type: 'peer.remove', ...peer }));
        for (const each of serials) revoked.add(each);
        return;
    }
  }

  function restart(side: Side): void {
    const records = [...stored[side].values()];
    const state = (states[side] = new PartitionState(noLedger));
    for (const record of records) state.put(record);
    // Answers to asks of the previous process are lost; messages that it had sent still arrive.
    messages = messages.map((message) => (message.to === side ? message : { ...message, then: () => {} }));
  }

  function walk(next: Step): void {
    switch (next.do) {
      case 'create':
        create(tenants[next.tenant] as TenantId, `p${next.name}`);
        return;
      case 'deliver': {
        const [message] = messages.splice(next.which % Math.max(1, messages.length), 1);
        if (message !== undefined) deliver(message);
        return;
      }
      case 'double': {
        const message = messages[next.which % Math.max(1, messages.length)];
        if (message !== undefined) deliver(message);
        return;
      }
      case 'lose':
        messages.splice(next.which % Math.max(1, messages.length), 1);
        return;
      case 'answer': {
        const [answer] = answers.splice(next.which % Math.max(1, answers.length), 1);
        answer?.();
        return;
      }
      case 'outbox': {
        const side = sides[next.side] as Side;
        const all = [...outboxOf(states[side], nowMs)];
        const found = all[next.which % Math.max(1, all.length)];
        if (found !== undefined) sendItem(side, found);
        return;
      }
      case 'restart':
        restart(sides[next.side] as Side);
        return;
      case 'pass':
        nowMs += reservationTtlMs / 2 + 1;
        return;
      default:
        change(next);
        return;
    }
  }

  const fail = (what: string): never => {
    throw new Error(what);
  };

  function check(): void {
    const network = states.network.vpn.network(home);
    if (network.allocated > addresses) fail('more addresses than there are');
    const indexes = new Set<number>();
    for (const record of live()) {
      if (indexes.has(record.index)) fail(`address ${record.index} is allocated twice`);
      indexes.add(record.index);
      const lease = network.lease(record.index);
      if (lease?.peer !== record.id) fail(`address ${record.index} is its peer's no more`);
      if (lease?.state.phase === 'held' && lease.state.generation > record.generation) fail('a generation to come');
    }
    for (const tenant of tenants) {
      const { peers } = states.tenants.tenant(tenant);
      if (peers.records.size > cap) fail('over the cap');
      if (states.tenants.tenant(tenant).usage('*').vpn_peers !== peers.records.size) fail('miscounted');
      if (peers.names.size !== peers.records.size) fail('a name is held twice, or by nobody');
      const members = [...membersOf(states.tenants.tenant(tenant))];
      const summary = states.tenants.memberSummaryOf(tenant);
      if (summary.digest !== digestOfMembers(basisOf(0), members)) fail('the digest of the members');
    }
  }

  /** From now on nothing is lost. */
  function settle(): void {
    for (let round = 0; round < 20; round++) {
      for (const side of sides) {
        for (const found of [...outboxOf(states[side], nowMs)]) {
          sendItem(side, found);
          const message = messages.pop();
          if (message !== undefined) message.then(take(message.to, message.ask));
          check();
        }
      }
      nowMs += reservationTtlMs;
    }
    const left = sides.flatMap((side) => [...outboxOf(states[side], nowMs)]);
    if (left.length > 0) fail(`it does not come to rest: ${left.map(({ about }) => about).join()}`);
  }

  function checkRest(): void {
    const network = states.network.vpn.network(home);
    const all = live();
    for (const record of all) {
      const { there, index, revoked: refused, ...told } = { index: 0, ...peerNoticeOf(record, 0) };
      const lease = network.lease(record.index);
      if (!there || refused.length > 0 || record.told !== record.generation) fail('not told');
      if (JSON.stringify(lease?.state) !== JSON.stringify({ phase: 'held', ...told })) fail(`lease ${index} is of old`);
    }
    if (network.allocated !== all.length) fail(`${network.allocated} addresses allocated to ${all.length} peers`);
    const entries = dataOf<RevocationEntry[]>(
      read(states.network, { type: 'network.revocations', network: home, after: '' }, nowMs),
    );
    const listed = new Map(entries.map(({ serial, reason }) => [serial, reason]));
    for (const serial of revoked)
      if ((listed.get(serial) ?? 'certificateHold') === 'certificateHold') fail('not revoked');
    const paused = all
      .filter(({ enabled }) => !enabled)
      .flatMap(({ certificate, renewed }) => [certificate, ...renewed]);
    if (listed.size !== revoked.size + paused.length) fail(`${listed.size} serials are listed`);
    for (const { serial } of paused) if (listed.get(serial) !== 'certificateHold') fail('a disabled peer is let in');
  }

  /** Delivers the messages still under way when all else is at rest, in any order. */
  function comeLate(): void {
    const late = messages.reverse();
    messages = [];
    for (const message of late) {
      take(message.to, message.ask);
      check();
    }
  }

  function expire(): number {
    nowMs += limits.peerTombstoneTtlMs + 1;
    let deleted = 0;
    for (const side of sides) {
      const changes = expiredOfVpn(states[side], nowMs);
      apply(side, changes);
      deleted += changes.deletes.length;
    }
    return deleted;
  }
  /**
   * Number of tombstones that may go; those that revoke something stay until the certificates have
   * expired.
   */
  const tombstoned = (): number =>
    [...states.tenants.vpn.tombstones()].filter(({ revoked }) => revoked.length === 0).length;

  return { walk, check, settle, checkRest, comeLate, expire, tombstoned, restart };
}

t.test('whatever is lost, doubled or late: no address twice, none for ever, no certificate unrefused', (t) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 120, size: 'max' }), (steps) => {
      const world = createWorld();
      for (const next of steps) {
        world.walk(next);
        world.check();
      }
      world.settle();
      world.checkRest();
      world.comeLate();
      world.settle();
      world.checkRest();
      for (const side of sides) world.restart(side);
      world.check();
      world.checkRest();
      world.expire();
      if (world.tombstoned() > 0) throw new Error('tombstones of what never was, for ever');
      world.checkRest();
    }),
    { numRuns: 1500 },
  );
  t.pass('1500 walks');
  t.end();
});
