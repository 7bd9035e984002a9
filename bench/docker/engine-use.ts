/** CPU and memory of a private engine: of all of its processes, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';
import { sandboxProgram } from '../../host-agent/sandbox/image.ts';
import { cpuSecondsOf, statOf } from '../usage.ts';

export interface EngineUse {
  /** With that of children that have ended. */
  readonly cpuSeconds: number;
  readonly memBytes: number;
}

interface EngineProcess {
  readonly pid: number;
  /** Of the tenants: their CPU counts, as runc begins in them, and their memory does not. */
  readonly isTenants: boolean;
}

/** Undefined if the process has ended. */
function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

/** dockerd, containerd and the shims, which name the engine's folder, and the shims' children. */
export function engineProcesses(runFolder: string): EngineProcess[] {
  const pids = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  const seen = pids.flatMap((pid) => {
    const command = ifThere(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    const parent = ifThere(() => Number(statOf(pid)[1]));
    return command === undefined || parent === undefined ? [] : [{ pid, parent, command }];
  });
  const own = new Set(seen.filter(({ command }) => command.includes(runFolder)).map(({ pid }) => pid));
  return seen.flatMap(({ pid, parent, command }) => {
    if (own.has(pid)) return [{ pid, isTenants: false }];
    return own.has(parent) ? [{ pid, isTenants: command.split('\0')[0] !== sandboxProgram }] : [];
  });
}

const memBytes = ({ pid, isTenants }: EngineProcess): number => {
  if (isTenants) return 0;
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss: +(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
};

export function engineUse(processes: readonly EngineProcess[]): EngineUse {
  const uses = processes.map((one) => ifThere(() => ({ cpuSeconds: cpuSecondsOf(one.pid), memBytes: memBytes(one) })));
  return {
    cpuSeconds: uses.reduce((sum, use) => sum + (use?.cpuSeconds ?? 0), 0),
    memBytes: uses.reduce((sum, use) => sum + (use?.memBytes ?? 0), 0),
  };
}
