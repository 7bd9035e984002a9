import { readFileSync } from 'node:fs';

/**
 * From package.json, which stands above the compiled tree (`dist/lib`) as above the sources
 * (`lib`).
 */
export const version: string = (() => {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      const manifest = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as { version: string };
      return manifest.version;
    } catch {
      // Not here: one level up.
    }
  }
  throw new Error('package.json not found');
})();
