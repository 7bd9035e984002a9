/**
 * Detects whether the engine runs a `docker-proxy` process for each published port. Such a process
 * is in no container's cgroup, so no tenant's limits cover it. The engine's API does not say; the
 * process list of this machine does.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../lib/time/backoff.ts';
import type { Log } from '../../lib/log.ts';

/** Processes of this name. None where there is no /proc, or it hides the processes of others. */
export async function countProcesses(name: string, proc = '/proc'): Promise<number> {
  const pids = (await readdir(proc).catch(() => [])).filter((entry) => /^\d+$/.test(entry));
  let count = 0;
  // It ended meanwhile, or is not ours to see.
  for (const pid of pids)
    if ((await readFile(join(proc, pid, 'comm'), 'utf8').catch(() => '')).trim() === name) count++;
  return count;
}

/** Says so once. */
export async function watchPortProxies(intervalMs: number, log: Log, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const proxies = await countProcesses('docker-proxy');
    if (proxies > 0) {
      const why = 'each is outside of its container’s limits; set "userland-proxy": false in daemon.json';
      log.warn('userland_proxy_seen', { proxies, why });
      return;
    }
    await sleep(intervalMs, signal);
  }
}
