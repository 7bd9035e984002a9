/** Every rule of the VPN API, on real servers and programs: peers, files, tokens, networks. */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { sleep } from '../../../lib/time/backoff.ts';
import { newToken } from '../../../gateway/auth/random-tokens.ts';
import type { NetworkView } from '../../../schemas/api/network.ts';
import type { PeerView } from '../../../schemas/api/peer.ts';
import { eventually } from '../support/eventually.ts';
import { newKeyLine, startVpnRig, type File, type NewPeer, type VpnRig } from './rig.ts';
import { revokedSerials } from './revocations.ts';
import { promtoolFindings } from '../../support/prometheus/promtool.ts';

const peers = '/api/forage/peers';
const networks = '/api/v2/operator/networks';
const absent = '01890000-0000-7000-8000-000000000000';
const office = {
  name: 'office',
  endpoint: 'vpn.example.com',
  ipv4_pool: '10.86.0.0/22',
  ipv6_pool: 'fd86::/64',
  dns: ['10.86.0.1'],
  proxy: { host: 'proxy.example.com', port: 3128, domains: ['example.com'] },
};

/** Pools and a port that no other network has: networks with one endpoint are on one server. */
const placeOf = (number: number, prefix: number) => ({
  wireguard_port: 51_800 + number,
  ipv4_pool: `10.${number}.0.0/${prefix}`,
  ipv6_pool: `fd${number}::/64`,
});

const confOf = (text: string): Map<string, string> =>
  new Map(
    text.split('\n').flatMap((line) => {
      const at = line.indexOf(' = ');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 3)] as const];
    }),
  );

const serverConf = async (rig: VpnRig, network = 'office'): Promise<string> =>
  (await rig.operator.call('GET', `${networks}/${network}/wireguard.conf`)).text;

t.test('VPN peers and their files', async (t) => {
  const rig = await startVpnRig(t, { VPN_DEFAULT_NETWORK: 'office', PUBLIC_URL: 'https://api.example.com/' });
  const { operator } = rig;
  const acme = await rig.client('acme');
  const other = await rig.client('other');
  await rig.network(office);

  const downloadsOf = ({ id }: { id: string }): string[] => [
    `/api/forage/config/${id}`,
    `/api/forage/config/${id}/qr`,
    ...['json', 'mobileconfig', 'sswan', 'ps1', 'swanctl'].map(
      (format) => `/api/forage/profile/${id}?format=${format}`,
    ),
    ...['compat', 'modern'].map((encryption) => `/api/forage/p12/${id}?encryption=${encryption}`),
  ];
  const withToken = (path: string, token: string): string => `${path}${path.includes('?') ? '&' : '?'}token=${token}`;

  t.test('an operator creates, reads, changes and removes a network', async (t) => {
    const made = await rig.network({ ...office, name: 'lab', ...placeOf(99, 29) });
    t.match(made, {
      name: 'lab',
      endpoint: 'vpn.example.com',
      wireguard_port: 51_899,
      addresses: { total: 5, allocated: 0 },
      tenants: null,
      mtu: null,
    });
    t.match((await operator.call('GET', `${networks}/lab`)).body, { data: made });
    const listed = await operator.call<{ data: NetworkView[] }>('GET', networks);
    t.same(
      listed.body.data.map(({ name }) => name),
      ['lab', 'office'],
    );
    t.equal((await operator.call('POST', networks, { ...office, name: 'lab' })).status, 409);
    const overlapping = await operator.call('POST', networks, { ...office, name: 'again' });
    const sameServer = 'which has the same endpoint';
    t.match(overlapping.body, {
      details: {
        ipv4_pool: [`overlaps that of network office, ${sameServer}`],
        wireguard_port: [`is that of network office, ${sameServer}; choose another`],
      },
    });
    t.equal((await operator.call('POST', networks, { ...office, name: 'eth0' })).status, 422);
    const wrong = await operator.call('POST', networks, {
      name: 'Lab!',
      endpoint: 'no host',
      ipv4_pool: '10.0.0.1/24',
      dns: ['x'],
    });
    t.equal(wrong.status, 422);
    t.same(Object.keys((wrong.body as { details: object }).details).toSorted(), [
      'dns.0',
      'endpoint',
      'ipv4_pool',
      'name',
    ]);

    const { name: _, ...settings } = { ...office, ...placeOf(99, 29), endpoint: '192.0.2.7' };
    const before = (await rig.operator.call('GET', `${networks}/lab/server.pem`)).text;
    const put = await operator.call<{ data: NetworkView }>('PUT', `${networks}/lab`, settings);
    t.equal(put.status, 200, put.text);
    t.equal(put.body.data.endpoint, '192.0.2.7');
    const after = (await rig.operator.call('GET', `${networks}/lab/server.pem`)).text;
    t.equal(new X509Certificate(before).checkIP('192.0.2.7'), undefined);
    t.equal(new X509Certificate(after).checkIP('192.0.2.7'), '192.0.2.7', 'the certificate is for the new endpoint');
    t.equal(
      (await operator.call('PUT', `${networks}/lab`, { ...settings, ipv4_pool: '10.98.0.0/29' })).status,
      409,
      'pools never change',
    );
    t.equal((await operator.call('PUT', `${networks}/none`, settings)).status, 404);

    t.equal((await acme.call('GET', networks)).status, 403);
    t.equal((await acme.call('GET', `${networks}/lab/server-key.pem`)).status, 403);
    t.equal((await operator.call('DELETE', `${networks}/lab`)).status, 204);
    t.equal((await operator.call('GET', `${networks}/lab`)).status, 404);
    t.equal((await operator.call('GET', `${networks}/lab/ca.pem`)).status, 404);
    t.equal((await rig.file('/api/forage/crl/lab')).status, 404);
  });

  t.test('a peer is created, listed, read and renamed; its secrets are shown once', async (t) => {
    const answer = await acme.call<{ data: NewPeer }>('POST', peers, { name: "Anna's phone “blue”" });
    t.equal(answer.status, 201, answer.text);
    const { p12_password, pac_token, download_token, ...view } = answer.body.data;
    t.match(p12_password, /^[A-Za-z0-9]{18}$/);
    t.match(download_token, /^lsd_\d+_[A-Za-z0-9_-]{43}$/);
    t.match(pac_token, /^lsp_\d+_[A-Za-z0-9_-]{43}$/);
    t.match(view, {
      tenant_id: 'acme',
      name: "Anna's phone “blue”",
      network: 'office',
      state: 'active',
      enabled: true,
      expires_at: null,
      routes: null,
      dns: null,
      ipv4: /^10\.86\.0\.\d+$/,
      ipv6: /^fd86::/,
    });
    t.same(view.tokens.map(({ scope }) => scope).toSorted(), ['download', 'pac']);
    const read = await acme.call<{ data: PeerView }>('GET', `${peers}/${view.id}`);
    t.same(read.body.data, view, 'a read shows no secret');
    t.same((await acme.call<{ data: PeerView[] }>('GET', peers)).body.data, [view]);

    const taken = await acme.call('POST', peers, { name: view.name });
    t.same([taken.status, taken.body], [422, { error: 'invalid', details: { name: ['has already been taken'] } }]);
    const renamed = await acme.call<{ data: PeerView }>('PATCH', `${peers}/${view.id}`, { name: 'phone' });
    t.equal(renamed.body.data.name, 'phone');
    t.same((await other.call<{ data: PeerView[] }>('GET', peers)).body.data, []);
    for (const [method, path, body] of [
      ['GET', `${peers}/${view.id}`, undefined],
      ['PATCH', `${peers}/${view.id}`, { enabled: false }],
      ['DELETE', `${peers}/${view.id}`, undefined],
      ['POST', `${peers}/${view.id}/rotate`, undefined],
      ['POST', `${peers}/${view.id}/tokens`, { scope: 'pac' }],
      ['POST', `/api/forage/p12/${view.id}/password`, undefined],
      ['DELETE', `${peers}/${view.id}/tokens/${view.tokens[0]?.id ?? ''}`, undefined],
    ] as const) {
      const theirs = await other.call(method, path, body);
      t.same([theirs.status, theirs.body], [404, { error: 'not_found' }], `${method} ${path} of another tenant`);
      const missing = await acme.call(method, path.replace(view.id, absent), body);
      t.equal(missing.status, 404, `${method} of no peer`);
    }
    t.equal((await acme.call('GET', `${peers}/not-a-uuid`)).status, 404);
    t.equal((await acme.call('DELETE', `${peers}/${view.id}`)).status, 204);
    t.equal((await acme.call('GET', `${peers}/${view.id}`)).status, 404);
  });

  t.test('a wrong body is refused with all its faults; nothing is created', async (t) => {
    const rows: [object, Record<string, string[]>][] = [
      [{}, { name: ["can't be blank"] }],
      [{ name: 'x', network: 'nowhere' }, { network: ['is not a network that you may use'] }],
    ];
    for (const [body, details] of rows) {
      const answer = await acme.call('POST', peers, body);
      t.same([answer.status, answer.body], [422, { error: 'invalid', details }], JSON.stringify(body));
    }
    for (const name of ['a\nb', 'a\u2028b', 'a\u0000b', 'a\u202eb', '', 'x'.repeat(65), '\ud800']) {
      const answer = await acme.call('POST', peers, { name });
      // The test name shows code units, because some of these characters would break a line of TAP.
      t.equal(answer.status, 422, [...name].map((unit) => unit.charCodeAt(0).toString(16)).join(' '));
    }
    const many = await acme.call('POST', peers, {
      name: 7,
      expires_at: '2020-01-01T00:00:00Z',
      routes: ['10.0.0.1/8'],
      dns: ['nine'],
      colour: 'red',
    });
    t.equal(many.status, 422);
    const { details } = many.body as { details: Record<string, string[]> };
    for (const field of ['name', 'expires_at', 'colour']) t.ok(details[field], `the answer names ${field}`);
    t.same((await acme.call<{ data: unknown[] }>('GET', peers)).body.data, []);
    t.equal((await acme.call('POST', peers, 'not json')).status, 400);
  });

  t.test('to a tenant a network that is closed to it does not exist', async (t) => {
    await rig.network({ ...office, name: 'closed', ...placeOf(97, 29), tenants: ['other'] });
    const refused = await acme.call('POST', peers, { name: 'x', network: 'closed' });
    t.same(refused.body, { error: 'invalid', details: { network: ['is not a network that you may use'] } });
    const made = await rig.peer(other, { name: 'x', network: 'closed' });
    t.equal(
      (await operator.call('DELETE', `${networks}/closed`)).status,
      409,
      'a network with a peer cannot be removed',
    );
    await other.call('DELETE', `${peers}/${made.id}`);
    await eventually(
      'the address is released',
      () => operator.call('DELETE', `${networks}/closed`),
      ({ status }) => status === 204,
    );
  });

  t.test('concurrent creates do not exceed the cap vpn_peers', async (t) => {
    const capped = await rig.client('capped');
    await operator.call('PUT', '/api/v2/operator/tenants/capped', { caps: { vpn_peers: 3 } });
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, number) => capped.call('POST', peers, { name: `p${number}` })),
    );
    t.same(answers.map(({ status }) => status).toSorted(), [201, 201, 201, 403, 403, 403]);
    const refused = answers.find(({ status }) => status === 403);
    t.same(refused?.body, { error: 'over_quota', detail: { dimension: 'vpn_peers', requested: 4, max: 3 } });
    const nowhere = await capped.call('POST', peers, { name: 'x', network: 'nowhere' });
    t.equal(nowhere.status, 422, 'a fault of the body comes before the cap');
    const quota = await capped.call<{ data: { usage: { vpn_peers: number } } }>('GET', '/api/v2/compute/quota');
    t.equal(quota.body.data.usage.vpn_peers, 3);
    // The owner of the tenant releases them after it has answered.
    await eventually(
      'the reservations of refused peers are released',
      () => operator.call<{ data: NetworkView }>('GET', `${networks}/office`),
      ({ body }) => body.data.addresses.allocated === 3,
    );
  });

  t.test('downloads have their type, name and cache headers, by session or token', async (t) => {
    const peer = await rig.peer(acme, { name: 'laptop of Çelik <b>' });
    const types = [
      ['text/plain; charset=utf-8', 'conf'],
      ['image/svg+xml', undefined],
      ['application/json', undefined],
      ['application/x-apple-aspen-config', 'mobileconfig'],
      ['application/vnd.strongswan.profile', 'sswan'],
      ['text/plain; charset=utf-8', 'ps1'],
      ['text/plain; charset=utf-8', 'conf'],
      ['application/x-pkcs12', 'p12'],
      ['application/x-pkcs12', 'p12'],
    ] as const;
    for (const [index, path] of downloadsOf(peer).entries()) {
      const [type, extension] = types[index] ?? ['', undefined];
      const session = await rig.file(path, { authorization: `Bearer ${acme.token}` });
      t.equal(session.status, 200, path);
      t.equal(session.headers.get('content-type'), type, path);
      t.equal(session.headers.get('cache-control'), 'no-store', path);
      t.equal(session.headers.get('referrer-policy'), 'no-referrer', path);
      const named = session.headers.get('content-disposition');
      if (extension === undefined) t.equal(named, null);
      else t.match(named, new RegExp(`^attachment; filename="[a-zA-Z0-9_=+.-]{1,15}\\.${extension}"$`), path);
      const cookie = await rig.file(path, { cookie: `_dro_token=${acme.token}` });
      t.same(cookie.bytes, session.bytes, `${path} by cookie`);
      const token = await rig.file(withToken(path, peer.download_token));
      t.same(token.bytes, session.bytes, `${path} by token`);
      const head = await fetch(rig.baseUrl + withToken(path, peer.download_token), { method: 'HEAD' });
      t.same(
        [head.status, head.headers.get('content-length')],
        [200, String(session.bytes.byteLength)],
        `HEAD ${path}`,
      );
    }
    const conf = confOf((await rig.file(withToken(`/api/forage/config/${peer.id}`, peer.download_token))).text);
    t.same(conf.get('Address'), `${peer.ipv4}/32, ${peer.ipv6}/128`);
    t.equal(conf.get('Endpoint'), 'vpn.example.com:51820');
    const profile = await rig.file(withToken(`/api/forage/profile/${peer.id}`, peer.download_token));
    t.match(profile.text, `https://api.example.com/api/forage/p12/${peer.id}`, 'the profile holds public URLs');
    t.equal((await rig.file(`/api/forage/profile/${peer.id}?format=exe`, bearer(acme.token))).status, 422);
    t.equal((await rig.file(`/api/forage/p12/${peer.id}?encryption=none`, bearer(acme.token))).status, 422);
    t.equal((await rig.file(`/api/forage/profile/${absent}?format=exe`, bearer(acme.token))).status, 404);
    await acme.call('DELETE', `${peers}/${peer.id}`);
  });

  t.test('every client without the right gets the same answer', async (t) => {
    const [mine, sibling] = [await rig.peer(acme, { name: 'mine' }), await rig.peer(acme, { name: 'sibling' })];
    const expiresAt = new Date(Date.now() + 10_000);
    const short = await acme.call<{ data: { token: string } }>('POST', `${peers}/${mine.id}/tokens`, {
      scope: 'download',
      expires_at: expiresAt.toISOString(),
    });
    const revoked = await acme.call<{ data: { id: string; token: string } }>('POST', `${peers}/${mine.id}/tokens`, {
      scope: 'download',
    });
    t.same([short.status, revoked.status], [201, 201]);
    const path = `/api/forage/config/${mine.id}`;
    t.equal((await rig.file(withToken(path, short.body.data.token))).status, 200);
    t.equal((await rig.file(withToken(path, revoked.body.data.token))).status, 200);
    t.equal((await acme.call('DELETE', `${peers}/${mine.id}/tokens/${revoked.body.data.id}`)).status, 204);
    await sleep(Math.max(0, expiresAt.getTime() - Date.now() + 100));

    const alike = ({ status, text, headers }: File) => [
      status,
      text,
      [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'),
    ];
    const wrong = mine.download_token.replace(/.{8}$/, 'AAAAAAAA');
    const expected = alike(await rig.file(path));
    t.same(expected.slice(0, 2), [401, '{"error":"unauthenticated"}']);
    for (const [why, token] of [
      ['wrong', wrong],
      ['expired', short.body.data.token],
      ['revoked', revoked.body.data.token],
      ['of another scope', mine.pac_token],
      ['no token at all', 'x'],
      ['of a partition that does not exist', mine.download_token.replace(/^lsd_\d+/, 'lsd_999')],
    ] as const) {
      t.same(alike(await rig.file(withToken(path, token))), expected, why);
      t.same(
        alike(await rig.file(`/api/forage/pac?token=${token === mine.pac_token ? wrong : token}`)),
        expected,
        `PAC: ${why}`,
      );
    }
    t.same(alike(await rig.file(`/api/forage/pac`, bearer(acme.token))), expected, 'a session is no PAC token');
    t.same(
      alike(await rig.file(withToken(path, wrong), bearer(acme.token))),
      expected,
      'a token in the URL decides alone',
    );
    for (const of of [path, ...downloadsOf(mine)]) {
      t.equal((await rig.file(of, bearer(other.token))).status, 404, 'another tenant');
      t.equal((await rig.file(withToken(of, sibling.download_token))).status, 404, 'a token of another peer');
    }
    t.same(alike(await rig.file('/api/forage/nowhere')), expected, 'an unknown path needs credentials, too');
    for (const { id } of [mine, sibling]) await acme.call('DELETE', `${peers}/${id}`);
    t.equal(
      (await rig.file(withToken(path, mine.download_token))).status,
      401,
      'the tokens of a removed peer are invalid',
    );
  });

  t.test('proxy auto-config', async (t) => {
    const peer = await rig.peer(acme, { name: 'browser' });
    const answer = await rig.file(`/api/forage/pac?token=${peer.pac_token}`);
    t.equal(answer.status, 200);
    t.equal(answer.headers.get('content-type'), 'application/x-ns-proxy-autoconfig');
    t.equal(answer.headers.get('cache-control'), 'private, max-age=300');
    t.match(answer.text, 'PROXY proxy.example.com:3128');
    const etag = answer.headers.get('etag') ?? '';
    const again = await rig.file(`/api/forage/pac?token=${peer.pac_token}`, { 'if-none-match': `W/"x", ${etag}` });
    t.same([again.status, again.text, again.headers.get('etag')], [304, '', etag]);
    t.equal((await rig.file(`/api/forage/pac?token=${peer.download_token}`)).status, 401);
    await acme.call('DELETE', `${peers}/${peer.id}`);
  });

  t.test('the server’s files change when a peer is disabled, enabled, rotated or removed', async (t) => {
    const peer = await rig.peer(acme, { name: 'roaming' });
    const path = `/api/forage/config/${peer.id}`;
    const keyOf = async (): Promise<string> =>
      (await acme.call<{ data: PeerView }>('GET', `${peers}/${peer.id}`)).body.data.public_key;
    const onServer = (key: string, is: boolean) =>
      eventually(
        `the key is ${is ? '' : 'not '}on the server`,
        () => serverConf(rig),
        (conf) => conf.includes(key) === is,
      );
    const swanctl = async (): Promise<string> => (await operator.call('GET', `${networks}/office/swanctl.conf`)).text;
    const listed = (serial: string, is: boolean) =>
      eventually(
        `${serial} is ${is ? '' : 'not '}on the revocation list`,
        async () => revokedSerials((await rig.file('/api/forage/crl/office')).bytes),
        (serials) => serials.includes(serial) === is,
      );

    await onServer(peer.public_key, true);
    t.match(await swanctl(), peer.id);
    const etags = await Promise.all(
      ['wireguard.conf', 'swanctl.conf'].map(async (file) => {
        const { headers } = await operator.call('GET', `${networks}/office/${file}`);
        return headers.get('etag') ?? '';
      }),
    );
    const unchanged = await operator.call('GET', `${networks}/office/wireguard.conf`, undefined, {
      'if-none-match': etags[0] ?? '',
    });
    t.same([unchanged.status, unchanged.text], [304, '']);

    const disabled = await acme.call<{ data: PeerView }>('PATCH', `${peers}/${peer.id}`, { enabled: false });
    t.equal(disabled.body.data.state, 'disabled');
    await onServer(peer.public_key, false);
    t.notMatch(await swanctl(), peer.id);
    await listed(peer.certificate.serial, true);
    t.equal((await rig.file(path, bearer(acme.token))).status, 409);
    t.equal((await rig.file(withToken(path, peer.download_token))).status, 401);
    const changed = await operator.call('GET', `${networks}/office/wireguard.conf`, undefined, {
      'if-none-match': etags[0] ?? '',
    });
    t.equal(changed.status, 200);

    await acme.call('PATCH', `${peers}/${peer.id}`, { enabled: true });
    await onServer(peer.public_key, true);
    await listed(peer.certificate.serial, false);

    const rotated = await acme.call<{ data: PeerView }>('POST', `${peers}/${peer.id}/rotate`);
    t.equal(rotated.status, 200, rotated.text);
    t.not(rotated.body.data.public_key, peer.public_key);
    t.not(rotated.body.data.certificate.serial, peer.certificate.serial);
    t.same([rotated.body.data.ipv4, rotated.body.data.ipv6], [peer.ipv4, peer.ipv6]);
    await onServer(await keyOf(), true);
    t.notMatch(await serverConf(rig), peer.public_key);
    await listed(peer.certificate.serial, true);
    await listed(rotated.body.data.certificate.serial, false);

    t.equal((await acme.call('DELETE', `${peers}/${peer.id}`)).status, 204);
    await onServer(rotated.body.data.public_key, false);
    await listed(rotated.body.data.certificate.serial, true);
  });

  t.test('an expired peer cannot connect, and its certificate expires with it', async (t) => {
    const expiresAt = new Date(Date.now() + 15_000);
    const peer = await rig.peer(acme, { name: 'guest', expires_at: expiresAt.toISOString() });
    t.equal(peer.expires_at, expiresAt.toISOString());
    t.ok(Date.parse(peer.certificate.not_after) <= expiresAt.getTime());
    await eventually(
      'the server has the peer',
      () => serverConf(rig),
      (conf) => conf.includes(peer.public_key),
    );
    await sleep(Math.max(0, expiresAt.getTime() - Date.now() + 50));
    t.notMatch(await serverConf(rig), peer.public_key);
    t.equal((await rig.file(withToken(`/api/forage/config/${peer.id}`, peer.download_token))).status, 401);
    t.equal((await rig.file(`/api/forage/config/${peer.id}`, bearer(acme.token))).status, 409);
    t.equal((await acme.call('POST', `${peers}/${peer.id}/rotate`)).status, 409, 'an expired peer gets no certificate');
    const later = await acme.call<{ data: PeerView }>('PATCH', `${peers}/${peer.id}`, { expires_at: null });
    t.equal(later.body.data.state, 'active');
    t.equal((await rig.file(`/api/forage/p12/${peer.id}`, bearer(acme.token))).status, 200);
    const renewed = await acme.call<{ data: PeerView }>('GET', `${peers}/${peer.id}`);
    t.ok(
      Date.parse(renewed.body.data.certificate.not_after) > Date.now() + 800 * 86_400_000,
      'downloading the bundle renewed the certificate',
    );
    await acme.call('DELETE', `${peers}/${peer.id}`);
  });

  t.test('a new password makes a new bundle', async (t) => {
    const peer = await rig.peer(acme, { name: 'bundle' });
    const path = `/api/forage/p12/${peer.id}`;
    const first = await rig.file(path, bearer(acme.token));
    t.same((await rig.file(path, bearer(acme.token))).bytes, first.bytes, 'the second download comes from the cache');
    const set = await acme.call<{ data: { p12_password: string } }>('POST', `${path}/password`);
    t.equal(set.status, 201);
    t.not(set.body.data.p12_password, peer.p12_password);
    t.not((await rig.file(path, bearer(acme.token))).bytes.toString('hex'), first.bytes.toString('hex'));
    await acme.call('DELETE', `${peers}/${peer.id}`);
  });

  t.test('a create is refused when every address of the pool is allocated', async (t) => {
    await rig.network({ ...office, name: 'tiny', ...placeOf(96, 29) });
    const made: NewPeer[] = [];
    for (let number = 0; number < 5; number++) made.push(await rig.peer(acme, { name: `t${number}`, network: 'tiny' }));
    t.same(
      made.map(({ ipv4 }) => ipv4).toSorted(),
      [2, 3, 4, 5, 6].map((last) => `10.96.0.${last}`),
    );
    const none = await acme.call('POST', peers, { name: 't6', network: 'tiny' });
    t.same(
      [none.status, none.body],
      [
        409,
        {
          error: 'conflict',
          reason: 'too_many',
          message: 'the network has no free address; remove peers, or ask the operator for a larger network',
        },
      ],
    );
    await acme.call('DELETE', `${peers}/${made[2]?.id ?? ''}`);
    const again = await eventually(
      'the address that was released is allocated again',
      () => acme.call<{ data: NewPeer }>('POST', peers, { name: 't6', network: 'tiny' }),
      ({ status }) => status === 201,
    );
    t.equal(again.body.data.ipv4, made[2]?.ipv4);
    for (const { id } of [...made, again.body.data]) await acme.call('DELETE', `${peers}/${id}`);
  });

  t.test('metrics pass promtool and name no tenant or peer', async (t) => {
    const peer = await rig.peer(acme, { name: 'measured' });
    await rig.file(withToken(`/api/forage/config/${peer.id}`, peer.download_token));
    await rig.file(withToken(`/api/forage/p12/${peer.id}`, peer.download_token));
    await rig.file(`/api/forage/config/${peer.id}`);
    await rig.file(`/api/forage/config/${peer.id}`, bearer('no.session.this'));
    const { status, text, headers } = await rig.file('/metrics/forage');
    t.equal(status, 200);
    t.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
    t.equal(await promtoolFindings(text), '');
    for (const line of [
      /^forage_artifact_requests_total\{artifact="config",format="conf",result="ok"\} \d+$/m,
      /^forage_artifact_build_duration_seconds_count\{artifact="p12"\} \d+$/m,
      /^forage_peers\{state="active"\} [1-9]\d*$/m,
      /^forage_certificate_expiry_timestamp_seconds\{cert="office\/server"\} \d+$/m,
      ...['none', 'session', 'token'].map(
        (reason) => new RegExp(`^forage_auth_failures_total\\{endpoint="config",reason="${reason}"\\} \\d+$`, 'm'),
      ),
      /^forage_build_info\{version="[^"]+"\} 1$/m,
    ]) {
      t.match(text, line);
    }
    for (const secret of [peer.id, 'acme', peer.download_token, 'measured']) t.notMatch(text, secret);
    await acme.call('DELETE', `${peers}/${peer.id}`);
  });

  t.test('no secret is in a log line', (t) => {
    const logs = rig.logs();
    t.match(logs, 'artifact.config', 'requests are logged');
    t.notMatch(logs, /ls[dp]_\d+_/, 'no token');
    t.notMatch(logs, /token=/, 'no query');
    t.notMatch(logs, /PRIVATE KEY|PresharedKey/);
    t.end();
  });

  t.test('killing gateway and actors allocates no address twice', async (t) => {
    await operator.call('PUT', '/api/v2/operator/tenants/chaos', { caps: { vpn_peers: null } });
    await rig.network({ ...office, name: 'chaos', ...placeOf(95, 24) });
    const chaos = await rig.client('chaos');
    const answered: string[] = [];
    const make = async (number: number): Promise<void> => {
      const made = await chaos
        .call<{ data: NewPeer }>('POST', peers, { name: `c${number}`, network: 'chaos' })
        .catch(() => undefined);
      if (made?.status === 201) answered.push(made.body.data.id);
    };
    const rounds = async (): Promise<void> => {
      for (let round = 0; round < 8; round++) {
        await Promise.all(Array.from({ length: 4 }, (_, number) => make(round * 4 + number)));
        await sleep(50);
      }
    };
    const making = rounds();
    for (const victim of [rig.gateway, rig.actors, rig.gateway]) {
      await sleep(500);
      await victim.kill9();
      await victim.start();
    }
    await making;
    const listed = await eventually(
      'the list',
      () => chaos.call<{ data: PeerView[] }>('GET', peers),
      ({ status }) => status === 200,
    );
    const there = listed.body.data;
    t.ok(there.length > 0);
    for (const id of answered)
      t.ok(
        there.some((peer) => peer.id === id),
        'the acknowledged peer is there',
      );
    t.equal(new Set(there.map(({ ipv4 }) => ipv4)).size, there.length, 'no address is allocated twice');
    const conf = await eventually(
      'the server knows every peer',
      () => serverConf(rig, 'chaos'),
      (text) => there.every(({ public_key }) => text.includes(public_key)),
    );
    t.equal(conf.split('[Peer]').length - 1, there.length, 'the server has no other peer');
  });

  t.test('200 peers created at once get 200 addresses', { timeout: 600_000 }, async (t) => {
    await operator.call('PUT', '/api/v2/operator/tenants/crowd', { caps: { vpn_peers: null } });
    const crowd = await rig.client('crowd');
    const made = await Promise.all(
      Array.from({ length: 200 }, async (_, number) =>
        eventually(
          `peer ${number}`,
          () => crowd.call<{ data: NewPeer }>('POST', peers, { name: `crowd ${number}` }),
          // 503 means that too many keys are queued and nothing was executed: try again.
          ({ status }) => status === 201,
          500_000,
        ),
      ),
    );
    const addresses = made.map(({ body }) => body.data.ipv4);
    t.equal(new Set(addresses).size, 200);
    t.equal(new Set(made.map(({ body }) => body.data.ipv6)).size, 200);
    t.equal(new Set(made.map(({ body }) => body.data.public_key)).size, 200);
  });

  t.test('replacing the key that seals all secrets fails no request', async (t) => {
    const peer = await rig.peer(acme, { name: 'sealed' });
    const config = withToken(`/api/forage/config/${peer.id}`, peer.download_token);
    const before = await rig.file(config);
    const [k1, k2] = [newKeyLine('k1'), newKeyLine('k2')];
    const old = (await import('node:fs')).readFileSync(rig.keysFile, 'utf8');
    t.not(old, k1);
    writeFileSync(rig.keysFile, k2 + old);
    await rig.gateway.stop();
    await rig.gateway.start();
    t.same((await rig.file(config)).bytes, before.bytes, 'the gateway opens what the old key sealed');
    const moved = await eventually(
      'every secret is sealed under the new key',
      () =>
        operator.call<{ data: { key_id: string; resealed: number; remaining: number } }>(
          'POST',
          '/api/v2/operator/vpn-keys/reseal',
        ),
      ({ status, body }) => status === 200 && body.data.remaining === 0,
    );
    t.equal(moved.body.data.key_id, 'k2');
    writeFileSync(rig.keysFile, k2);
    await eventually(
      'a gateway without the old key reseals',
      () => operator.call('POST', '/api/v2/operator/vpn-keys/reseal'),
      ({ status }) => status === 200,
    );
    await rig.gateway.stop();
    await rig.gateway.start();
    t.same((await rig.file(config)).bytes, before.bytes, 'the old key is no longer needed');
    t.match(await serverConf(rig), peer.public_key);
    writeFileSync(rig.keysFile, k1);
    await rig.gateway.stop();
    await rig.gateway.start();
    t.equal((await rig.file(config)).status, 503, 'a gateway without the key answers 503');
  });
});

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

t.test('wrong tokens are rate-limited for each client address', async (t) => {
  const rig = await startVpnRig(t, {
    RATE_LIMIT_AUTH_FAILURES_BURST: '5',
    RATE_LIMIT_AUTH_FAILURES_PER_SECOND: '1',
    FORAGE_METRICS_TOKEN: 'scrape me',
  });
  const statuses: number[] = [];
  // One attempt is refilled each second, so only a slow machine needs more than eight attempts.
  for (let attempt = 0; attempt < 60 && statuses.at(-1) !== 429; attempt++) {
    statuses.push((await rig.file(`/api/forage/config/${absent}?token=${newToken('download', 0).text}`)).status);
  }
  t.same(statuses.slice(0, 5), [401, 401, 401, 401, 401]);
  t.equal(statuses.at(-1), 429, statuses.join(' '));
  t.equal((await rig.file('/metrics/forage')).status, 401);
  t.equal((await rig.file('/metrics/forage', { authorization: 'Bearer scrape me' })).status, 200);
});

t.test('a gateway without VPN keys answers 503 to creates of peers and serves the rest', async (t) => {
  const rig = await startVpnRig(t, { VAULT_KEYS_FILE: '' });
  const acme = await rig.client('acme');
  const answer = await acme.call('POST', peers, { name: 'x' });
  t.equal(answer.status, 503);
  t.equal((await acme.call('GET', peers)).status, 200);
  t.equal((await acme.call('GET', '/api/v2/compute')).status, 200);
});
