/** JSON files that this tooling keeps between starts. */
import { readFileSync } from 'node:fs';

/** @throws Error that names the file and says what to do, where `decode` refuses its content */
export function readJsonFile<T>(path: string, decode: (bytes: Uint8Array) => T, remedy: string): T {
  const bytes = readFileSync(path);
  try {
    return decode(bytes);
  } catch (cause) {
    throw new Error(`${path} is damaged (${(cause as Error).message}); ${remedy}`, { cause });
  }
}
