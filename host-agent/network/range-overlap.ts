/**
 * Whether the cluster's IPv4 range has addresses that this host uses itself: containers would send
 * to the tenant network what is meant for them. Pure, except for `hostNetworks`.
 */
import { readFileSync } from 'node:fs';
import { networkInterfaces, type NetworkInterfaceInfo } from 'node:os';
import { formatAddress, formatCidr, hostCidr, overlap, parseCidr, type Cidr } from '../../schemas/cidr.ts';
import { nameserversIn } from './nameservers.ts';

export interface HostNetworks {
  readonly interfaces: NodeJS.Dict<readonly Pick<NetworkInterfaceInfo, 'cidr'>[]>;
  /** What /proc/net/route says. */
  readonly routes: string;
  readonly nameservers: readonly string[];
}

/** What of the host is inside, for a person; undefined: nothing. */
export function overlapOf(range: Cidr, { interfaces, routes, nameservers }: HostNetworks): string | undefined {
  const isInside = (cidr: Cidr | undefined): boolean => cidr !== undefined && overlap(range, cidr);
  for (const [name, addresses = []] of Object.entries(interfaces)) {
    const found = addresses.find(({ cidr }) => isInside(networkOf(cidr)));
    if (found !== undefined) return `${name} has ${found.cidr}`;
  }
  for (const { network, by } of routesIn(routes)) if (isInside(network)) return `${by} leads to ${formatCidr(network)}`;
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

/** Without the default route. */
function routesIn(text: string): { readonly network: Cidr; readonly by: string }[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [by = '', destination = '', , , , , , mask = ''] = line.split('\t');
      const prefix = (numberIn(mask).toString(2).match(/1/g) ?? []).length;
      const network: Cidr = { family: 4, base: BigInt(numberIn(destination)), prefix };
      return by === '' || prefix === 0 ? [] : [{ network, by: by.trim() }];
    });
}

/** The kernel writes an address in the byte order of the machine, which is little-endian. */
const numberIn = (hex: string): number =>
  Buffer.from(hex, 'hex')
    .reverse()
    .reduce((sum, byte) => sum * 256 + byte, 0);

/** Of this machine, now. */
export const hostNetworks = (): HostNetworks => ({
  interfaces: networkInterfaces(),
  routes: textOf('/proc/net/route'),
  nameservers: nameserversIn(textOf('/etc/resolv.conf')),
});

/** Empty: there is no such file, as on another system than Linux. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
