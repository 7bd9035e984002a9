import { readFileSync } from 'node:fs';
import { textIn, valuesIn } from './values.ts';

/**
 * Reads package.json, which is above the compiled tree (`dist/lib`) as it is above the sources
 * (`lib`).
 */
export const version: string = (() => {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8'));
      const found = textIn(valuesIn(manifest)['version']);
      if (found !== undefined) return found;
    } catch {
      // Not here, so look one level up.
    }
  }
  throw new Error('package.json not found');
})();
