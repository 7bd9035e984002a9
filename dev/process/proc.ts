/**
 * Identifies processes. A pid alone is not enough, because pids are reused. A pid together with its
 * start time (in ticks since boot) and boot id identifies one process for good, and only a process
 * identified this way is signalled later. Without /proc (macOS) no process can be identified, so
 * none is ever signalled by these functions.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessName {
  readonly pid: number;
  readonly startTicks: string;
  readonly bootId: string;
}

const readText = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // ended, or another user's
  }
};

const bootId = (): string => readText('/proc/sys/kernel/random/boot_id')?.trim() ?? '';

/**
 * The fields of /proc/<pid>/stat from the third on. The second, the command in parentheses, may
 * itself contain parentheses.
 */
const statFields = (pid: number): string[] | undefined => {
  const stat = readText(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
};

/**
 * Undefined if there is no such process. A zombie, which has ended but was not yet collected by its
 * parent, counts as none.
 */
export function processName(pid: number): ProcessName | undefined {
  const fields = statFields(pid);
  const [state, startTicks] = [fields?.[0], fields?.[19]];
  if (state === undefined || startTicks === undefined || state === 'Z' || state === 'X') return undefined;
  return { pid, startTicks, bootId: bootId() };
}

export function isAlive(name: ProcessName): boolean {
  const now = processName(name.pid);
  return now !== undefined && now.startTicks === name.startTicks && now.bootId === name.bootId;
}

/** Signals the named process; does nothing if it has ended. */
export function signalProcess(name: ProcessName, signal: NodeJS.Signals): void {
  if (!isAlive(name)) return;
  try {
    process.kill(name.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export function allProcesses(): ProcessName[] {
  const pids = (() => {
    try {
      return readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
    } catch {
      return [];
    }
  })();
  return pids.flatMap((pid) => processName(Number(pid)) ?? []);
}

/**
 * Processes whose environment has `variable=value`: a mark that every descendant of a server
 * inherits.
 */
export function processesMarked(variable: string, value: string): ProcessName[] {
  const mark = `${variable}=${value}`;
  return allProcesses().filter(({ pid }) => readText(`/proc/${pid}/environ`)?.split('\0').includes(mark) === true);
}

/**
 * True if the process listens on the TCP port, in its own network namespace (proc(5)). `undefined`
 * without /proc.
 */
export function listensOn(pid: number, port: number): boolean | undefined {
  const tables = ['tcp', 'tcp6'].flatMap((name) => readText(`/proc/${pid}/net/${name}`) ?? []);
  if (tables.length === 0) return processName(process.pid) === undefined ? undefined : false;
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const listening = '0A';
  const inodes = tables
    .flatMap((table) => table.split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(ending) === true && state === listening)
    .map((fields) => `socket:[${fields[9]}]`);
  return inodes.length > 0 && openFiles(pid).some((target) => inodes.includes(target));
}

/** Targets of the file descriptors of a process. */
function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  const targetOf = (name: string): string[] => {
    try {
      return [readlinkSync(`${folder}/${name}`)];
    } catch {
      return []; // closed in the meantime
    }
  };
  try {
    return readdirSync(folder).flatMap(targetOf);
  } catch {
    return []; // ended, or another user's
  }
}
