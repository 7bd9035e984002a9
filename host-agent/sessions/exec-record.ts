/**
 * The execs whose process may run, on disk, so that an agent ends the processes of one that was
 * killed.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { retry } from '../../lib/time/retry.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { ExecName } from './exec-process.ts';

/** The time between two attempts to end a process that an earlier agent has left. */
const execLeftRetryMs = 2000;

const Name = Type.Object({ id: Type.String({ maxLength: 128 }), dockerId: Type.String({ maxLength: 128 }) });
const decodeRecord = decoder(Type.Object({ v: Type.Literal(1), execs: Type.Array(Name) }));

export interface ExecRecord {
  /** Resolves when it is on disk, or the disk refuses. */
  begin(name: ExecName): Promise<void>;
  ended(name: ExecName): void;
  /**
   * Ends the processes of an earlier agent, as soon as the engine answers.
   * @param kill rejects while the engine does not answer
   */
  endLeft(kill: (name: ExecName) => Promise<unknown>, signal: AbortSignal): Promise<void>;
  flush(): Promise<void>;
}

export async function loadExecRecord(stateDir: string, disk: StateDisk, log: Log): Promise<ExecRecord> {
  const path = join(stateDir, 'execs.json');
  const left = (await readDecoded(path, decodeRecord, log))?.execs ?? [];
  const running = new Map(left.map((name) => [name.id, name]));
  const file = createLazyFile(path, () => JSON.stringify({ v: 1, execs: [...running.values()] }), 0, disk);
  const ended = ({ id }: ExecName): void => {
    if (running.delete(id)) file.touch();
  };
  return {
    begin: ({ id, dockerId }) => {
      running.set(id, { id, dockerId });
      file.touch();
      return file.flush();
    },
    ended,
    endLeft: async (kill, signal) => {
      for (const name of left) {
        const endOnce = async (): Promise<true> => {
          await kill(name);
          log.info('exec_cleaned_up', { exec: name.id, container: name.dockerId });
          ended(name);
          return true;
        };
        const onFailure = (error: unknown): void => log.debug('exec_cleanup_failed', { exec: name.id, error });
        await retry(endOnce, { pauseMs: () => execLeftRetryMs, signal, onFailure });
      }
    },
    flush: () => file.flush(),
  };
}
