/** The folder for secrets as files: whether it is in memory, and whether the agent may use it. */
import { access, constants, readFile, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isInMemory } from '../secrets/files.ts';
import { ok, warn, type Finding } from './finding.ts';

export interface SecretFolderFacts {
  /** The folder, or the nearest one above it that exists. */
  readonly path: string;
  readonly isInMemory: boolean;
  readonly isWritable: boolean;
  /** `true` if this process may give files to other users. */
  readonly mayChown: boolean;
  /** `true` if the machine may write memory to a disk. */
  readonly hasSwap: boolean;
}

/** `undefined` if it cannot be seen. */
export async function seeSecretFolder(folder: string): Promise<SecretFolderFacts | undefined> {
  try {
    const isWritable = await access(folder, constants.W_OK).then(
      () => true,
      () => false,
    );
    const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
    return {
      path: folder,
      isInMemory: isInMemory(await statfs(folder)),
      isWritable,
      mayChown: mayChown(await read('/proc/self/status')),
      hasSwap: hasSwap(await read('/proc/swaps')),
    };
  } catch (error) {
    const above = dirname(folder);
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return isMissing && above !== folder ? seeSecretFolder(above) : undefined;
  }
}

/** CAP_CHOWN is the first capability. @param status of `/proc/self/status` */
export const mayChown = (status: string): boolean => /^CapEff:\s*[0-9a-f]*[13579bdf]$/m.test(status);

/** @param swaps the content of `/proc/swaps`: a heading, and a line for each area */
export const hasSwap = (swaps: string): boolean => swaps.trim().split('\n').length > 1;

/** Pure. @param isEngineHere `true` if the engine sees the files of this machine */
export function judgeSecretFolder(
  facts: SecretFolderFacts | undefined,
  folder: string,
  isEngineHere: boolean,
): Finding {
  const check = 'secret files';
  const otherwise = 'containers with secrets as files wait with secret_missing';
  if (!isEngineHere) return ok(check, 'off: the engine is on another machine');
  if (facts === undefined) return warn(check, `this user cannot see ${folder}`, 'correct SECRET_FILES_DIR');
  if (!facts.isInMemory) {
    return warn(check, `${facts.path} is no tmpfs: ${otherwise}`, 'set SECRET_FILES_DIR to a folder on a tmpfs');
  }
  if (!facts.isWritable) {
    return warn(
      check,
      `this user cannot write to ${facts.path}: ${otherwise}`,
      'run as the agent’s user, or have its unit make the folder (RuntimeDirectory)',
    );
  }
  if (!facts.mayChown) {
    return warn(
      check,
      'this user may not give files to other users, as containers ask for unless they name its own uid',
      'give the agent CAP_CHOWN, as its unit does',
    );
  }
  if (facts.hasSwap) {
    return warn(
      check,
      `${facts.path} is in memory, and this machine may swap it to a disk`,
      'turn swap off, or encrypt it with a key that is not kept',
    );
  }
  return ok(check, `${facts.path} is in memory, and this user may use it`);
}
