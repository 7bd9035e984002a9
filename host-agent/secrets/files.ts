/**
 * Secrets as files: on a tmpfs of this host, mounted into the container one by one and read-only,
 * so that no value reaches a disk and none shows in `docker inspect` (ADR 38). Each version of a
 * container has a folder, made before the engine makes the container, made again before a start
 * that misses it (as after a reboot), and removed with the version.
 */
import { chmod, chown, lstat, mkdir, readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../lib/log.ts';
import type { SecretFileUse } from '../../schemas/api/secret.ts';
import { isContainerId, type ContainerId, type TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import type { BindMount } from '../docker/calls/containers.ts';
import type { Owner } from '../docker/ownership.ts';
import type { Missing, Values } from './values.ts';

export type Prepared = { readonly kind: 'prepared'; readonly mounts: readonly BindMount[] } | Missing;

export interface SecretFiles {
  /** Makes those files of this version that are missing. */
  prepare(container: DesiredContainer, spec: string): Promise<Prepared>;
  /** Removes the files of a container's versions other than these. */
  keep(id: ContainerId, specs: readonly string[]): Promise<void>;
  /** Containers that have files here. */
  ids(): ContainerId[];
}

export interface SecretFilesParts {
  /** SECRET_FILES_DIR. The engine must see this machine's files (`isEngineHere`). */
  readonly root: string;
  readonly isEngineHere: boolean;
  readonly owner: Owner;
  readonly values: Pick<Values, 'secret'>;
  readonly log: Log;
}

/** Types of file systems in memory: tmpfs and ramfs (statfs(2)). */
const memoryFileSystems: ReadonlySet<number> = new Set([0x0102_1994, 0x8584_58f6]);
export const isInMemory = ({ type }: { readonly type: number }): boolean => memoryFileSystems.has(type);

/** Names of folders: tenants and ids have no dot. */
interface Folder {
  readonly name: string;
  readonly tenant: string;
  readonly id: ContainerId;
  readonly spec: string;
  /** Bytes of its files together. */
  bytes: number;
}

function folderIn(name: string): Folder | undefined {
  const [tenant = '', id = '', spec = '', ...rest] = name.split('.');
  return isContainerId(id) && rest.length === 0 ? { name, tenant, id, spec, bytes: 0 } : undefined;
}

export async function openSecretFiles(parts: SecretFilesParts): Promise<SecretFiles> {
  const { owner, values, log } = parts;
  // Agents of two hosts may share a machine.
  const home = join(parts.root, `${owner.cluster}.${owner.host}`);
  const folders = new Map<string, Folder>();
  for (const name of await readdir(home).catch(() => [])) {
    const folder = folderIn(name);
    if (folder === undefined) continue;
    folder.bytes = await bytesIn(join(home, name));
    folders.set(name, folder);
  }

  /** The reason why no file may be written here; `undefined` if files may. */
  const refusal = async (): Promise<string | undefined> => {
    if (!parts.isEngineHere) return 'secrets as files need an engine on the agent’s own machine';
    try {
      await mkdir(home, { recursive: true, mode: 0o700 });
      // In a folder that all may write to, another user could have made it.
      if ((await lstat(home)).uid !== process.geteuid?.())
        return 'SECRET_FILES_DIR of this host belongs to another user';
      if (isInMemory(await statfs(home))) return undefined;
    } catch (error) {
      return `SECRET_FILES_DIR of this host cannot be used (${codeOf(error)}): ask the operator to look at it`;
    }
    return 'SECRET_FILES_DIR of this host is no tmpfs, so files would reach a disk: ask the operator to mount one there';
  };

  const bytesOf = (tenant?: TenantId): number =>
    [...folders.values()]
      .filter((folder) => tenant === undefined || folder.tenant === tenant)
      .reduce((sum, { bytes }) => sum + bytes, 0);

  /** Writes the file beside its place first, so that a file in its place is whole. */
  const write = async (path: string, bytes: Buffer, { mode, uid, gid }: SecretFileUse): Promise<void> => {
    const unfinished = `${path}.part`;
    await rm(unfinished, { force: true });
    try {
      await writeFile(unfinished, bytes, { flag: 'wx', mode: 0o600 });
      await chmod(unfinished, mode);
      if (uid !== process.getuid?.() || gid !== process.getgid?.()) await chown(unfinished, uid, gid);
      await rename(unfinished, path);
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => undefined);
      throw error;
    }
  };

  const make = async (container: DesiredContainer, folder: Folder, path: string, use: SecretFileUse) => {
    const missing = (why: string): Missing => ({ kind: 'missing', secret: use.name, why });
    if (await isThere(path)) return undefined;
    const value = await values.secret(container, use);
    if (value.kind === 'missing') return value;
    const { length } = value.bytes;
    if (bytesOf() + length > limits.secretFilesBytes || bytesOf(container.tenant) + length > limits.secretFilesOfTenant)
      return missing('the files of secrets on this host have no room for it');
    folder.bytes += length;
    try {
      await write(path, value.bytes, use);
      return undefined;
    } catch (error) {
      folder.bytes -= length;
      log.warn('secret_file_write_failed', { container: container.id, error });
      return missing(whyNot(error));
    }
  };

  const remove = async ({ name }: Folder): Promise<void> => {
    try {
      await rm(join(home, name), { recursive: true, force: true });
      folders.delete(name);
    } catch (error) {
      log.warn('secret_files_remove_failed', { error });
    }
  };

  return {
    prepare: async (container, spec) => {
      const uses = Object.entries(container.secrets?.files ?? {}).sort(([left], [right]) => (left < right ? -1 : 1));
      const [first] = uses;
      if (first === undefined) return { kind: 'prepared', mounts: [] };
      const why = await refusal();
      if (why !== undefined) return { kind: 'missing', secret: first[1].name, why };
      const name = `${container.tenant}.${container.id}.${spec}`;
      const folder = folders.get(name) ?? { name, tenant: container.tenant, id: container.id, spec, bytes: 0 };
      folders.set(name, folder);
      try {
        const made = await mkdir(join(home, name), { recursive: true, mode: 0o700 });
        if (made !== undefined) folder.bytes = 0;
      } catch (error) {
        return { kind: 'missing', secret: first[1].name, why: whyNot(error) };
      }
      const sourceOf = (index: number): string => join(home, name, String(index));
      const making = uses.map(([, use], index) => make(container, folder, sourceOf(index), use));
      const missing = (await Promise.all(making)).find((each) => each !== undefined);
      if (missing !== undefined) return missing;
      const mounts = uses.map(([Target], index): BindMount => ({
        Type: 'bind',
        Source: sourceOf(index),
        Target,
        ReadOnly: true,
      }));
      return { kind: 'prepared', mounts };
    },
    keep: async (id, specs) => {
      const others = [...folders.values()].filter((folder) => folder.id === id && !specs.includes(folder.spec));
      for (const folder of others) await remove(folder);
    },
    ids: () => [...new Set(Array.from(folders.values(), ({ id }) => id))],
  };
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);

function whyNot(error: unknown): string {
  switch (codeOf(error)) {
    case 'EPERM':
      return 'the agent of this host may not give files away (CAP_CHOWN): ask the operator, or use its own uid and gid';
    case 'ENOSPC':
      return 'the tmpfs for secrets on this host is full: ask the operator to enlarge it';
    default:
      return `its file cannot be written on this host (${codeOf(error)}): ask the operator to look at SECRET_FILES_DIR`;
  }
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isFile(),
    () => false,
  );

async function bytesIn(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    bytes += await stat(join(folder, name)).then(
      ({ size }) => size,
      () => 0,
    );
  }
  return bytes;
}
