/** CPU and memory of the parts of a stack, from /proc (proc_pid_stat(5)). */
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ, which is 100 on every Linux architecture that Node supports. */
export const ticksPerSecond = 100;
const pageBytes = 4096;

export interface Use {
  readonly cpuSeconds: number;
  readonly memBytes: number;
}

/** The fields from the third on; the second one, in brackets, may contain spaces. */
export function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Of the process, and of its children that have ended. */
export function cpuSecondsOf(pid: number): number {
  const fields = statOf(pid);
  return [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0) / ticksPerSecond;
}

export function useOf(pid: number): Use {
  const fields = statOf(pid);
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    memBytes: Number(fields[21]) * pageBytes,
  };
}

/** Process id of the child of this process whose command line contains `command`. */
export function childRunning(command: string): number {
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const isOurs = Number(statOf(Number(name))[1]) === process.pid;
      if (isOurs && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(command)) return Number(name);
    } catch {
      // The process has ended.
    }
  }
  throw new Error(`no child process runs ${command}`);
}
