/** Handlers for current and past usage of containers, and for the traffic of VPN peers. */
import type { Handlers } from '../call.ts';
import { statsHandler, type StatsRouteOptions } from './handler.ts';
import { peerTraffic, type PeerTrafficOptions } from './peer-traffic.ts';
import { usageRoutes, type UsageRoutesOptions } from './usage.ts';

export const statsRoutes = (options: StatsRouteOptions & UsageRoutesOptions & PeerTrafficOptions) =>
  ({
    'container.stats': statsHandler(options),
    'container.stats.stream': statsHandler(options),
    ...usageRoutes(options),
    'peer.traffic': peerTraffic(options),
  }) satisfies Partial<Handlers>;
