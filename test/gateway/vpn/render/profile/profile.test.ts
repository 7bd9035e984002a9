/** The files that describe an IKEv2 connection: JSON, strongSwan's for Android, Apple's. */
import { createHash, X509Certificate } from 'node:crypto';
import { parse } from 'plist';
import t from 'tap';
import { Unfit } from '../../../../../gateway/vpn/render/fit.ts';
import { mobileconfig } from '../../../../../gateway/vpn/render/apple/mobileconfig.ts';
import { plist } from '../../../../../gateway/vpn/render/apple/plist.ts';
import { profileOf } from '../../../../../gateway/vpn/render/profile/profile.ts';
import { shownName } from '../../../../../gateway/vpn/render/subject.ts';
import { sswan } from '../../../../../gateway/vpn/render/strongswan/sswan.ts';
import {
  baseUrl,
  breaking,
  caPem,
  flat,
  keys,
  label,
  localId,
  nasty,
  peerId,
  peerWith,
  subjectWith,
} from '../../support.ts';

const p12 = Buffer.from('not a bundle, only bytes \u0000\u00ff');
const caDer = new X509Certificate(caPem).raw;
const caName = 'Longshore demo CA';
const server = 'vpn.example.com';
const profileUrl = (format: string): string => `${baseUrl}/api/forage/profile/${peerId}?format=${format}`;
const p12Url = `${baseUrl}/api/forage/p12/${peerId}`;
const dhOf = (proposals: readonly { dh: string | null }[]) => proposals.map(({ dh }) => dh);

t.test('the profile has all that a client has to be told, and no secret', (t) => {
  const { ike, esp, platforms, ...rest } = profileOf(subjectWith({ expiresAtMs: Date.UTC(2026, 11, 31) }));
  t.same(rest, {
    version: 1,
    peer_id: peerId,
    name: 'phone',
    expires_at: '2026-12-31T00:00:00.000Z',
    server: {
      address: server,
      remote_id: server,
      ca: { pem: caPem, sha256: createHash('sha256').update(caDer).digest('hex'), common_name: caName },
    },
    client: {
      local_id: localId,
      auth: 'certificate',
      certificate: { key_type: 'rsa-2048', serial: '03', not_after: '2027-01-01T00:00:00.000Z', p12_url: p12Url },
    },
    dns: ['10.86.0.1', 'fd00:86::1'],
    search_domains: [],
    routes: { mode: 'full', include: ['0.0.0.0/0', '::/0'] },
    mtu: 1380,
  });
  t.same(ike[0], { encryption: 'aes256', integrity: 'sha256', prf: 'prfsha256', dh: 'modp2048' });
  t.same(esp[0], { encryption: 'aes256', integrity: 'sha256', dh: null });
  t.same(dhOf(ike), ['modp2048', 'ecp256', 'ecp384']);
  t.same(Object.keys(platforms), [
    'apple',
    'windows',
    'android_native',
    'android_strongswan',
    'networkmanager',
    'strongswan',
  ]);
  t.end();
});

t.test('each platform has the values of its own form, and where its files are', (t) => {
  const { platforms } = profileOf(subjectWith({ routes: ['192.0.2.0/24', '2001:db8::/32'], ipv6: null }));
  t.same(platforms.apple, {
    type: 'IKEv2',
    description: 'phone',
    server,
    remote_id: server,
    local_id: localId,
    user_authentication: 'None',
    use_certificate: true,
    certificate: localId,
    mobileconfig_url: profileUrl('mobileconfig'),
    p12_url: p12Url,
  });
  t.match(platforms.windows, {
    vpn_type: 'IKEv2',
    sign_in: 'Certificate',
    connection_name: 'Longshore demo',
    split_tunneling: true,
    command: 'powershell -ExecutionPolicy Bypass -File phone.ps1',
    ps1_url: profileUrl('ps1'),
  });
  t.match(platforms.android_native, {
    type: 'IKEv2/IPSec RSA',
    ipsec_identifier: localId,
    ipsec_ca_certificate: caName,
    forwarding_routes: '192.0.2.0/24',
    dns_servers: '10.86.0.1 fd00:86::1',
    dns_search_domains: '',
  });
  t.match(platforms.android_strongswan, { client_identity: localId, sswan_url: profileUrl('sswan') });
  t.match(platforms.networkmanager, { gateway_address: server, client_identity: localId, p12_url: p12Url });
  const { ike_proposal, esp_proposal } = platforms.networkmanager;
  t.equal(platforms.networkmanager.enable_custom_algorithm_proposals, true);
  // charon-nm separates proposals by this character alone and takes a space for a part of a name.
  for (const text of [ike_proposal, esp_proposal]) {
    t.match(text, /^[a-z0-9-]+(?:;[a-z0-9-]+)+$/);
  }
  t.match(platforms.strongswan, {
    remote_ts: '192.0.2.0/24',
    p12_file: '/etc/swanctl/pkcs12/phone.p12',
    swanctl_url: profileUrl('swanctl'),
  });
  t.end();
});

t.test('full is what leaves nothing beside the tunnel', (t) => {
  const modeOf = (routes: string[], ipv6: string | null) => profileOf(subjectWith({ routes, ipv6 })).routes.mode;
  t.equal(modeOf(['0.0.0.0/0', '::/0'], 'fd00::2'), 'full');
  t.equal(modeOf(['0.0.0.0/0'], null), 'full');
  t.equal(modeOf(['0.0.0.0/0'], 'fd00::2'), 'split');
  t.equal(modeOf(['::/0'], 'fd00::2'), 'split');
  t.equal(modeOf(['10.0.0.0/8'], null), 'split');
  t.end();
});

t.test('the strongSwan app’s profile has its keys and no other', (t) => {
  const base = {
    uuid: peerId,
    name: 'phone',
    type: 'ikev2-cert',
    remote: { addr: server, id: server, cert: caDer.toString('base64') },
    local: { id: localId, p12: p12.toString('base64') },
    'ike-proposal': 'aes256gcm16-prfsha384-ecp384',
    'esp-proposal': 'aes256gcm16-ecp384',
  };
  t.same(JSON.parse(sswan(subjectWith(), p12)), { ...base, mtu: 1380 });
  const split = subjectWith({ routes: ['10.0.0.0/8'], dns: ['9.9.9.9'] }, { mtu: null });
  t.same(JSON.parse(sswan(split, p12)), {
    ...base,
    'split-tunneling': { subnets: ['10.0.0.0/8'] },
    'dns-servers': ['9.9.9.9'],
  });
  t.end();
});

interface Payload {
  readonly [key: string]: unknown;
  readonly PayloadType: string;
  readonly PayloadUUID: string;
}
interface Configuration extends Payload {
  readonly PayloadContent: readonly Payload[];
}

const parsed = (text: string) => parse(text) as unknown as Configuration;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const bytesOf = (payload: Payload | undefined) => Buffer.from(payload?.['PayloadContent'] as Uint8Array);

t.test('Apple’s profile is a property list with three payloads', (t) => {
  const { PayloadContent: payloads, ...outer } = parsed(mobileconfig(subjectWith(), p12));
  const [vpn, identity, ca, ...more] = payloads;
  t.same(more, []);
  t.match(outer.PayloadUUID, uuid);
  t.same(outer, {
    PayloadType: 'Configuration',
    PayloadVersion: 1,
    PayloadIdentifier: `internal.demo.${peerId}`,
    PayloadUUID: outer.PayloadUUID,
    PayloadDisplayName: 'phone',
    PayloadDescription: 'VPN network demo',
    PayloadRemovalDisallowed: false,
  });
  const security = { EncryptionAlgorithm: 'AES-256', IntegrityAlgorithm: 'SHA2-256', DiffieHellmanGroup: 14 };
  t.same(vpn, {
    PayloadType: 'com.apple.vpn.managed',
    PayloadVersion: 1,
    PayloadIdentifier: `internal.demo.${peerId}.vpn`,
    PayloadUUID: vpn?.PayloadUUID,
    PayloadDisplayName: 'VPN demo',
    UserDefinedName: 'phone',
    VPNType: 'IKEv2',
    IKEv2: {
      RemoteAddress: server,
      RemoteIdentifier: server,
      LocalIdentifier: localId,
      AuthenticationMethod: 'Certificate',
      CertificateType: 'RSA',
      PayloadCertificateUUID: identity?.PayloadUUID,
      ServerCertificateIssuerCommonName: caName,
      ExtendedAuthEnabled: 0,
      EnablePFS: 1,
      DeadPeerDetectionRate: 'Medium',
      IKESecurityAssociationParameters: { ...security, LifeTimeInMinutes: 1440 },
      ChildSecurityAssociationParameters: { ...security, LifeTimeInMinutes: 60 },
      MTU: 1380,
    },
  });
  t.same(
    { ...identity, PayloadContent: undefined },
    {
      PayloadType: 'com.apple.security.pkcs12',
      PayloadVersion: 1,
      PayloadIdentifier: `internal.demo.${peerId}.identity`,
      PayloadUUID: identity?.PayloadUUID,
      PayloadDisplayName: localId,
      PayloadCertificateFileName: 'identity.p12',
      PayloadContent: undefined,
    },
    'and no password',
  );
  t.ok(bytesOf(identity).equals(p12));
  t.match(ca, { PayloadType: 'com.apple.security.root', PayloadDisplayName: caName });
  t.ok(bytesOf(ca).equals(caDer));
  const ids = [outer, ...payloads].map(({ PayloadUUID }) => PayloadUUID);
  t.ok(ids.every((id) => uuid.test(id)));
  t.equal(new Set(ids).size, 4);
  t.end();
});

t.test('a profile that is installed again replaces the one before, and no other peer’s', (t) => {
  const idsOf = (id: string) => {
    const { PayloadUUID, PayloadContent: payloads } = parsed(
      mobileconfig(subjectWith({ id: id as typeof peerId, name: `of ${id}` }), p12),
    );
    return [PayloadUUID, ...payloads.map((payload) => payload.PayloadUUID)];
  };
  const other = `${peerId.slice(0, -1)}c`;
  t.same(idsOf(peerId), idsOf(peerId));
  t.equal(new Set([...idsOf(peerId), ...idsOf(other)]).size, 8);
  t.end();
});

t.test('Apple’s bounds are kept; a peer’s own DNS is said', (t) => {
  const [vpn] = parsed(mobileconfig(subjectWith({ dns: ['9.9.9.9'] }, { mtu: 1500 }), p12)).PayloadContent;
  t.match(vpn, { IKEv2: { MTU: 1400 }, DNS: { DNSProtocol: 'Cleartext', ServerAddresses: ['9.9.9.9'] } });
  const [plain] = parsed(mobileconfig(subjectWith({ dns: [] }, { mtu: null }), p12)).PayloadContent;
  t.notOk('DNS' in (plain ?? {}));
  const [searching] = parsed(mobileconfig(subjectWith({}, { search_domains: ['corp.example'] }), p12)).PayloadContent;
  t.match(searching, { DNS: { ServerAddresses: ['10.86.0.1', 'fd00:86::1'], SearchDomains: ['corp.example'] } });
  t.notOk(flat(plain).has('/IKEv2/MTU'));
  t.ok(flat(plain).has('/IKEv2/EnablePFS'));
  t.end();
});

const asBytes = (value: unknown): Buffer =>
  value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(JSON.stringify(value) ?? 'undefined');

t.test('a name is a value where names are shown, whatever it is, and nowhere else', (t) => {
  /** Paths that hold a name, and what has to stand there. */
  const forms: readonly (readonly [
    format: string,
    read: (name: string) => Map<string, unknown>,
    places: (path: string) => boolean,
  ])[] = [
    [
      'json',
      (name) => flat(JSON.parse(JSON.stringify(profileOf(subjectWith({ name }))))),
      (path) => /\/(name|description|profile_name)$/.test(path),
    ],
    ['sswan', (name) => flat(JSON.parse(sswan(subjectWith({ name }), p12))), (path) => path === '/name'],
    [
      'mobileconfig',
      (name) => flat(parsed(mobileconfig(subjectWith({ name }), p12))),
      (path) => path === '/PayloadDisplayName' || path === '/PayloadContent/0/UserDefinedName',
    ],
  ];
  for (const [format, read, isName] of forms) {
    const plain = read('phone');
    for (const name of nasty) {
      const found = read(name);
      const shown = shownName(peerWith({ name }));
      t.same([...found.keys()], [...plain.keys()], `${format}: keys of ${label(name)}`);
      const wrong = [...found].filter(([path, value]) =>
        isName(path)
          ? value !== shown
          : !/\/(?:p12_file|windows\/command)$/.test(path) &&
            Buffer.compare(asBytes(value), asBytes(plain.get(path))) !== 0,
      );
      t.same(wrong, [], `${format}: values of ${label(name)}`);
    }
  }
  t.end();
});

t.test('a name that is shown has nothing in it that can’t be seen', (t) => {
  const shown = (name: string) => shownName(peerWith({ name }));
  t.equal(shown('Ann’s „phone“ 😀'), 'Ann’s „phone“ 😀');
  t.equal(shown('a\u202Eb\u0000c\u2028d\uD800e\u0085f'), 'abcdef');
  t.equal(shown('\u0000 \uFEFF'), 'peer-2e3f4a5b');
  t.equal([...shown('😀'.repeat(300))].length, 64);
  t.end();
});

t.test('Apple’s profile is ASCII without a byte that XML forbids', (t) => {
  for (const name of nasty) {
    const text = mobileconfig(subjectWith({ name }), p12);
    t.match(text, /^[\n -~]+$/, label(name));
  }
  t.end();
});

t.test('a property list has any text as its value or key, but for what XML can’t hold', (t) => {
  for (const text of nasty) {
    const document = plist({ [`k${text}`]: [text, true, 7, Buffer.from(text)] });
    t.match(document, /^[\n -~]+$/, label(text));
    const held = text.replaceAll(/\p{Surrogate}|\uFFFE/gu, '\uFFFD').replaceAll('\0', '\uFFFD');
    t.same(Object.keys(parse(document) as object), [`k${held}`]);
    t.equal((parse(document) as Record<string, unknown[]>)[`k${held}`]?.[0], held);
  }
  t.end();
});

t.test('a text that is no address, network, host or id is written into no file', (t) => {
  const files = [
    (...given: Parameters<typeof subjectWith>) => JSON.stringify(profileOf(subjectWith(...given))),
    (...given: Parameters<typeof subjectWith>) => sswan(subjectWith(...given), p12),
    (...given: Parameters<typeof subjectWith>) => mobileconfig(subjectWith(...given), p12),
  ];
  for (const text of breaking) {
    for (const file of files) {
      t.throws(() => file({ id: text as typeof peerId }), Unfit, label(text));
      t.throws(() => file({ localId: text }), Unfit);
      t.throws(() => file({ localId: `${localId}${text}` }), Unfit);
      t.throws(() => file({}, { endpoint: text }), Unfit);
      t.throws(() => file({}, { endpoint: `${server}${text}` }), Unfit);
      t.throws(() => file({ dns: [`9.9.9.9${text}`] }), Unfit);
    }
    t.throws(() => profileOf({ ...subjectWith(), baseUrl: `${baseUrl}${text}` }), Unfit);
    t.throws(() => profileOf(subjectWith({ routes: [`10.0.0.0/8${text}`] })), Unfit);
    t.throws(() => sswan(subjectWith({ routes: [`10.0.0.0/8${text}`] }), p12), Unfit);
  }
  t.notMatch(JSON.stringify(profileOf(subjectWith())), keys.privateKey);
  t.end();
});
