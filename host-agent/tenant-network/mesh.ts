/**
 * The mesh between hosts: one WireGuard interface in the router namespace. Each host is a peer with
 * the addresses of the members that run there, and with no others, so none can speak for another's
 * containers. What leads to no container of this host goes to the mesh. Pure.
 */
import { createHash } from 'node:crypto';
import { bracketed } from '../../schemas/host-name.ts';
import type { DesiredNetwork, NamedMember } from '../../schemas/wire/net.ts';

/** The same name in the host's namespace, where it is made, and in the router's. */
export const meshLinkOf = (router: string): string =>
  `lsm${createHash('sha256').update(router).digest('hex').slice(0, 12)}`;

/** Members that are on other hosts. One that is attached here is here, whatever the list says. */
export function away({ attached, members, mesh }: DesiredNetwork): NamedMember[] {
  if (mesh === null) return [];
  const here = new Set(attached.map(({ id }) => id));
  const reached = new Set(mesh.ends.map(({ host }) => host));
  return members.filter(({ id, host }) => host !== null && !here.has(id) && reached.has(host));
}

/**
 * The configuration, as `wg syncconf` reads it. Of two hosts that claim one key, one alone has it:
 * WireGuard would give that peer the addresses of both.
 */
export function meshConfiguration(desired: DesiredNetwork, privateKey: string): string {
  const { mesh } = desired;
  if (mesh === null) return '';
  const addresses = new Map<string, string[]>();
  for (const { host, ipv4, ipv6 } of away(desired)) {
    if (host === null) continue;
    const own = addresses.get(host) ?? [];
    addresses.set(host, own);
    own.push(`${ipv6}/128`, ...(ipv4 === null ? [] : [`${ipv4}/32`]));
  }
  const claimed = new Set<string>();
  const peers = mesh.ends.flatMap(({ host, key, address, port }) => {
    const isClaimed = claimed.has(key);
    claimed.add(key);
    const allowed = addresses.get(host);
    if (allowed === undefined || isClaimed) return [];
    return [
      '[Peer]',
      `PublicKey = ${key}`,
      `Endpoint = ${bracketed(address)}:${port}`,
      `AllowedIPs = ${allowed.join(', ')}`,
    ];
  });
  return ['[Interface]', `PrivateKey = ${privateKey}`, `ListenPort = ${mesh.port}`, ...peers, ''].join('\n');
}

/** Routes to the mesh, which those of this host's containers come before. */
export const meshRanges = ({ ranges: { ipv4, ipv6 } }: DesiredNetwork): string[] =>
  ipv4 === null ? [ipv6] : [ipv4, ipv6];
