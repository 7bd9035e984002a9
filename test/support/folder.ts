/** Folders for tests. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

/**
 * Removed once everything started in it has stopped: teardowns run last in, first out.
 */
export function temporaryFolder(t: Test, prefix = 'longshore-'): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
