/**
 * WireGuard in a namespace as an operator or a user brings it up: `wg-quick` and a file, in the
 * kernel or beside it.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolName } from '../../../dev/fetch/tool-table.ts';
import type { Joined } from './netns.ts';

/** nft: what `wg-quick` guards a default route with. */
export const wireguardTools = ['wg', 'wireguard-go', 'nft'] as const satisfies readonly ToolName[];

export interface WireguardEnd {
  /**
   * Seconds since 1970 of the last handshake, by the other end's public key; 0 where there was
   * none.
   */
  latestHandshakes(): Promise<ReadonlyMap<string, number>>;
  /**
   * Takes a changed file into use while connections go on, with the line that the documentation
   * gives.
   */
  syncconf(conf: string): Promise<void>;
  /** Off and on again, with the same file. */
  restart(): Promise<void>;
  /** What `wg-quick` gave the machine as its name servers. */
  nameservers(): string[];
}

/** Brings up what stands in the file; the interface has its name, as `wg-quick` does it. */
export async function wireguardUp(namespace: Joined, name: string, conf: string): Promise<WireguardEnd> {
  const { folder, programs, must } = namespace;
  const file = join(folder, `${name}.conf`);
  const nameserverFile = join(folder, 'nameservers');
  const keep = (text: string): void => writeFileSync(file, text, { mode: 0o600 });
  // The machine's own name servers are not ours to change.
  writeFileSync(nameserverFile, '');
  writeFileSync(join(programs, 'resolvconf'), `#!/bin/sh\ncat >> '${nameserverFile}'\n`);
  chmodSync(join(programs, 'resolvconf'), 0o755);
  keep(conf);
  const up = () => must('wg-quick', ['up', file], { env: { WG_QUICK_USERSPACE_IMPLEMENTATION: 'wireguard-go' } });
  await up();
  return {
    latestHandshakes: async () => {
      const { stdout } = await must('wg', ['show', name, 'latest-handshakes']);
      const rows = stdout.split('\n').filter((line) => line !== '');
      return new Map(rows.map((line) => line.split('\t')).map(([key = '', at = '']) => [key, Number(at)]));
    },
    syncconf: async (text) => {
      keep(text);
      await must('bash', ['-c', 'wg syncconf "$0" <(wg-quick strip "$1")', name, file]);
    },
    restart: async () => {
      await must('wg-quick', ['down', file]);
      await up();
    },
    nameservers: () =>
      [...readFileSync(nameserverFile, 'utf8').matchAll(/^nameserver (\S+)$/gm)].map(([, address = '']) => address),
  };
}
