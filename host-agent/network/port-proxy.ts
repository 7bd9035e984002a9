/**
 * Detects whether the engine runs a `docker-proxy` process for each published port. Such a process
 * is in no container's cgroup, so no tenant's limits cover it. The engine's API does not say; the
 * process list of this machine does.
 */
import { sleep } from '../../lib/time/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { processesOf } from '../processes.ts';

/** Says so once. */
export async function watchPortProxies(intervalMs: number, log: Log, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const proxies = (await processesOf('docker-proxy')).length;
    if (proxies > 0) {
      const why = 'each is outside of its container’s limits; set "userland-proxy": false in daemon.json';
      log.warn('userland_proxy_seen', { proxies, why });
      return;
    }
    await sleep(intervalMs, signal);
  }
}
