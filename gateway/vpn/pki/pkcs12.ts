/**
 * PKCS#12 bundles (RFC 7292): a peer's certificate and key with the authority's certificate. No
 * library at hand writes what devices import: every part encrypted, a MAC of the matching kind, and
 * a name on each part, without which NSS refuses a bundle. Pure: the caller passes the source of
 * randomness. `compat` (3DES, SHA-1) works with every importer; the password has over 100 bits, so
 * the age of the algorithms does not matter. `modern` is PBES2 (RFC 8018) with AES-256 and
 * HMAC-SHA-256.
 */
import { createCipheriv, createHash, createHmac, createPrivateKey, pbkdf2Sync, X509Certificate } from 'node:crypto';
import {
  bmp,
  encode,
  explicit,
  implicit,
  integer,
  nothing,
  objectId,
  octets,
  sequence,
  setOf,
  type Element,
} from './der.ts';
import type { BundleEncryption } from './jobs.ts';
import { bmpPassword, deriveBytes, type KdfHash } from './pkcs12-kdf.ts';

export interface BundleInput {
  readonly certificatePem: string;
  readonly caPem: string;
  readonly privateKeyPem: string;
  readonly password: string;
  /** The name that the device shows. */
  readonly friendlyName: string;
  readonly encryption: BundleEncryption;
  readonly random: (bytes: number) => Uint8Array;
}

const ids = {
  data: '1.2.840.113549.1.7.1',
  encryptedData: '1.2.840.113549.1.7.6',
  friendlyName: '1.2.840.113549.1.9.20',
  localKeyId: '1.2.840.113549.1.9.21',
  x509Certificate: '1.2.840.113549.1.9.22.1',
  shroudedKeyBag: '1.2.840.113549.1.12.10.1.2',
  certificateBag: '1.2.840.113549.1.12.10.1.3',
  sha1With3des: '1.2.840.113549.1.12.1.3',
  pbes2: '1.2.840.113549.1.5.13',
  pbkdf2: '1.2.840.113549.1.5.12',
  hmacSha256: '1.2.840.113549.2.9',
  aes256Cbc: '2.16.840.1.101.3.4.1.42',
  sha1: '1.3.14.3.2.26',
  sha256: '2.16.840.1.101.3.4.2.1',
} as const;

const iterations = 2048;
/** Some importers accept no other size. */
const saltBytes = 8;

interface Encrypted {
  readonly algorithm: Element;
  readonly bytes: Buffer;
}
type Encrypt = (plain: Uint8Array) => Encrypted;
type Random = BundleInput['random'];

/** RFC 7292 appendix C: pbeWithSHAAnd3-KeyTripleDES-CBC. */
const tripleDes = (password: string, random: Random): Encrypt => {
  const derive = (purpose: 'key' | 'iv', salt: Uint8Array, length: number): Buffer =>
    deriveBytes({ hash: 'sha1', purpose, password: bmpPassword(password), salt, iterations, length });
  return (plain) => {
    const salt = random(saltBytes);
    const cipher = createCipheriv('des-ede3-cbc', derive('key', salt, 24), derive('iv', salt, 8));
    return {
      algorithm: sequence(objectId(ids.sha1With3des), sequence(octets(salt), integer(iterations))),
      bytes: Buffer.concat([cipher.update(plain), cipher.final()]),
    };
  };
};

/** RFC 8018 section 6.2. Its passwords are UTF-8; those of the MAC are UTF-16. */
const aes256 = (password: string, random: Random): Encrypt => {
  return (plain) => {
    const [salt, iv] = [random(16), random(16)];
    const cipher = createCipheriv('aes-256-cbc', pbkdf2Sync(password, salt, iterations, 32, 'sha256'), iv);
    const prf = sequence(objectId(ids.hmacSha256), nothing());
    const derivation = sequence(objectId(ids.pbkdf2), sequence(octets(salt), integer(iterations), prf));
    return {
      algorithm: sequence(objectId(ids.pbes2), sequence(derivation, sequence(objectId(ids.aes256Cbc), octets(iv)))),
      bytes: Buffer.concat([cipher.update(plain), cipher.final()]),
    };
  };
};

const encryptions = {
  compat: { encrypt: tripleDes, macHash: 'sha1' },
  modern: { encrypt: aes256, macHash: 'sha256' },
} as const satisfies Record<BundleEncryption, { encrypt: unknown; macHash: KdfHash }>;

const attribute = (id: string, value: Element): Element => sequence(objectId(id), setOf(value));
const named = (name: string): Element => attribute(ids.friendlyName, bmp(name));
const localKey = (keyId: Uint8Array): Element => attribute(ids.localKeyId, octets(keyId));

const bag = (id: string, value: Element, ...attributes: readonly Element[]): Element =>
  sequence(objectId(id), explicit(0, value), setOf(...attributes));

const certificateBag = (der: Uint8Array, ...attributes: readonly Element[]): Element =>
  bag(ids.certificateBag, sequence(objectId(ids.x509Certificate), explicit(0, octets(der))), ...attributes);

const dataInfo = (bytes: Uint8Array): Element => sequence(objectId(ids.data), explicit(0, octets(bytes)));

const encryptedInfo = ({ algorithm, bytes }: Encrypted): Element =>
  sequence(
    objectId(ids.encryptedData),
    explicit(0, sequence(integer(0), sequence(objectId(ids.data), algorithm, implicit(0, bytes)))),
  );

function macData(content: Uint8Array, hash: KdfHash, password: string, salt: Uint8Array): Element {
  const length = hash === 'sha1' ? 20 : 32;
  const key = deriveBytes({ hash, purpose: 'mac', password: bmpPassword(password), salt, iterations, length });
  const digest = createHmac(hash, key).update(content).digest();
  return sequence(
    sequence(sequence(objectId(ids[hash]), nothing()), octets(digest)),
    octets(salt),
    integer(iterations),
  );
}

/**
 * Removes lone surrogates, and zeros, at which many importers cut a name. Never empty, because NSS
 * imports nothing without a name.
 */
const fitName = (name: string): string => {
  const text = Buffer.from(name, 'utf8').toString().replaceAll('\0', '');
  return text === '' ? 'VPN' : text;
};

export function buildBundle(input: BundleInput): Uint8Array {
  const { password, random } = input;
  if (password === '') throw new RangeError('a bundle needs a password: some importers refuse an empty one');
  const { encrypt: encryption, macHash } = encryptions[input.encryption];
  const encrypt = encryption(password, random);
  const [certificate, ca] = [new X509Certificate(input.certificatePem), new X509Certificate(input.caPem)];
  const name = fitName(input.friendlyName);
  const keyId = createHash('sha1').update(certificate.raw).digest();

  const certificates = sequence(
    certificateBag(certificate.raw, named(name), localKey(keyId)),
    certificateBag(ca.raw, named(fitName(ca.subject.replace(/^CN=/, '')))),
  );
  const key = encrypt(createPrivateKey(input.privateKeyPem).export({ type: 'pkcs8', format: 'der' }));
  const shrouded = sequence(key.algorithm, octets(key.bytes));
  const keys = sequence(bag(ids.shroudedKeyBag, shrouded, named(name), localKey(keyId)));

  const content = encode(sequence(encryptedInfo(encrypt(encode(certificates))), dataInfo(encode(keys))));
  const version = 3;
  return encode(sequence(integer(version), dataInfo(content), macData(content, macHash, password, random(saltBytes))));
}
