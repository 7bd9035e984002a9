/** Disks of tests: of a state folder that no test looks at, and small ones that fill up. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { createStateDisk, type StateDisk } from '../../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { quietLog } from '../../actors/support.ts';

export const quietDisk = (): StateDisk => createStateDisk(createFaults(quietLog), { minMs: 1, maxMs: 1 }, quietLog);

const canMount = process.platform === 'linux' && process.getuid?.() === 0;

/** Reason to skip tests with small disks on this machine, or false. */
export const skipWithoutMounts = canMount ? false : 'mounting a tmpfs needs Linux and root';

/** Puts a disk of its own under the folder. */
export function mountSmall(t: Test, folder: string, mebibytes: number): void {
  mkdirSync(folder, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder]);
  t.teardown(() => execFileSync('umount', ['-l', folder]));
}

/** Fills the disk of the folder. @returns the file to delete, to make room again */
export function fill(folder: string): string {
  const path = join(folder, 'ballast');
  for (const bytes of [64 * 1024, 4096, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  return path;
}
