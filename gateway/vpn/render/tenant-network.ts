/**
 * Files of peers whose network a host of the cluster serves (ADR 52): the tunnel leads to the
 * containers of the tenant and to its other peers, whose names the resolvers of that host know.
 * Pure.
 */
import { poolsOf } from '../../../schemas/api/network.ts';
import { internalDomain, resolverAddresses, type TenantRanges } from '../../../schemas/tenant-network.ts';
import type { Subject } from './subject.ts';

/** A peer has the resolvers that it names itself, if it names any. */
export function joined(subject: Subject, { ipv4, ipv6 }: TenantRanges): Subject {
  const { peer, network } = subject;
  const { settings, host } = network;
  const reached = [ipv4, settings.ipv6_pool === null ? null : ipv6].filter((range) => range !== null);
  if (host === undefined || settings.tenant_network === false || reached.length === 0) return subject;
  return {
    ...subject,
    peer: { ...peer, routes: null },
    network: {
      ...network,
      settings: {
        ...settings,
        routes: [...reached, ...poolsOf(settings)],
        dns: [...resolverAddresses(reached, 0), ...resolverAddresses(reached, 1)],
        search_domains: [internalDomain, ...(settings.search_domains ?? [])],
        // The host leads to no other address.
        proxy: null,
      },
    },
  };
}
