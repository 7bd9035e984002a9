/**
 * Processes of containers as this machine sees them. A process is touched only if it belongs to the
 * container: process ids are used again.
 */
import { readdir, readFile } from 'node:fs/promises';

/** Looks for the processes below one before they are killed. */
export const killLooks = 8;

export interface ProcessTree {
  /** @throws if it is gone, or may not be signalled */
  signal(pid: number, dockerId: string, signal: NodeJS.Signals): Promise<void>;
  /** Kills it and its descendants, except those that have moved to a parent of their own. */
  kill(pid: number, dockerId: string): Promise<void>;
}

/** The parent of a process, from its `/proc/<pid>/stat`: its name may have any character. */
export function parentIn(stat: string): number | undefined {
  const [, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return parent === undefined ? undefined : Number(parent);
}

/** Child processes, by parent. */
export function childrenIn(parents: ReadonlyMap<number, number>): ReadonlyMap<number, readonly number[]> {
  const children = new Map<number, number[]>();
  for (const [pid, parent] of parents) {
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [pid]);
    else siblings.push(pid);
  }
  return children;
}

/** `root` and its descendants. */
export function below(root: number, children: ReadonlyMap<number, readonly number[]>): ReadonlySet<number> {
  const tree = new Set([root]);
  // A set is walked to its end, also over what is added meanwhile.
  for (const pid of tree) for (const child of children.get(pid) ?? []) tree.add(child);
  return tree;
}

/** A process and its descendants, while they are being stopped. */
interface Kill {
  readonly root: number;
  readonly dockerId: string;
  readonly stopped: Set<number>;
  looks: number;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

export interface ProcessParts {
  readonly folder?: string;
  readonly send?: (pid: number, signal: NodeJS.Signals) => void;
  /** The names in a folder. */
  readonly list?: (folder: string) => Promise<readonly string[]>;
}

export function createProcessTree({
  folder = '/proc',
  send = (pid, signal) => void process.kill(pid, signal),
  list = readdir,
}: ProcessParts = {}): ProcessTree {
  const read = (pid: number, file: string): Promise<string | undefined> =>
    readFile(`${folder}/${pid}/${file}`, 'utf8').catch(() => undefined);

  const belongs = async (pid: number, dockerId: string): Promise<boolean> =>
    (await read(pid, 'cgroup'))?.includes(dockerId) === true;

  const parentsNow = async (): Promise<ReadonlyMap<number, number>> => {
    const parents = new Map<number, number>();
    for (const name of await list(folder)) {
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

  /** A process that has just ended needs no signal. */
  const sendIfThere = (pid: number, which: NodeJS.Signals): void => {
    try {
      send(pid, which);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };

  /** One pass of one kill; ends the kill if it finds no process that was not stopped before. */
  const look = async (kill: Kill, children: ReadonlyMap<number, readonly number[]>): Promise<void> => {
    const { root, dockerId, stopped } = kill;
    const found = [...below(root, children)].filter((pid) => !stopped.has(pid));
    for (const pid of found) {
      stopped.add(pid);
      if (await belongs(pid, dockerId)) sendIfThere(pid, 'SIGSTOP');
    }
    if (found.length > 0 && ++kill.looks < killLooks) return;
    kills.delete(kill);
    for (const pid of stopped) if (await belongs(pid, dockerId)) sendIfThere(pid, 'SIGKILL');
    kill.done();
  };

  /**
   * One walk over all processes of the machine serves every kill that waits: when a gateway ends,
   * hundreds of sessions end at once, on a machine with thousands of processes.
   */
  const kills = new Set<Kill>();
  let isWalking = false;
  const walk = async (): Promise<void> => {
    if (isWalking) return;
    isWalking = true;
    while (kills.size > 0) {
      const waiting = [...kills];
      const fail = (kill: Kill, error: unknown): void => {
        kills.delete(kill);
        kill.failed(error);
      };
      try {
        const children = childrenIn(await parentsNow());
        await Promise.all(waiting.map((kill) => look(kill, children).catch((error: unknown) => fail(kill, error))));
      } catch (error) {
        for (const kill of waiting) fail(kill, error);
      }
    }
    isWalking = false;
  };

  return {
    signal,
    kill: async (root, dockerId) => {
      await signal(root, dockerId, 'SIGSTOP');
      // A stopped process starts no other while the agent walks.
      await new Promise<void>((done, failed) => {
        kills.add({ root, dockerId, stopped: new Set([root]), looks: 0, done, failed });
        void walk();
      });
    },
  };
}
