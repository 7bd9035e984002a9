/**
 * The mesh between hosts: one WireGuard interface in the router namespace. Each host is a peer with
 * the addresses of the members that run there, and with no others, so none can speak for another's
 * containers. Packets to no container of this host go to the mesh. Pure.
 */
import { bracketed } from '../../schemas/host-name.ts';
import type { HostKey } from '../../schemas/ids.ts';
import type { Attachment, DesiredNetwork } from '../../schemas/wire/net.ts';

/** A container or a VPN peer that is reached through another host. */
export interface Away extends Pick<Attachment, 'tenant' | 'ipv4'> {
  readonly host: HostKey;
  readonly ipv6: string | null;
  readonly isPeer: boolean;
}

/**
 * Members on other hosts. A member that is attached here counts as here, whatever the list says.
 */
export function away({ attached, members, mesh, vpn }: DesiredNetwork): Away[] {
  if (mesh === null) return [];
  const here = new Set(attached.map(({ id }) => id));
  const reached = new Set(mesh.ends.map(({ host }) => host));
  const containers = members.flatMap(({ id, tenant, host, ipv4, ipv6 }) =>
    host === null || here.has(id) || !reached.has(host) ? [] : [{ tenant, host, ipv4, ipv6, isPeer: false }],
  );
  const peers = vpn.flatMap(({ host, peers: own }) =>
    reached.has(host) ? own.map(({ tenant, ipv4, ipv6 }) => ({ tenant, host, ipv4, ipv6, isPeer: true })) : [],
  );
  return [...containers, ...peers];
}

/**
 * The configuration for `wg syncconf`. If two hosts claim one key, only one of them gets it:
 * WireGuard would give that peer the addresses of both.
 */
export function meshConfiguration(
  { mesh }: Pick<DesiredNetwork, 'mesh'>,
  others: readonly Away[],
  privateKey: string,
): string {
  if (mesh === null) return '';
  const addresses = new Map<string, string[]>();
  for (const { host, ipv4, ipv6 } of others) {
    const own = addresses.get(host) ?? [];
    addresses.set(host, own);
    if (ipv6 !== null) own.push(`${ipv6}/128`);
    if (ipv4 !== null) own.push(`${ipv4}/32`);
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
export function meshRanges({ ranges: { ipv4, ipv6 }, vpn }: DesiredNetwork): string[] {
  const pools = vpn.flatMap(({ server, pools: own }) => (server === null ? own : []));
  return [...(ipv4 === null ? [] : [ipv4]), ipv6, ...pools];
}
