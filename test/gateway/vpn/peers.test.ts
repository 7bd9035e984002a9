import t from 'tap';
import { hashOfToken, parseToken } from '../../../gateway/auth/random-tokens.ts';
import { peerRoutes } from '../../../gateway/vpn/peers.ts';
import { placeOf } from '../../../gateway/vpn/service/peers/owner.ts';
import type { PeerTokenId, TenantId } from '../../../schemas/ids.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { callOf } from '../calls.ts';
import { okData, okMaterial, refusal } from '../support.ts';
import { forageWith, networkNow, peerNow, vault } from './forage.ts';
import { peerId } from './support.ts';

const params = { peer: peerId };
const acme = 'acme' as TenantId;
const shownPeer = { id: peerId, network: 'demo', files_changed_at: '2026-01-02T00:00:00.000Z' };
const bodyOf = (answer: unknown) => JSON.parse(String(Object(answer).body)) as { data: Record<string, string> };

t.test('an update’s routes need a family that the peer has', async (t) => {
  const network = networkNow({ ipv6_pool: null });
  const { forage, types } = forageWith({
    'peer.material': () => okMaterial(peerNow()),
    'network.material': () => okMaterial(network),
    'peer.update': () => okData(shownPeer),
  });
  const update = (routes: string[]) =>
    peerRoutes(forage)['peer.update'](callOf('peer.update', { params, body: { routes } }));
  t.match(await update(['fd00::/8']), { code: 'invalid', body: /none is of a family that peers have/ });
  t.match(await update(['10.0.0.0/8', 'fd00::/8']), { code: 'ok' });
  t.same(types().slice(-2), ['peer.update', 'network.material']);
});

t.test('an update’s routes lead no packet of the tunnel into the tunnel', async (t) => {
  const { forage } = forageWith({
    'peer.material': () => okMaterial({ ...peerNow(), routes: ['198.51.0.0/16'] }),
    'network.material': () => okMaterial(networkNow({ endpoint: '198.51.100.1' })),
    'peer.update': () => okData(shownPeer),
  });
  const update = (routes: string[]) =>
    peerRoutes(forage)['peer.update'](callOf('peer.update', { params, body: { routes } }));
  t.match(await update(['198.51.100.0/24']), { code: 'invalid', body: /contains the endpoint 198\.51\.100\.1/ });
  t.match(await update(['198.51.0.0/16', '10.0.0.0/8']), { code: 'ok' }, 'one that it has stays');
  t.match(await update(['0.0.0.0/1', '128.0.0.0/1']), { code: 'ok' });
});

t.test('a token is shown once its hash is stored, and carries its tenant’s partition', async (t) => {
  const { forage, asked } = forageWith({ 'peer.token.create': () => okData({}, 'created') });
  const body = { scope: 'pac', expiresAtMs: 1000 } as const;
  const answer = await peerRoutes(forage)['peer.token.create'](callOf('peer.token.create', { params, body }));
  const { data } = bodyOf(answer);
  const { token = '', ...view } = data;
  t.match(answer, { code: 'created' });
  t.match(view, { scope: 'pac', expires_at: '1970-01-01T00:00:01.000Z' });
  t.same(parseToken(token), { kind: 'pac', partition: partitionOf(acme, 2) });
  const stored = { id: view['id'] as PeerTokenId, scope: 'pac', hash: hashOfToken(token), expiresAtMs: 1000 };
  t.match(asked, [
    { lane: 'write', question: { type: 'peer.token.create', tenant: acme, peer: peerId, token: stored } },
  ]);
  t.notOk(JSON.stringify(asked).includes(token));
});

t.test('no secret is shown of what may not be stored', async (t) => {
  const { forage } = forageWith({
    'peer.token.create': () => refusal('timeout'),
    'peer.password': () => refusal('not_found'),
  });
  const { 'peer.token.create': token, 'peer.password': password } = peerRoutes(forage);
  const body = { scope: 'download', expiresAtMs: null } as const;
  t.same(await token(callOf('peer.token.create', { params, body })), refusal('timeout'));
  t.same(await password(callOf('peer.password', { params })), refusal('not_found'));
});

t.test('a new password is stored sealed for its peer', async (t) => {
  const { forage, asked } = forageWith({ 'peer.password': () => okData({}) });
  const { data } = bodyOf(await peerRoutes(forage)['peer.password'](callOf('peer.password', { params })));
  const question = asked[0]?.question;
  if (question?.type !== 'peer.password') throw new Error('nothing is stored');
  t.same(Object.keys(data), ['p12_password']);
  t.equal(vault.open(placeOf({ tenant: acme, peer: peerId }, 'password'), question.p12Password), data['p12_password']);
});

t.test('a list refuses a cursor that it did not give; without VPN keys nothing is made', async (t) => {
  const { forage, types } = forageWith({
    'peer.material': () => okMaterial(peerNow()),
    'network.material': () => okMaterial(networkNow()),
  });
  const handlers = peerRoutes({ ...forage, keyring: undefined });
  const query = { limit: 10, cursor: 'x' };
  t.match(await handlers['peer.list'](callOf('peer.list', { query })), { code: 'invalid', body: /next_cursor/ });
  const body = { name: 'phone', network: null, expiresAtMs: null, routes: null, dns: null };
  t.match(await handlers['peer.create'](callOf('peer.create', { body })), { code: 'unavailable', body: /VAULT_KEYS/ });
  t.match(await handlers['peer.password'](callOf('peer.password', { params })), { code: 'unavailable' });
  t.same(types(), []);
  t.match(await handlers['peer.rotate'](callOf('peer.rotate', { params })), { code: 'unavailable' });
  t.same(types(), ['peer.material', 'network.material'], 'a peer that does not exist is 404 before that');
});

t.test('when files changed is unknown where the network does not answer', async (t) => {
  const network = { ...networkNow(), filesChangedAtMs: Date.UTC(2026, 0, 3) };
  const shownBy = async (answers: Parameters<typeof forageWith>[0]) => {
    const { forage } = forageWith(answers);
    return bodyOf(await peerRoutes(forage)['peer.get'](callOf('peer.get', { params }))).data['files_changed_at'];
  };
  const knows = { 'peer.get': () => okData(shownPeer), 'network.material': () => okMaterial(network) };
  t.equal(await shownBy(knows), '2026-01-03T00:00:00.000Z', 'the later of both');
  t.equal(await shownBy({ ...knows, 'network.material': () => refusal('timeout') }), null);
  t.equal(await shownBy({ ...knows, 'network.material': () => refusal('not_found') }), null);
});
