/**
 * One-time links at a gateway: its asks, its answers, and the token that it reveals to nobody else.
 */
import t from 'tap';
import { hashOfToken, newToken, parseToken, tokenOfLink } from '../../../gateway/auth/random-tokens.ts';
import { linkRoutes } from '../../../gateway/vpn/links.ts';
import type { PeerTokenId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { callOf } from '../calls.ts';
import { okData, refusal } from '../support.ts';
import { forageWith, nowMs, type Answers } from './forage.ts';
import { baseUrl, peerId } from './support.ts';

const acme = 'acme' as TenantId;
const params = { peer: peerId };
const verifier = 'v'.repeat(43);
const linkId = '01920a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5c' as PeerTokenId;
const grant = { tenant: acme, peer: peerId, link: linkId, name: 'phone', network: 'office' };
const untilMs = nowMs + limits.linkRepeatMs;
const dataIn = (answer: unknown) => (JSON.parse(String(Object(answer).body)) as { data: Record<string, string> }).data;

function redeemWith(answers: Answers) {
  const rig = forageWith(answers);
  const redeem = (token: string) =>
    linkRoutes(rig.forage)['peer.link.redeem'](
      callOf('peer.link.redeem', { identity: undefined, body: { token, verifier } }),
    );
  return { ...rig, redeem };
}

t.test('a link is shown once its hash is stored, with its token in the fragment', async (t) => {
  const { forage, asked } = forageWith({ 'peer.link.create': () => okData({}, 'created') });
  const create = linkRoutes(forage)['peer.link.create'];
  const answer = await create(callOf('peer.link.create', { params, body: { expiresAtMs: null } }));
  const { url = '', ...view } = dataIn(answer);
  const { origin, pathname, search, hash } = new URL(url);
  t.same([origin + pathname, search], [`${baseUrl}/vpn`, '']);
  const token = hash.slice(1);
  t.same(parseToken(token), { kind: 'link', partition: partitionOf(acme, 2) });
  const expiresAtMs = nowMs + limits.linkTtlMs;
  t.match(view, { expires_at: new Date(expiresAtMs).toISOString(), redeemed_at: null });
  const link = { id: view['id'] as PeerTokenId, hash: hashOfToken(token), insertedAtMs: nowMs, expiresAtMs };
  t.match(asked, [{ lane: 'write', question: { type: 'peer.link.create', tenant: acme, peer: peerId, link } }]);
  t.notOk(JSON.stringify(asked).includes(token));

  const lost = forageWith({ 'peer.link.create': () => refusal('timeout') });
  const body = { expiresAtMs: nowMs + 1 };
  const refused = await linkRoutes(lost.forage)['peer.link.create'](callOf('peer.link.create', { params, body }));
  t.same(refused, refusal('timeout'), 'no URL of what may not be stored');
});

t.test('the first answer is stored by a write, and a repeated one by none', async (t) => {
  const { text } = newToken('link', 1);
  const download = tokenOfLink(text, verifier, 1);
  const first = redeemWith({
    'link.resolve': () => okData({ ...grant, untilMs: null }),
    'peer.link.redeem': () => okData({ ...grant, untilMs }),
  });
  const answer = await first.redeem(text);
  t.same(dataIn(answer), {
    peer_id: peerId,
    name: 'phone',
    network: 'office',
    state: 'active',
    download_token: download.text,
    expires_at: new Date(untilMs).toISOString(),
    config_url: `${baseUrl}/api/forage/config/${peerId}?token=${download.text}`,
    qr_url: `${baseUrl}/api/forage/config/${peerId}/qr?token=${download.text}`,
    profile_url: `${baseUrl}/api/forage/profile/${peerId}?token=${download.text}`,
    p12_url: `${baseUrl}/api/forage/p12/${peerId}?token=${download.text}`,
  });
  const hashes = { hash: hashOfToken(text), tokenHash: download.hash };
  t.match(first.asked, [
    { lane: 'read', question: { type: 'link.resolve', partition: 1, ...hashes } },
    { lane: 'write', question: { type: 'peer.link.redeem', tenant: acme, peer: peerId, link: linkId, ...hashes } },
  ]);
  const told = JSON.stringify([first.asked, first.log.events]);
  for (const secret of [text, verifier, download.text]) t.notOk(told.includes(secret), 'owners and logs have hashes');

  const again = redeemWith({ 'link.resolve': () => okData({ ...grant, untilMs }) });
  t.same(await again.redeem(text), answer);
  t.same([again.types(), again.failures], [['link.resolve'], []]);
});

t.test('a text that can be no link costs no ask, every other refusal one; all count, and look the same', async (t) => {
  const refused = await redeemWith({}).redeem('x');
  t.match(refused, { code: 'unauthenticated', body: '{"error":"unauthenticated"}' });
  for (const [what, token] of [
    ['empty', ''],
    ['a download token', newToken('download', 1).text],
    ['of no partition', newToken('link', 2).text],
    ['a link with more behind it', `${newToken('link', 1).text}x`],
  ] as const) {
    const { redeem, types, failures } = redeemWith({});
    t.same(await redeem(token), refused, what);
    t.same([types(), failures], [[], ['link token']], what);
  }
  const wrong = redeemWith({ 'link.resolve': () => refusal('unauthenticated') });
  t.same(await wrong.redeem(newToken('link', 1).text), refused);
  t.same([wrong.types(), wrong.failures], [['link.resolve'], ['link token']]);
  const late = redeemWith({
    'link.resolve': () => okData({ ...grant, untilMs: null }),
    'peer.link.redeem': () => refusal('unauthenticated'),
  });
  t.same(await late.redeem(newToken('link', 1).text), refused, 'another browser came between');
  t.same(late.failures, ['link token']);
});

t.test('an owner that is away is no wrong link', async (t) => {
  for (const answers of [
    { 'link.resolve': () => refusal('unavailable') },
    { 'link.resolve': () => okData({ ...grant, untilMs: null }), 'peer.link.redeem': () => refusal('unavailable') },
  ] satisfies Answers[]) {
    const { redeem, failures } = redeemWith(answers);
    t.match(await redeem(newToken('link', 1).text), { code: 'unavailable' });
    t.same(failures, []);
  }
});
