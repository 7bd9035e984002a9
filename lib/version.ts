import { readFileSync } from 'node:fs';

/** Checked by hand, because TypeBox takes longer to load than all of `longshore --version`. */
function versionIn(path: URL): string | undefined {
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as unknown;
  return typeof manifest === 'object' &&
    manifest !== null &&
    'version' in manifest &&
    typeof manifest.version === 'string'
    ? manifest.version
    : undefined;
}

/**
 * Reads package.json, which is above the compiled tree (`dist/lib`) as it is above the sources
 * (`lib`).
 */
export const version: string = (() => {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      const found = versionIn(new URL(up, import.meta.url));
      if (found !== undefined) return found;
    } catch {
      // Not here, so look one level up.
    }
  }
  throw new Error('package.json not found');
})();
