/** Reads a certificate revocation list with OpenSSL. */
import { spawnSync } from 'node:child_process';
import { toolHere } from '../../../dev/fetch/tools.ts';

/** The serials of a list in DER, as lower-case hex. */
export async function revokedSerials(der: Uint8Array): Promise<string[]> {
  const { path, env } = await toolHere('openssl');
  const { status, stdout, stderr } = spawnSync(path, ['crl', '-inform', 'DER', '-noout', '-text'], {
    input: der,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 30_000,
  });
  if (status !== 0) throw new Error(`openssl crl: ${stderr}`);
  return [...stdout.matchAll(/Serial Number: ([0-9A-F]+)/g)].map(([, serial = '']) => serial.toLowerCase());
}
