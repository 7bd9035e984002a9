import type { DesiredNetwork, KnownNames } from '../../../schemas/wire/net.ts';

/** The part of the desired network that the resolvers need. Pure. */
export function namesKnown({
  ranges,
  attached,
  members,
  vpn,
}: Pick<DesiredNetwork, 'ranges' | 'attached' | 'members' | 'vpn'>): KnownNames {
  const projects = new Map(members.map(({ id, project }) => [id, project]));
  const containers = attached.map(({ id, tenant, ipv4, ipv6 }) => ({
    tenant,
    project: projects.get(id) ?? null,
    ipv4,
    ipv6,
  }));
  // A peer asks the resolvers of the host that serves its network.
  const served = vpn.filter(({ server }) => server !== null);
  const peers = served.flatMap((network) =>
    network.peers.map(({ tenant, ipv4, ipv6 }) => ({ tenant, project: null, ipv4, ipv6 })),
  );
  return { ranges, askers: [...containers, ...peers], members };
}
