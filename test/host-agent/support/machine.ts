import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Machine time that passes only when the test says so. */
export function machine(boot = 'boot 1', startMs = 1_000_000) {
  let nowMs = startMs;
  return { boot, nowMs: () => nowMs, pass: (ms: number) => void (nowMs += ms) };
}

/** The last contact that an agent kept in its folder. */
export const lastContactMs = (stateDir: string): number =>
  (JSON.parse(readFileSync(join(stateDir, 'contact.json'), 'utf8')) as { atMs: number }).atMs;
