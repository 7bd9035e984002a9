import t from 'tap';
import { hashOfToken } from '../../../../../gateway/auth/random-tokens.ts';
import { placeOf } from '../../../../../gateway/vpn/service/peers/owner.ts';
import type { OutcomeCode } from '../../../../../schemas/errors.ts';
import type { NetworkName, TenantId } from '../../../../../schemas/ids.ts';
import { limits } from '../../../../../schemas/limits.ts';
import { okData, okMaterial, refusal } from '../../../support.ts';
import { forageWith, networkNow, nowMs, peerNow, vault, type Answers } from '../../forage.ts';
import { peerId } from '../../support.ts';

const demo = 'demo' as TenantId;
const asker = { origin: { rid: 'r' }, deadlineMs: 60_000 };
const settings = { name: 'phone', network: null, expiresAtMs: null, routes: null, dns: null };
const reserved: Answers = {
  'peer.check': () => okData({}),
  'network.reserve': () => okData({ network: networkNow(), index: 7 }),
  'network.release': () => ({ code: 'no_content', body: '' }),
};

t.test('routes of a family that peers of the network have not got cost no key', async (t) => {
  const { forage, keyring, jobs, types } = forageWith({
    ...reserved,
    'network.reserve': () => okData({ network: networkNow({ ipv6_pool: null }), index: 7 }),
  });
  const made = forage.peers.create(asker, demo, { ...settings, routes: ['fd00::/8'] }, keyring);
  await t.rejects(made, { name: 'Refusal', result: { code: 'invalid', body: /none is of a family that peers have/ } });
  t.same([jobs, types()], [[], ['peer.check', 'network.reserve', 'network.release']]);
});

t.test('routes with the endpoint in them cost no key', async (t) => {
  const { forage, keyring, jobs } = forageWith({
    ...reserved,
    'network.reserve': () => okData({ network: networkNow({ endpoint: '198.51.100.1' }), index: 7 }),
  });
  const made = forage.peers.create(asker, demo, { ...settings, routes: ['198.51.100.0/24'] }, keyring);
  await t.rejects(made, { name: 'Refusal', result: { code: 'invalid', body: /contains the endpoint/ } });
  t.same(jobs, []);
});

t.test('a new peer is stored with sealed secrets, which are shown once', async (t) => {
  const { forage, keyring, asked } = forageWith({ ...reserved, 'peer.create': () => okData({ name: 'phone' }) });
  const made = await forage.peers.create(asker, demo, settings, keyring);
  t.match(
    asked.map(({ lane, question }) => `${lane} ${question.type}`),
    ['read peer.check', 'write network.reserve', 'write peer.create'],
  );
  const question = asked.at(-1)?.question;
  if (question?.type !== 'peer.create') throw new Error('no peer is made');
  const { tenant, peer, made: stored } = question;
  t.match(stored, { network: 'default', index: 7, ipv4: '10.86.0.7', ipv6: 'fd00:86::7', expiresAtMs: null });
  t.match(stored, { localId: `${peer}.default.internal` });
  t.equal(vault.open(placeOf({ tenant, peer }, 'password'), stored.p12Password), made.p12Password);
  t.match(stored.tokens, [
    { scope: 'download', hash: hashOfToken(made.downloadToken), expiresAtMs: nowMs + limits.downloadTokenTtlMs },
    { scope: 'pac', hash: hashOfToken(made.pacToken), expiresAtMs: nowMs + limits.pacTokenTtlMs },
  ]);
  const told = JSON.stringify(question);
  for (const secret of [made.p12Password, made.downloadToken, made.pacToken]) t.notOk(told.includes(secret));
});

t.test('an address is released if its peer will never exist, and left to lapse if it may', async (t) => {
  const rows: [OutcomeCode, boolean][] = [
    ['conflict', true],
    ['over_quota', true],
    ['timeout', false],
    ['unavailable', false],
    ['internal', false],
  ];
  for (const [code, isReleased] of rows) {
    const { forage, keyring, types } = forageWith({ ...reserved, 'peer.create': () => refusal(code) });
    await t.rejects(forage.peers.create(asker, demo, settings, keyring), { name: 'Refusal', result: { code } });
    t.equal(types().includes('network.release'), isReleased, code);
  }
});

t.test('a peer that is refused costs no key: the network’s fault before the cap', async (t) => {
  const cap = { 'peer.check': () => refusal('over_quota') } satisfies Answers;
  const served = (tenants: string[] | null) => () => okData({ name: 'default', tenants });
  const rows: [string, Answers, OutcomeCode][] = [
    ['the name is taken', { 'peer.check': () => refusal('conflict') }, 'conflict'],
    ['no network', { ...cap, 'network.get': () => refusal('not_found') }, 'invalid'],
    ['a network of others', { ...cap, 'network.get': served(['other']) }, 'invalid'],
    ['over the cap', { ...cap, 'network.get': served(null) }, 'over_quota'],
    ['over the cap; the network’s owner is away', { ...cap, 'network.get': () => refusal('timeout') }, 'over_quota'],
    ['no network to reserve in', { ...reserved, 'network.reserve': () => refusal('not_found') }, 'invalid'],
    ['no address', { ...reserved, 'network.reserve': () => refusal('conflict') }, 'conflict'],
  ];
  for (const [what, answers, code] of rows) {
    const { forage, keyring, jobs } = forageWith(answers);
    await t.rejects(forage.peers.create(asker, demo, settings, keyring), { name: 'Refusal', result: { code } }, what);
    t.same(jobs, [], what);
  }
});

t.test('a rotation names the certificate that it replaces; an expired peer is not rotated', async (t) => {
  const { forage, keyring, asked, jobs } = forageWith({ 'peer.rotate': () => okData({}) });
  const network = networkNow();
  await forage.peers.rotate(asker, { peer: peerNow(), network }, keyring);
  t.match(asked, [{ lane: 'write', question: { type: 'peer.rotate', tenant: 'demo', peer: peerId, replaces: '03' } }]);
  t.match(jobs, [{ kind: 'peer', deadlineMs: 60_000 }]);
  const expired = { peer: peerNow({ expiresAtMs: nowMs }), network };
  await t.rejects(forage.peers.rotate(asker, expired, keyring), {
    name: 'Refusal',
    result: { code: 'conflict', body: /expires_at/ },
  });
  t.equal(jobs.length, 1);
});

t.test('a certificate near its end is renewed at a download; who comes second takes the first one’s', async (t) => {
  const network = networkNow();
  const access = { tenant: demo, peer: peerId, tokenHash: 'h' };
  const certificate = { ...peerNow().certificate, notAfterMs: nowMs + 1 };
  const [old, renewed] = [peerNow({ certificate }), peerNow({ generation: 2 })];
  const fresh = async (code: 'ok' | 'conflict' | 'timeout', peer = old) => {
    const { forage, keyring, asked } = forageWith({
      'peer.certify': () => ({ ...okData(renewed), code }),
      'peer.material': () => okMaterial(renewed),
      'network.material': () => okMaterial(network),
    });
    const { peer: now } = await forage.peers.fresh(asker, access, { peer, network }, keyring);
    return { generation: now.generation, asked: asked.map(({ question }) => question) };
  };
  t.match(await fresh('ok', peerNow()), { generation: 1, asked: [] }, 'not near its end');
  t.match(await fresh('ok'), { generation: 2, asked: [{ type: 'peer.certify', replaces: '03' }] });
  t.match(await fresh('conflict'), {
    generation: 2,
    asked: [{ type: 'peer.certify' }, { type: 'peer.material', tokenHash: 'h' }, { network: 'demo' as NetworkName }],
  });
  await t.rejects(fresh('timeout'), { name: 'Refusal', result: { code: 'timeout' } });
});
