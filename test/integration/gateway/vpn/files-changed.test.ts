/**
 * `files_changed_at` of a peer: it moves with every change that a file of the peer shows, and with
 * no other, whether the peer changes or its network.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { runGateway, startGround, startOwnerOn } from '../support.ts';

interface PeerTimes {
  readonly id: string;
  readonly network: string;
  readonly files_changed_at: string | null;
  readonly updated_at: string;
}

const office = { endpoint: 'vpn.example.com', ipv4_pool: '10.86.0.0/24', ipv6_pool: 'fd86::/64', tenants: null };
/** Files whose bytes follow from the records alone; a bundle has a salt. */
const files = ['config/:id', ...['json', 'ps1', 'swanctl'].map((format) => `profile/:id?format=${format}`)];

t.test('files_changed_at moves with the files', async (t) => {
  const ground = await startGround(t);
  const owner = await startOwnerOn(t, ground);
  const env = { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`, VPN_DEFAULT_NETWORK: 'office' };
  const { url } = await runGateway(t, ground, { env });
  const [tenant, operator] = await Promise.all([ground.issuer.mint(), ground.issuer.mint({ scope: 'operator' })]);
  const send = async (token: string, method: string, path: string, body?: object): Promise<Response> => {
    const answer = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
  const dataOf = async <T>(answer: Promise<Response>): Promise<T> =>
    ((await (await answer).json()) as { readonly data: T }).data;
  const set = (change: object): Promise<Response> =>
    send(operator, 'PUT', '/api/v2/operator/networks/office', { ...office, ...change });

  await send(operator, 'POST', '/api/v2/operator/networks', { name: 'office', ...office });
  await send(operator, 'POST', '/api/v2/operator/hosts', { key: 'h1', region: 'default' });
  await send(operator, 'POST', '/api/v2/operator/hosts', { key: 'h2', region: 'default' });
  const made = await dataOf<PeerTimes>(send(tenant, 'POST', '/api/forage/peers', { name: 'phone' }));
  const own = `/api/forage/peers/${made.id}`;
  const change = (body: object): Promise<Response> => send(tenant, 'PATCH', own, body);
  const serve = (key: string): Promise<Response> =>
    send(operator, 'PUT', '/api/v2/operator/networks/office/servers', { host_keys: [key] });
  const look = async () => {
    const shown = await dataOf<PeerTimes>(send(tenant, 'GET', own));
    const texts = files.map(async (path) =>
      (await send(tenant, 'GET', `/api/forage/${path.replace(':id', made.id)}`)).text(),
    );
    return { shown, texts: (await Promise.all(texts)).join('\n') };
  };
  t.equal(made.files_changed_at, made.updated_at);
  t.equal((await look()).shown.files_changed_at, made.files_changed_at);

  const narrow = { endpoint: 'new.example.com', routes: ['10.0.0.0/16'] };

  /** A change, and whether the files of the peer show it. */
  const steps: readonly (readonly [string, 'shown' | 'not shown', () => Promise<unknown>])[] = [
    ['another name', 'shown', () => change({ name: 'tablet' })],
    ['an end', 'shown', () => change({ expires_at: '2100-01-01T00:00:00Z' })],
    ['routes', 'shown', () => change({ routes: ['10.0.0.0/8'] })],
    ['the same routes', 'not shown', () => change({ routes: ['10.0.0.0/8'] })],
    ['resolvers', 'shown', () => change({ dns: ['10.0.0.53'] })],
    ['off and on', 'not shown', () => change({ enabled: false }).then(() => change({ enabled: true }))],
    ['a token', 'not shown', () => send(tenant, 'POST', `/api/forage/peers/${made.id}/tokens`, { scope: 'download' })],
    ['a rotation', 'shown', () => send(tenant, 'POST', `${own}/rotate`)],
    ['the routes of the network again', 'shown', () => change({ routes: null, dns: null })],
    ['other routes of the network', 'shown', () => set({ routes: ['10.0.0.0/16'] })],
    ['its MTU', 'shown', () => set({ routes: ['10.0.0.0/16'], mtu: 1400 })],
    ['its port', 'shown', () => set({ wireguard_port: 51_900 })],
    ['its endpoint', 'shown', () => set({ endpoint: 'new.example.com' })],
    ['its tenants', 'not shown', () => set({ endpoint: 'new.example.com', tenants: ['acme', 'other'] })],
    ['a proxy', 'not shown', () => set({ endpoint: 'new.example.com', proxy: { host: 'p.example.com', port: 3128 } })],
    ['narrow routes', 'shown', () => set(narrow)],
    ['a proxy that has a route', 'shown', () => set({ ...narrow, proxy: { host: '10.86.0.1', port: 3128 } })],
    ['its port', 'not shown', () => set({ ...narrow, proxy: { host: '10.86.0.1', port: 8080 } })],
    ['a host serves it', 'shown', () => serve('h1')],
    ['another host', 'not shown', () => serve('h2')],
    ['no host', 'shown', () => send(operator, 'DELETE', '/api/v2/operator/networks/office/servers')],
  ];
  for (const [what, whether, act] of steps) {
    const before = await look();
    await sleep(2);
    await act();
    const after = await look();
    const isShown = whether === 'shown';
    t.equal(after.texts !== before.texts, isShown, `${what}: the files`);
    const [was, is] = [before.shown.files_changed_at, after.shown.files_changed_at];
    if (isShown) t.ok((is ?? '') > (was ?? ''), `${what}: ${was} ${is}`);
    else t.equal(is, was, what);
  }

  const { shown } = await look();
  t.same(await dataOf(send(tenant, 'GET', '/api/forage/peers')), [shown], 'a list says the same');
  t.equal((await dataOf<PeerTimes>(change({ enabled: true }))).files_changed_at, shown.files_changed_at);
  await owner.stop();
});
