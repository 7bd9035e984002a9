/** VPN peers of a tenant, and the files that are made of them. */
import type { Handlers } from '../call.ts';
import { artifactRoutes } from './downloads.ts';
import { linkRoutes } from './links.ts';
import { peerRoutes } from './peers.ts';
import type { Forage } from './vpn.ts';

export const vpnRoutes = (forage: Forage) =>
  ({ ...peerRoutes(forage), ...linkRoutes(forage), ...artifactRoutes(forage) }) satisfies Partial<Handlers>;
