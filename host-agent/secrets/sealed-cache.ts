/**
 * Sealed values on the state disk, a file for each: containers start without the control plane, and
 * nothing here can be read without the agent's key. A file that does not open is dropped and asked
 * for again, so none needs to be checked at the start.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { MiB } from '../../schemas/limits/units.ts';
import type { SecretUse } from '../../schemas/api/secret.ts';
import { readIfPresent, removeFile, writeAtomically } from '../disk/files.ts';

/** Bytes of sealed values on the state disk; values beyond are asked for at each use. */
const sealedCacheBytes = 512 * MiB;

/** The subject of a box: one version of a secret, the newest login of a registry, or a key. */
export type SealedKey =
  | { readonly tenant: TenantId; readonly secret: SecretUse }
  | { readonly tenant: TenantId; readonly registry: string }
  /** A public key of WireGuard; the box holds the secret that belongs to it. */
  | { readonly publicKey: string };

export interface SealedCache {
  /** `undefined` if there is none that can be read. */
  get(key: SealedKey): Promise<string | undefined>;
  /** Does not reject: a box that is not kept is asked for again. */
  put(key: SealedKey, box: string): Promise<void>;
  drop(key: SealedKey): Promise<void>;
  /**
   * Drops the boxes of all keys but these.
   * @param wanted `undefined` if they are not known yet
   */
  prune(wanted: readonly SealedKey[] | undefined): Promise<void>;
}

/** The name of its file. Registries may be too long for one, and secrets have versions. */
export const sealedFileName = (key: SealedKey): string =>
  createHash('sha256')
    .update(JSON.stringify(wordsOf(key)))
    .digest('hex');

function wordsOf(key: SealedKey): readonly (string | number)[] {
  if ('publicKey' in key) return [key.publicKey];
  return 'secret' in key ? [key.tenant, key.secret.name, key.secret.version] : [key.tenant, key.registry];
}

export async function openSealedCache(
  stateDir: string,
  log: Log,
  mostBytes: number = sealedCacheBytes,
): Promise<SealedCache> {
  const folder = join(stateDir, 'boxes');
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: unknown) =>
    log.warn('sealed_values_unwritable', { error }),
  );
  const pathOf = (name: string): string => join(folder, name);
  const bytesOf = new Map<string, number>();
  let bytes = 0;
  const note = (name: string, size: number | undefined): void => {
    bytes += (size ?? 0) - (bytesOf.get(name) ?? 0);
    if (size === undefined) bytesOf.delete(name);
    else bytesOf.set(name, size);
  };
  for (const name of await readdir(folder).catch(() => [])) {
    const size = await stat(pathOf(name)).then(
      (found) => found.size,
      () => 0,
    );
    note(name, size);
  }

  /** The last write or removal of each file: two at once would share one unfinished file. */
  const turns = new Map<string, Promise<void>>();
  const inTurn = (name: string, work: () => Promise<void>): Promise<void> => {
    const turn = (turns.get(name) ?? Promise.resolve()).then(work).finally(() => {
      if (turns.get(name) === turn) turns.delete(name);
    });
    turns.set(name, turn);
    return turn;
  };

  const remove = async (name: string): Promise<void> => {
    try {
      await removeFile(pathOf(name));
      note(name, undefined);
    } catch (error) {
      log.warn('sealed_value_remove_failed', { error });
    }
  };

  const write = async (name: string, box: string): Promise<void> => {
    if (bytes - (bytesOf.get(name) ?? 0) + box.length > mostBytes) {
      log.warn('sealed_value_write_failed', { error: 'there are too many boxes on the disk' });
      return;
    }
    note(name, box.length);
    try {
      await writeAtomically(pathOf(name), box);
    } catch (error) {
      log.warn('sealed_value_write_failed', { error });
    }
  };

  return {
    get: async (key) => {
      const name = sealedFileName(key);
      await turns.get(name);
      try {
        return (await readIfPresent(pathOf(name)))?.toString('latin1');
      } catch (error) {
        log.warn('sealed_value_unreadable', { error });
        return undefined;
      }
    },
    put: (key, box) => {
      const name = sealedFileName(key);
      return inTurn(name, () => write(name, box));
    },
    drop: (key) => inTurn(sealedFileName(key), () => remove(sealedFileName(key))),
    prune: async (wanted) => {
      if (wanted === undefined) return;
      const kept = new Set(wanted.map(sealedFileName));
      // All take their turns now, so that none removes what is put meanwhile.
      const unwanted = [...bytesOf.keys()].filter((name) => !kept.has(name));
      await Promise.all(unwanted.map((name) => inTurn(name, () => remove(name))));
    },
  };
}
