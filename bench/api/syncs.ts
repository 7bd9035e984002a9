/** Counts the disk syncs of a server with strace(1). */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { executablesOf } from '../../dev/fetch/tools.ts';
import { sleep, within } from '../../lib/time/backoff.ts';
import type { Ground } from './ground.ts';

const traceDeadlineMs = 10_000;
const traceSettleMs = 500;

/**
 * Disk syncs of a process and its children for each of the things that `work` does and counts;
 * undefined without strace. Tracing slows the server down.
 */
export async function countSyncs(
  pid: number,
  { bench: { env, folder }, scope }: Ground,
  work: () => Promise<number>,
): Promise<number | undefined> {
  const [strace] = executablesOf(['strace'], env);
  if (strace === undefined) return undefined;
  const out = join(folder, `strace-${pid}`);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  const pids = [String(pid), ...children].flatMap((one) => ['-p', one]);
  const tracer = spawn(strace, ['-f', '-e', 'trace=fsync,fdatasync', '-o', out, ...pids], { stdio: 'ignore' });
  scope.teardown(() => tracer.kill('SIGKILL'));
  const ended = once(tracer, 'exit');
  await sleep(traceSettleMs);
  const count = await work();
  tracer.kill('SIGINT');
  await within(ended, traceDeadlineMs, 'the end of strace');
  const calls = readFileSync(out, 'utf8')
    .split('\n')
    .filter((line) => / f(data)?sync\(/.test(line));
  return calls.length / count;
}
