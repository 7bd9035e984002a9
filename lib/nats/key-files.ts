/** Files with keys and credentials for NATS, which a program reads at its start. */
import { readFileSync } from 'node:fs';
import { fromSeed } from '@nats-io/nkeys';
import { ConfigurationError, readSettingFile } from '../config.ts';

const restore = 'it may be cut off: restore it from a copy, or make it again (docs/deploy.md, Keys and accounts)';

/**
 * A `.creds` file: a user's JWT and its seed.
 * @throws ConfigurationError that names the file
 */
export function readCredentials(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError([
      `NATS credentials: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    ]);
  }
  const seed = /-----BEGIN USER NKEY SEED-----\s*(\S+)\s*-+END USER NKEY SEED/.exec(text)?.[1];
  const hasJwt = /-----BEGIN NATS USER JWT-----\s*[\w-]+\.[\w-]+\.[\w-]+\s*-+END NATS USER JWT/.test(text);
  if (!hasJwt || seed === undefined || !isSeed(seed, 'SU'))
    throw new ConfigurationError([`NATS credentials: ${path} has no whole JWT and seed of a user; ${restore}`]);
  return text;
}

/**
 * A file with the seed of an account (`SA`) or an operator (`SO`).
 * @throws ConfigurationError that names the file
 */
export function readSeedFile(name: string, path: string, kind: 'SA' | 'SO'): string {
  const seed = readSettingFile(name, path);
  if (!isSeed(seed, kind)) throw new ConfigurationError([`${name}: ${path} has no whole seed ${kind}…; ${restore}`]);
  return seed;
}

/** True if it is a whole seed of that kind: its checksum says so. */
export function isSeed(text: string, kind: 'SA' | 'SO' | 'SU'): boolean {
  try {
    fromSeed(new TextEncoder().encode(text));
    return text.startsWith(kind);
  } catch {
    return false;
  }
}
