/** Ends and clears away what a ledger names and its owner could not. */
import { rmSync } from 'node:fs';
import { sleep } from '../../lib/backoff.ts';
import { sweepEngine } from '../servers/engine-sweep.ts';
import { abandonedLedgers, markVariable, type Belonging } from './ledger.ts';
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

/** SIGTERM, a grace, SIGKILL; a stopped process (SIGSTOP) is woken so that it can hear. */
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
      // Entered as "<server id>/<pid>": the grace is the server's.
      const graceMs = graceOf.get(belonging.id.split('/')[0] ?? '') ?? killWaitMs;
      return endProcesses(() => [belonging.process].filter(isAlive), graceMs);
    }
    case 'server':
      return endProcesses(() => processesMarked(markVariable, belonging.id), 1_000);
    case 'engine':
      return sweepEngine(belonging.remains);
    case 'folder':
      return rmSync(belonging.path, { recursive: true, force: true });
  }
}

/**
 * The newest goes first: a server before its folder, a container engine's processes before its
 * mounts.
 */
export async function reap(left: readonly Belonging[]): Promise<void> {
  const graceOf = new Map(left.flatMap((item) => (item.kind === 'server' ? [[item.id, item.graceMs] as const] : [])));
  for (const belonging of left.toReversed()) {
    try {
      await reapOne(belonging, graceOf);
    } catch {
      // The rest still goes; what stays is found by the next start.
    }
  }
}

/**
 * At the start of a program: clears what earlier ones were killed over. Their guards may be at it;
 * both may try.
 */
export async function reapAbandoned(): Promise<number> {
  const abandoned = abandonedLedgers();
  for (const { file, content } of abandoned) {
    await reap(content.left);
    rmSync(file, { force: true });
  }
  return abandoned.length;
}
