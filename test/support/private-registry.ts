/**
 * Private registries: Debian's docker-registry with basic authentication, or with tokens of a small
 * server that speaks the distribution specification.
 */
import { utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { exportPKCS8, generateKeyPair, importPKCS8, SignJWT } from 'jose';
import forge from 'node-forge';
import type { Test } from 'tap';
import { pushTestImage, startRegistry, type TestImage } from '../../dev/servers/registry.ts';
import { temporaryFolder } from './folder.ts';

export type AuthKind = 'basic' | 'token';

/** Passwords that `basic` knows, with their bcrypt hashes. */
const hashes: Readonly<Record<string, string>> = {
  'first-pass-7Qx': '$2b$04$.WtTUef/6fvpF6E4NapcVOFi.iycLr/ZgNclG5U9h6p30wWXMa1VG',
  'second-pass-9Zk': '$2b$04$bIRjfPbD5D/RHUPP9j4EZuXGYGsr2PnxXbtd6S2wNe.4Sx52GSwKO',
};
export const passwords = Object.keys(hashes) as [string, string];
export const username = 'puller';

export interface PrivateRegistry {
  readonly address: string;
  /** From now on this password alone opens it. */
  setPassword(password: string): void;
}

/** A registry with these images. A pull needs the first of `passwords`. */
export async function startPrivateRegistry(
  t: Test,
  kind: AuthKind,
  images: readonly TestImage[],
): Promise<PrivateRegistry> {
  const folder = temporaryFolder(t);
  const open = await startRegistry({ folder });
  for (const image of images) await pushTestImage(open.address, image);
  await open.stop();
  const auth = kind === 'basic' ? basicAuth(folder) : await tokenAuth(t, folder);
  auth.setPassword(passwords[0]);
  const registry = await startRegistry({ folder, auth: auth.configuration });
  t.teardown(() => registry.stop());
  return { address: registry.address, setPassword: auth.setPassword };
}

interface Auth {
  readonly configuration: object;
  setPassword(password: string): void;
}

function basicAuth(folder: string): Auth {
  const path = join(folder, 'htpasswd');
  let changes = 0;
  return {
    configuration: { htpasswd: { realm: 'test', path } },
    setPassword: (password) => {
      writeFileSync(path, `${username}:${hashes[password]}\n`);
      // The registry reads a file again that is newer than before.
      const atS = Date.now() / 1000 + 10 * (changes += 1);
      utimesSync(path, atS, atS);
    },
  };
}

const service = 'registry.test';
const issuer = 'token-server.test';

async function tokenAuth(t: Test, folder: string): Promise<Auth> {
  const { privateKey, certificate } = await signer(folder);
  let password = '';
  const server = createServer((request, response) => {
    const answer = async (): Promise<void> => {
      const url = new URL(request.url ?? '/', 'http://here');
      const given = Buffer.from(`${username}:${password}`).toString('base64');
      if (request.headers.authorization !== `Basic ${given}`) {
        const message = `wrong credentials: ${request.headers.authorization}`;
        response.writeHead(401, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message }] }));
        return;
      }
      const [type, name, actions = ''] = (url.searchParams.get('scope') ?? '').split(':');
      const access = type === 'repository' ? [{ type, name, actions: actions.split(',') }] : [];
      const token = await new SignJWT({ access, jti: String(Math.random()) })
        .setProtectedHeader({ alg: 'RS256', typ: 'JWT', x5c: [certificate] })
        .setIssuer(issuer)
        .setSubject(username)
        .setAudience(service)
        .setIssuedAt()
        .setNotBefore('-1m')
        .setExpirationTime('5m')
        .sign(privateKey);
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ token, expires_in: 300 }));
    };
    void answer().catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  const realm = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
  return {
    configuration: { token: { realm, service, issuer, rootcertbundle: join(folder, 'ca.pem') } },
    setPassword: (next) => {
      password = next;
    },
  };
}

/** A key with a certificate of its own, which the registry trusts. */
async function signer(folder: string) {
  const pair = await generateKeyPair('RS256', { extractable: true });
  const pem = await exportPKCS8(pair.privateKey);
  const key = forge.pki.privateKeyFromPem(pem);
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e);
  certificate.serialNumber = '01';
  const hour = 3_600_000;
  certificate.validity.notBefore = new Date(Date.now() - hour);
  certificate.validity.notAfter = new Date(Date.now() + 24 * hour);
  const name = [{ name: 'commonName', value: issuer }];
  certificate.setSubject(name);
  certificate.setIssuer(name);
  certificate.sign(key, forge.md.sha256.create());
  writeFileSync(join(folder, 'ca.pem'), forge.pki.certificateToPem(certificate));
  const der = forge.asn1.toDer(forge.pki.certificateToAsn1(certificate)).getBytes();
  return { privateKey: await importPKCS8(pem, 'RS256'), certificate: forge.util.encode64(der) };
}
