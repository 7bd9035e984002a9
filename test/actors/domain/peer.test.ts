/**
 * Decisions about VPN peers: names, caps, generations, certificates, tokens, and what is left of
 * one that is gone.
 */
import t from 'tap';
import { acknowledge } from '../../../actors/domain/peer/decide.ts';
import { peerNoticeOf } from '../../../actors/domain/peer/view.ts';
import { expiredOfVpn } from '../../../actors/domain/sweep.ts';
import { isEmpty } from '../../../actors/domain/turn.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { decodeCursor } from '../../../schemas/api/cursor.ts';
import type { PeerRecord, PeerTombstoneRecord, PeerTokenView, PeerView } from '../../../schemas/api/peer.ts';
import { defaultTenant } from '../../../schemas/api/tenant.ts';
import { acme, apply, stateOf } from '../support/records.ts';
import {
  bolt,
  certificate,
  dataOf,
  farMs,
  home,
  keysOf,
  newSecrets,
  madePeer,
  peerId,
  peerRecord,
  read,
  sealed,
  token,
  write,
} from '../support/vpn.ts';
import { peerRenewedCertificates, peerRevocationsUnacknowledged } from '../../../actors/domain/peer/keys.ts';

const nowMs = 1_000_000;
const dayMs = 86_400_000;
const taken = { error: 'invalid', details: { name: ['has already been taken'] } };

const createAsk = (name: string, index = 2, peer = peerId()) =>
  ({ type: 'peer.create', tenant: acme, peer, made: madePeer(name, index) }) as const;

t.test('a peer is created, shown, listed newest first, and is nobody else’s', (t) => {
  const state = stateOf();
  const ask = createAsk('phone');
  const created = write(state, ask);
  t.equal(created.code, 'created');
  t.match(dataOf<PeerView>(created), {
    id: ask.peer,
    tenant_id: 'acme',
    name: 'phone',
    network: 'home',
    state: 'active',
    ipv4: '10.86.0.2',
    certificate: { serial: ask.made.certificate.serial },
    inserted_at: '1970-01-01T00:16:40.000Z',
  });
  t.notMatch(JSON.stringify(created.body), /v1\.k1/, 'no secret is shown');
  t.same(created.changes.effects, [{ kind: 'outbox' }], 'its network is told');
  t.match(created.changes.records, [{ kind: 'peer', generation: 1, told: 0, enabled: true, revoked: [], renewed: [] }]);

  const again = write(state, ask, nowMs + 5);
  t.equal(again.code, 'created', 'the same create is the same peer');
  t.ok(isEmpty(again.changes));

  for (const [index, name] of ['laptop', 'tablet'].entries()) write(state, createAsk(name, 3 + index));
  const page = read(state, { type: 'peer.list', tenant: acme, limit: 2, before: null });
  t.same(
    dataOf<PeerView[]>(page).map(({ name }) => name),
    ['tablet', 'laptop'],
  );
  const before = decodeCursor((page.body as { next_cursor: string }).next_cursor) ?? null;
  const rest = read(state, { type: 'peer.list', tenant: acme, limit: 2, before });
  t.same(
    dataOf<PeerView[]>(rest).map(({ name }) => name),
    ['phone'],
  );
  t.notOk('next_cursor' in (rest.body as object));

  t.equal(read(state, { type: 'peer.get', tenant: bolt, peer: ask.peer }).code, 'not_found');
  t.equal(read(state, { type: 'peer.material', tenant: bolt, peer: ask.peer }).code, 'not_found');
  t.same(dataOf(read(state, { type: 'peer.list', tenant: bolt, limit: 2, before: null })), []);
  const material = dataOf<PeerRecord>(read(state, { type: 'peer.material', tenant: acme, peer: ask.peer }));
  t.equal(material.p12Password, sealed('password'));
  t.end();
});

t.test('check and create refuse alike', (t) => {
  const cases = {
    'a name that is taken': { state: stateOf(peerRecord()), code: 'invalid', body: taken },
    'over the cap': {
      state: stateOf(
        { ...defaultTenant(acme), caps: { ...defaultTenant(acme).caps, vpn_peers: 1 } },
        peerRecord({}, 'x'),
      ),
      code: 'over_quota',
      body: { error: 'over_quota', detail: { dimension: 'vpn_peers', requested: 2, max: 1 } },
    },
    'damaged settings': {
      state: (() => {
        const state = stateOf();
        state.quarantine(keys.tenant(acme));
        return state;
      })(),
      code: 'internal',
      body: { error: 'internal', message: 'the record of this tenant is damaged; contact support with the request id' },
    },
  } as const;
  for (const [what, { state, code, body }] of Object.entries(cases)) {
    const checked = read(state, { type: 'peer.check', tenant: acme, name: 'phone' });
    const created = write(state, createAsk('phone', 9));
    t.equal(checked.code, code, what);
    t.same(checked.body, body, what);
    t.same(created.body, body, what);
    t.ok(isEmpty(created.changes), what);
  }
  const state = stateOf();
  t.equal(read(state, { type: 'peer.check', tenant: acme, name: 'phone' }).code, 'ok');
  t.end();
});

t.test('the cap of ten holds, and a removed peer’s name and place are free at once', (t) => {
  const state = stateOf();
  const asks = Array.from({ length: 11 }, (_, index) => createAsk(`p${index}`, index + 2));
  const codes = asks.map((ask) => write(state, ask).code);
  t.same(codes, [...Array.from({ length: 10 }, () => 'created'), 'over_quota']);
  const [first, , , , , , , , , , last] = asks;
  if (first === undefined || last === undefined) return t.end();
  t.equal(write(state, { type: 'peer.remove', tenant: acme, peer: first.peer }).code, 'no_content');
  t.equal(write(state, { ...last, made: { ...last.made, name: 'p0' } }).code, 'created');
  t.equal(state.tenant(acme).usage('*').vpn_peers, 10);
  t.equal(state.tenant(acme).usage('default').vpn_peers, 0, 'peers are in no region');
  t.end();
});

t.test('a change that the network or a file shows raises the generation, and nothing else does', (t) => {
  const cases: readonly [
    string,
    Parameters<typeof write>[1] extends infer A ? (peer: PeerRecord) => A : never,
    number,
  ][] = [
    ['disable', update({ enabled: false }), 1],
    ['enable what is', update({ enabled: true }), 0],
    ['expiry', update({ expiresAtMs: 5 }), 1],
    ['no expiry, as before', update({ expiresAtMs: null }), 0],
    ['routes', update({ routes: ['10.0.0.0/8'] }), 1],
    ['the network’s routes, as before', update({ routes: null }), 0],
    ['dns', update({ dns: ['9.9.9.9'] }), 1],
    ['name', update({ name: 'laptop' }), 1],
    ['its own name', update({ name: 'phone' }), 0],
    ['nothing', update({}), 0],
    ['password', ({ tenant, id }) => ({ type: 'peer.password', tenant, peer: id, p12Password: sealed('new') }), 1],
    ['a token', ({ tenant, id }) => ({ type: 'peer.token.create', tenant, peer: id, token: token('h') }), 0],
    [
      'new keys',
      ({ tenant, id, certificate: { serial } }) => ({
        type: 'peer.rotate',
        tenant,
        peer: id,
        replaces: serial,
        ...newSecrets(),
      }),
      1,
    ],
    [
      'a new certificate',
      ({ tenant, id, certificate: { serial } }) => ({
        type: 'peer.certify',
        tenant,
        peer: id,
        replaces: serial,
        certificate: certificate(),
      }),
      1,
    ],
  ];
  for (const [what, ask, raised] of cases) {
    const record = peerRecord();
    const state = stateOf(record);
    const turn = write(state, ask(record));
    t.match(turn.code, /^(ok|created)$/, what);
    t.equal(state.tenant(acme).peers.records.get(record.id)?.generation, 1 + raised, what);
    t.equal(turn.changes.effects.length, raised, `${what}: the network is told`);
    t.equal([...state.vpn.untold()].length, raised, what);
  }
  const [phone, laptop] = [peerRecord(), peerRecord({}, 'laptop', 3)];
  const state = stateOf(phone, laptop);
  t.same(write(state, update({ name: 'laptop' })(phone)).body, taken);
  write(state, update({ name: 'tablet' })(laptop));
  t.equal(write(state, update({ name: 'laptop' })(phone)).code, 'ok', 'the old name is free');
  t.end();

  function update(value: object) {
    return ({ tenant, id }: PeerRecord) => ({ type: 'peer.update', tenant, peer: id, update: value }) as const;
  }
});

t.test('states of a peer: active, disabled, expired', (t) => {
  const cases = [
    [{}, 'active'],
    [{ enabled: false }, 'disabled'],
    [{ enabled: false, expiresAtMs: nowMs }, 'disabled'],
    [{ expiresAtMs: nowMs }, 'expired'],
    [{ expiresAtMs: nowMs + 1 }, 'active'],
  ] as const;
  const records = cases.map(([more], index) =>
    peerRecord({ ...more, certificate: certificate({ notAfterMs: 5_000_000 + index }) }, `p${index}`),
  );
  const state = stateOf(...records);
  for (const [index, [, peerState]] of cases.entries()) {
    const peer = records[index]?.id ?? peerId();
    t.equal(dataOf<PeerView>(read(state, { type: 'peer.get', tenant: acme, peer })).state, peerState);
    t.equal(read(state, { type: 'peer.material', tenant: acme, peer }).code, 'ok');
  }
  t.same(dataOf(read(state, { type: 'peer.count', partition: 0 })), {
    active: 2,
    disabled: 2,
    expired: 1,
    earliest: 5_000_000,
  });
  t.same(dataOf(read(stateOf(), { type: 'peer.count', partition: 0 })), {
    active: 0,
    disabled: 0,
    expired: 0,
    earliest: null,
  });
  t.end();
});

t.test('rotation revokes what was issued and is still good; of two at once one is refused', (t) => {
  const record = peerRecord({
    renewed: [
      { serial: 'a1', notAfterMs: nowMs },
      { serial: 'a2', notAfterMs: nowMs + 1 },
    ],
  });
  const state = stateOf(record);
  const rotate = () =>
    ({
      type: 'peer.rotate',
      tenant: acme,
      peer: record.id,
      replaces: record.certificate.serial,
      ...newSecrets(),
    }) as const;
  const ask = rotate();
  const rotated = write(state, ask);
  t.equal(dataOf<PeerView>(rotated).public_key, ask.keys.wireguard.publicKey);
  const [now] = rotated.changes.records as [PeerRecord];
  t.same(
    now.revoked.map(({ serial, reason, atMs }) => [serial, reason, atMs]),
    [
      ['a2', 'superseded', nowMs],
      [record.certificate.serial, 'superseded', nowMs],
    ],
  );
  t.same(now.renewed, []);
  t.equal(write(state, rotate()).code, 'conflict');
  const again = write(state, ask);
  t.equal(again.code, 'ok', 'the same rotation, asked again');
  t.ok(isEmpty(again.changes));

  const deaf = peerRecord({
    revoked: Array.from({ length: peerRevocationsUnacknowledged }, (_, index) => ({
      serial: `b${index}`,
      notAfterMs: farMs,
      atMs: 1,
      reason: 'superseded' as const,
    })),
  });
  const asked = {
    type: 'peer.rotate',
    tenant: acme,
    peer: deaf.id,
    replaces: deaf.certificate.serial,
    ...newSecrets(),
  } as const;
  t.equal(write(stateOf(deaf), asked).code, 'conflict', 'what a network does not hear of has a bound');
  t.end();
});

t.test('a rotation ends every token and replaces the password, in the turn that brings the keys', (t) => {
  const record = peerRecord({ tokens: [token('old download'), token('old pac', { scope: 'pac' })] });
  const state = stateOf(record);
  const of = { tenant: acme, peer: record.id };
  const rotate = { type: 'peer.rotate', ...of, replaces: record.certificate.serial, keys: keysOf() } as const;
  const next = { p12Password: sealed('another'), tokens: [token('new download'), token('new pac', { scope: 'pac' })] };
  const material = (tokenHash?: string) =>
    read(state, { type: 'peer.material', ...of, ...(tokenHash === undefined ? {} : { tokenHash }) });
  t.equal(material('old download').code, 'ok');

  const { changes } = write(state, { ...rotate, ...next });
  t.match(changes.records, [{ ...next, certificate: { serial: rotate.keys.certificate.serial } }]);
  for (const hash of ['old download', 'old pac']) {
    t.equal(read(state, { type: 'token.resolve', partition: 0, hash }).code, 'unauthenticated');
    t.same(material(hash).reply, { code: 'unauthenticated', body: '{"error":"unauthenticated"}' });
  }
  t.equal(material('new download').code, 'ok');
  t.equal(material().code, 'ok', 'its tenant needs no token');
  write(state, { type: 'peer.update', ...of, update: { enabled: false } });
  t.equal(material('new download').code, 'unauthenticated', 'of a disabled peer');
  t.equal(material().code, 'ok');
  t.end();
});

t.test('renewal keeps the certificate before until it expires, and sixteen of them at most', (t) => {
  let record = peerRecord({ renewed: [{ serial: 'old', notAfterMs: nowMs }] });
  const state = stateOf(record);
  const issued = [record.certificate.serial];
  for (let count = 0; count < peerRenewedCertificates + 2; count++) {
    const ask = {
      type: 'peer.certify',
      tenant: acme,
      peer: record.id,
      replaces: record.certificate.serial,
      certificate: certificate(),
    } as const;
    const certified = write(state, ask);
    record = dataOf<PeerRecord>(certified);
    issued.push(record.certificate.serial);
    t.equal(record.certificate.serial, ask.certificate.serial);
    const again = write(state, ask);
    t.same(dataOf(again), record, 'asked again');
    t.ok(isEmpty(again.changes));
    t.equal(write(state, { ...ask, certificate: certificate() }).code, 'conflict');
  }
  t.same(
    record.renewed.map(({ serial }) => serial),
    issued.slice(2, -1),
  );
  t.same(
    record.revoked.map(({ serial, reason }) => [serial, reason]),
    issued.slice(0, 2).map((serial) => [serial, 'superseded']),
  );
  t.match(peerNoticeOf(record, 0), { there: true, certificates: issued.slice(2).map((serial) => ({ serial })) });
  t.end();
});

t.test('a removed peer leaves a tombstone, which its network learns, and its tokens die', (t) => {
  const record = peerRecord({
    tokens: [token('hash')],
    renewed: [{ serial: 'a2', notAfterMs: farMs }],
    revoked: [{ serial: 'a1', notAfterMs: farMs, atMs: 1, reason: 'superseded' }],
    certificate: certificate({ notAfterMs: nowMs - 1 }),
  });
  const state = stateOf(record);
  const ask = { type: 'peer.remove', tenant: acme, peer: record.id } as const;
  const removed = write(state, ask);
  t.equal(removed.code, 'no_content');
  t.equal(removed.reply.body, '');
  const [tombstone] = removed.changes.records as [PeerTombstoneRecord];
  t.match(tombstone, { kind: 'peer_tombstone', network: home, generation: 2, told: false, goneAtMs: nowMs });
  t.same(
    tombstone.revoked.map(({ serial, reason }) => [serial, reason]),
    [
      ['a1', 'superseded'],
      ['a2', 'cessationOfOperation'],
      [record.certificate.serial, 'cessationOfOperation'],
    ],
  );
  t.same(peerNoticeOf(tombstone, 0), { there: false, generation: 2, revoked: tombstone.revoked });
  for (const again of [
    write(state, ask),
    read(state, { type: 'peer.get', tenant: acme, peer: record.id }),
    write(state, { type: 'peer.password', tenant: acme, peer: record.id, p12Password: sealed('x') }),
  ]) {
    t.equal(again.code, 'not_found');
  }
  t.equal(read(state, { type: 'token.resolve', partition: 0, hash: 'hash' }).code, 'unauthenticated');
  t.equal(write(state, createAsk('phone', 2, record.id)).code, 'conflict', 'its id does not come back');

  const later = nowMs + limits.peerTombstoneTtlMs;
  t.ok(isEmpty(expiredOfVpn(state, later)), 'it stays until its network knows');
  apply(state, acknowledge(state, tombstone));
  t.ok(isEmpty(expiredOfVpn(state, later - 1)), 'and for a day');
  t.ok(isEmpty(expiredOfVpn(state, later)), 'and until its certificates have expired');
  t.same(expiredOfVpn(state, farMs).deletes, [keys.peer(acme, record.id)]);
  t.end();
});

t.test('acknowledged is what was told, and no more', (t) => {
  const revoked = (serial: string) => ({ serial, notAfterMs: farMs, atMs: 1, reason: 'superseded' as const });
  const sent = peerRecord({ generation: 3, told: 1, revoked: [revoked('a')] });
  const cases: readonly [string, PeerRecord | undefined, Partial<PeerRecord> | undefined][] = [
    ['unchanged since', sent, { told: 3, revoked: [{ ...revoked('a'), toldIn: 0 }] }],
    [
      'changed since',
      { ...sent, generation: 4, revoked: [revoked('a'), revoked('b')] },
      { told: 3, generation: 4, revoked: [{ ...revoked('a'), toldIn: 0 }, revoked('b')] },
    ],
    ['acknowledged before', { ...sent, told: 3, revoked: [] }, undefined],
    ['of an older generation, as after a restore', { ...sent, generation: 2 }, undefined],
    ['gone', undefined, undefined],
  ];
  for (const [what, now, expected] of cases) {
    const changes = acknowledge(now === undefined ? stateOf() : stateOf(now), sent);
    if (expected === undefined) t.ok(isEmpty(changes), what);
    else t.match(changes.records, [expected], what);
  }
  t.end();
});

t.test('peer.forgo: a peer that is there tells its network again; one that is not gets a tombstone', (t) => {
  const [told, untold] = [peerRecord(), peerRecord({ told: 0 }, 'b', 3)];
  const state = stateOf(told, untold);
  const askFor = (peer: PeerRecord['id']) => write(state, { type: 'peer.forgo', tenant: acme, peer });
  const there = askFor(told.id);
  t.same(dataOf(there), { there: true });
  t.match(there.changes, { records: [{ told: 0, generation: 1 }], effects: [{ kind: 'outbox' }] });
  t.ok(isEmpty(askFor(untold.id).changes));

  const never = createAsk('late', 4);
  const absent = askFor(never.peer);
  t.same(dataOf(absent), { there: false });
  t.match(absent.changes.records, [{ kind: 'peer_tombstone', network: null, told: true, revoked: [] }]);
  t.ok(isEmpty(askFor(never.peer).changes));
  t.equal(write(state, never).code, 'conflict', 'a create that comes late');
  t.same(
    [...state.vpn.untold()].map(({ id }) => id).sort(),
    [told.id, untold.id].sort(),
    'nobody has to hear of one that never was',
  );
  t.end();
});

t.test('tokens: twenty that are good, each with a life of its own', (t) => {
  const old = token('old', { expiresAtMs: nowMs });
  const record = peerRecord({ tokens: [old] });
  const state = stateOf(record);
  const of = { tenant: acme, peer: record.id } as const;
  const tokens = Array.from({ length: limits.peerTokens + 1 }, (_, index) =>
    token(`hash${index}`, { scope: index % 2 === 0 ? 'download' : 'pac' }),
  );
  const codes = tokens.map((each) => write(state, { type: 'peer.token.create', ...of, token: each }).code);
  t.same(codes, [...Array.from({ length: limits.peerTokens }, () => 'created'), 'conflict']);
  t.notOk(state.tenant(acme).peers.records.get(record.id)?.tokens.includes(old), 'the expired one has gone');
  const [first, second] = tokens;
  if (first === undefined || second === undefined) return t.end();
  t.equal(write(state, { type: 'peer.token.create', ...of, token: first }).code, 'created', 'asked again');
  const shown = dataOf<PeerView>(read(state, { type: 'peer.get', ...of })).tokens;
  t.equal(shown.length, limits.peerTokens);
  t.same(Object.keys(shown[0] ?? {}), ['id', 'scope', 'inserted_at', 'expires_at'] satisfies (keyof PeerTokenView)[]);

  t.equal(write(state, { type: 'peer.token.remove', ...of, token: first.id }).code, 'no_content');
  t.equal(write(state, { type: 'peer.token.remove', ...of, token: first.id }).code, 'not_found');
  t.equal(write(state, { type: 'peer.token.create', ...of, token: token('new') }).code, 'created');

  const resolve = (hash: string, atMs = nowMs) => read(state, { type: 'token.resolve', partition: 0, hash }, atMs);
  t.same(dataOf(resolve('hash1')), { tenant: 'acme', peer: record.id, scope: 'pac' });
  const refusals = [resolve('unknown'), resolve('hash0'), resolve('old'), resolve('hash1', farMs)];
  write(state, { type: 'peer.update', ...of, update: { enabled: false } });
  refusals.push(resolve('hash1'));
  write(state, { type: 'peer.update', ...of, update: { enabled: true, expiresAtMs: nowMs + dayMs } });
  t.equal(resolve('hash1').code, 'ok');
  refusals.push(resolve('hash1', nowMs + dayMs));
  for (const refusal of refusals)
    t.same(refusal.reply, { code: 'unauthenticated', body: '{"error":"unauthenticated"}' });
  t.end();
});

t.test('a damaged peer counts, is not a 404, and is given up by nobody', (t) => {
  const state = stateOf({ ...defaultTenant(acme), caps: { ...defaultTenant(acme).caps, vpn_peers: 1 } });
  const peer = peerId();
  state.quarantine(keys.peer(acme, peer));
  t.equal(read(state, { type: 'peer.get', tenant: acme, peer }).code, 'internal');
  t.equal(write(state, { type: 'peer.remove', tenant: acme, peer }).code, 'internal');
  t.equal(write(state, { type: 'peer.forgo', tenant: acme, peer }).code, 'internal');
  t.equal(write(state, createAsk('phone', 2, peer)).code, 'internal');
  t.equal(write(state, createAsk('phone')).code, 'over_quota');
  t.equal(read(state, { type: 'peer.get', tenant: bolt, peer }).code, 'not_found');
  state.delete(keys.peer(acme, peer));
  t.equal(write(state, createAsk('phone')).code, 'created');
  t.end();
});
