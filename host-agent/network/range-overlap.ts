/**
 * Checks whether this host itself uses addresses in the cluster's IPv4 range: containers would
 * reach the tenant network at them instead. Pure, except for `hostNetworks`.
 */
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os';
import { formatAddress, formatCidr, hostCidr, overlap, parseCidr, type Cidr } from '../../schemas/cidr.ts';
import { ipsecName } from '../tenant-network/link-names.ts';
import { nameserversIn } from './nameservers.ts';
import { currentRoutes, textOf, type Route } from './routes.ts';

export interface HostNetworks {
  readonly interfaces: NodeJS.Dict<readonly Pick<NetworkInterfaceInfo, 'cidr'>[]>;
  readonly routes: readonly Route[];
  readonly nameservers: readonly string[];
}

/**
 * The first part of the host's network that is in the range, as text; `undefined` if there is none.
 */
export function overlapOf(range: Cidr, { interfaces, routes, nameservers }: HostNetworks): string | undefined {
  const isInside = (cidr: Cidr | undefined): boolean => cidr !== undefined && overlap(range, cidr);
  for (const [name, addresses = []] of Object.entries(interfaces)) {
    if (ipsecName.test(name)) continue;
    const found = addresses.find(({ cidr }) => isInside(networkOf(cidr)));
    if (found !== undefined) return `${name} has ${found.cidr}`;
  }
  for (const { network, device } of routes) if (isInside(network)) return `${device} leads to ${formatCidr(network)}`;
  const server = nameservers.find((address) => isInside(hostCidr(address)));
  return server === undefined ? undefined : `${server} is a name server of this host`;
}

/** The network of `10.1.2.3/16`. */
function networkOf(cidr: string | null): Cidr | undefined {
  const [address = '', prefix = ''] = cidr?.split('/') ?? [];
  const host = hostCidr(address);
  if (host?.family !== 4) return undefined;
  const shift = BigInt(32 - Number(prefix));
  return parseCidr(`${formatAddress(4, (host.base >> shift) << shift)}/${prefix}`);
}

/** The networks that this machine uses now. */
export const hostNetworks = (): HostNetworks => ({
  interfaces: networkInterfaces(),
  routes: currentRoutes(),
  nameservers: nameserversIn(textOf('/etc/resolv.conf')),
});
