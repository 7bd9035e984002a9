/** Log files as Docker's `json-file` driver writes and rotates them. */
import { appendFileSync, existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { limits } from '../../../../schemas/limits.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { base, stamp } from '../../support/log-lines.ts';

export interface LogRecord {
  readonly log: string;
  readonly stream: 'stdout' | 'stderr';
  /** Microseconds since 1970. */
  readonly micros: number;
}

/** The engine leaves out zeros at the end of a fraction. */
export const recordOf = ({ log, stream, micros }: LogRecord): string =>
  `${JSON.stringify({ log, stream, time: stamp(micros).replace(/\.?0+Z$/, 'Z') })}\n`;

export interface EngineLog {
  readonly path: string;
  /** Appends a line, a millisecond after the last. */
  say(text: string): void;
  append(bytes: string | Buffer): void;
  rotate(): void;
}

export function engineLog(t: Test): EngineLog {
  const path = join(temporaryFolder(t), 'a-json.log');
  writeFileSync(path, '');
  let micros = base;
  const nameOf = (at: number): string => (at === 0 ? path : `${path}.${at}`);
  return {
    path,
    append: (bytes) => appendFileSync(path, bytes),
    say: (text) => appendFileSync(path, recordOf({ log: `${text}\n`, stream: 'stdout', micros: (micros += 1000) })),
    rotate: () => {
      for (let at = limits.engineLogFiles - 1; at > 0; at--) {
        if (existsSync(nameOf(at - 1))) renameSync(nameOf(at - 1), nameOf(at));
      }
      writeFileSync(path, '');
    },
  };
}
