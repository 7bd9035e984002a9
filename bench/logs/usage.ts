/** What the parts of a stack cost, by /proc (proc_pid_stat(5)). */
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ of Linux on every architecture that Node runs on. */
const ticksPerSecond = 100;
const pageBytes = 4096;

export interface Use {
  readonly cpuSeconds: number;
  readonly memBytes: number;
}

/** From the third field on: the second, in brackets, may hold spaces. */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

export function useOf(pid: number): Use {
  const fields = statOf(pid);
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    memBytes: Number(fields[21]) * pageBytes,
  };
}

/** The child of this process whose command line has this in it. */
export function childRunning(command: string): number {
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      const isOurs = Number(statOf(Number(name))[1]) === process.pid;
      if (isOurs && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(command)) return Number(name);
    } catch {
      // Ended meanwhile.
    }
  }
  throw new Error(`no child runs ${command}`);
}
