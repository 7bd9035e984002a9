/**
 * The counters of a container in the kernel's files: cgroup v1 and v2. They lie in memory, so
 * reading them blocks on no disk; a read through the thread pool would cost ten times as much.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withoutInactive } from '../docker/answers.ts';
import type { Traffic } from '../../schemas/records/usage.ts';
import type { Counters } from './ledger.ts';

export interface Cgroups {
  /**
   * Counters of the run whose first process has this pid; `undefined` if it is not on this machine,
   * has ended, or its files cannot be read.
   */
  read(dockerId: string, pid: number): Counters | undefined;
  /**
   * The number of its processes that the kernel has killed for want of memory since the run began;
   * `undefined` as for `read`.
   */
  oomKills(dockerId: string, pid: number): number | undefined;
  /** The same for all processes of this machine since it booted; `undefined` if unknown. */
  machineOomKills(): number | undefined;
  /** The number of its processes; `null` if unknown. */
  pids(dockerId: string, pid: number): number | null;
  /**
   * Traffic of its network namespace, which is that of its sandbox; without the loopback interface.
   * `null` if unknown.
   */
  net(pid: number): Traffic | null;
  /** `true` if it has no interface but the loopback. `undefined` if unknown, as for `read`. */
  isCutOff(dockerId: string, pid: number): boolean | undefined;
}

interface Mount {
  readonly point: string;
  /** The part of the hierarchy that is mounted there. */
  readonly root: string;
}

/** By controller of cgroup v1; v2 has the key ''. */
export type Mounts = ReadonlyMap<string, Mount>;

/** From `/proc/self/mountinfo`: proc_pid_mountinfo(5). */
export function mountsIn(mountinfo: string): Mounts {
  const mounts = new Map<string, Mount>();
  for (const line of mountinfo.split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root, point] = before.split(' ');
    const [type, , options = ''] = after.split(' ');
    if (root === undefined || point === undefined) continue;
    if (type === 'cgroup2') mounts.set('', { point, root });
    if (type === 'cgroup') for (const option of options.split(',')) mounts.set(option, { point, root });
  }
  return mounts;
}

/**
 * The folders of a process, from `/proc/<pid>/cgroup`, by controller; v2 has the key ''.
 * `undefined` if it is no process of this container.
 */
export function foldersIn(cgroup: string, dockerId: string, mounts: Mounts): ReadonlyMap<string, string> | undefined {
  const folders = new Map<string, string>();
  let isOfContainer = false;
  for (const line of cgroup.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    isOfContainer ||= path.includes(dockerId);
    for (const controller of controllers.split(',')) {
      const mount = mounts.get(controller);
      if (mount === undefined || !path.startsWith(mount.root === '/' ? '/' : `${mount.root}/`)) continue;
      const below = mount.root === '/' ? path : path.slice(mount.root.length);
      // A process in a namespace of its own may be shown above the root.
      if (!below.includes('..')) folders.set(controller, join(mount.point, below));
    }
  }
  return isOfContainer ? folders : undefined;
}

/** The number after a name in a file of `name value` lines. */
export function fieldIn(text: string, name: string): number | undefined {
  const at = text.startsWith(`${name} `) ? 0 : text.indexOf(`\n${name} `) + 1;
  if (at === 0 && !text.startsWith(`${name} `)) return undefined;
  const value = Number.parseInt(text.slice(at + name.length + 1), 10);
  return Number.isNaN(value) ? undefined : value;
}

/** @param root the root of the file system; another one in tests */
export function createCgroups(root = '/'): Cgroups {
  const text = (...path: string[]): string => readFileSync(join(root, ...path), 'latin1');
  const number = (...path: string[]): number => Number.parseInt(text(...path), 10);
  let mounts: Mounts | undefined;

  const foldersOf = (dockerId: string, pid: number): ReadonlyMap<string, string> | undefined => {
    mounts ??= mountsIn(text('proc/self/mountinfo'));
    return foldersIn(text('proc', String(pid), 'cgroup'), dockerId, mounts);
  };
  const cpuMs = (folders: ReadonlyMap<string, string>): number | undefined => {
    const first = folders.get('cpuacct');
    if (first !== undefined) return Math.floor(number(first, 'cpuacct.usage') / 1e6);
    const unified = folders.get('');
    const us = unified === undefined ? undefined : fieldIn(text(unified, 'cpu.stat'), 'usage_usec');
    return us === undefined ? undefined : Math.floor(us / 1000);
  };
  const memBytes = (folders: ReadonlyMap<string, string>): number | undefined => {
    const first = folders.get('memory');
    const folder = first ?? folders.get('');
    if (folder === undefined) return undefined;
    const isFirst = first !== undefined;
    const used = number(folder, isFirst ? 'memory.usage_in_bytes' : 'memory.current');
    const inactive = fieldIn(text(folder, 'memory.stat'), isFirst ? 'total_inactive_file' : 'inactive_file') ?? 0;
    return withoutInactive(used, inactive);
  };
  const oomKills = (folders: ReadonlyMap<string, string>): number | undefined => {
    const first = folders.get('memory');
    const folder = first ?? folders.get('');
    if (folder === undefined) return undefined;
    return fieldIn(text(folder, first === undefined ? 'memory.events' : 'memory.oom_control'), 'oom_kill');
  };
  /** Returns `otherwise` if a file is not there: the process has ended. */
  const attempt = <T, U>(read: () => T, otherwise: U): T | U => {
    try {
      return read();
    } catch {
      return otherwise;
    }
  };

  return {
    read: (dockerId, pid) =>
      attempt(() => {
        const folders = foldersOf(dockerId, pid);
        if (folders === undefined) return undefined;
        const [cpu, memory] = [cpuMs(folders), memBytes(folders)];
        if (cpu === undefined || memory === undefined || Number.isNaN(cpu + memory)) return undefined;
        // The next run has the same folder: the numbers are of this run only if it still runs.
        if (foldersOf(dockerId, pid) === undefined) return undefined;
        return { cpuMs: cpu, memBytes: memory };
      }, undefined),
    oomKills: (dockerId, pid) =>
      attempt(() => {
        const folders = foldersOf(dockerId, pid);
        const kills = folders === undefined ? undefined : oomKills(folders);
        // As above.
        return foldersOf(dockerId, pid) === undefined ? undefined : kills;
      }, undefined),
    machineOomKills: () => attempt(() => fieldIn(text('proc/vmstat'), 'oom_kill'), undefined),
    pids: (dockerId, pid) =>
      attempt(() => {
        const folders = foldersOf(dockerId, pid);
        const folder = folders?.get('pids') ?? folders?.get('');
        return folder === undefined ? null : number(folder, 'pids.current');
      }, null),
    isCutOff: (dockerId, pid) =>
      attempt(() => {
        const names = interfacesIn(text('proc', String(pid), 'net/dev')).map(([name]) => name);
        return foldersOf(dockerId, pid) === undefined ? undefined : names.every((name) => name === 'lo');
      }, undefined),
    net: (pid) => attempt(() => netIn(text('proc', String(pid), 'net/dev')), null),
  };
}

/** The name and the counters of each interface, from `/proc/<pid>/net/dev`. */
function interfacesIn(dev: string): (readonly [name: string, counters: string])[] {
  return dev.split('\n').flatMap((line) => {
    const [, name, counters] = /^\s*([^:\s]+):\s*(.*)$/.exec(line) ?? [];
    return name === undefined || counters === undefined ? [] : [[name, counters] as const];
  });
}

/** From `/proc/<pid>/net/dev`: the sum over all interfaces but the loopback. */
export function netIn(dev: string): Traffic {
  let rxBytes = 0;
  let txBytes = 0;
  for (const [name, values] of interfacesIn(dev)) {
    if (name === 'lo') continue;
    const fields = values.trim().split(/\s+/).map(Number);
    rxBytes += fields[0] ?? 0;
    txBytes += fields[8] ?? 0;
  }
  return { rxBytes, txBytes };
}
