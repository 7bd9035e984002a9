import { readFileSync } from 'node:fs';
import Type from 'typebox';
import { decoder } from './decode.ts';

const decodeManifest = decoder(Type.Object({ version: Type.String() }));

/**
 * Reads package.json, which is above the compiled tree (`dist/lib`) as it is above the sources
 * (`lib`).
 */
export const version: string = (() => {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      return decodeManifest(readFileSync(new URL(up, import.meta.url))).version;
    } catch {
      // Not here, so look one level up.
    }
  }
  throw new Error('package.json not found');
})();
