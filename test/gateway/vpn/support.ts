/**
 * A peer and its network as actors keep them, with certificates that are ones, and texts that have
 * broken other people's files.
 */
import { generateKeyPairSync } from 'node:crypto';
import { issueCa, issueClient, issueServer, publicKeyPemOf } from '../../../gateway/vpn/pki/x509.ts';
import type { Subject } from '../../../gateway/vpn/render/subject.ts';
import type { NetworkName, PeerId, TenantId } from '../../../schemas/ids.ts';
import type { KeptCertificate, NetworkRecord, NetworkSettings, Proxy } from '../../../schemas/api/network.ts';
import type { Sealed } from '../../../schemas/records/sealed.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';

export const peerId = '01920a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5b' as PeerId;
export const localId = `${peerId}.demo.internal`;
export const baseUrl = 'https://vpn.example.com';

export const keys = {
  privateKey: 'yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=',
  publicKey: 'xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=',
  presharedKey: 'FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=',
};

const notBeforeMs = Date.UTC(2026, 0, 1);
const notAfterMs = Date.UTC(2027, 0, 1);
const rsaPem = (): string =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const [caKeyPem, leafKeyPem] = [rsaPem(), rsaPem()];
const publicKeyPem = publicKeyPemOf(leafKeyPem);
const lifetime = { notBeforeMs, notAfterMs };
export const caPem = issueCa({ network: 'demo', privateKeyPem: caKeyPem, serial: '01', ...lifetime });
const authority = { caPem, caKeyPem, publicKeyPem, ...lifetime };
const crlUrl = `${baseUrl}/api/forage/crl/demo`;
const serverPem = issueServer({ ...authority, endpoint: 'vpn.example.com', serial: '02', crlUrl });
const clientPem = issueClient({ ...authority, localId, serial: '03', crlUrl });

const sealed = 'v1.sealed' as Sealed;
const kept = (pem: string, serial: string): KeptCertificate => ({ pem, serial, ...lifetime, privateKey: sealed });

const settings: NetworkSettings = {
  endpoint: 'vpn.example.com',
  wireguard_port: 51820,
  ipv4_pool: '10.86.0.0/24',
  ipv6_pool: 'fd00:86::/64',
  routes: ['0.0.0.0/0', '::/0'],
  dns: ['10.86.0.1', 'fd00:86::1'],
  mtu: 1380,
  proxy: null,
  tenants: null,
};

export const proxy: Proxy = {
  ...{ type: 'PROXY', host: '10.9.9.9', port: 3128 },
  ...{ domains: [], exclude: [], direct_fallback: false },
};

export const networkWith = (change: Partial<NetworkSettings> = {}, name = 'demo'): NetworkRecord => ({
  kind: 'network',
  name: name as NetworkName,
  settings: { ...settings, ...change },
  wireguard: { publicKey: keys.publicKey, privateKey: sealed },
  ca: kept(caPem, '01'),
  server: kept(serverPem, '02'),
  insertedAtMs: notBeforeMs,
  updatedAtMs: notBeforeMs,
});

export const peerWith = (change: Partial<PeerRecord> = {}): PeerRecord => ({
  kind: 'peer',
  id: peerId,
  tenant: 'demo' as TenantId,
  name: 'phone',
  network: 'demo' as NetworkName,
  index: 2,
  ipv4: '10.86.0.2',
  ipv6: 'fd00:86::2',
  enabled: true,
  expiresAtMs: null,
  routes: null,
  dns: null,
  localId,
  p12Password: sealed,
  tokens: [],
  renewed: [],
  revoked: [],
  generation: 1,
  told: 1,
  wireguard: { publicKey: keys.publicKey, privateKey: sealed, presharedKey: sealed },
  certificate: kept(clientPem, '03'),
  insertedAtMs: notBeforeMs,
  updatedAtMs: notBeforeMs,
  ...change,
});

export const subjectWith = (peer: Partial<PeerRecord> = {}, network: Partial<NetworkSettings> = {}): Subject => ({
  peer: peerWith(peer),
  network: networkWith(network),
  baseUrl,
});

/**
 * Each would end a literal, a line, an element or a header somewhere, or show something other than
 * it is.
 */
export const nasty: readonly string[] = [
  '"',
  "'",
  '`whoami`',
  '$(reboot)',
  '${IFS}',
  'a\nPostUp = touch /tmp/x',
  'a\r\nSet-Cookie: x=y',
  '\u0000',
  'a\u0000b',
  '</script><script>alert(1)</script>',
  ']]></string><key>Evil</key><true/>',
  '<!ENTITY x SYSTEM "file:///etc/passwd">&x;',
  'a\u2028b',
  'a\u2029b',
  'a\u0085b',
  '\u202Egnp.exe',
  '\u{1F600}',
  '\uD800',
  'a\uDC00b',
  '"; rm -rf / #',
  '\u2019; Remove-Item C:\\ \u2018',
  '\u201Bx\u201E',
  '%0a%0dx',
  'x'.repeat(300),
  '../../etc/passwd',
  '} include /etc/shadow',
  'secret = "x"',
  'CON',
  'nul.txt',
  '-rf',
  '.',
  '\\',
  '\\"',
  '#',
  '\uFEFF',
  '\uFFFE',
  '   ',
  '\t',
  '",proxy:"evil:1',
  '*/ alert(1) /*',
  'PROXY evil:1; DIRECT',
];

/** Texts that no host, network or id may contain. */
export const breaking: readonly string[] = nasty.filter((text) => /[^A-Za-z0-9.-]/.test(text));

/** A text for the name of an assertion: in TAP, `#`, backslashes and line ends have a meaning. */
export const label = (text: string): string =>
  text
    .slice(0, 40)
    .replaceAll(/[^A-Za-z0-9 ]/g, (character) => `(${character.charCodeAt(0).toString(16)})`)
    .replace(/^ *$/, 'spaces');

/** Every leaf under its path. */
export function flat(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, item]) => [...flat(item, `${path}/${key}`)]));
}
