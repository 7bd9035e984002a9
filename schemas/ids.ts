/** The names of things. Every id is branded, so that a host key can't be handed where a tenant id is meant. */
import Type from 'typebox';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** `^[A-Za-z0-9_-]{1,64}$`: checked before it goes near a NATS subject. */
export type TenantId = Branded<'TenantId'>;
/** UUIDv7 (RFC 9562), lower case. */
export type ContainerId = Branded<'ContainerId'>;
/** `^[a-z0-9][a-z0-9-]{0,62}$`: one token of a NATS subject, and a name that a person reads. */
export type HostKey = Branded<'HostKey'>;
/** Given by the gateway to every write; the outcome of an operation is kept under it. */
export type OperationId = Branded<'OperationId'>;
/** `^[a-z0-9][a-z0-9-]{0,31}$` */
export type Region = Branded<'Region'>;

export const tenantIdPattern = '^[A-Za-z0-9_-]{1,64}$';
export const containerIdPattern = '^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$';
export const hostKeyPattern = '^[a-z0-9][a-z0-9-]{0,62}$';
export const regionPattern = '^[a-z0-9][a-z0-9-]{0,31}$';
export const operationIdPattern = '^[A-Za-z0-9_-]{16,64}$';

export const TenantId = Type.Unsafe<TenantId>(Type.String({ pattern: tenantIdPattern }));
export const ContainerId = Type.Unsafe<ContainerId>(Type.String({ pattern: containerIdPattern, format: 'uuid' }));
export const HostKey = Type.Unsafe<HostKey>(Type.String({ pattern: hostKeyPattern }));
export const Region = Type.Unsafe<Region>(Type.String({ pattern: regionPattern }));
export const OperationId = Type.Unsafe<OperationId>(Type.String({ pattern: operationIdPattern }));

const matches = (pattern: string) => {
  const regexp = new RegExp(pattern);
  return (text: string) => regexp.test(text);
};

const isTenant = matches(tenantIdPattern);
const isContainer = matches(containerIdPattern);
const isHost = matches(hostKeyPattern);

export const isTenantId = (text: string): text is TenantId => isTenant(text);
export const isContainerId = (text: string): text is ContainerId => isContainer(text);
export const isHostKey = (text: string): text is HostKey => isHost(text);
