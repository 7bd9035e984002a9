/**
 * Processes of containers as this machine sees them. A process is touched only if it belongs to the
 * container: numbers of processes are used again.
 */
import { readdir, readFile } from 'node:fs/promises';
import { limits } from '../../schemas/limits.ts';

export interface ProcessTree {
  /** @throws where it is gone, or may not be signalled */
  signal(pid: number, dockerId: string, signal: NodeJS.Signals): Promise<void>;
  /** Kills it and all that it has started, but what has left for a parent of its own. */
  kill(pid: number, dockerId: string): Promise<void>;
}

/** The parent of a process, from its `/proc/<pid>/stat`: its name may have any character. */
export function parentIn(stat: string): number | undefined {
  const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return parent === undefined ? undefined : Number(parent);
}

/** Those below `root`, and itself. */
export function below(root: number, parents: ReadonlyMap<number, number>): ReadonlySet<number> {
  const tree = new Set([root]);
  for (let before = 0; before !== tree.size;) {
    before = tree.size;
    for (const [pid, parent] of parents) if (tree.has(parent)) tree.add(pid);
  }
  return tree;
}

export interface ProcessParts {
  readonly folder?: string;
  readonly send?: (pid: number, signal: NodeJS.Signals) => void;
}

export function createProcessTree({
  folder = '/proc',
  send = (pid, signal) => void process.kill(pid, signal),
}: ProcessParts = {}): ProcessTree {
  const read = (pid: number, file: string): Promise<string | undefined> =>
    readFile(`${folder}/${pid}/${file}`, 'utf8').catch(() => undefined);

  const belongs = async (pid: number, dockerId: string): Promise<boolean> =>
    (await read(pid, 'cgroup'))?.includes(dockerId) === true;

  const parentsNow = async (): Promise<ReadonlyMap<number, number>> => {
    const parents = new Map<number, number>();
    for (const name of await readdir(folder)) {
      const pid = Number(name);
      if (!Number.isInteger(pid)) continue;
      const parent = parentIn((await read(pid, 'stat')) ?? '');
      if (parent !== undefined) parents.set(pid, parent);
    }
    return parents;
  };

  const signal: ProcessTree['signal'] = async (pid, dockerId, which) => {
    if (!(await belongs(pid, dockerId))) throw new Error(`process ${pid} is not one of the container`);
    send(pid, which);
  };

  /** A process that has just ended needs none. */
  const sendIfThere = (pid: number, which: NodeJS.Signals): void => {
    try {
      send(pid, which);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };

  return {
    signal,
    kill: async (root, dockerId) => {
      await signal(root, dockerId, 'SIGSTOP');
      // Stopped, none starts another while the agent looks.
      const stopped = new Set([root]);
      for (let look = 0; look < limits.killLooks; look++) {
        const found = [...below(root, await parentsNow())].filter((pid) => !stopped.has(pid));
        if (found.length === 0) break;
        for (const pid of found) {
          stopped.add(pid);
          if (await belongs(pid, dockerId)) sendIfThere(pid, 'SIGSTOP');
        }
      }
      for (const pid of stopped) if (await belongs(pid, dockerId)) sendIfThere(pid, 'SIGKILL');
    },
  };
}
