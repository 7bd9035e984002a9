/**
 * Where the tooling keeps things: caches that may be thrown away, and state that a second start
 * finds again.
 */
import { tmpdir } from 'node:os';
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * The repository: compiled code lies in dist/dev/, the sources in dev/, and the root is where
 * package.json is.
 */
export const repositoryRoot = findRoot(import.meta.dirname);

function findRoot(from: string): string {
  if (existsSync(join(from, 'package.json'))) return from;
  const parent = dirname(from);
  if (parent === from) throw new Error(`no package.json above ${import.meta.dirname}`);
  return findRoot(parent);
}

const chosen = (env: NodeJS.ProcessEnv, name: string, fallback: string): string => {
  const given = env[name];
  return given === undefined || given === '' ? join(repositoryRoot, fallback) : resolve(given);
};

/** Downloads and unpacked tools; safe to delete while nothing runs. */
export const cacheFolder = (env: NodeJS.ProcessEnv): string => chosen(env, 'LONGSHORE_CACHE', '.cache');

/**
 * Keys, JetStream's files, the private engine's images and containers: what `npm start` finds
 * again.
 */
export const stateFolder = (env: NodeJS.ProcessEnv): string => chosen(env, 'LONGSHORE_STATE', '.longshore');

/**
 * A folder for sockets: a unix socket's path holds 107 bytes at most, which a deep checkout or
 * TMPDIR would exceed, and containerd's own paths need some 60 of them.
 */
export const shortTemporaryRoot = (): string => (Buffer.byteLength(tmpdir()) <= 20 ? tmpdir() : '/tmp');

/**
 * A folder of this user alone, also where its name can be guessed and its parent is open to all.
 */
export function ownFolder(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path);
  if (!found.isDirectory() || (process.getuid !== undefined && found.uid !== process.getuid())) {
    throw new Error(`${path} belongs to somebody else`);
  }
  return path;
}
