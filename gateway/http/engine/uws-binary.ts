/**
 * The native binary of uWebSockets.js. npm installs the one package that fits this platform,
 * processor and line of Node. The binary comes from a repackaging, so only the bytes that were
 * examined run: the lock file pins the package, this file pins the binary, and ADR 5 says where
 * they are from.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { limits } from '../../../schemas/limits.ts';
import type { UwsModule } from './uws-module.ts';

export interface PinnedBinary {
  /** Of uWebSockets.js. */
  readonly release: string;
  /** Of the package's `uws.node`, in hexadecimal. */
  readonly sha256: string;
  /** True if the release reads freed memory after a handshake (`sockets/uws-cork.ts`). */
  readonly readsFreedMemory: boolean;
}

/** By the end of the package's name: platform, processor, line of Node. */
export const pinnedBinaries: Readonly<Record<string, PinnedBinary>> = {
  'linux-x64-20': {
    release: '20.51.4',
    sha256: '4d482084b665c225892917ee0e9b9572d89eaa6f3dc200ff5e536293d3456c89',
    readsFreedMemory: true,
  },
  'linux-x64-22': {
    release: '20.51.4',
    sha256: 'f687e7c3666b5cca9d355184bbf07bb0550f5ba0d3ffd453248ccfec552dde6c',
    readsFreedMemory: true,
  },
  'linux-x64-24': {
    release: '20.69.0',
    sha256: '177efdc682425d754474bd30f9586c487fa6694f790f3406a23885d0e61c07a0',
    readsFreedMemory: false,
  },
  'linux-x64-26': {
    release: '20.69.0',
    sha256: '604375741bf77780b34e7e299af9274cb1f56d73732201d19e3d8d8448176795',
    readsFreedMemory: false,
  },
};

export interface UwsLoaded {
  readonly uws: UwsModule;
  readonly binary: PinnedBinary;
}

export type UwsLoad =
  ({ readonly ok: true } & UwsLoaded) | { readonly ok: false; readonly why: string; readonly error?: unknown };

const load = createRequire(import.meta.url);

/** The end of the name of the package for this machine. */
export const ownBinary = (): string => `${process.platform}-${process.arch}-${process.versions.node.split('.')[0]}`;

export const packageOf = (binary: string): string => `@uwsjs/${binary}`;

/**
 * Loads the binary for this machine, or says why not: there is none, npm installed for another
 * Node, the bytes are not the pinned ones, or the system's libraries are too old for it.
 */
export function loadUws(
  pins: Readonly<Record<string, PinnedBinary>> = pinnedBinaries,
  own: string = ownBinary(),
): UwsLoad {
  const refused = (why: string, error?: unknown): UwsLoad => ({
    ok: false,
    why: `${why}; node:http serves. HTTP_ENGINE=node says so without this line`,
    ...(error === undefined ? {} : { error }),
  });
  const binary = pins[own];
  if (binary === undefined) return refused(`uWebSockets.js has no binary for ${own} that we know`);
  const name = packageOf(own);
  let path: string;
  try {
    path = load.resolve(`${name}/uws.node`);
  } catch {
    return refused(`${name} is not installed: run npm ci with Node ${process.versions.node}`);
  }
  try {
    const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
    if (sha256 !== binary.sha256) return refused(`the binary of ${name} is not the pinned one`);
    // The binary reads this once, when it loads; its default is 4096 bytes.
    process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(limits.headerBytes);
    return { ok: true, uws: load(path) as UwsModule, binary };
  } catch (error) {
    return refused(`the binary of ${name} does not load on this system`, error);
  }
}
