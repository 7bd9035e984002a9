/** Routes of operators: tenants and their containers, hosts, VPN networks. */
import type { Handlers } from '../call.ts';
import type { Forage } from '../vpn/vpn.ts';
import { hostRoutes, type HostRoutesOptions } from './hosts.ts';
import { networkRoutes } from './networks.ts';
import { tenantRoutes, type TenantRoutesOptions } from './tenants.ts';

export const operatorRoutes = (options: TenantRoutesOptions & HostRoutesOptions & { readonly forage: Forage }) =>
  ({
    ...tenantRoutes(options),
    ...hostRoutes(options),
    ...networkRoutes(options.forage),
  }) satisfies Partial<Handlers>;
