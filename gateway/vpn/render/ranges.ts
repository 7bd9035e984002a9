/**
 * Addresses that are not of the public internet. "Everything" does not include them: only a route
 * within one of the ranges that have a name and a use of their own opens them.
 */
import { poolsOf, type NetworkSettings } from '../../../schemas/api/network.ts';
import {
  contains,
  formatAddress,
  formatCidr,
  hostCidr,
  isResolver,
  parseAddress,
  parseCidr,
  wholeRoutes,
  type Cidr,
} from '../../../schemas/cidr.ts';
import { fitAddress, fitCidr, Unfit } from './fit.ts';

export type Family = Cidr['family'];

export const cidrOf = (text: string): Cidr => {
  const cidr = parseCidr(fitCidr(text));
  if (cidr === undefined) throw new Unfit('network');
  return cidr;
};

const cidrsOf = (texts: readonly string[]): readonly Cidr[] => texts.map(cidrOf);

/** RFC 6890 and IANA's registries of special addresses: private, shared, link-local, multicast… */
const special: Readonly<Record<Family, readonly Cidr[]>> = {
  4: cidrsOf([
    ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
    ...['192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'],
  ]),
  6: cidrsOf([
    ...['::/8', '100::/64', '2001::/32', '2002::/16', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
  ]),
};

/**
 * Ranges that peers reach only if a route opens them: the special ranges, and of IPv6 all that is
 * not global unicast. Halves of everything, such as `8000::/1`, are no wider than these and open
 * none.
 */
export const reserved: Readonly<Record<Family, readonly Cidr[]>> = {
  4: special[4],
  6: cidrsOf(['::/3', '2001::/32', '2002::/16', '4000::/2', '8000::/1']),
};

/** True if the route lies within a special range, as no part of "everything" does. */
export const opensPrivate = (route: Cidr): boolean => special[route.family].some((range) => contains(range, route));

function hostOf(address: string): Cidr {
  const host = hostCidr(address);
  if (host === undefined) throw new Unfit('address');
  return host;
}

/**
 * The routes, and one for each resolver and each address of the network's own proxy that is reached
 * through the tunnel alone and that the routes leave out: those in the pools, and private ones that
 * the network names or opens. A device reaches others, such as one at its home or a public one,
 * without the tunnel; so it does the server's endpoint.
 * @param hasIpv6 true if the device has an IPv6 address in the tunnel
 */
export function tunnelRoutes(
  settings: NetworkSettings,
  given: readonly string[],
  resolvers: readonly string[],
  hasIpv6: boolean,
): string[] {
  const { dns, routes: ofNetwork, endpoint, proxy } = settings;
  const pools = poolsOf(settings).map(cidrOf);
  const opened = ofNetwork.map(cidrOf).filter(opensPrivate);
  const proxies = proxy !== null && parseAddress(proxy.host) !== undefined ? [fitAddress(proxy.host)] : [];
  const named = new Set([...dns.map(fitAddress), ...proxies]);
  const routes = wholeRoutes(given.map(cidrOf));
  const services = [...new Set([...resolvers.map(fitAddress), ...proxies])].map(hostOf).filter((host) => {
    const within = (ranges: readonly Cidr[]): boolean => ranges.some((range) => contains(range, host));
    const address = formatAddress(host.family, host.base);
    const isInside =
      within(pools) || within(opened) || (named.has(address) && within(reserved[host.family]) && isResolver(address));
    return isInside && (host.family === 4 || hasIpv6) && address !== endpoint && !within(routes);
  });
  return [...routes, ...services].map(formatCidr);
}
