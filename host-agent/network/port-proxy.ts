/**
 * Detects whether the engine runs a `docker-proxy` process for each published port. Such a process
 * is in no container's cgroup, so no tenant's limits cover it. The engine's API does not show it;
 * the process list of this machine does.
 */
import { retry } from '../../lib/time/retry.ts';
import type { Log } from '../../lib/log.ts';
import { processesOf } from '../processes.ts';

/** Logs the result once. */
export async function watchPortProxies(intervalMs: number, log: Log, signal: AbortSignal): Promise<void> {
  const look = async (): Promise<number | undefined> => (await processesOf('docker-proxy')).length || undefined;
  const proxies = await retry(look, { pauseMs: () => intervalMs, signal });
  if (proxies === undefined) return;
  const why = 'each is outside of its container’s limits; set "userland-proxy": false in daemon.json';
  log.warn('userland_proxy_seen', { proxies, why });
}
