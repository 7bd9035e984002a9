/** Certificates and revocation lists, as OpenSSL and Node read them. */
import { X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import { issueCrl } from '../../../../gateway/vpn/pki/crl.ts';
import { newSerial } from '../../../../gateway/vpn/pki/secrets.ts';
import { issueCa, issueClient, issueServer, publicKeyPemOf } from '../../../../gateway/vpn/pki/x509.ts';
import type { RevocationEntry } from '../../../../schemas/api/network.ts';
import { skipWithoutTools } from '../../../support/tools.ts';
import {
  aroundNow,
  crlUrl,
  days,
  fileWriter,
  newAuthority,
  newClient,
  newRsaPem,
} from '../../../gateway/vpn/pki/support.ts';
import { openssl } from './openssl.ts';

const options = { skip: await skipWithoutTools('openssl') };
const authority = newAuthority();
const { caPem, caKeyPem } = authority;
const keyPem = newRsaPem();
const publicKeyPem = publicKeyPemOf(keyPem);

const serverFor = (endpoint: string, given: Partial<Parameters<typeof issueServer>[0]> = {}): string =>
  issueServer({ ...authority, ...aroundNow(), serial: newSerial(), publicKeyPem, endpoint, crlUrl, ...given });

/**
 * OpenSSL's text of a certificate's extensions, a line each: name, then value; key identifiers by
 * their names.
 */
function extensionsOf(text: string, identifiers: ReadonlyMap<string, string>): string[] {
  const lines = (text.split('X509v3 extensions:')[1] ?? '').split('\n').filter((line) => line.trim() !== '');
  const found: string[] = [];
  for (const line of lines) {
    const isName = /^ {12}\S/.test(line);
    const value = line.trim();
    if (isName) found.push(value);
    else found[found.length - 1] += ` ${identifiers.get(value) ?? value}`;
  }
  return found;
}

t.test('every field of the three kinds of certificate', options, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const times = { notBeforeMs: Date.UTC(2026, 0, 2, 3, 4, 5, 678), notAfterMs: Date.UTC(2028, 5, 6, 7, 8, 9, 999) };
  const ca = {
    caKeyPem,
    caPem: issueCa({ network: 'demo', privateKeyPem: caKeyPem, serial: '7f00000000000000000000000000abcd', ...times }),
  };
  const common = { ...ca, ...times, publicKeyPem, crlUrl };
  const pems = {
    ca: ca.caPem,
    server: issueServer({ ...common, serial: '1234', endpoint: 'vpn.example.com' }),
    client: issueClient({ ...common, serial: '5678', localId: 'peer.demo.internal' }),
  };
  const textOf = (pem: string): string =>
    ssl(
      'x509',
      '-in',
      write('one.pem', pem),
      '-noout',
      '-text',
      '-certopt',
      'no_sigdump',
      '-nameopt',
      'utf8,sep_comma_plus',
    ).stdout;
  const identifier = (pem: string): string =>
    /Subject Key Identifier: *\n *([0-9A-F:]+)/.exec(textOf(pem))?.[1] ?? 'none';
  const [ofCa, ofPeer] = [identifier(pems.ca), identifier(pems.client)];
  t.match(ofCa, /^([0-9A-F]{2}:){19}[0-9A-F]{2}$/);
  t.not(ofCa, ofPeer);
  const identifiers = new Map([
    [ofCa, '(of the authority)'],
    [ofPeer, '(of the key)'],
  ]);

  const expected = {
    ca: {
      serial: '7F00000000000000000000000000ABCD',
      subject: 'CN=Longshore demo CA',
      extensions: [
        'X509v3 Basic Constraints: critical CA:TRUE, pathlen:0',
        'X509v3 Key Usage: critical Certificate Sign, CRL Sign',
        'X509v3 Subject Key Identifier: (of the authority)',
      ],
    },
    server: {
      serial: '1234',
      subject: 'CN=vpn.example.com',
      extensions: [
        'X509v3 Basic Constraints: critical CA:FALSE',
        'X509v3 Key Usage: critical Digital Signature, Key Encipherment',
        'X509v3 Extended Key Usage: TLS Web Server Authentication, 1.3.6.1.5.5.8.2.2',
        'X509v3 Subject Alternative Name: DNS:vpn.example.com',
        'X509v3 Subject Key Identifier: (of the key)',
        'X509v3 Authority Key Identifier: (of the authority)',
        `X509v3 CRL Distribution Points: Full Name: URI:${crlUrl}`,
      ],
    },
    client: {
      serial: '5678',
      subject: 'CN=peer.demo.internal',
      extensions: [
        'X509v3 Basic Constraints: critical CA:FALSE',
        'X509v3 Key Usage: critical Digital Signature',
        'X509v3 Extended Key Usage: TLS Web Client Authentication',
        'X509v3 Subject Alternative Name: DNS:peer.demo.internal',
        'X509v3 Subject Key Identifier: (of the key)',
        'X509v3 Authority Key Identifier: (of the authority)',
        `X509v3 CRL Distribution Points: Full Name: URI:${crlUrl}`,
      ],
    },
  };
  for (const kind of ['ca', 'server', 'client'] as const) {
    const text = textOf(pems[kind]);
    const read = new X509Certificate(pems[kind]);
    t.match(text, /Version: 3 \(0x2\)/);
    t.match(text, /Signature Algorithm: sha256WithRSAEncryption/);
    t.equal(read.serialNumber, expected[kind].serial);
    t.equal(read.subject, expected[kind].subject);
    t.equal(read.issuer, 'CN=Longshore demo CA');
    t.equal(read.validFrom, 'Jan  2 03:04:05 2026 GMT');
    t.equal(read.validTo, 'Jun  6 07:08:09 2028 GMT');
    t.same(extensionsOf(text, identifiers), expected[kind].extensions, kind);
    t.ok(read.verify(new X509Certificate(pems.ca).publicKey), 'signed by the authority');
    t.equal(read.ca, kind === 'ca');
    t.equal(pems[kind], read.toString(), 'PEM as Node writes it');
  }
  t.notOk(new X509Certificate(pems.client).verify(new X509Certificate(newAuthority().caPem).publicKey));
});

t.test('chains, and the purpose of each certificate', options, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const ca = write('ca.pem', caPem);
  const server = write('server.pem', serverFor('vpn.example.com'));
  const client = write('client.pem', newClient(authority, keyPem));
  const later = { notBeforeMs: Date.now(), notAfterMs: Date.now() + 3650 * days };
  const renewed = write(
    'ca-2.pem',
    issueCa({ network: 'demo', privateKeyPem: caKeyPem, serial: newSerial(), ...later }),
  );
  const stranger = write('ca-3.pem', newAuthority().caPem);
  const rows: [name: string, ok: boolean, args: string[]][] = [
    ['the authority itself', true, ['-CAfile', ca, ca]],
    ['a client as client', true, ['-CAfile', ca, '-purpose', 'sslclient', client]],
    ['a server as server', true, ['-CAfile', ca, '-purpose', 'sslserver', server]],
    ['a client as server', false, ['-CAfile', ca, '-purpose', 'sslserver', client]],
    ['a server as client', false, ['-CAfile', ca, '-purpose', 'sslclient', server]],
    ['strictly', true, ['-CAfile', ca, '-x509_strict', '-purpose', 'sslclient', client]],
    ['by its name', true, ['-CAfile', ca, '-verify_hostname', 'vpn.example.com', server]],
    ['by another name', false, ['-CAfile', ca, '-verify_hostname', 'vpn.example.org', server]],
    ['under the renewed authority', true, ['-CAfile', renewed, '-purpose', 'sslclient', client]],
    ['under an authority of the same name', false, ['-CAfile', stranger, client]],
    ['under a client', false, ['-CAfile', ca, '-untrusted', client, write('x.pem', belowClient())]],
    [
      'after it has expired',
      false,
      ['-CAfile', renewed, '-attime', String(Math.floor(Date.now() / 1000) + 101 * 86400), client],
    ],
    ['before it begins', false, ['-CAfile', ca, '-attime', String(Math.floor(Date.now() / 1000) - 3700), client]],
  ];
  for (const [name, ok, args] of rows) {
    const ran = ssl('verify', ...args);
    t.equal(ran.ok, ok, `${name}: ${ran.stdout}${ran.stderr}`);
  }
});

/** A certificate that a thief of a client's key could try to sign. */
const belowClient = (): string => newClient({ caPem: newClient(authority, keyPem), caKeyPem: keyPem }, newRsaPem());

t.test('a server’s certificate names its endpoint, of any kind', options, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`;
  const rows: [endpoint: string, subject: string, names: string][] = [
    ['vpn.example.com', 'CN=vpn.example.com', 'DNS:vpn.example.com'],
    ['192.0.2.7', 'CN=192.0.2.7', 'IP Address:192.0.2.7, DNS:192.0.2.7'],
    ['2001:db8::7', 'CN=2001:db8::7', 'IP Address:2001:DB8:0:0:0:0:0:7, DNS:2001:db8::7'],
    ['::1', 'CN=::1', 'IP Address:0:0:0:0:0:0:0:1, DNS:::1'],
    ['0.0.0.1', 'CN=0.0.0.1', 'IP Address:0.0.0.1, DNS:0.0.0.1'],
    [long, 'CN=Longshore VPN server', `DNS:${long}`],
  ];
  for (const [endpoint, subject, names] of rows) {
    const pem = serverFor(endpoint);
    const read = new X509Certificate(pem);
    t.equal(read.subject, subject);
    const text = ssl('x509', '-in', write('server.pem', pem), '-noout', '-ext', 'subjectAltName').stdout;
    t.equal(text.split('\n')[1]?.trim(), names);
    if (names.startsWith('IP')) t.ok(read.checkIP(endpoint));
    else t.equal(read.checkHost(endpoint), endpoint);
    t.equal(read.checkHost('other.example.com'), undefined);
    t.equal(read.checkIP('192.0.2.8'), undefined);
  }
  const { stdout } = ssl('x509', '-noout', '-text', '-in', write('none.pem', withoutCrl()));
  t.notMatch(stdout, /CRL Distribution/);
});

const withoutCrl = (): string =>
  issueServer({ ...authority, ...aroundNow(), serial: newSerial(), publicKeyPem, endpoint: 'vpn.example.com' });

t.test('times have two digits for the year up to 2049, and four from then on', options, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const rows: [notAfterMs: number, form: RegExp][] = [
    [Date.UTC(2049, 11, 31, 23, 59, 59, 999), /UTCTIME +:491231235959Z/],
    [Date.UTC(2050, 0, 1), /GENERALIZEDTIME +:20500101000000Z/],
    [Date.UTC(2126, 1, 28, 1, 2, 3), /GENERALIZEDTIME +:21260228010203Z/],
  ];
  for (const [notAfterMs, form] of rows) {
    const pem = issueCa({
      network: 'demo',
      privateKeyPem: caKeyPem,
      serial: '01',
      notBeforeMs: Date.now(),
      notAfterMs,
    });
    t.match(ssl('asn1parse', '-in', write('ca.pem', pem)).stdout, form);
  }
  t.throws(
    () => issueCa({ network: 'demo', privateKeyPem: caKeyPem, serial: '01', notBeforeMs: 2000, notAfterMs: 2000 }),
    RangeError,
  );
});

t.test('any serial number is written as it is, and never negative', (t) => {
  const known = ['00', '01', '7f', '80', 'ff', '0080', '00ff', '0001', 'f'.repeat(40), `7f${'00'.repeat(15)}`];
  const any = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((bytes) => Buffer.from(bytes).toString('hex'));
  const isKept = (serial: string): boolean => {
    const read = new X509Certificate(newClient(authority, keyPem, serial)).serialNumber;
    return BigInt(`0x${read}`) === BigInt(`0x${serial}`) && !read.startsWith('-');
  };
  t.same(
    known.filter((serial) => !isKept(serial)),
    [],
  );
  fc.assert(fc.property(any, isKept), { numRuns: 50 });
  t.end();
});

const reasons = {
  keyCompromise: 'Key Compromise',
  superseded: 'Superseded',
  cessationOfOperation: 'Cessation Of Operation',
  certificateHold: 'Certificate Hold',
} as const satisfies Record<RevocationEntry['reason'], string>;

const listOf = (entries: readonly RevocationEntry[], given: Partial<Parameters<typeof issueCrl>[0]> = {}): Uint8Array =>
  issueCrl({
    ...authority,
    number: 1_800_000_000_123,
    thisUpdateMs: Date.now() - 60_000,
    nextUpdateMs: Date.now() + 7 * days,
    entries,
    ...given,
  });

t.test('every field of a revocation list', options, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const textOf = (der: Uint8Array): string => {
    const ran = ssl(
      'crl',
      '-inform',
      'DER',
      '-in',
      write('list.crl', der),
      '-noout',
      '-text',
      '-CAfile',
      write('ca.pem', caPem),
    );
    t.match(ran.stderr, /verify OK/);
    return ran.stdout;
  };
  const times = { thisUpdateMs: Date.UTC(2026, 0, 2, 3, 4, 5), nextUpdateMs: Date.UTC(2026, 0, 9, 3, 4, 5) };
  const authorityId = /Subject Key Identifier: *\n *([0-9A-F:]+)/.exec(
    ssl('x509', '-in', write('ca.pem', caPem), '-noout', '-text').stdout,
  )?.[1];

  const empty = textOf(listOf([], times));
  t.match(empty, 'Version 2 (0x1)');
  t.match(empty, 'Signature Algorithm: sha256WithRSAEncryption');
  t.match(empty, 'Issuer: CN = Longshore demo CA');
  t.match(empty, 'Last Update: Jan  2 03:04:05 2026 GMT');
  t.match(empty, 'Next Update: Jan  9 03:04:05 2026 GMT');
  t.match(empty, /X509v3 CRL Number: *\n *1800000000123/);
  t.match(empty, new RegExp(`X509v3 Authority Key Identifier: *\\n *${authorityId}`));
  t.match(empty, 'No Revoked Certificates.');
  t.match(textOf(listOf([], { number: 2n ** 80n })), String(2n ** 80n));

  const entries = (Object.keys(reasons) as RevocationEntry['reason'][]).map((reason, index) => ({
    serial: `${index === 3 ? 'f' : '1'}${index}00`,
    atMs: Date.UTC(2025, index, 5, 6, 7, 8),
    reason,
  }));
  const lines = textOf(listOf(entries)).split('Revoked Certificates:')[1] ?? '';
  const found = [
    ...lines.matchAll(
      /Serial Number: (\w+)\s+Revocation Date: (.*)\s+CRL entry extensions:\s+X509v3 CRL Reason Code: *\n *(.*)\n/g,
    ),
  ];
  t.same(
    found.map((match) => match.slice(1)),
    [
      ['1000', 'Jan  5 06:07:08 2025 GMT', 'Key Compromise'],
      ['1100', 'Feb  5 06:07:08 2025 GMT', 'Superseded'],
      ['1200', 'Mar  5 06:07:08 2025 GMT', 'Cessation Of Operation'],
      ['F300', 'Apr  5 06:07:08 2025 GMT', 'Certificate Hold'],
    ],
  );

  const many = Array.from({ length: 5000 }, (_, index): RevocationEntry => {
    return { serial: newSerial(), atMs: Date.now() - index * 1000, reason: 'superseded' };
  });
  const startMs = performance.now();
  const long = listOf(many);
  t.comment(`5,000 entries: ${long.length} bytes in ${Math.round(performance.now() - startMs)} ms`);
  const serials = [...textOf(long).matchAll(/Serial Number: (\w+)/g)].map(([, serial]) => serial?.toLowerCase());
  t.equal(serials.length, 5000);
  t.ok(serials.every((serial, index) => serial === many[index]?.serial));
});

t.test('a certificate on the list is refused', options, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const ca = write('ca.pem', caPem);
  const serial = newSerial();
  const client = write('client.pem', newClient(authority, keyPem, serial));
  const verify = (der: Uint8Array) => {
    const pem = `${write('list.crl', der)}.pem`;
    t.ok(ssl('crl', '-inform', 'DER', '-in', write('list.crl', der), '-out', pem).ok);
    return ssl('verify', '-CAfile', ca, '-CRLfile', pem, '-crl_check', '-x509_strict', client);
  };
  const other: RevocationEntry = { serial: newSerial(), atMs: Date.now() - 1000, reason: 'superseded' };
  t.ok(verify(listOf([])).ok);
  t.ok(verify(listOf([other])).ok, 'a list of another certificate');
  for (const reason of Object.keys(reasons) as RevocationEntry['reason'][]) {
    t.match(verify(listOf([other, { serial, atMs: Date.now() - 1000, reason }])).stderr, /certificate revoked/, reason);
  }
  t.match(verify(listOf([], { nextUpdateMs: Date.now() - 5000 })).stderr, /CRL has expired/);
  t.notOk(verify(listOf([], newAuthority())).ok, 'a list of another authority');
});
