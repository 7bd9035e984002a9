/**
 * The file with the servers that a person works with, and a token for each. It has mode 0600, and
 * is replaced as a whole, so a killed command leaves the old one or the new one.
 */
import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { KiB } from '../schemas/limits/units.ts';
import { writePrivateFile } from '../lib/process/private-file.ts';
import { isValues, valuesIn } from '../lib/values.ts';
import { Refused } from './terminal/errors.ts';

export const profileBytesMax = 256 * KiB;
export const profilesMax = 64;

export interface Profile {
  readonly server: string;
  readonly token: string;
}

export interface ProfileFile {
  /** The profile that commands use, or null. */
  readonly current: string | null;
  readonly profiles: Readonly<Record<string, Profile>>;
}

/** Thrown if there is no profile of this name. */
export class NoProfile extends Refused {
  constructor(name: string) {
    super(`there is no profile "${name}": "longshore profile ls" shows which there are`);
  }
}

/** The base of the server's URLs, without a slash at its end. @throws Refused */
export function serverIn(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new Refused(`"${text}" is not the URL of a server: it looks like https://longshore.example.com`);
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

function isProfile(value: unknown): value is Profile {
  const { server, token } = valuesIn(value);
  return typeof server === 'string' && typeof token === 'string';
}

function isFile(value: unknown): value is ProfileFile {
  const { current, profiles } = valuesIn(value);
  return (
    (current === null || typeof current === 'string') && isValues(profiles) && Object.values(profiles).every(isProfile)
  );
}

const none: ProfileFile = { current: null, profiles: {} };
const othersMayRead = 0o077;

/** @param what the text that is no token, in words of a person */
export const notToken = (what: string): Refused =>
  new Refused(`${what} is not a token: a token is a JWT, three parts with dots between them`);

type Variable = 'LONGSHORE_SERVER' | 'LONGSHORE_TOKEN' | 'LONGSHORE_CONFIG' | 'LONGSHORE_COMPLETION_TIMEOUT';

/** An empty variable counts as unset: a build server passes a missing secret that way. */
export const variableOf = (env: NodeJS.ProcessEnv, name: Variable): string | undefined => env[name] || undefined;

/** `LONGSHORE_CONFIG`, or a file in the folder that XDG names. */
export const profilePath = (env: NodeJS.ProcessEnv): string =>
  variableOf(env, 'LONGSHORE_CONFIG') ??
  join(env['XDG_CONFIG_HOME'] ?? join(env['HOME'] ?? homedir(), '.config'), 'longshore', 'config.json');

/** @throws Refused if the file is there and cannot be used. */
export function readProfiles(path: string): ProfileFile {
  let bytes: Buffer;
  try {
    const { mode, size } = statSync(path);
    if ((mode & othersMayRead) !== 0) {
      throw new Refused(`${path} has tokens in it, and others may read it: run "chmod 600 ${path}"`);
    }
    if (size > profileBytesMax) throw new Refused(`${path} is larger than ${profileBytesMax} bytes`);
    bytes = readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return none;
    throw error;
  }
  const file = parsed(bytes.toString());
  if (!isFile(file)) throw new Refused(`${path} is not a profile file: remove it, and sign in again`);
  return file;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export function writeProfiles(path: string, file: ProfileFile): void {
  if (Object.keys(file.profiles).length > profilesMax) {
    throw new Refused(`there are ${profilesMax} profiles; remove one with "longshore profile rm NAME"`);
  }
  writePrivateFile(path, `${JSON.stringify(file, null, 2)}\n`);
}

/** Tokens of the shell and of all profiles, which no file may send elsewhere. */
export function tokensOf(env: NodeJS.ProcessEnv): readonly string[] {
  const ofShell = variableOf(env, 'LONGSHORE_TOKEN')?.trim();
  const ofProfiles = Object.values(readProfiles(profilePath(env)).profiles).map(({ token }) => token.trim());
  // A shorter text is no token, and would be found everywhere.
  return [...(ofShell === undefined ? [] : [ofShell]), ...ofProfiles].filter((token) => /^\S{16,}$/.test(token));
}
