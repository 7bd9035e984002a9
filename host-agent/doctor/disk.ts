/** The disks under the state folder and under the engine's data. */
import { access, constants, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { MiB } from '../../schemas/limits/units.ts';
import { fillOf, type DiskFill } from '../disk/plan.ts';
import { fail, ok, warn, type Finding } from './finding.ts';

/** Free bytes of the state folder's disk, below which the agent soon cannot write. */
const doctorStateBytes = 64 * MiB;

export interface DiskFacts {
  readonly path: string;
  /** `undefined` if the file system makes inodes as it needs them. */
  readonly freeInodes: number | undefined;
  /** As the agent counts it: bytes or inodes, whichever is fuller. */
  readonly fill: DiskFill;
  /** The reason why this process may not write there; `undefined` if it may. */
  readonly notWritable: string | undefined;
}

/**
 * The disk of the folder, or of the nearest existing folder above it; `undefined` if it cannot be
 * seen.
 */
export async function seeDisk(path: string): Promise<DiskFacts | undefined> {
  try {
    const stat = await statfs(path);
    const notWritable = await access(path, constants.W_OK).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    );
    const freeInodes = stat.files > 0 ? stat.ffree : undefined;
    return { path, freeInodes, fill: fillOf(stat), notWritable };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const above = dirname(path);
    return code === 'ENOENT' && above !== path ? seeDisk(above) : undefined;
  }
}

const GiB = 1024 ** 3;
const words = ({ freeInodes, fill, path }: DiskFacts): string =>
  `${path}: ${(fill.freeBytes / GiB).toFixed(1)} GiB${freeInodes === undefined ? '' : ` and ${freeInodes} inodes`} free, ` +
  `${Math.floor(fill.usedPercent)} % full`;

/** Pure. */
export function judgeStateDisk(disk: DiskFacts | undefined, stateDir: string): Finding {
  const check = 'state disk';
  if (disk === undefined) {
    return fail(check, `this user cannot see ${stateDir}`, 'run as the agent’s user, or correct STATE_DIR');
  }
  if (disk.notWritable !== undefined) {
    const what = disk.path === stateDir ? stateDir : `${disk.path}, where ${stateDir} is to be made`;
    return fail(
      check,
      `this user cannot write to ${what} (${disk.notWritable})`,
      'make it writable for the agent’s user; the agent otherwise works from memory alone',
    );
  }
  if (disk.fill.freeBytes < doctorStateBytes || disk.freeInodes === 0) {
    return fail(check, words(disk), 'free space: the agent cannot write its state');
  }
  return ok(check, words(disk));
}

/** Pure. @param rootDir `undefined` if the engine has not said where its data is */
export function judgeEngineDisk(
  disk: DiskFacts | undefined,
  rootDir: string | undefined,
  { imagesHigh, pressure }: { readonly imagesHigh: number; readonly pressure: number },
): Finding {
  const check = 'engine disk';
  if (rootDir === undefined || disk === undefined || disk.path !== rootDir) {
    const where = rootDir === undefined ? 'the engine’s data' : rootDir;
    return warn(
      check,
      `${where} cannot be seen from here, so the agent does not notice a full disk`,
      'run the agent on the engine’s machine, with read access to that path',
    );
  }
  if (disk.fill.usedPercent >= pressure) {
    const remedy = 'free space: docker system df shows what takes it (docs/runbook.md, Host faults)';
    return fail(check, `${words(disk)}: above DISK_PRESSURE_PERCENT, new containers go to other hosts`, remedy);
  }
  if (disk.fill.usedPercent >= imagesHigh) {
    return warn(
      check,
      `${words(disk)}: the agent removes unused images`,
      'free space, or give the engine a larger disk',
    );
  }
  return ok(check, words(disk));
}
