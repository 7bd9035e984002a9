/**
 * Files of peers whose network a host of the cluster serves (ADR 52): the tunnel leads to the
 * containers of the tenant and to its other peers, whose names the resolvers of that host know; and
 * to the internet, if the routes of both network and peer do. Pure.
 */
import { leadsOut, poolsOf } from '../../../schemas/api/network.ts';
import { internalDomain, resolverAddresses, type TenantRanges } from '../../../schemas/tenant-network.ts';
import type { Subject } from './subject.ts';

/** A peer has the resolvers that it names itself, if it names any. */
export function joined(subject: Subject, { ipv4, ipv6 }: TenantRanges): Subject {
  const { peer, network } = subject;
  const { settings, host } = network;
  const reached = [ipv4, settings.ipv6_pool === null ? null : ipv6].filter((range) => range !== null);
  if (host === undefined || settings.tenant_network === false || reached.length === 0) return subject;
  const own = peer.routes ?? settings.routes;
  const isLetOut = leadsOut(settings.routes) && leadsOut(own);
  return {
    ...subject,
    peer: { ...peer, routes: null },
    network: {
      ...network,
      settings: {
        ...settings,
        // More specific ones are in it; a device that sends IPv6 past the tunnel would be seen.
        routes: isLetOut ? own.filter((route) => route.endsWith('/0')) : [...reached, ...poolsOf(settings)],
        dns: [...resolverAddresses(reached, 0), ...resolverAddresses(reached, 1)],
        search_domains: [internalDomain, ...(settings.search_domains ?? [])],
        // Where the host leads to no other address, nothing reaches it.
        proxy: isLetOut ? settings.proxy : null,
      },
    },
  };
}
