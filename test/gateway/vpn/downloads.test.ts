import t from 'tap';
import type { CallOf } from '../../../gateway/call.ts';
import { artifactRoutes } from '../../../gateway/vpn/downloads.ts';
import type { PeerId, TenantId } from '../../../schemas/ids.ts';
import { callOf, exchangeOf } from '../calls.ts';
import { okData, okMaterial, refusal } from '../support.ts';
import { forageWith, networkNow, nowMs, peerNow } from './forage.ts';
import { peerId } from './support.ts';

const demo = 'demo' as TenantId;
const params = { peer: peerId };
const grant = { tenant: demo, peer: peerId, scope: 'download', tokenHash: 'h' } as const;
const byToken = { identity: undefined, grant };
const p12 = callOf('artifact.p12', { params, query: { encryption: 'modern', token: undefined } });
const config = (more: Partial<CallOf<'artifact.config'>> = {}) => callOf('artifact.config', { params, ...more });

function stage(peer = peerNow(), network = networkNow()) {
  return forageWith({
    'peer.material': () => okMaterial(peer),
    'network.material': () => okMaterial(network),
    'peer.certify': () => okData(peer),
  });
}

t.test('a token of one peer does not show that another exists', async (t) => {
  const { forage, asked } = stage();
  const other = { ...grant, peer: 'other' as PeerId };
  const answer = await artifactRoutes(forage)['artifact.config'](config({ ...byToken, grant: other }));
  t.match(answer, { code: 'not_found' });
  t.same(asked, []);
});

t.test('a token is checked again with the peer, for it may have ended since admission', async (t) => {
  const { forage, asked } = stage();
  t.match(await artifactRoutes(forage)['artifact.config'](config(byToken)), { code: 'ok', body: /PrivateKey/ });
  await artifactRoutes(forage)['artifact.config'](config());
  t.same(
    asked.map(({ question }) => question).filter(({ type }) => type === 'peer.material'),
    [
      { type: 'peer.material', tenant: 'demo', peer: peerId, tokenHash: 'h', rid: 'r' },
      { type: 'peer.material', tenant: 'acme', peer: peerId, rid: 'r' },
    ],
    'a session has no such token',
  );
  const ended = forageWith({ 'peer.material': () => refusal('unauthenticated') });
  t.match(await artifactRoutes(ended.forage)['artifact.config'](config(byToken)), { code: 'unauthenticated' });
});

t.test('a network that is closed to the tenant, then the state of the peer, refuse a download', async (t) => {
  const closed = networkNow({ tenants: ['others' as TenantId] });
  const [off, late] = [peerNow({ enabled: false }), peerNow({ expiresAtMs: nowMs })];
  const rows: [string, ReturnType<typeof stage>, object, object][] = [
    ['closed, by session', stage(off, closed), {}, { code: 'conflict', body: /does not serve this tenant/ }],
    ['closed, by token', stage(off, closed), byToken, { code: 'unauthenticated' }],
    ['disabled', stage(off), byToken, { code: 'conflict', body: /is disabled/ }],
    ['expired', stage(late), {}, { code: 'conflict', body: /is expired/ }],
    ['open to it', stage(peerNow(), networkNow({ tenants: [demo] })), {}, { code: 'ok' }],
  ];
  for (const [what, { forage, types }, caller, expected] of rows) {
    t.match(await artifactRoutes(forage)['artifact.config'](config(caller)), expected, what);
    t.notOk(types().includes('peer.certify'), `${what}: nothing is renewed`);
  }
});

t.test('a file that was given before is refused as soon as its peer or its network refuses', async (t) => {
  const now = { peer: peerNow(), network: networkNow() };
  const { forage } = forageWith({
    'peer.material': () => okMaterial(now.peer),
    'network.material': () => okMaterial(now.network),
  });
  const handlers = artifactRoutes(forage);
  const get = () => handlers['artifact.config'](config());
  t.match(await get(), { code: 'ok', headers: ['content-type', 'text/plain; charset=utf-8'] });
  now.peer = peerNow({ enabled: false, generation: 2 });
  t.match(await get(), { code: 'conflict', body: /is disabled/ });
  now.peer = peerNow({ generation: 3 });
  t.match(await get(), { code: 'ok' });
  now.network = networkNow({ tenants: ['others' as TenantId] });
  t.match(await get(), { code: 'conflict', body: /does not serve this tenant/ });
});

t.test('only files with a certificate renew it', async (t) => {
  const certificate = { ...peerNow().certificate, notAfterMs: nowMs + 1 };
  const renewed = async (ask: (handlers: ReturnType<typeof artifactRoutes>) => unknown): Promise<boolean> => {
    const { forage, types } = stage(peerNow({ certificate }));
    await ask(artifactRoutes(forage));
    return types().includes('peer.certify');
  };
  t.notOk(await renewed((handlers) => handlers['artifact.config'](config())));
  t.notOk(await renewed((handlers) => handlers['artifact.qr'](callOf('artifact.qr', { params }))));
  t.ok(await renewed((handlers) => handlers['artifact.p12'](p12)));
});

t.test('every download is counted by its file, format and outcome, without VPN keys too', async (t) => {
  const { forage } = stage();
  await artifactRoutes(forage)['artifact.p12'](p12);
  t.match(await artifactRoutes({ ...forage, keyring: undefined })['artifact.p12'](p12), { code: 'unavailable' });
  await artifactRoutes(forage)['artifact.pac'](callOf('artifact.pac'));
  const text = await forage.meters.registry.metrics();
  for (const labels of [
    'artifact="p12",format="modern",result="ok"',
    'artifact="p12",format="modern",result="unavailable"',
    'artifact="pac",format="pac",result="unauthenticated"',
  ]) {
    t.match(text, `forage_artifact_requests_total{${labels}} 1`);
  }
});

t.test('proxy auto-config is the grant’s peer’s, and is sent again only when it has changed', async (t) => {
  const { forage, asked } = stage(peerNow({ enabled: false }));
  const pac = (ifNoneMatch?: string) => {
    const exchange = exchangeOf({ headers: ifNoneMatch === undefined ? {} : { ifNoneMatch } });
    return artifactRoutes(forage)['artifact.pac'](callOf('artifact.pac', { ...byToken, exchange }));
  };
  t.match(await pac(), { code: 'ok', body: /FindProxyForURL/ });
  t.match(asked[0]?.question, { type: 'peer.material', tenant: 'demo', peer: peerId, tokenHash: 'h' });
  t.match(await pac('*'), { code: 'not_modified', headers: /private, max-age=300/ });
  const closed = stage(peerNow(), networkNow({ tenants: [] }));
  const answer = await artifactRoutes(closed.forage)['artifact.pac'](callOf('artifact.pac', byToken));
  t.match(answer, { code: 'unauthenticated' }, 'the network does not serve the tenant any more');
});

t.test('metrics want their token where one is set, and wrong ones count', async (t) => {
  const { forage, failures, asked } = forageWith({
    'peer.count': () => okData({ active: 0, disabled: 0, expired: 0, earliest: null }),
    'network.list': () => ({ code: 'ok', body: '{"data":[],"more":false}' }),
  });
  const scrape = async (metricsToken: string | undefined, authorization?: string) => {
    const exchange = exchangeOf({ headers: authorization === undefined ? {} : { authorization } });
    const handlers = artifactRoutes({ ...forage, metricsToken });
    const answer = await handlers['forage.metrics'](callOf('forage.metrics', { identity: undefined, exchange }));
    return answer === 'streamed' ? answer : answer.code;
  };
  t.equal(await scrape('secret'), 'unauthenticated');
  t.equal(await scrape('secret', 'Bearer guess'), 'unauthenticated');
  t.same([failures, asked], [['metrics token', 'metrics token'], []], 'no owner is asked');
  t.equal(await scrape('secret', 'Bearer secret'), 'ok');
  t.equal(await scrape(undefined), 'ok');
  t.equal(failures.length, 2);
});
