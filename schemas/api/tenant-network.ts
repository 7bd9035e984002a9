/** The network of a tenant: its ranges, and the names of its members (ADR 51). */
import Type, { type Static } from 'typebox';
import { ContainerId, isContainerId } from '../ids.ts';
import { internalDomain } from '../tenant-network.ts';
import { nullable } from './nullable.ts';

/** `GET /api/v2/network` */
export const TenantNetwork = Type.Object(
  {
    ipv4: nullable(Type.String({ description: 'Range of addresses, as CIDR. Null if the cluster has none of IPv4.' })),
    ipv6: Type.String({ description: 'Range of addresses, as CIDR; it is the cluster’s, for all tenants.' }),
    domain: Type.String({ description: `Names are below it, and hold without it: \`${internalDomain}\`.` }),
    members: Type.Integer({ minimum: 0, description: 'Number of containers in the network.' }),
  },
  { additionalProperties: false },
);
export type TenantNetwork = Static<typeof TenantNetwork>;

/** An item of `GET /api/v2/network/names` */
export const TenantName = Type.Object(
  {
    name: Type.String({ description: 'A DNS label, in lower case.' }),
    container_id: ContainerId,
    kind: Type.Enum(['alias', 'name'], {
      description: '`name`: for all containers of the tenant. `alias`: for those of the project, before names.',
    }),
    project: nullable(Type.String({ description: 'That of the container.' })),
    ipv4: nullable(Type.String()),
    ipv6: Type.String(),
  },
  { additionalProperties: false },
);
export type TenantName = Static<typeof TenantName>;

/** In the order of the list: by name, an alias before a name. */
export const keyOfName = ({ name, kind, project, container_id: id }: Omit<TenantName, 'ipv4' | 'ipv6'>): string =>
  `${name} ${kind} ${project ?? ''} ${id}`;

export function isNameKey(text: string): boolean {
  const [name, kind, , id, ...rest] = text.split(' ');
  return name !== '' && (kind === 'alias' || kind === 'name') && id !== undefined && isContainerId(id) && !rest.length;
}
