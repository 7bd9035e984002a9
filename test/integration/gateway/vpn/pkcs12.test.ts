/** Bundles, as OpenSSL and NSS import them. */
import { createHash, createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { buildBundle, type BundleInput } from '../../../../gateway/vpn/pki/pkcs12.ts';
import { bmpPassword, deriveBytes } from '../../../../gateway/vpn/pki/pkcs12-kdf.ts';
import { newPassword } from '../../../../gateway/vpn/pki/secrets.ts';
import { skipWithoutTools } from '../../../support/tools.ts';
import { fileWriter, newAuthority, newClient, newRsaPem } from '../../../gateway/vpn/pki/support.ts';
import { nss, openssl } from './openssl.ts';

const encryptions = ['compat', 'modern'] as const;
const { caPem, ...authority } = newAuthority();
const privateKeyPem = newRsaPem();
const certificatePem = newClient({ caPem, ...authority }, privateKeyPem);
const password = newPassword();

const bundle = (given: Partial<BundleInput> = {}): Uint8Array =>
  buildBundle({
    certificatePem,
    caPem,
    privateKeyPem,
    password,
    friendlyName: 'my phone',
    encryption: 'compat',
    random: randomBytes,
    ...given,
  });

const pemsOf = (text: string, label: string): string[] =>
  text.match(new RegExp(`-----BEGIN ${label}-----[^-]+-----END ${label}-----\n`, 'g')) ?? [];

const withOpenssl = { skip: await skipWithoutTools('openssl') };
const withNss = { skip: await skipWithoutTools('pk12util') };

t.test('key derivation agrees with OpenSSL’s', (t) => {
  // openssl kdf -keylen <length> -kdfopt digest: -kdfopt hexpass: -kdfopt hexsalt: -kdfopt iter:
  // -kdfopt id: PKCS12KDF
  const rows = [
    ['sha1', 'key', 'smeg', '0a58cf64530d823f', 1, '8aaae6297b6cb04642ab5b077851284eb7128f1a2a7fbca3'],
    ['sha1', 'iv', 'smeg', '0a58cf64530d823f', 1, '79993dfe048d3b76'],
    ['sha1', 'mac', 'queeg', '16820b5b', 1000, 'a6494b27a00d6583ecaf1fe61fb94d525360b2e1'],
    [
      'sha256',
      'key',
      'queeg',
      '0102030405060708090a',
      2048,
      'd23d6079a4fa4227ea037981975da5fbe02bcb44db1c387f826763ea8070a26aaf9bcfedeb6cc44ff1d9b89da02dd70643cf6625a11a0229' +
        'cb5f473790f870a557fbfde6520ae1dee9d2eeae80debd2ca0e3b50df4d754b8ca3e90fba6bc44f9c65e4f21',
    ],
    [
      'sha256',
      'iv',
      'a📱',
      'ffffffffffffffff',
      3,
      '2434ca9177afd3a7b6bc4872578087' +
        '12049f2bf2ad282169dfb50a92da2843f1385fb030bde633213d742546dc315d3d4c702fcfb61580165ebf7778cb274fa0',
    ],
  ] as const;
  for (const [hash, purpose, secret, salt, iterations, expected] of rows) {
    const derived = deriveBytes({
      hash,
      purpose,
      password: bmpPassword(secret),
      salt: Buffer.from(salt, 'hex'),
      iterations,
      length: expected.length / 2,
    });
    t.equal(derived.toString('hex'), expected);
  }
  t.end();
});

t.test('OpenSSL reads the whole bundle, without -legacy', withOpenssl, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const forms = {
    compat: [
      'MAC: sha1, Iteration 2048',
      'MAC length: 20, salt length: 8',
      'PKCS7 Encrypted data: pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048',
      'Certificate bag',
      'Certificate bag',
      'PKCS7 Data',
      'Shrouded Keybag: pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048',
    ],
    modern: [
      'MAC: sha256, Iteration 2048',
      'MAC length: 32, salt length: 8',
      'PKCS7 Encrypted data: PBES2, PBKDF2, AES-256-CBC, Iteration 2048, PRF hmacWithSHA256',
      'Certificate bag',
      'Certificate bag',
      'PKCS7 Data',
      'Shrouded Keybag: PBES2, PBKDF2, AES-256-CBC, Iteration 2048, PRF hmacWithSHA256',
    ],
  };
  const keyId = createHash('sha1').update(new X509Certificate(certificatePem).raw).digest('hex').toUpperCase();
  for (const encryption of encryptions) {
    const path = write(`${encryption}.p12`, bundle({ encryption }));
    const read = ssl('pkcs12', '-info', '-in', path, '-passin', `pass:${password}`, '-nodes');
    t.ok(read.ok, read.stderr);
    t.same(read.stderr.trim().split('\n'), forms[encryption]);
    t.same(pemsOf(read.stdout, 'CERTIFICATE'), [certificatePem, caPem]);
    t.same(pemsOf(read.stdout, 'PRIVATE KEY'), [privateKeyPem]);
    t.same(
      [...read.stdout.matchAll(/friendlyName: (.*)/g)].map(([, name]) => name),
      ['my phone', 'Longshore demo CA', 'my phone'],
    );
    t.same(
      [...read.stdout.matchAll(/localKeyID: (.*)/g)].map(([, id]) => id?.replaceAll(' ', '')),
      [keyId, keyId],
      'the key and its certificate have the same id',
    );
    for (const wrong of [`${password}x`, password.slice(0, -1), password.toLowerCase(), '']) {
      const refused = ssl('pkcs12', '-in', path, '-passin', `pass:${wrong}`, '-nodes');
      t.notOk(refused.ok);
      t.notMatch(refused.stdout, /BEGIN/);
    }
  }
});

t.test('a bundle has neither certificates nor key in the clear', (t) => {
  const pieceOf = (bytes: Uint8Array): Uint8Array => bytes.subarray(100, 116);
  const pieces = [
    ...[certificatePem, caPem].map((pem) => pieceOf(new X509Certificate(pem).raw)),
    pieceOf(createPrivateKey(privateKeyPem).export({ type: 'pkcs8', format: 'der' })),
    Buffer.from('peer.demo.internal'),
    Buffer.from(password),
  ];
  for (const encryption of encryptions) {
    const bytes = Buffer.from(bundle({ encryption }));
    t.same(
      pieces.map((piece) => bytes.includes(Buffer.from(piece))),
      pieces.map(() => false),
    );
  }
  t.end();
});

t.test('the same randomness makes the same bundle, and every salt is random', (t) => {
  for (const encryption of encryptions) {
    const drawn: number[] = [];
    const random = (bytes: number): Uint8Array => Buffer.alloc(bytes, drawn.push(bytes));
    const one = bundle({ encryption, random });
    t.same(drawn, encryption === 'compat' ? [8, 8, 8] : [16, 16, 16, 16, 8]);
    drawn.length = 0;
    t.same(bundle({ encryption, random }), one);
    t.notSame(bundle({ encryption }), bundle({ encryption }));
  }
  t.throws(() => bundle({ password: '' }), RangeError);
  t.end();
});

/** A fresh database of NSS, with no password of its own. */
async function newDatabase(write: ReturnType<typeof fileWriter>, name: string): Promise<string> {
  const folder = join(dirname(write('.anchor', '')), name);
  mkdirSync(folder);
  const { certutil } = await nss();
  const made = certutil('-N', '-d', `sql:${folder}`, '--empty-password');
  if (!made.ok) throw new Error(made.stderr);
  return `sql:${folder}`;
}

t.test('NSS lists and imports a bundle', withNss, async (t) => {
  const { pk12util, certutil } = await nss();
  const write = fileWriter(t);
  const names = ['my phone', 'Ünïcödé – 設備', '📱 of Zoë', `"quoted" 'n' $(x) <b>`, 'n'.repeat(64), ' spaced ', 'a:b'];
  for (const encryption of encryptions) {
    for (const [index, friendlyName] of names.entries()) {
      const path = write('one.p12', bundle({ encryption, friendlyName }));
      const listed = pk12util('-l', path, '-W', password);
      t.ok(listed.ok, `${encryption} ${friendlyName}: ${listed.stderr}`);
      t.match(listed.stdout, /Certificate\(has private key\)/);
      t.match(listed.stdout, /Friendly Name: Longshore demo CA/);

      const database = await newDatabase(write, `${encryption}-${index}`);
      const imported = pk12util('-i', path, '-d', database, '-W', password);
      t.ok(imported.ok, imported.stderr + imported.stdout);
      const shown = certutil('-L', '-d', database).stdout;
      t.ok(shown.includes(friendlyName), `${friendlyName} in ${shown}`);
      t.match(shown, /u,u,u/, 'a certificate with its key');
      t.match(shown, 'Longshore demo CA');
      t.equal(certutil('-K', '-d', database).stdout.match(/< *\d+> rsa/g)?.length, 1, 'the key');
    }
    const path = write('wrong.p12', bundle({ encryption }));
    t.notOk(pk12util('-l', path, '-W', `${password}x`).ok, 'NSS refuses a wrong password');
    const database = await newDatabase(write, `${encryption}-wrong`);
    t.notOk(pk12util('-i', path, '-d', database, '-W', `${password}x`).ok);
    t.notMatch(certutil('-K', '-d', database).stdout, /rsa/);
  }
});

/** Names that include lone surrogates: a JavaScript string need not be valid text. */
const anyName = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 64 }),
  fc.string({ unit: 'grapheme', maxLength: 32 }),
  fc.array(fc.nat(0xffff), { maxLength: 64 }).map((units) => String.fromCharCode(...units)),
);
const anyPassword = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 64 });
const anyEncryption = fc.constantFrom(...encryptions);

t.test('OpenSSL accepts a bundle with any name and any password', withOpenssl, async (t) => {
  const ssl = await openssl();
  const write = fileWriter(t);
  const opens = (friendlyName: string, secret: string, encryption: (typeof encryptions)[number]): boolean => {
    const path = write('any.p12', bundle({ friendlyName, password: secret, encryption }));
    const read = ssl(
      'pkcs12',
      '-in',
      path,
      '-passin',
      `file:${write('password', `${secret}\n`)}`,
      '-nodes',
      '-nocerts',
    );
    return read.ok && read.stdout.includes(privateKeyPem);
  };
  const ran = fc.check(fc.property(anyName, anyPassword, anyEncryption, opens), { numRuns: 60 });
  t.notOk(ran.failed, JSON.stringify(ran.counterexample));
  t.end();
});

t.test('NSS accepts a bundle with any name and any password', withNss, async (t) => {
  const { pk12util } = await nss();
  const write = fileWriter(t);
  const opens = (friendlyName: string, secret: string, encryption: (typeof encryptions)[number]): boolean => {
    const path = write('any.p12', bundle({ friendlyName, password: secret, encryption }));
    return pk12util('-l', path, '-w', write('password', `${secret}\n`)).ok;
  };
  const ran = fc.check(fc.property(anyName, anyPassword, anyEncryption, opens), { numRuns: 40 });
  t.notOk(ran.failed, JSON.stringify(ran.counterexample));
  t.end();
});
