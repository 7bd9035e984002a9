/**
 * Certificates of a NATS cluster for tests and benchmarks: an authority that is forgotten when it has signed, and a
 * certificate for each server, which shows it to clients and to the other servers.
 */
import { generateKeyPair, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import forge from 'node-forge';
import { writePrivateFile } from './nats-identity.ts';

const { pki } = forge;

const hourMs = 3_600_000;
const lifetimeMs = 30 * 24 * hourMs;

interface Issued {
  readonly certificate: forge.pki.Certificate;
  readonly keyPem: string;
}

const newKeys = promisify(generateKeyPair);

const commonName = (name: string): forge.pki.CertificateField[] => [{ name: 'commonName', value: name }];

/** Signed by `authority`, or by itself. */
async function issue(name: string, extensions: object[], authority?: Issued): Promise<Issued> {
  const { publicKey, privateKey } = await newKeys('rsa', { modulusLength: 2048 });
  const keyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const certificate = pki.createCertificate();
  certificate.publicKey = pki.publicKeyFromPem(publicKey.export({ type: 'spki', format: 'pem' }).toString());
  // A first byte of zero, or with its first bit set, would be no number as DER writes it.
  certificate.serialNumber = `01${randomBytes(15).toString('hex')}`;
  certificate.validity.notBefore = new Date(Date.now() - hourMs);
  certificate.validity.notAfter = new Date(Date.now() + lifetimeMs);
  certificate.setSubject(commonName(name));
  certificate.setIssuer(authority === undefined ? commonName(name) : authority.certificate.subject.attributes);
  certificate.setExtensions(extensions);
  certificate.sign(pki.privateKeyFromPem(authority?.keyPem ?? keyPem), forge.md.sha256.create());
  return { certificate, keyPem };
}

const subjectAltName = (names: readonly string[]): object => ({
  name: 'subjectAltName',
  altNames: names.map((name) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })),
});

export interface NatsCertificates {
  readonly caFile: string;
  /** In the order of the servers. */
  readonly servers: readonly { readonly certFile: string; readonly keyFile: string }[];
}

/** Made anew at each start: nobody who trusts the old ones is left by then. */
export async function makeNatsCertificates(
  folder: string,
  servers: readonly { readonly name: string; readonly address: string }[],
): Promise<NatsCertificates> {
  const ca = await issue('Longshore NATS CA', [
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, critical: true },
    { name: 'subjectKeyIdentifier' },
  ]);
  const caFile = join(folder, 'ca.pem');
  writePrivateFile(caFile, pki.certificateToPem(ca.certificate));
  const write = async ({ name, address }: { name: string; address: string }) => {
    const { certificate, keyPem } = await issue(
      name,
      [
        { name: 'basicConstraints', cA: false, critical: true },
        { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
        // Of a route, each server is one end or the other.
        { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
        subjectAltName([name, address]),
      ],
      ca,
    );
    const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
    writePrivateFile(certFile, pki.certificateToPem(certificate));
    writePrivateFile(keyFile, keyPem);
    return { certFile, keyFile };
  };
  return { caFile, servers: await Promise.all(servers.map(write)) };
}
