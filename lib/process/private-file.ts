/** Files that only their owner may read, or their owner and one group. */
import { chmodSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Writes a file atomically, in its folder: a crash leaves the old content or the new one. */
export function writePrivateFile(path: string, content: string | Uint8Array, mode: 0o600 | 0o640 = 0o600): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.new-${process.pid}`;
  writeFileSync(temporary, content, { mode });
  // The umask may have taken away what the group may do.
  if (mode !== 0o600) chmodSync(temporary, mode);
  renameSync(temporary, path);
}
