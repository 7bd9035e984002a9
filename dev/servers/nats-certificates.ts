/**
 * Makes certificates for the NATS cluster of tests and benchmarks. Two authorities sign them: one
 * for the certificates that clients see, one for the routes between servers. So a certificate of
 * the clients' authority can't be used to join the cluster. The authorities' keys are never written
 * to disk.
 */
import { generateKeyPair, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import forge from 'node-forge';
import { writePrivateFile } from '../../lib/process/private-file.ts';

const { pki } = forge;

const hourMs = 3_600_000;
const lifetimeMs = 30 * 24 * hourMs;

interface Issued {
  readonly certificate: forge.pki.Certificate;
  readonly keyPem: string;
}

const newKeys = promisify(generateKeyPair);

const commonName = (name: string): forge.pki.CertificateField[] => [{ name: 'commonName', value: name }];

/** Issues a certificate signed by `authority`, or self-signed if there is none. */
async function issue(name: string, extensions: object[], authority?: Issued): Promise<Issued> {
  const { publicKey, privateKey } = await newKeys('rsa', { modulusLength: 2048 });
  const keyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const certificate = pki.createCertificate();
  certificate.publicKey = pki.publicKeyFromPem(publicKey.export({ type: 'spki', format: 'pem' }).toString());
  // The leading 01 keeps the number positive and free of a leading zero byte, as DER requires.
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

interface Pair {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface NatsCertificates {
  /** The authority of the certificates that clients see. */
  readonly caFile: string;
  /** The authority of the route certificates; it signs nothing else. */
  readonly routesCaFile: string;
  /** In the order of the `servers` argument. */
  readonly servers: readonly (Pair & { readonly route: Pair })[];
}

async function authority(name: string, path: string): Promise<Issued> {
  const issued = await issue(name, [
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, critical: true },
    { name: 'subjectKeyIdentifier' },
  ]);
  writePrivateFile(path, pki.certificateToPem(issued.certificate));
  return issued;
}

/**
 * Makes new authorities and certificates each time: no client that trusts the old ones outlives the
 * cluster.
 */
export async function makeNatsCertificates(
  folder: string,
  servers: readonly { readonly name: string; readonly address: string }[],
): Promise<NatsCertificates> {
  const [caFile, routesCaFile] = [join(folder, 'ca.pem'), join(folder, 'routes-ca.pem')];
  const [ca, routesCa] = await Promise.all([
    authority('Longshore NATS CA', caFile),
    authority('Longshore NATS routes CA', routesCaFile),
  ]);
  const write = async (file: string, names: readonly string[], issuer: Issued): Promise<Pair> => {
    const { certificate, keyPem } = await issue(
      file,
      [
        { name: 'basicConstraints', cA: false, critical: true },
        { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
        // A server is the client of some routes and the server of others.
        { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
        subjectAltName(names),
      ],
      issuer,
    );
    const [certFile, keyFile] = [join(folder, `${file}.pem`), join(folder, `${file}.key`)];
    writePrivateFile(certFile, pki.certificateToPem(certificate));
    writePrivateFile(keyFile, keyPem);
    return { certFile, keyFile };
  };
  const ofServer = async ({ name, address }: { name: string; address: string }) => {
    const [client, route] = await Promise.all([
      write(name, [name, address], ca),
      write(`${name}-route`, [name, address], routesCa),
    ]);
    return { ...client, route };
  };
  return { caFile, routesCaFile, servers: await Promise.all(servers.map(ofServer)) };
}
