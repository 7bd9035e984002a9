/** Ends and removes what a ledger lists and its owner did not. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from '../../lib/time/backoff.ts';
import { sweepEngine } from '../servers/engine-sweep.ts';
import { abandonedLedgers, markVariable, type Belonging } from './ledger.ts';
import { run } from './run.ts';
import { isAlive, processesMarked, signalProcess, type ProcessName } from './proc.ts';

const killWaitMs = 5_000;
const pollMs = 50;

async function waitGone(processes: () => readonly ProcessName[], deadlineMs: number): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    if (processes().length === 0) return true;
    if (performance.now() > end) return false;
    await sleep(pollMs);
  }
}

/**
 * Sends SIGTERM and, after the grace, SIGKILL. SIGCONT wakes a stopped process so that it handles
 * SIGTERM.
 */
export async function endProcesses(list: () => readonly ProcessName[], graceMs: number): Promise<void> {
  for (const name of list()) {
    signalProcess(name, 'SIGTERM');
    signalProcess(name, 'SIGCONT');
  }
  if (await waitGone(list, graceMs)) return;
  for (const name of list()) signalProcess(name, 'SIGKILL');
  await waitGone(list, killWaitMs);
}

async function reapOne(belonging: Belonging, graceOf: ReadonlyMap<string, number>): Promise<void> {
  switch (belonging.kind) {
    case 'process': {
      // The id is `<server id>/<pid>`; the grace is the server's.
      const graceMs = graceOf.get(belonging.id.split('/')[0] ?? '') ?? killWaitMs;
      return endProcesses(() => [belonging.process].filter(isAlive), graceMs);
    }
    case 'server':
      return endProcesses(() => processesMarked(markVariable, belonging.id), 1_000);
    case 'engine':
      return sweepEngine(belonging.remains);
    case 'namespace':
      return removeNamespace(belonging.name);
    case 'folder':
      return rmSync(belonging.path, { recursive: true, force: true });
  }
}

/** Deletes a network namespace that has a name, and every link that ends in it. */
export async function removeNamespace(name: string): Promise<void> {
  const file = join('/run/netns', name);
  await run('umount', ['--lazy', file], { deadlineMs: killWaitMs });
  rmSync(file, { force: true });
}

/** Ends the newest first: a server before its folder, an engine's processes before its mounts. */
export async function reap(left: readonly Belonging[]): Promise<void> {
  const graceOf = new Map(left.flatMap((item) => (item.kind === 'server' ? [[item.id, item.graceMs] as const] : [])));
  for (const belonging of left.toReversed()) {
    try {
      await reapOne(belonging, graceOf);
    } catch {
      // Continues with the rest.
    }
  }
}

/**
 * Cleans up after earlier processes that were killed. Call it when a program starts. Their guards
 * may be doing the same at the same time, which does no harm.
 */
export async function reapAbandoned(): Promise<number> {
  const abandoned = abandonedLedgers();
  for (const { file, content } of abandoned) {
    await reap(content.left);
    rmSync(file, { force: true });
  }
  return abandoned.length;
}
