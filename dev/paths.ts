/** Folders of the tooling: a cache that may be deleted, and state that a later start uses again. */
import { tmpdir } from 'node:os';
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/**
 * The root of the repository: the nearest folder above this file with a package.json. This file
 * runs from dist/dev/, or from dev/.
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

/** Holds downloads and unpacked tools; may be deleted while nothing runs. */
export const cacheFolder = (env: NodeJS.ProcessEnv): string => chosen(env, 'LONGSHORE_CACHE', '.cache');

/**
 * Holds what `npm start` keeps: keys, JetStream's files, the private engine's images and
 * containers.
 */
export const stateFolder = (env: NodeJS.ProcessEnv): string => chosen(env, 'LONGSHORE_STATE', '.longshore');

/**
 * A folder with a short path, for sockets. The path of a unix socket has at most 107 bytes, of
 * which containerd needs about 60; a deep checkout or TMPDIR would exceed that.
 */
export const shortTemporaryRoot = (): string => (Buffer.byteLength(tmpdir()) <= 20 ? tmpdir() : '/tmp');

/**
 * Creates a folder that only this user can access, or checks that an existing one belongs to this
 * user: in a shared parent such as /tmp, another user may have created it first.
 */
export function ownFolder(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path);
  if (!found.isDirectory() || (process.getuid !== undefined && found.uid !== process.getuid())) {
    throw new Error(`${path} belongs to another user or is not a folder; remove it`);
  }
  return path;
}
