/**
 * Decisions about VPN networks: what they allocate, what they learn, what they refuse, and secrets
 * that are sealed again.
 */
import t from 'tap';
import { lapse } from '../../../actors/domain/network/learn.ts';
import { peerNoticeOf } from '../../../actors/domain/peer/view.ts';
import type { PartitionState } from '../../../actors/domain/state.ts';
import { expiredOfVpn } from '../../../actors/domain/sweep.ts';
import { serverOf } from '../../../actors/domain/network/view.ts';
import { isEmpty, type FleetView } from '../../../actors/domain/turn.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { HostKey, NetworkName, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type {
  KeptCertificate,
  LeaseRecord,
  NetworkRecord,
  NetworkSettings,
  NetworkView,
  Reservation,
  RevocationEntry,
  RevokedRecord,
} from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import type { StaleSecret } from '../../../schemas/records/sealed.ts';
import type { NetworkServer } from '../../../schemas/wire/network-server.ts';
import { acme, agentKeyOf, apply, fleetHost, fleetOf, h1, h2, stateOf } from '../support/records.ts';
import {
  bolt,
  certificate,
  dataOf,
  farMs,
  heldOf,
  home,
  leaseOf,
  madeNetwork,
  networkRecord,
  peerId,
  peerRecord,
  read,
  sealed,
  settingsOf,
  write,
} from '../support/vpn.ts';

const nowMs = 1_000_000;

const reserve = (state: PartitionState, tenant: TenantId = acme, peer = peerId()) =>
  write(state, { type: 'network.reserve', network: home, by: { tenant, peer } });
const indexOf = (answer: { readonly body: unknown }): number => dataOf<Reservation>(answer).index;
const learn = (state: PartitionState, record: PeerRecord, more: Partial<PeerRecord> = {}) =>
  write(state, {
    type: 'network.learn',
    network: home,
    by: { tenant: record.tenant, peer: record.id },
    told: peerNoticeOf({ ...record, ...more }, 0),
    incarnation: 0,
  });
const goneOf = (record: PeerRecord, revoked: PeerRecord['revoked'] = []) =>
  ({
    type: 'network.learn',
    network: home,
    by: { tenant: record.tenant, peer: record.id },
    told: { there: false, generation: record.generation + 1, revoked },
    incarnation: 0,
  }) as const;
const revokedRecord = (serial: string, more: Partial<RevokedRecord> = {}): RevokedRecord => ({
  kind: 'revoked',
  network: home,
  serial,
  notAfterMs: farMs,
  atMs: 5,
  reason: 'superseded',
  ...more,
});

t.test(
  'a network is made once, shown without its secrets, set but for its pools, and removed when it is empty',
  (t) => {
    const state = stateOf();
    const made = madeNetwork({ tenants: [acme] });
    const ask = { type: 'network.create', network: home, made } as const;
    const created = write(state, ask);
    t.equal(created.code, 'created');
    t.match(dataOf<NetworkView>(created), {
      name: 'home',
      ipv4_pool: '10.86.0.0/24',
      wireguard_public_key: made.wireguard.publicKey,
      ca_certificate: { serial: made.ca.serial },
      addresses: { total: 253, allocated: 0 },
    });
    t.notMatch(JSON.stringify(created.body), /v1\.k1|PEM/);
    t.equal(write(state, ask).code, 'created', 'the same request again');
    t.equal(write(state, { ...ask, made: madeNetwork() }).code, 'conflict');

    const put = (settings: NetworkRecord['settings'], server = null as NetworkRecord['server'] | null) =>
      write(state, { type: 'network.put', network: home, settings, server });
    t.equal(put(settingsOf({ ipv4_pool: '10.87.0.0/24' })).code, 'conflict');
    t.equal(put(settingsOf({ ipv6_pool: null })).code, 'conflict');
    const server = certificate();
    const set = put(settingsOf({ ipv6_pool: 'fd00:0086:0::/112', endpoint: 'new.example.com' }), server);
    t.match(dataOf<NetworkView>(set), { endpoint: 'new.example.com', server_certificate: { serial: server.serial } });
    t.equal(state.vpn.network(home).record?.ca.serial, made.ca.serial);
    // The certificate would be for another endpoint: its sender saw the network before the move.
    t.equal(put(settingsOf({ ipv6_pool: 'fd00:86::/112' })).code, 'conflict', 'back, without a certificate');
    t.equal(put(settingsOf({ ipv6_pool: 'fd00:86::/112', endpoint: 'new.example.com' })).code, 'ok');

    const certify = (replaces: string, next: NetworkRecord['ca']) =>
      write(state, { type: 'network.certify', network: home, which: 'ca', replaces, certificate: next });
    const next = certificate();
    t.equal(certify('other', next).code, 'conflict');
    t.equal(dataOf<NetworkRecord>(certify(made.ca.serial, next)).ca.serial, next.serial);
    t.equal(certify(made.ca.serial, next).code, 'ok', 'asked again');
    t.equal(certify(made.ca.serial, certificate()).code, 'conflict');

    const held = peerRecord();
    reserve(state, acme, held.id);
    t.equal(write(state, { type: 'network.remove', network: home }).code, 'conflict', 'a reservation');
    learn(state, held);
    t.match(dataOf<NetworkView>(read(state, { type: 'network.get', network: home })).addresses, { allocated: 1 });
    t.equal(write(state, { type: 'network.remove', network: home }).code, 'conflict', 'a lease');
    write(state, goneOf(held));
    t.equal(write(state, { type: 'network.remove', network: home }).code, 'no_content');
    for (const gone of [
      read(state, { type: 'network.get', network: home }),
      read(state, { type: 'network.material', network: home }),
      read(state, { type: 'network.leases', network: home, after: 0 }),
      read(state, { type: 'network.revocations', network: home, after: '' }),
      write(state, { type: 'network.remove', network: home }),
      put(settingsOf()),
      certify(next.serial, certificate()),
      reserve(state),
      write(state, goneOf(held)),
    ]) {
      t.equal(gone.code, 'not_found');
    }
    t.same(dataOf(read(state, { type: 'network.list', partition: 0, limit: 100, after: '' })), []);
    t.equal(write(state, ask).code, 'created');
    t.end();
  },
);

t.test('the last address of a pool, and the one after', (t) => {
  for (const [pool, total] of [
    ['10.86.0.0/30', 1],
    ['10.86.0.0/29', 5],
    ['10.86.0.0/24', 253],
    ['10.86.0.0/16', 65_533],
  ] as const) {
    const state = stateOf(networkRecord({ ipv4_pool: pool }));
    const indexes = new Set<number>();
    for (let count = 0; count < total; count++) indexes.add(indexOf(reserve(state)));
    t.equal(indexes.size, total, pool);
    t.equal(Math.min(...indexes), 2, pool);
    t.equal(Math.max(...indexes), total + 1, pool);
    const over = reserve(state);
    t.same(
      over.body,
      {
        error: 'conflict',
        reason: 'too_many',
        message: 'the network has no free address; remove peers, or ask the operator for a larger network',
      },
      pool,
    );
    t.ok(isEmpty(over.changes), pool);
    const view = dataOf<NetworkView>(read(state, { type: 'network.get', network: home }));
    t.same(view.addresses, { total, allocated: total }, pool);
    apply(state, { records: [], deletes: [keys.lease(home, total)], events: [], effects: [] });
    if (total > 1) t.equal(indexOf(reserve(state)), total, `${pool}: the one that was given back`);
  }
  t.end();
});

t.test('an address that is given back rests while others are free', (t) => {
  const state = stateOf(networkRecord({ ipv4_pool: '10.86.0.0/29' }));
  const allocated = [reserve(state), reserve(state)].map(indexOf);
  state.delete(keys.lease(home, 2));
  state.delete(keys.lease(home, 3));
  t.same([...allocated, ...Array.from({ length: 5 }, () => indexOf(reserve(state)))], [2, 3, 4, 5, 6, 2, 3]);
  t.end();
});

t.test('a reservation: the same for the same peer, for tenants that may have one, given back safely', (t) => {
  const state = stateOf(networkRecord({ tenants: [acme] }));
  const peer = peerId();
  const first = reserve(state, acme, peer);
  t.equal(dataOf<Reservation>(first).network.name, home);
  const again = reserve(state, acme, peer);
  t.equal(indexOf(again), indexOf(first));
  t.ok(isEmpty(again.changes));
  t.equal(reserve(state, bolt).code, 'not_found');
  const open = stateOf(networkRecord());
  t.not(indexOf(reserve(open, bolt, peer)), indexOf(reserve(open, acme, peer)), 'a peer is its tenant’s');

  const release = (of = peer) =>
    write(state, { type: 'network.release', network: home, by: { tenant: acme, peer: of } });
  const released = release();
  t.equal(released.code, 'ok');
  t.match(released.changes, { records: [{ state: { phase: 'reserved', atMs: 0 } }], effects: [{ kind: 'outbox' }] });
  t.equal(release(peerId()).code, 'ok', 'nothing to give back');
  const record = peerRecord({ id: peer }, 'phone', indexOf(first));
  learn(state, record);
  t.equal(release().code, 'ok');
  t.match(state.vpn.network(home).lease(record.index), heldOf(record), 'a lease stays');
  t.end();
});

t.test('what a network learns about a peer', (t) => {
  const record = peerRecord({ generation: 3 });
  const { id: peer } = record;
  const other = leaseOf(2, acme, peerId());
  const held = (generation: number) => heldOf({ ...record, generation });
  const cases: readonly [string, readonly LeaseRecord[], Partial<PeerRecord>, string, LeaseRecord | undefined][] = [
    ['a reservation becomes a lease', [leaseOf(2, acme, peer)], {}, 'ok', held(3)],
    ['a lapsed one too', [leaseOf(2, acme, peer, { phase: 'reserved', atMs: 0 })], {}, 'ok', held(3)],
    ['a newer generation', [held(2)], { enabled: false }, 'ok', heldOf({ ...record, enabled: false })],
    ['the same', [held(3)], { enabled: false }, 'ok', held(3)],
    ['an older one', [held(4)], {}, 'ok', held(4)],
    ['an address that nobody holds', [], {}, 'ok', held(3)],
    ['an address that is another’s', [other], {}, 'ok', other],
    ['one that stood elsewhere', [leaseOf(7, acme, peer)], {}, 'ok', held(3)],
  ];
  for (const [what, leases, more, code, expected] of cases) {
    const state = stateOf(networkRecord(), ...leases);
    const revoked = [{ serial: 'bad', notAfterMs: farMs, atMs: 7, reason: 'superseded' as const }];
    t.equal(learn(state, record, { ...more, revoked }).code, code, what);
    const network = state.vpn.network(home);
    t.same(network.lease(2), expected, what);
    t.equal(network.allocated, 1, what);
    t.ok(network.isRevoked('bad'), `${what}: a revocation counts all the same`);
    t.ok(isEmpty(learn(state, record, { ...more, revoked }).changes), `${what}: told twice`);
  }
  t.end();
});

t.test('a removed peer stays removed, whatever comes late', (t) => {
  const record = peerRecord();
  const state = stateOf(networkRecord(), leaseOf(2, acme, record.id));
  learn(state, record);
  const { serial, notAfterMs } = record.certificate;
  const revoked = [{ serial, notAfterMs, atMs: nowMs, reason: 'cessationOfOperation' as const }];
  const gone = write(state, goneOf(record, revoked));
  t.same(gone.changes.deletes, [keys.lease(home, 2)]);
  t.equal(learn(state, record).code, 'ok');
  t.equal(state.vpn.network(home).allocated, 0);
  t.ok(isEmpty(write(state, goneOf(record, revoked)).changes));
  const next = reserve(state);
  t.equal(indexOf(next), 3, 'and its address rests');
  t.end();
});

t.test('a reservation lapses when its peer was released, and only if it is still that one', (t) => {
  const peer = peerId();
  const reservation = leaseOf(2, acme, peer);
  const cases: readonly [string, LeaseRecord | undefined, boolean][] = [
    ['as it was', reservation, true],
    ['released meanwhile', leaseOf(2, acme, peer, { phase: 'reserved', atMs: 0 }), true],
    ['held', heldOf(peerRecord({ id: peer })), false],
    ['of another peer', leaseOf(2, acme, peerId()), false],
    ['of another tenant', leaseOf(2, bolt, peer), false],
    ['gone', undefined, false],
  ];
  for (const [what, now, goes] of cases) {
    const state = now === undefined ? stateOf(networkRecord()) : stateOf(networkRecord(), now);
    t.same(lapse(state, reservation, { nowMs: 1 }).deletes, goes ? [keys.lease(home, 2)] : [], what);
  }
  t.end();
});

t.test('leases come in pages, by index, only those that are held', (t) => {
  const state = stateOf(networkRecord({ ipv4_pool: '10.86.0.0/16' }));
  const held: number[] = [];
  for (let index = 2; index < 1400; index++) {
    if (index % 10 === 0) state.put(leaseOf(index, acme, peerId()));
    else {
      state.put(heldOf(peerRecord({}, 'p', index)));
      held.push(index);
    }
  }
  const seen: number[] = [];
  let [after, pages]: [number | null, number] = [0, 0];
  while (after !== null) {
    const page = read(state, { type: 'network.leases', network: home, after });
    const data = dataOf<LeaseRecord[]>(page);
    t.ok(data.length <= limits.vpnPage);
    t.ok(page.reply.body.length < 700 * 1024);
    seen.push(...data.map(({ index }) => index));
    ({ next: after } = page.body as { next: number | null });
    pages++;
  }
  t.same(seen, held);
  t.equal(pages, Math.ceil(held.length / limits.vpnPage));

  const large = stateOf(networkRecord());
  const renewed = Array.from({ length: 250 }, (_, index) => ({
    serial: `${index}`.padStart(40, 'a'),
    notAfterMs: farMs,
  }));
  for (let index = 2; index < 100; index++) large.put(heldOf(peerRecord({ renewed }, 'p', index)));
  const page = read(large, { type: 'network.leases', network: home, after: 0 });
  t.ok(page.reply.body.length < 700 * 1024, 'a page ends before it is too large for a message');
  t.ok((page.body as { next: number }).next > 2);
  t.end();
});

t.test('a revocation list names every refused certificate, in order, in pages', (t) => {
  const ref = (serial: string, notAfterMs = farMs) => ({ ...certificate({ serial, notAfterMs }) });
  const state = stateOf(
    networkRecord(),
    revokedRecord('d1'),
    revokedRecord('b1', { reason: 'cessationOfOperation' }),
    revokedRecord('e1', { notAfterMs: nowMs }),
    heldOf(peerRecord({ certificate: ref('a1') }, 'active', 2)),
    heldOf(
      peerRecord(
        { certificate: ref('c1'), enabled: false, renewed: [ref('c2', nowMs), ref('c3'), ref('d1')] },
        'disabled',
        3,
      ),
    ),
    heldOf(peerRecord({ certificate: ref('f1'), expiresAtMs: nowMs }, 'expired', 4)),
    heldOf(peerRecord({ certificate: ref('f2'), expiresAtMs: nowMs + 1 }, 'not yet', 5)),
    leaseOf(6, acme, peerId()),
  );
  state.quarantine(keys.revoked(home, 'aa'));
  const page = read(state, { type: 'network.revocations', network: home, after: '' });
  t.same(page.body, {
    data: [
      { serial: 'aa', atMs: 0, reason: 'keyCompromise' },
      { serial: 'b1', atMs: 5, reason: 'cessationOfOperation' },
      { serial: 'c1', atMs: nowMs, reason: 'certificateHold' },
      { serial: 'c3', atMs: nowMs, reason: 'certificateHold' },
      { serial: 'd1', atMs: 5, reason: 'superseded' },
      { serial: 'f1', atMs: nowMs, reason: 'certificateHold' },
    ],
    next: null,
    now_ms: nowMs,
  });
  const later = read(state, { type: 'network.revocations', network: home, after: 'd1' }, nowMs + 1);
  t.same(
    dataOf<RevocationEntry[]>(later).map(({ serial }) => serial),
    ['d1', 'f1', 'f2'],
  );

  const many = Array.from({ length: 1201 }, (_, index) => (0x10_000 + index).toString(16));
  const large = stateOf(networkRecord(), ...[...many].reverse().map((serial) => revokedRecord(serial)));
  const seen: string[] = [];
  let after: string | null = '';
  while (after !== null) {
    const { body } = read(large, { type: 'network.revocations', network: home, after });
    const { data, next } = body as { data: RevocationEntry[]; next: string | null };
    t.ok(data.length <= limits.vpnPage);
    seen.push(...data.map(({ serial }) => serial));
    after = next;
  }
  t.same(seen, many);

  const back = heldOf(peerRecord({ certificate: ref('c1'), generation: 2 }, 'disabled', 3));
  state.put(back);
  t.notMatch(
    read(state, { type: 'network.revocations', network: home, after: '' }).reply.body,
    /"c1"/,
    'enabled again',
  );
  t.end();
});

t.test(
  'revocations go a day after their certificate, those of a network that is gone a day after they were made',
  (t) => {
    const state = stateOf(
      networkRecord(),
      revokedRecord('a', { notAfterMs: 2_000_000, atMs: 5 }),
      revokedRecord('b', { notAfterMs: 5, atMs: 2_000_001 }),
      revokedRecord('c'),
    );
    state.quarantine(keys.revoked(home, 'd'));
    const at = (ms: number) => expiredOfVpn(state, ms + limits.peerTombstoneTtlMs).deletes;
    t.same(at(1_999_999), []);
    t.same(at(2_000_000), [keys.revoked(home, 'a')]);
    t.same(at(2_000_001), [keys.revoked(home, 'a'), keys.revoked(home, 'b')]);
    state.delete(keys.network(home));
    t.same(
      at(2_000_001),
      ['a', 'b', 'c'].map((serial) => keys.revoked(home, serial)),
    );
    for (let index = 0; index < 300; index++) state.put(revokedRecord(`x${index}`));
    t.equal(at(farMs).length, limits.sweepChanges, 'so many at once');
    t.end();
  },
);

t.test('certificates of a tenant that is not served are on hold, whichever came first', (t) => {
  const serials = (state: PartitionState): string[] =>
    dataOf<RevocationEntry[]>(read(state, { type: 'network.revocations', network: home, after: '' })).map(
      ({ serial }) => serial,
    );
  const ours = heldOf(peerRecord({ certificate: certificate({ serial: 'a1' }) }, 'ours', 2));
  const theirs = heldOf(peerRecord({ tenant: bolt, certificate: certificate({ serial: 'b1' }) }, 'theirs', 3));
  const closed = networkRecord({ tenants: [acme] });
  for (const records of [
    [closed, ours, theirs],
    [ours, theirs, closed],
  ]) {
    t.same(serials(stateOf(...records)), ['b1']);
  }

  const state = stateOf(networkRecord(), ours, theirs);
  const put = (settings: NetworkSettings, more: { keepsTenants?: boolean } = {}) =>
    write(state, { type: 'network.put', network: home, settings, server: null, ...more });
  t.same(serials(state), [], 'null: every tenant');
  put(settingsOf({ tenants: [bolt] }));
  t.same(serials(state), ['a1']);
  t.equal(dataOf<NetworkView>(put(settingsOf({ mtu: 1400 }), { keepsTenants: true })).tenants?.join(), 'bolt');
  t.same(serials(state), ['a1'], 'settings that name no tenants leave them');
  put(settingsOf({ tenants: [] }));
  t.same(serials(state), ['a1', 'b1'], 'none');
  put(settingsOf({ tenants: [acme, bolt] }));
  t.same(serials(state), [], 'each again');
  t.end();
});

t.test('an authority that can certify one endpoint keeps its network there', (t) => {
  const state = stateOf({ ...networkRecord(), nameConstraints: true });
  const put = (more: Partial<NetworkSettings>, server: KeptCertificate | null = null) =>
    write(state, { type: 'network.put', network: home, settings: settingsOf(more), server });
  t.equal(put({ endpoint: 'other.example.com' }, certificate()).code, 'conflict');
  t.match(dataOf<NetworkView>(put({ mtu: 1400 })), { name_constraints: true, mtu: 1400, endpoint: 'vpn.example.com' });
  const older = stateOf(networkRecord());
  t.equal(dataOf<NetworkView>(read(older, { type: 'network.get', network: home })).name_constraints, false);
  t.end();
});

t.test('a damaged record keeps its allocations', (t) => {
  const state = stateOf(networkRecord({ ipv4_pool: '10.86.0.0/30' }));
  state.quarantine(keys.lease(home, 2));
  t.equal(reserve(state).code, 'conflict', 'a damaged lease keeps its address');
  t.equal(write(state, { type: 'network.remove', network: home }).code, 'conflict');
  const record = peerRecord();
  t.equal(learn(state, record).code, 'ok', 'its peer makes it whole');
  t.match(state.vpn.network(home).lease(2), heldOf(record));
  t.equal(state.vpn.network(home).allocated, 1);

  state.quarantine(keys.network(home));
  for (const answer of [
    read(state, { type: 'network.get', network: home }),
    read(state, { type: 'network.leases', network: home, after: 0 }),
    reserve(state),
    learn(state, record),
    write(state, { type: 'network.create', network: home, made: madeNetwork() }),
    write(state, { type: 'network.remove', network: home }),
  ]) {
    t.equal(answer.code, 'internal');
  }
  t.same(dataOf(read(state, { type: 'network.list', partition: 0, limit: 100, after: '' })), []);

  const refused = stateOf(networkRecord());
  refused.quarantine(keys.revoked(home, record.certificate.serial));
  learn(refused, record);
  t.equal(refused.vpn.network(home).allocated, 0, 'a damaged revocation refuses');
  t.end();
});

const fieldOf = (place: StaleSecret['place']): string => ('field' in place ? place.field : place.of);
const ofNetwork = (place: StaleSecret['place']): string => ('network' in place ? place.network : place.of);

t.test('secrets are found by the key that they are under, and replaced where they are still the same', (t) => {
  const office = networkRecord({}, 'office' as NetworkName);
  const phone = peerRecord({ p12Password: sealed('password', 'k2') });
  const laptop = peerRecord({}, 'laptop', 3);
  const state = stateOf(office, phone, laptop);
  const stale = () => dataOf<StaleSecret[]>(read(state, { type: 'secret.stale', partition: 0, keyId: 'k2' }));
  const found = stale();
  t.same(
    found.map(({ place }) => `${place.of === 'peer' ? place.peer : ofNetwork(place)} ${fieldOf(place)}`),
    [
      'office wireguard',
      'office ca',
      'office server',
      ...['wireguard', 'preshared', 'certificate'].map((field) => `${phone.id} ${field}`),
      ...['wireguard', 'preshared', 'certificate', 'password'].map((field) => `${laptop.id} ${field}`),
    ],
  );
  const items = found.map(({ place, sealed: before }) => ({ place, before, after: sealed(fieldOf(place), 'k2') }));
  write(state, { type: 'peer.password', tenant: acme, peer: laptop.id, p12Password: sealed('changed') });
  const ask = { type: 'secret.replace', partition: 0, items } as const;
  const replaced = write(state, ask);
  t.same(dataOf(replaced), { replaced: 9 });
  t.match(replaced.changes.effects, [{ kind: 'outbox' }], 'the network hears of the new preshared keys');
  t.same(stale(), [
    { place: { of: 'peer', tenant: acme, peer: laptop.id, field: 'password' }, sealed: sealed('changed') },
  ]);
  const now = state.tenant(acme).peers.records;
  t.equal(now.get(phone.id)?.generation, 2);
  t.equal(now.get(laptop.id)?.generation, 3);
  t.equal(now.get(phone.id)?.p12Password, phone.p12Password);
  t.equal(now.get(phone.id)?.certificate.privateKey, sealed('certificate', 'k2'));
  t.equal(state.vpn.network(office.name).record?.ca.privateKey, sealed('ca', 'k2'));
  const again = write(state, ask);
  t.same(dataOf(again), { replaced: 0 });
  t.ok(isEmpty(again.changes));
  write(state, { type: 'peer.remove', tenant: acme, peer: laptop.id });
  t.same(dataOf(write(state, ask)), { replaced: 0 });
  t.end();
});

t.test('a renewal that began before does not bring back the seal of the key before', (t) => {
  const office = networkRecord({}, 'office' as NetworkName);
  const phone = peerRecord();
  const state = stateOf(office, phone);
  const items = dataOf<StaleSecret[]>(read(state, { type: 'secret.stale', partition: 0, keyId: 'k2' })).map(
    ({ place, sealed: before }) => ({ place, before, after: sealed(fieldOf(place), 'k2') }),
  );
  write(state, { type: 'secret.replace', partition: 0, items });
  // Values that a gateway made from the records that it had read before.
  const renewed = ({ privateKey }: NetworkRecord['ca']) => certificate({ privateKey });
  const network = { network: office.name } as const;
  const settings = settingsOf({ endpoint: 'new.example.com' });
  for (const ask of [
    {
      type: 'peer.certify',
      tenant: acme,
      peer: phone.id,
      replaces: phone.certificate.serial,
      certificate: renewed(phone.certificate),
    },
    { type: 'network.certify', ...network, which: 'ca', replaces: office.ca.serial, certificate: renewed(office.ca) },
    {
      type: 'network.certify',
      ...network,
      which: 'server',
      replaces: office.server.serial,
      certificate: renewed(office.server),
    },
    { type: 'network.put', ...network, settings, server: renewed(office.server) },
  ] as const) {
    t.equal(write(state, ask).code, 'ok', ask.type);
    t.same(dataOf(read(state, { type: 'secret.stale', partition: 0, keyId: 'k2' })), [], ask.type);
  }
  t.end();
});

t.test('a page of secrets is as much as one journal entry holds', (t) => {
  const pem = 'x'.repeat(6000);
  const records = Array.from({ length: 300 }, (_, index) =>
    peerRecord({ certificate: certificate({ pem }) }, `p${index}`, index + 2),
  );
  const state = stateOf(...records);
  let rounds = 0;
  for (; rounds < 100; rounds++) {
    const page = dataOf<StaleSecret[]>(read(state, { type: 'secret.stale', partition: 0, keyId: 'k2' }));
    if (page.length === 0) break;
    t.ok(page.length <= limits.vpnPage);
    const items = page.map(({ place, sealed: before }) => ({ place, before, after: sealed(fieldOf(place), 'k2') }));
    const turn = write(state, { type: 'secret.replace', partition: 0, items });
    t.same(dataOf(turn), { replaced: page.length });
    t.ok(JSON.stringify(turn.changes.records).length <= limits.recordBytes + 10_000);
  }
  t.ok(rounds > 3 && rounds < 20);
  const all = records.flatMap(({ id: peer }) => {
    const place = { of: 'peer', tenant: acme, peer, field: 'password' } as const;
    return [{ place, before: sealed('password', 'k2'), after: sealed('password', 'k3') }];
  });
  const turn = write(state, { type: 'secret.replace', partition: 0, items: all });
  t.ok(JSON.stringify(turn.changes.records).length <= limits.recordBytes + 10_000, 'however many are asked for');
  t.end();
});

const fleetWith = (...servers: readonly NetworkServer[]): FleetView => ({
  ...fleetOf(fleetHost(h1), fleetHost(h2)),
  server: (network) => servers.find((server) => server.network === network),
  servers: () => servers,
});
/** The network as others know it. */
const servedBy = (state: PartitionState): NetworkServer => {
  const { record } = state.vpn.network(home);
  const server = record && serverOf(record);
  if (server === undefined) throw new Error('no host serves it');
  return server;
};

t.test('a host serves a network, and then none', async (t) => {
  const near = 'near' as NetworkName;
  const state = stateOf(networkRecord(), networkRecord({ ipv4_pool: '10.86.0.0/25', ipv6_pool: null }, near));
  const serve = (network: NetworkName, by: HostKey | null, ...servers: readonly NetworkServer[]) =>
    write(state, { type: 'network.serve', network, by }, nowMs, fleetWith(...servers));
  t.match(serve(home, 'h9' as HostKey), { code: 'invalid', body: { details: { 'host_keys.0': [/no host/] } } });
  const first = serve(home, h1);
  t.match(first.body, { data: { servers: [h1] } });
  const server = servedBy(state);
  t.match(server, { network: home, host: h1, port: 51820, ipv4_pool: '10.86.0.0/24' });
  const { network: _network, ...told } = server;
  t.match(first.changes.effects, [{ kind: 'server', network: home, server: told }], 'all processes hear of it');
  t.ok(isEmpty(serve(home, h1).changes), 'asked again');

  const range = { range: '10.86.0.128/25', sliceOf: () => ({ first: 0, count: 1 }) };
  t.match(
    write(state, { type: 'network.serve', network: home, by: h2 }, nowMs, fleetWith(), { tenantIpv4: range }),
    { code: 'conflict', body: { reason: 'overlaps' } },
    'containers have their addresses there',
  );
  t.match(serve(near, h1, server), { code: 'conflict', body: { reason: 'overlaps' } });
  t.equal(serve(near, h2, server).code, 'ok', 'on another host it does not');

  const put = (settings: NetworkSettings) =>
    write(state, { type: 'network.put', network: home, settings, server: null });
  t.match(put(settingsOf({ wireguard_port: 7 })).changes.effects, [{ kind: 'server', server: { port: 7, host: h1 } }]);
  t.same(put(settingsOf({ wireguard_port: 7, dns: ['10.0.0.1'] })).changes.effects, [], 'no host needs to know');
  t.match(put(settingsOf({ tenant_network: false })), { code: 'conflict', body: { reason: 'unsupported' } });

  const { server: its } = state.vpn.network(home).record ?? {};
  if (its === undefined) throw new Error('no network');
  const certificate = { ...its, serial: 'ab12' };
  t.match(
    write(state, { type: 'network.certify', network: home, which: 'server', replaces: its.serial, certificate }).changes
      .effects,
    [{ kind: 'server', server: { certificate: 'ab12' } }],
    'its host gets another certificate',
  );

  const none = [{ kind: 'server', network: home, server: null }];
  t.match(serve(home, null).changes.effects, none);
  t.equal(put(settingsOf({ tenant_network: false })).code, 'ok');
  t.match(serve(home, h1), { code: 'conflict', body: { reason: 'unsupported' } }, 'peers would reach nothing');
  t.equal(serve(near, null).code, 'ok');
});

t.test('keys for the host that serves the network, and for no other', async (t) => {
  const phone = peerRecord();
  const state = stateOf({ ...networkRecord(), host: h1 }, phone);
  const fleet = fleetWith(servedBy(state));
  const { tenant, id: peer } = phone;
  for (const [host, user, code] of [
    [h1, agentKeyOf(h1), 'ok'],
    [h2, agentKeyOf(h2), 'forbidden'],
    [h1, agentKeyOf(h2), 'forbidden'],
    ['h9' as HostKey, 'U9', 'forbidden'],
  ] as const) {
    const by = { host, user };
    const network = read(state, { type: 'network.unseal', network: home, by }, nowMs, fleet);
    const preshared = read(state, { type: 'peer.unseal', tenant, peer, by }, nowMs, fleet);
    t.same([network.code, preshared.code], [code, code], `${host} ${user}`);
    if (code !== 'ok') continue;
    const { record } = state.vpn.network(home);
    const { pem: certificate, serial, privateKey } = record?.server ?? {};
    const ike = { id: record?.settings.endpoint, certificate, serial, sealed: privateKey };
    t.same(network.body, { data: { sealed: record?.wireguard.privateKey, ike } });
    const { certificate: its, localId: id, wireguard } = phone;
    const theirs = { id, certificate: its.pem, serial: its.serial };
    t.same(preshared.body, { data: { sealed: wireguard.presharedKey, ike: theirs } });
  }
  const other = { type: 'peer.unseal', tenant: bolt, peer, by: { host: h1, user: agentKeyOf(h1) } } as const;
  t.equal(read(state, other, nowMs, fleet).code, 'forbidden', 'of another tenant');
});
