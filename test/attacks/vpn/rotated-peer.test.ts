/**
 * A thief has a copy of a peer's download token, PAC token and bundle password. After the tenant
 * rotates the peer, none of the three may work any more, at any gateway, not even for a request
 * that the rotation overtakes.
 */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { fileWriter } from '../../gateway/vpn/pki/support.ts';
import { openssl } from '../../integration/gateway/vpn/openssl.ts';
import { serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { decidingOwner } from '../../gateway/vpn/owner.ts';
import { skipWithoutTools } from '../../support/tools.ts';

t.setTimeout(300_000);

/** Attempts at a request that is answered 503, each of which takes half a minute. */
const patience = 5;

interface Secrets {
  readonly p12_password: string;
  readonly download_token: string;
  readonly pac_token: string;
}
interface NewPeer extends Secrets {
  readonly id: string;
  readonly public_key: string;
  readonly tokens: readonly { readonly scope: string }[];
}

const network = {
  name: 'office',
  endpoint: 'vpn.example.com',
  ipv4_pool: '10.86.0.0/24',
  proxy: { host: 'proxy.example.com', port: 3128 },
};

t.test('after a rotation the old secrets open nothing', { skip: await skipWithoutTools('openssl') }, async (t) => {
  const ground = await startGround(t);
  const owner = decidingOwner();
  const serving = serveOwner(ground.nc, owner);
  t.teardown(() => serving.stop());
  const env = { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`, VPN_DEFAULT_NETWORK: 'office' };
  const gateways = await Promise.all([runGateway(t, ground, { env }), runGateway(t, ground, { env })]);
  const [{ url }] = gateways;
  const [tenant, operator] = await Promise.all([ground.issuer.mint(), ground.issuer.mint({ scope: 'operator' })]);
  const write = fileWriter(t);
  const ssl = await openssl();

  const post = async <T>(path: string, token: string, body?: object): Promise<T> => {
    const send = () =>
      fetch(url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    let answer = await send();
    // A busy machine does not make a network's keys in the time of a request.
    for (let attempt = 1; answer.status === 503 && attempt < patience; attempt++) answer = await send();
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return (JSON.parse(text) as { data: T }).data;
  };
  const opens = (bundle: Buffer, password: string): boolean =>
    ssl('pkcs12', '-in', write('bundle.p12', bundle), '-nodes', '-passin', `pass:${password}`).ok;
  const rotate = (peer: NewPeer): Promise<NewPeer> => post(`/api/forage/peers/${peer.id}/rotate`, tenant);
  /** The answers to requests with these tokens: the statuses, and the bodies of refusals. */
  const get = async (gateway: string, path: string, token: string) => {
    const answer = await fetch(`${gateway}${path}${path.includes('?') ? '&' : '?'}token=${token}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    const headers = [...answer.headers].filter(([name]) => name !== 'x-request-id' && name !== 'date');
    return { status: answer.status, bytes, refusal: [answer.status, bytes.toString(), headers] };
  };
  const filesOf = ({ id }: NewPeer): string[] => [
    `/api/forage/config/${id}`,
    `/api/forage/config/${id}/qr`,
    ...['json', 'mobileconfig', 'sswan', 'ps1', 'swanctl'].map(
      (format) => `/api/forage/profile/${id}?format=${format}`,
    ),
    ...['compat', 'modern'].map((encryption) => `/api/forage/p12/${id}?encryption=${encryption}`),
  ];

  await post('/api/v2/operator/networks', operator, network);
  const refused = (await get(url, `/api/forage/config/01890000-0000-7000-8000-000000000000`, 'no token')).refusal;

  await t.test('the tokens end, the password changes, and the answer shows the new ones', async (t) => {
    const old = await post<NewPeer>('/api/forage/peers', tenant, { name: 'phone' });
    for (const gateway of gateways) {
      // From now on each gateway caches the files.
      for (const path of filesOf(old)) t.equal((await get(gateway.url, path, old.download_token)).status, 200, path);
      t.equal((await get(gateway.url, '/api/forage/pac', old.pac_token)).status, 200);
    }
    const extra = await post<{ token: string }>(`/api/forage/peers/${old.id}/tokens`, tenant, { scope: 'download' });

    const rotated = await rotate(old);
    t.not(rotated.public_key, old.public_key);
    t.same(rotated.tokens.map(({ scope }) => scope).toSorted(), ['download', 'pac'], 'it has only the new tokens');
    for (const gateway of gateways) {
      for (const token of [old.download_token, extra.token, old.pac_token]) {
        for (const path of [...filesOf(old), '/api/forage/pac']) {
          t.same((await get(gateway.url, path, token)).refusal, refused, `${path} with a token of before`);
        }
      }
      for (const path of filesOf(old)) {
        t.equal((await get(gateway.url, path, rotated.download_token)).status, 200, `${path} with the new token`);
      }
      t.equal((await get(gateway.url, '/api/forage/pac', rotated.pac_token)).status, 200);
      const bundle = (await get(gateway.url, `/api/forage/p12/${old.id}`, rotated.download_token)).bytes;
      t.notOk(opens(bundle, old.p12_password), 'the old password does not open the new bundle');
      t.ok(opens(bundle, rotated.p12_password), 'the new password does');
    }
    const shown = await fetch(`${url}/api/forage/peers/${old.id}`, { headers: { authorization: `Bearer ${tenant}` } });
    const text = await shown.text();
    for (const secret of [rotated.p12_password, rotated.download_token, rotated.pac_token]) {
      t.notOk(text.includes(secret), 'no later answer shows the secret');
    }
  });

  await t.test('a second rotation ends the tokens of an answer that was lost', async (t) => {
    const old = await post<NewPeer>('/api/forage/peers', tenant, { name: 'tablet' });
    const [lost, seen] = [await rotate(old), await rotate(old)];
    t.same((await get(url, `/api/forage/config/${old.id}`, lost.download_token)).refusal, refused);
    t.equal((await get(url, `/api/forage/config/${old.id}`, seen.download_token)).status, 200);
  });

  /** The gateway has accepted the token; before it reads the peer, the peer is rotated. */
  const overtake = (peer: NewPeer): void =>
    owner.before(
      (ask) => ask.type === 'peer.material' && ask.peer === peer.id && ask.tokenHash !== undefined,
      async () => void (await rotate(peer)),
    );

  for (const [what, file] of [
    ['files', (peer: NewPeer) => `/api/forage/config/${peer.id}`],
    ['bundle', (peer: NewPeer) => `/api/forage/p12/${peer.id}`],
  ] as const) {
    await t.test(`a request for the ${what} that the rotation overtakes after its token was accepted`, async (t) => {
      const old = await post<NewPeer>('/api/forage/peers', tenant, { name: `laptop ${what}` });
      overtake(old);
      t.same((await get(url, file(old), old.download_token)).refusal, refused, 'it gets none of the new keys');
    });
  }

  await t.test('a rotation during a proxy auto-config request refuses it', async (t) => {
    const old = await post<NewPeer>('/api/forage/peers', tenant, { name: 'browser' });
    overtake(old);
    t.same((await get(url, '/api/forage/pac', old.pac_token)).refusal, refused);
  });
});
