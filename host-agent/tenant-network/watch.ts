/** Follows the kernel's events about the interfaces of the router namespace. */
import { spawn } from 'node:child_process';
import type { Log } from '../../lib/log.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { seconds } from '../../schemas/limits/units.ts';

const pauseMs = 1 * seconds;

/** Calls `onChange` for each event, until the signal aborts. The program `ip` is started again. */
export async function watchLinks(router: string, onChange: () => void, signal: AbortSignal, log: Log): Promise<void> {
  while (!signal.aborted) {
    await new Promise<void>((resolve) => {
      const child = spawn('ip', ['-n', router, 'monitor', 'link'], { stdio: ['ignore', 'pipe', 'ignore'], signal });
      child.stdout.on('data', onChange);
      child.once('error', (error) => {
        if (!signal.aborted) log.warn('tenant_network_watch_failed', { error });
        resolve();
      });
      child.once('close', () => resolve());
    });
    // Before the first desired state there is no namespace.
    await sleep(pauseMs, signal);
  }
}
