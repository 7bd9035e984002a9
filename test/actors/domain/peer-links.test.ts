/** One-time links of a peer: the first browser has it, for ten minutes, and nobody else ever. */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import type { PartitionState } from '../../../actors/domain/state.ts';
import { isEmpty } from '../../../actors/domain/turn.ts';
import { decoder } from '../../../lib/decode.ts';
import type { PeerTokenId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import type { PeerLink, PeerRecord, PeerView } from '../../../schemas/api/peer.ts';
import type { PeerLinkView } from '../../../schemas/api/peer-link.ts';
import type { LinkGrant } from '../../../schemas/wire/answers.ts';
import { PeerRecordShape } from '../../../schemas/wire/shapes.ts';
import { acme, stateOf } from '../support/records.ts';
import { bolt, dataOf, farMs, keysOf, newSecrets, peerRecord, read, token, write } from '../support/vpn.ts';

const nowMs = 1_000_000;
const second = 1000;
const { linkRepeatMs } = limits;
const refusal = { code: 'unauthenticated', body: '{"error":"unauthenticated"}' };

const newLink = (hash: string, more: Partial<PeerLink> = {}) => ({
  id: randomUUID() as PeerTokenId,
  hash,
  insertedAtMs: nowMs,
  expiresAtMs: nowMs + limits.linkTtlMs,
  ...more,
});

/** The peer, its links, and what one can ask about them. `browser`: hash of its download token. */
function rigOf(record: PeerRecord = peerRecord(), ...others: readonly PeerRecord[]) {
  const state = stateOf(record, ...others);
  const of = { tenant: acme, peer: record.id };
  const create = (link: ReturnType<typeof newLink>, atMs = nowMs) =>
    write(state, { type: 'peer.link.create', ...of, link }, atMs);
  const list = (atMs = nowMs) => dataOf<PeerLinkView[]>(read(state, { type: 'peer.link.list', ...of }, atMs));
  const resolve = (hash: string, browser: string, atMs = nowMs) =>
    read(state, { type: 'link.resolve', partition: 0, hash, tokenHash: browser }, atMs);
  const redeem = (link: { id: PeerTokenId; hash: string }, browser: string, atMs = nowMs, tenant: TenantId = acme) =>
    write(
      state,
      { type: 'peer.link.redeem', tenant, peer: record.id, link: link.id, hash: link.hash, tokenHash: browser },
      atMs,
    );
  const opens = (hash: string, atMs = nowMs) => [
    read(state, { type: 'token.resolve', partition: 0, hash }, atMs).code,
    read(state, { type: 'peer.material', ...of, tokenHash: hash }, atMs).code,
  ];
  return { state, of, create, list, resolve, redeem, opens };
}
const open = ['ok', 'ok'];
const shut = ['unauthenticated', 'unauthenticated'];

const linksOf = (state: PartitionState, { id }: PeerRecord) => state.tenant(acme).peers.records.get(id)?.links;

t.test('the first browser gets the download token, and the same answer for ten minutes', (t) => {
  const record = peerRecord();
  const { state, create, list, resolve, redeem, opens } = rigOf(record);
  const link = newLink('link');
  t.equal(create(link).code, 'created');
  t.ok(isEmpty(create(link).changes), 'asked again');
  const grant: LinkGrant = {
    tenant: acme,
    peer: record.id,
    link: link.id,
    name: record.name,
    network: record.network,
    untilMs: null,
  };
  t.same(dataOf(resolve('link', 'mine')), grant);
  t.same(dataOf(resolve('link', 'theirs')), grant, 'nobody has it yet');
  t.same(opens('mine'), shut);
  t.same(opens('link'), shut, 'a link is no token');

  const atMs = nowMs + second;
  const redeemed = { ...grant, untilMs: atMs + linkRepeatMs };
  const first = redeem(link, 'mine', atMs);
  t.same(dataOf(first), redeemed);
  t.same(opens('mine', atMs), open);
  const endMs = atMs + linkRepeatMs;
  for (const again of [atMs, endMs - 1]) {
    t.same(dataOf(resolve('link', 'mine', again)), redeemed, 'the same end');
    const repeated = redeem(link, 'mine', again);
    t.same(dataOf(repeated), redeemed);
    t.ok(isEmpty(repeated.changes), 'and nothing is written');
    t.same(resolve('link', 'theirs', again).reply, refusal);
    t.same(redeem(link, 'theirs', again).reply, refusal);
    t.same(opens('theirs', again), shut);
    t.same(opens('mine', again), open);
  }
  t.match(list(endMs - 1), [{ id: link.id, redeemed_at: new Date(atMs).toISOString() }]);

  t.same(resolve('link', 'mine', endMs).reply, refusal, 'ten minutes later it has ended for all');
  t.same(redeem(link, 'mine', endMs).reply, refusal);
  t.same(opens('mine', endMs), shut);
  t.same(list(endMs), []);
  t.equal(create(newLink('next'), endMs).code, 'created');
  t.same(
    linksOf(state, record)?.map(({ hash }) => hash),
    ['next'],
    'a link that has ended leaves the record',
  );
  t.equal(state.vpn.peerOfToken('mine'), undefined);
  t.end();
});

t.test('two browsers at one time: one has it', (t) => {
  const { create, resolve, redeem } = rigOf();
  const link = newLink('link');
  create(link);
  t.same([resolve('link', 'one').code, resolve('link', 'two').code], ['ok', 'ok']);
  t.equal(redeem(link, 'two').code, 'ok');
  t.same(redeem(link, 'one').reply, refusal);
  t.end();
});

t.test('every link that is not good gets one answer, and changes nothing', (t) => {
  const other = peerRecord({ tenant: bolt }, 'theirs', 3);
  const [link, revoked, short] = [newLink('link'), newLink('revoked'), newLink('short', { expiresAtMs: nowMs + 1 })];
  const fresh = () => {
    const rig = rigOf(peerRecord({ tokens: [token('token')] }), other);
    for (const one of [link, revoked, short]) rig.create(one);
    write(rig.state, { type: 'peer.link.remove', ...rig.of, link: revoked.id });
    return rig;
  };
  const rotation = ({ state, of }: ReturnType<typeof fresh>) => {
    const { certificate } = state.tenant(acme).peers.records.get(of.peer) ?? peerRecord();
    return { type: 'peer.rotate', ...of, replaces: certificate.serial, ...newSecrets(keysOf()) } as const;
  };
  type Rig = ReturnType<typeof fresh>;
  const update = (rig: Rig, change: object) => write(rig.state, { type: 'peer.update', ...rig.of, update: change });
  const rows: readonly (readonly [what: string, of: typeof link, atMs: number, before: (rig: Rig) => unknown])[] = [
    ['unknown', newLink('unknown'), nowMs, () => {}],
    ['a download token', newLink('token'), nowMs, () => {}],
    ['revoked', revoked, nowMs, () => {}],
    ['expired', short, nowMs + 1, () => {}],
    ['used', link, nowMs, (rig) => rig.redeem(link, 'another')],
    ['of a peer that is disabled', link, nowMs, (rig) => update(rig, { enabled: false })],
    ['of a peer that has expired', link, nowMs + second, (rig) => update(rig, { expiresAtMs: nowMs + second })],
    ['of a peer that was rotated', link, nowMs, (rig) => write(rig.state, rotation(rig))],
    ['of a peer that is gone', link, nowMs, (rig) => write(rig.state, { type: 'peer.remove', ...rig.of })],
  ];
  for (const [what, of, atMs, before] of rows) {
    const rig = fresh();
    before(rig);
    t.same(rig.resolve(of.hash, 'mine', atMs).reply, refusal, what);
    const redeemed = rig.redeem(of, 'mine', atMs);
    t.same(redeemed.reply, refusal, what);
    t.ok(isEmpty(redeemed.changes), what);
    t.same(rig.opens('mine', atMs)[0], 'unauthenticated', what);
  }
  const rig = fresh();
  t.same(rig.redeem(link, 'mine', nowMs, bolt).reply, refusal, 'asked as another tenant');
  t.equal(rig.redeem(link, 'mine').code, 'ok');
  t.end();
});

t.test('the download token ends with its link: revoked, rotated, disabled', (t) => {
  for (const [what, end] of [
    ['revoked', (rig: Rig) => write(rig.state, { type: 'peer.link.remove', ...rig.of, link: rig.link.id })],
    ['disabled', (rig: Rig) => write(rig.state, { type: 'peer.update', ...rig.of, update: { enabled: false } })],
    ['removed', (rig: Rig) => write(rig.state, { type: 'peer.remove', ...rig.of })],
    [
      'rotated',
      (rig: Rig) =>
        write(rig.state, {
          type: 'peer.rotate',
          ...rig.of,
          replaces: rig.record.certificate.serial,
          ...newSecrets(),
        }),
    ],
  ] as const) {
    const rig = rigWithLink();
    rig.redeem(rig.link, 'mine');
    t.same(rig.opens('mine'), open);
    t.ok(end(rig).code !== 'unauthenticated', what);
    t.equal(rig.opens('mine')[0], 'unauthenticated', what);
  }
  t.end();
});

type Rig = ReturnType<typeof rigWithLink>;
function rigWithLink() {
  const record = peerRecord();
  const rig = rigOf(record);
  const link = newLink('link');
  rig.create(link);
  return { ...rig, record, link };
}

t.test('a renewed certificate, a new password and a new name leave links as they are', (t) => {
  const rig = rigWithLink();
  const { certificate } = keysOf();
  const replaces = rig.record.certificate.serial;
  write(rig.state, { type: 'peer.certify', ...rig.of, replaces, certificate });
  write(rig.state, { type: 'peer.password', ...rig.of, p12Password: rig.record.p12Password });
  write(rig.state, { type: 'peer.update', ...rig.of, update: { name: 'tablet' } });
  t.match(dataOf(rig.redeem(rig.link, 'mine')), { name: 'tablet' });
  t.end();
});

t.test('a peer has at most twenty links that are good; they are apart from its tokens', (t) => {
  const record = peerRecord({ tokens: [token('token')] });
  const { state, of, create, list } = rigOf(record);
  const before = read(state, { type: 'peer.get', ...of, head: true });
  const links = Array.from({ length: limits.peerLinks + 1 }, (_, index) => newLink(`link${index}`));
  const codes = links.map((link) => create(link).code);
  t.same(codes, [...Array.from({ length: limits.peerLinks }, () => 'created'), 'conflict']);
  t.equal(list().length, limits.peerLinks);
  t.same(Object.keys(list()[0] ?? {}), [
    'id',
    'inserted_at',
    'expires_at',
    'redeemed_at',
  ] satisfies (keyof PeerLinkView)[]);
  const [first] = links;
  if (first === undefined) return t.end();
  const remove = { type: 'peer.link.remove', ...of, link: first.id } as const;
  t.equal(write(state, remove).code, 'no_content');
  t.equal(write(state, remove).code, 'not_found');
  t.equal(create(newLink('new')).code, 'created');
  t.same(
    read(state, { type: 'peer.get', ...of, head: true }).reply,
    before.reply,
    'the peer and its ETag are the same',
  );
  t.equal(dataOf<PeerView>(before).tokens.length, 1);
  for (const type of ['peer.link.list', 'peer.link.create', 'peer.link.remove'] as const) {
    const ask = { tenant: bolt, peer: record.id, link: newLink('x') };
    const said =
      type === 'peer.link.list'
        ? read(state, { type, ...ask })
        : type === 'peer.link.create'
          ? write(state, { type, ...ask })
          : write(state, { type, ...ask, link: first.id });
    t.equal(said.code, 'not_found', `${type} of another tenant`);
  }
  return t.end();
});

t.test('a rotation by a release that does not know links ends them, too', (t) => {
  const rig = rigWithLink();
  rig.redeem(rig.link, 'mine');
  const record = rig.state.tenant(acme).peers.records.get(rig.record.id) ?? rig.record;
  const { wireguard, certificate } = keysOf();
  // It keeps the fields that it does not know.
  const { resolve, opens, list } = rigOf({ ...record, wireguard, certificate, tokens: [] });
  t.same(resolve('link', 'mine').reply, refusal);
  t.same(opens('mine'), shut);
  t.same(list(), []);
  t.end();
});

t.test('records without links are read as before', (t) => {
  const decode = decoder(PeerRecordShape);
  const record = peerRecord();
  t.same(decode(Buffer.from(JSON.stringify(record))), record);
  const links = [
    { ...newLink('a'), publicKey: 'k' },
    { ...newLink('b'), publicKey: 'k', redeemed: { tokenHash: 'h', atMs: 1 } },
  ];
  const whole = { ...record, links };
  t.same(decode(Buffer.from(JSON.stringify(whole))), whole);
  const { list, resolve } = rigOf(record);
  t.same(list(), []);
  t.same(resolve('link', 'mine', farMs).reply, refusal);
  t.end();
});
