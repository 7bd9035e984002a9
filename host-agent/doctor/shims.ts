/**
 * Shims of containerd whose container the engine does not have: an engine that was killed while it
 * started containers leaves them behind, and they use memory for nothing.
 */
import { commandsOf } from './daemon.ts';
import { ok, warn, type Finding } from './finding.ts';

/** Processes that one line of the doctor names. */
const doctorShimsNamed = 8;

export interface Shim {
  readonly pid: string;
  /** The engine's id of the container. */
  readonly container: string;
  /** Its containerd, and the namespace there: engines of one machine may share a containerd. */
  readonly place: string;
}

/** The name as the kernel cuts it, of `containerd-shim-runc-v2`. */
const name = 'containerd-shim';

/** Empty if this machine does not show the processes of others. */
export async function seeShims(proc = '/proc'): Promise<Shim[]> {
  return (await commandsOf(name, proc)).flatMap(({ pid, words }) => {
    const [container, namespace, address] = ['-id', '-namespace', '-address'].map((flag) => valueOf(words, flag));
    return container === undefined ? [] : [{ pid, container, place: `${namespace} ${address}` }];
  });
}

const valueOf = (words: readonly string[], flag: string): string | undefined => {
  const at = words.indexOf(flag);
  return at < 0 ? undefined : words[at + 1];
};

/**
 * Shims that this engine has left behind: in the place of those of its containers, since others may
 * be of another engine. A host with an agent has sandboxes, so the place is known.
 * @param list asks the engine for the ids of all of its containers
 */
export async function leftShims(list: () => Promise<ReadonlySet<string>>, proc = '/proc'): Promise<Shim[]> {
  const before = await seeShims(proc);
  if (before.length === 0) return [];
  const ids = await list();
  // Shims of containers that were just being removed are gone by now.
  const still = new Set((await seeShims(proc)).map(({ pid }) => pid));
  const own = new Set(before.flatMap(({ container, place }) => (ids.has(container) ? [place] : [])));
  return before.filter(({ pid, container, place }) => still.has(pid) && !ids.has(container) && own.has(place));
}

/** Pure. */
export function judgeShims(left: readonly Shim[]): Finding {
  if (left.length === 0) return ok('shims', 'each containerd-shim of the engine has its container');
  const named = left.slice(0, doctorShimsNamed).map(({ pid, container }) => `${pid} (${container.slice(0, 12)})`);
  const more = left.length > named.length ? ` and ${left.length - named.length} more` : '';
  return warn(
    'shims',
    `the engine does not have the containers of these containerd-shim processes: ${named.join(', ')}${more}`,
    `end each of them: kill PID, and kill -9 PID if it stays (docs/runbook.md, Shims that an engine left behind)`,
  );
}
