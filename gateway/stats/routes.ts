/** What containers use now, and what they used. */
import type { Handlers } from '../call.ts';
import { statsHandler, type StatsRouteOptions } from './handler.ts';
import { usageRoutes, type UsageRoutesOptions } from './usage.ts';

export const statsRoutes = (options: StatsRouteOptions & UsageRoutesOptions) =>
  ({
    'container.stats': statsHandler(options),
    'container.stats.stream': statsHandler(options),
    ...usageRoutes(options),
  }) satisfies Partial<Handlers>;
