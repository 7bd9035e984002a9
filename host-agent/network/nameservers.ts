/**
 * The name servers that the engine gives to containers. It reads them from its host; with
 * systemd-resolved, it takes those behind it. The engine itself queries servers on loopback. Pure,
 * except for reading the files.
 */
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { limits } from '../../schemas/limits.ts';

const usual = '/etc/resolv.conf';
const behindResolved = '/run/systemd/resolve/resolv.conf';
const resolvedStub = '127.0.0.53';

/**
 * The name servers in a resolv.conf(5), without addresses with a zone, which no container reaches.
 */
export const nameserversIn = (text: string): string[] =>
  [...text.matchAll(/^[ \t]*nameserver[ \t]+(\S+)/gm)].flatMap(([, address = '']) =>
    isIP(address) !== 0 && !address.includes('%') ? [address] : [],
  );

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1';

/** @param read rejects if there is no such file */
export async function readNameservers(
  read: (path: string) => Promise<string> = (path) => readFile(path, 'utf8'),
): Promise<string[]> {
  const namesIn = (path: string): Promise<string[]> => read(path).then(nameserversIn, () => []);
  const first = await namesIn(usual);
  const all = first.length === 1 && first[0] === resolvedStub ? await namesIn(behindResolved) : first;
  return [...new Set(all.filter((address) => !isLoopback(address)))].slice(0, limits.nameservers).toSorted();
}
