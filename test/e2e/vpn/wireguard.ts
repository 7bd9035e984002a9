/**
 * WireGuard in a namespace, brought up as an operator or a user does, by `wg-quick` with a file. It
 * runs in the kernel or in user space.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolName } from '../../../dev/fetch/tool-table.ts';
import type { Joined } from './netns.ts';

/** `wg-quick` needs nft to protect a default route. */
export const wireguardTools = ['wg', 'wireguard-go', 'nft'] as const satisfies readonly ToolName[];

export interface WireguardEnd {
  /** Seconds since 1970 of the last handshake, by the peer's public key; 0 if there was none. */
  latestHandshakes(): Promise<ReadonlyMap<string, number>>;
  /** Applies a changed file by the documented command, without ending connections. */
  syncconf(conf: string): Promise<void>;
  /** Takes the interface down and up again with the same file. */
  restart(): Promise<void>;
  /** The name servers that `wg-quick` set. */
  nameservers(): string[];
}

/** Brings up an interface by `wg-quick`; it has the name of its file. */
export async function wireguardUp(namespace: Joined, name: string, conf: string): Promise<WireguardEnd> {
  const { folder, programs, must } = namespace;
  const file = join(folder, `${name}.conf`);
  const nameserverFile = join(folder, 'nameservers');
  const keep = (text: string): void => writeFileSync(file, text, { mode: 0o600 });
  // The test must not change the machine's own name servers.
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
