/**
 * Resolves names as the engine does: from the hosts file, then by DNS. It avoids `dns.lookup`,
 * which blocks one of the process's four threads until the last name server has failed: a tenant
 * with a slow name would delay every pull and every file.
 */
import { Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { readIfPresent } from '../disk/files.ts';
import type { Resolve } from './registries.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** The wait for the answer of one name server, before the next is asked. */
const nameserverMs = 2 * seconds;

export interface ResolveOptions {
  readonly hostsFile: string;
  /** Name servers to use in place of those of /etc/resolv.conf. */
  readonly servers?: readonly string[];
}

/** The addresses of a name in the text of a hosts(5) file. */
export function addressesIn(hosts: string, name: string): string[] {
  return hosts.split('\n').flatMap((line) => {
    const [zoned = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const address = zoned.replace(/%.*/, '');
    return isIP(address) !== 0 && names.some((each) => each.toLowerCase() === name.toLowerCase()) ? [address] : [];
  });
}

const absent: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTFOUND']);

/**
 * The addresses of one family, or none if there are none. Rejects if a server failed, because there
 * may be some.
 */
const orNone = (addresses: Promise<string[]>): Promise<string[]> =>
  addresses.catch((error: unknown) => {
    if (absent.has((error as NodeJS.ErrnoException).code)) return [];
    throw error;
  });

export function createResolve({ hostsFile, servers }: ResolveOptions): Resolve {
  return async (name, signal) => {
    const listed = addressesIn((await readIfPresent(hostsFile))?.toString() ?? '', name);
    if (listed.length > 0) return listed;
    // A resolver for each name: it reads the current /etc/resolv.conf, and can be cancelled alone.
    const resolver = new Resolver({ timeout: nameserverMs, tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      signal.throwIfAborted();
      const both = await Promise.all([orNone(resolver.resolve4(name)), orNone(resolver.resolve6(name))]);
      return both.flat();
    } finally {
      // Cancels the other family if one has failed.
      cancel();
      signal.removeEventListener('abort', cancel);
    }
  };
}

export const systemResolve: Resolve = createResolve({ hostsFile: '/etc/hosts' });
