/** Keys and certificates that the tests of gateway/vpn/pki share. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { newSerial } from '../../../../gateway/vpn/pki/secrets.ts';
import { issueCa, issueClient, publicKeyPemOf } from '../../../../gateway/vpn/pki/x509.ts';

export const days = 24 * 3600 * 1000;

export const newRsaPem = (): string =>
  generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

export const aroundNow = () => ({ notBeforeMs: Date.now() - 3600_000, notAfterMs: Date.now() + 100 * days });

export interface TestAuthority {
  readonly caPem: string;
  readonly caKeyPem: string;
}

export function newAuthority(network = 'demo'): TestAuthority {
  const caKeyPem = newRsaPem();
  return { caKeyPem, caPem: issueCa({ network, privateKeyPem: caKeyPem, serial: newSerial(), ...aroundNow() }) };
}

export const crlUrl = 'https://vpn.example.com/api/forage/crl/demo';

export const newClient = (authority: TestAuthority, privateKeyPem: string, serial = newSerial()): string =>
  issueClient({
    ...authority,
    ...aroundNow(),
    serial,
    publicKeyPem: publicKeyPemOf(privateKeyPem),
    localId: 'peer.demo.internal',
    crlUrl,
  });

/** Writes files into a folder of the test, and gives their paths. */
export function fileWriter(t: Test): (name: string, content: string | Uint8Array) => string {
  const folder = mkdtempSync(join(tmpdir(), 'longshore-pki-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return (name, content) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
}
