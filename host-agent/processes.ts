/** Processes of this machine, by their name. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * The process ids of all processes of this name. Empty if there is no /proc, or it hides the
 * processes of others.
 */
export async function processesOf(name: string, proc = '/proc'): Promise<string[]> {
  const pids = (await readdir(proc).catch(() => [])).filter((entry) => /^\d+$/.test(entry));
  const found: string[] = [];
  for (const pid of pids) {
    // It has ended meanwhile, or this process may not see it.
    const comm = await readFile(join(proc, pid, 'comm'), 'utf8').catch(() => '');
    if (comm.trim() === name) found.push(pid);
  }
  return found;
}
