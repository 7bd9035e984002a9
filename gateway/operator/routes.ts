/** Routes of operators: tenants, their containers, events and usage, hosts, VPN networks, seals. */
import type { Handlers } from '../call.ts';
import type { Forage } from '../vpn/vpn.ts';
import { operatorEvents, type OperatorEventsOptions } from './events.ts';
import { hostRoutes, type HostRoutesOptions } from './hosts.ts';
import { networkRoutes } from './networks.ts';
import { resealRoutes } from './reseal.ts';
import { tenantRoutes, type TenantRoutesOptions } from './tenants.ts';
import { operatorUsage, type OperatorUsageOptions } from './usage.ts';

export const operatorRoutes = (
  options: TenantRoutesOptions &
    HostRoutesOptions &
    OperatorEventsOptions &
    OperatorUsageOptions & { readonly forage: Forage },
) =>
  ({
    ...tenantRoutes(options),
    ...hostRoutes(options),
    ...networkRoutes(options.forage),
    ...resealRoutes(options.forage),
    'event.stream_all': operatorEvents(options),
    'usage.find': operatorUsage(options),
  }) satisfies Partial<Handlers>;
