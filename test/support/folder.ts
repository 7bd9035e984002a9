/** Temporary folders for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Lifetime } from './runner/lifetime.ts';

/**
 * Creates a folder that the teardown of the test removes. Teardowns run in reverse order, so
 * everything that was started in the folder has stopped by then.
 */
export function temporaryFolder(t: Lifetime, prefix = 'longshore-'): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
