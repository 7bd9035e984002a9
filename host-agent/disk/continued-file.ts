/**
 * A state file, and a log beside it that continues it (change-log.ts). Each write of the file gives
 * it a higher number, and a line of the log bears the number of the file that it continues. So
 * lines that the file contains already do not count.
 */
import { join } from 'node:path';
import Type from 'typebox';
import type { Log } from '../../lib/log.ts';
import { createChangeLog, readChangeLog, type SyncedLog } from './change-log.ts';
import { readDecoded, writeAtomically } from './files.ts';
import type { StateDisk } from './state-disk.ts';

const version = 1;
const Count = Type.Integer({ minimum: 0 });

/** Members of the file. */
export const fileMarks = { v: Type.Literal(version), log: Count };
/** Members of each line of the log. */
export const lineMarks = { v: Type.Literal(version), log: Count };

export interface ContinuedFileParts<F, L> {
  readonly stateDir: string;
  /** The name without its extension: the files are `<name>.json` and `<name>.log`. */
  readonly name: string;
  readonly decodeFile: (bytes: Uint8Array) => F;
  readonly decodeLine: (bytes: Uint8Array) => L;
  readonly intervalMs: number;
  readonly disk: StateDisk;
  readonly log: Log;
}

/** The content to write, without the marks. */
export interface Contents {
  readonly whole: () => object;
  /** The changes since the last call; `undefined` if there are none. */
  readonly changes: () => object | undefined;
}

export interface ContinuedFile<F, L> {
  /** `undefined` if there is none that can be read. */
  readonly file: F | undefined;
  /** The lines that continue the file, in their order. */
  readonly lines: readonly L[];
  /** Begins to follow the contents; called once. */
  follow(contents: Contents): SyncedLog;
}

export async function readContinuedFile<F extends { readonly log: number }, L extends { readonly log: number }>(
  parts: ContinuedFileParts<F, L>,
): Promise<ContinuedFile<F, L>> {
  const { stateDir, name, intervalMs, disk, log } = parts;
  const path = join(stateDir, `${name}.json`);
  const logPath = join(stateDir, `${name}.log`);
  const file = await readDecoded(path, parts.decodeFile, log);
  const read = await readChangeLog(logPath, parts.decodeLine, log);
  const begun = file?.log;
  return {
    file,
    lines: begun === undefined ? [] : read.lines.filter((line) => line.log === begun),
    follow: ({ whole, changes }) => {
      let number = begun ?? 0;
      return createChangeLog({
        path: logPath,
        changes: () => {
          const change = changes();
          return change === undefined ? undefined : { v: version, log: number, ...change };
        },
        writeWhole: async () => {
          const next = number + 1;
          await writeAtomically(path, JSON.stringify({ v: version, log: next, ...whole() }));
          number = next;
        },
        bytes: read.bytes,
        isWholeDue: read.end !== 'whole' || begun === undefined,
        intervalMs,
        disk,
      });
    },
  };
}
