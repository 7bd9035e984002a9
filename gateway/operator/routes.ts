/** Routes of operators: tenants and their containers, hosts, VPN networks, seals. */
import type { Handlers } from '../call.ts';
import type { Forage } from '../vpn/vpn.ts';
import { hostRoutes, type HostRoutesOptions } from './hosts.ts';
import { networkRoutes } from './networks.ts';
import { resealRoutes } from './reseal.ts';
import { tenantRoutes, type TenantRoutesOptions } from './tenants.ts';

export const operatorRoutes = (options: TenantRoutesOptions & HostRoutesOptions & { readonly forage: Forage }) =>
  ({
    ...tenantRoutes(options),
    ...hostRoutes(options),
    ...networkRoutes(options.forage),
    ...resealRoutes(options.forage),
  }) satisfies Partial<Handlers>;
