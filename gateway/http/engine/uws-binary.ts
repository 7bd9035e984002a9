/**
 * The native binary of uWebSockets.js and the two modules that load it, checked before they run:
 * they come from a repackaging on npm, and only the files that were examined may run, byte for
 * byte. The lockfile pins the package, this file pins its files, and ADR 5 says where they are
 * from.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type * as Uws from 'uWebSockets.js';
import { limits } from '../../../schemas/limits.ts';

export type UwsModule = typeof Uws;

/** SHA-256 by `<platform>_<arch>_<ABI>`: ABI 115 is Node 20, 127 is Node 22. */
export const pinnedBinaries: Readonly<Record<string, string>> = {
  linux_x64_115: '6f8d96d761a64beddb060f1f7f0e617dd293ed127ec1d57507aa561a0083171e',
  linux_x64_127: '8cabc918bbf9a07323e54f89a33882491080b2eb35df0607f473ccdb1f3c31af',
  linux_arm64_115: 'c0e29fc143b46b584f3debec7910014ec228198fc1f17aaeacd1de7991bd3769',
  linux_arm64_127: 'd4c4f8b2c28c5f6544b49e36d91b0beee238a5b90a07904a947f77061c8b814d',
  linux_arm_115: 'b02d5bc5ab08f040b6b9b818c3eb92806611f77a4dc2439a8f14cac827d498be',
  linux_arm_127: '0e1d4024b629a1fe17ec76cde8fe7e320101eb8bdcf7b2c4086933932e3cea23',
  darwin_arm64_115: '5d523bccbe80d3d8fa59422ff81801b8179212b9a8a5da28bff6926a95a65701',
  darwin_arm64_127: 'abbeea53d48e21c01808203e9f9835728f2cea720d2e5b154837ee3045b513be',
  darwin_x64_115: '1f2a5c73d9dc3066d39b675b73f2c50eddbc4f270d292a6126ddfe3757c54cf9',
  darwin_x64_127: 'afd992dc1ca1e33cdc7ce0c72a60baf236e590a257fcecbbbce7bc1a35451387',
};

/** By their path in the package. */
export const pinnedModules: Readonly<Record<string, string>> = {
  'dist/index.mjs': 'e4fa567af73f2bafe341e73ffa000c1468d2b4751d7d7f8fedf98c8fd76bee48',
  'dist/uws.mjs': 'a1389702699f87aaab8a272f47c3219a5f926e91a300c4e398383c17a7e6d603',
};

export type UwsLoad =
  | { readonly ok: true; readonly uws: UwsModule }
  | { readonly ok: false; readonly why: string; readonly error?: unknown };

const sha256Of = (path: URL): string =>
  createHash('sha256')
    .update(readFileSync(fileURLToPath(path)))
    .digest('hex');

/** Where the package is installed. */
export const uwsPackage = (): URL => new URL('../', import.meta.resolve('uWebSockets.js'));

/**
 * Loads the module, or says why not: there is no binary for this machine, or the files are not the
 * pinned ones.
 */
export async function loadUws(
  pins: Readonly<Record<string, string>> = pinnedBinaries,
  modules: Readonly<Record<string, string>> = pinnedModules,
): Promise<UwsLoad> {
  const machine = `${process.platform}_${process.arch}_${process.versions.modules}`;
  const expected = pins[machine];
  if (expected === undefined) {
    const where = `Node ${process.versions.node} on ${process.platform} ${process.arch}`;
    return {
      ok: false,
      why: `uWebSockets.js has no binary for ${where}, so node:http serves. Run Node 20 or 22 for more requests a second, or set HTTP_ENGINE=node`,
    };
  }
  try {
    const root = uwsPackage();
    if (sha256Of(new URL(`dist/bin/uws_${machine}.node`, root)) !== expected) {
      return { ok: false, why: `the binary for ${machine} is not the pinned one` };
    }
    const changed = Object.entries(modules).find(([path, sum]) => sha256Of(new URL(path, root)) !== sum);
    if (changed !== undefined) return { ok: false, why: `${changed[0]} is not the pinned one` };
    // The binary reads this once, when it loads; its default is 4096 bytes.
    process.env['UWS_HTTP_MAX_HEADERS_SIZE'] = String(limits.headerBytes);
    return { ok: true, uws: await import('uWebSockets.js') };
  } catch (error) {
    return { ok: false, why: `the binary for ${machine} does not load`, error };
  }
}
