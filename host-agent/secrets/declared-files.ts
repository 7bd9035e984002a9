/**
 * Files of containers' documents: in the state folder, mounted into the container one by one and
 * read-only (ADR 49). Each version of a container has a folder, made before the engine makes the
 * container, completed before a start, and removed with the version. Nothing else of the files is
 * kept, so that a container that was made starts without the control plane.
 */
import { chmod, chown, lstat, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import type { FileUse } from '../../schemas/api/fields/files-part.ts';
import { isContainerId, type ContainerId } from '../../schemas/ids.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { BindMount } from '../docker/calls/containers.ts';
import type { Values } from './values.ts';

export interface MissingFile {
  readonly kind: 'missing';
  readonly path: string;
  readonly why: string;
}

export interface DeclaredFiles {
  /** Makes those files of this version that are missing. */
  prepare(
    container: DesiredContainer,
    spec: string,
  ): Promise<{ readonly kind: 'prepared'; readonly mounts: readonly BindMount[] } | MissingFile>;
  /** Removes the files of a container's versions other than these. */
  keep(id: ContainerId, specs: readonly string[]): Promise<void>;
  /** Containers that have files here. */
  ids(): ContainerId[];
}

export interface DeclaredFilesParts {
  readonly stateDir: string;
  /** `true` if the engine sees this machine's files. */
  readonly isEngineHere: boolean;
  readonly values: Pick<Values, 'file'>;
  readonly log: Log;
}

const byOthers = 0o004;

export async function openDeclaredFiles({
  stateDir,
  isEngineHere,
  values,
  log,
}: DeclaredFilesParts): Promise<DeclaredFiles> {
  const home = join(stateDir, 'files');
  /** Names of folders, `<id>.<spec>`, by container. */
  const folders = new Map<ContainerId, Set<string>>();
  const note = (id: ContainerId, name: string): void => {
    const names = folders.get(id) ?? new Set();
    folders.set(id, names.add(name));
  };
  for (const name of await readdir(home).catch(() => [])) {
    const id = name.slice(0, name.indexOf('.'));
    if (isContainerId(id)) note(id, name);
  }

  /** Writes the file beside its place first, so that a file in its place is whole. */
  const write = async (path: string, bytes: Buffer, mode: number): Promise<void> => {
    const unfinished = `${path}.part`;
    await rm(unfinished, { force: true });
    await writeFile(unfinished, bytes, { flag: 'wx', mode: 0o600, flush: true });
    await chmod(unfinished, mode);
    await chown(unfinished, 0, 0).catch((error: unknown) => {
      // An agent without CAP_CHOWN: the file belongs to its own user, and works if everyone may
      // read it.
      if (codeOf(error) !== 'EPERM' || (mode & byOthers) === 0) throw error;
    });
    await rename(unfinished, path);
  };

  /** @returns the reason why it cannot be made; `undefined` if it is there */
  const make = async (container: DesiredContainer, path: string, use: FileUse): Promise<string | undefined> => {
    // After a crash of the machine, a file may have lost content.
    if (await isThere(path, use.bytes)) return undefined;
    const content = await values.file(container, use.sha256);
    if (content.kind === 'missing') return content.why;
    try {
      await write(path, content.bytes, use.mode);
      return undefined;
    } catch (error) {
      log.warn('declared_file_write_failed', { container: container.id, error });
      return whyNot(error);
    }
  };

  return {
    prepare: async (container, spec) => {
      const uses = Object.entries(container.files ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
      const [first] = uses;
      if (first === undefined) return { kind: 'prepared', mounts: [] };
      const missing = (path: string, why: string): MissingFile => ({ kind: 'missing', path, why });
      if (!isEngineHere) return missing(first[0], 'files need an engine on the agent’s own machine');
      const name = `${container.id}.${spec}`;
      const sourceOf = (index: number): string => join(home, name, String(index));
      try {
        note(container.id, name);
        await mkdir(join(home, name), { recursive: true, mode: 0o700 });
      } catch (error) {
        return missing(first[0], whyNot(error));
      }
      for (const [index, [path, use]] of uses.entries()) {
        const why = await make(container, sourceOf(index), use);
        if (why !== undefined) return missing(path, why);
      }
      const mounts = uses.map(([Target], index): BindMount => ({
        Type: 'bind',
        Source: sourceOf(index),
        Target,
        ReadOnly: true,
      }));
      return { kind: 'prepared', mounts };
    },
    keep: async (id, specs) => {
      const names = folders.get(id);
      for (const name of names ?? []) {
        if (specs.some((spec) => name === `${id}.${spec}`)) continue;
        try {
          await rm(join(home, name), { recursive: true, force: true });
          names?.delete(name);
        } catch (error) {
          log.warn('declared_files_remove_failed', { container: id, error });
        }
      }
      if (names?.size === 0) folders.delete(id);
    },
    ids: () => [...folders.keys()],
  };
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

const whyNot = (error: unknown): string =>
  codeOf(error) === 'ENOSPC'
    ? 'the disk of STATE_DIR on this host is full: ask the operator to make room'
    : codeOf(error) === 'EPERM'
      ? 'the agent of this host may not give files away (CAP_CHOWN): ask the operator, or let all read it (mode 0444)'
      : `it cannot be written on this host (${codeOf(error)}): ask the operator to look at STATE_DIR`;

const isThere = (path: string, bytes: number): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isFile() && found.size === bytes,
    () => false,
  );
