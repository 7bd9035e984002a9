/** Ids and names. Each has a branded type, so that a host key cannot be passed for a tenant id. */
import Type from 'typebox';
import { networkNamePattern, uuidPattern } from './words.ts';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** `^[A-Za-z0-9_-]{1,64}$`: checked before it becomes part of a NATS subject. */
export type TenantId = Branded<'TenantId'>;
/** UUIDv7 (RFC 9562), lower case. */
export type ContainerId = Branded<'ContainerId'>;
/** `^[a-z0-9][a-z0-9-]{0,62}$`: one token of a NATS subject, and a readable name. */
export type HostKey = Branded<'HostKey'>;
/** UUIDv7, lower case: a VPN peer. */
export type PeerId = Branded<'PeerId'>;
/** UUIDv7, lower case: the id of a download or PAC token or a link of a peer, not its secret. */
export type PeerTokenId = Branded<'PeerTokenId'>;
/** UUIDv7, lower case: an API token of a tenant, and its `jti`. */
export type KeyId = Branded<'KeyId'>;
/**
 * `^[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?$`: a VPN network. The name also fits an interface's name,
 * a token of a NATS subject and a DNS label.
 */
export type NetworkName = Branded<'NetworkName'>;
/**
 * A random UUID: an actors process while its lease is valid. After that it becomes another member.
 */
export type MemberId = Branded<'MemberId'>;
/** The gateway gives one to every write; the outcome of the operation is stored under it. */
export type OperationId = Branded<'OperationId'>;
/** `^[a-z0-9][a-z0-9-]{0,31}$` */
export type Region = Branded<'Region'>;

export const tenantIdPattern = '^[A-Za-z0-9_-]{1,64}$';
export const hostKeyPattern = '^[a-z0-9][a-z0-9-]{0,62}$';
export const regionPattern = '^[a-z0-9][a-z0-9-]{0,31}$';
/** The name of an environment variable. */
export const envKeyPattern = '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$';
export const operationIdPattern = '^[A-Za-z0-9_-]{16,64}$';

export const TenantId = Type.Unsafe<TenantId>(Type.String({ pattern: tenantIdPattern }));
export const ContainerId = Type.Unsafe<ContainerId>(Type.String({ pattern: uuidPattern, format: 'uuid' }));
export const PeerId = Type.Unsafe<PeerId>(Type.String({ pattern: uuidPattern, format: 'uuid' }));
export const PeerTokenId = Type.Unsafe<PeerTokenId>(Type.String({ pattern: uuidPattern, format: 'uuid' }));
export const KeyId = Type.Unsafe<KeyId>(Type.String({ pattern: uuidPattern, format: 'uuid' }));
export const NetworkName = Type.Unsafe<NetworkName>(Type.String({ pattern: networkNamePattern }));
export const HostKey = Type.Unsafe<HostKey>(Type.String({ pattern: hostKeyPattern }));
export const Region = Type.Unsafe<Region>(Type.String({ pattern: regionPattern }));
export const OperationId = Type.Unsafe<OperationId>(Type.String({ pattern: operationIdPattern }));

const matches = (pattern: string) => {
  const regexp = new RegExp(pattern);
  return (text: string) => regexp.test(text);
};

const isTenant = matches(tenantIdPattern);
const isUuid = matches(uuidPattern);
const isNetwork = matches(networkNamePattern);
const isHost = matches(hostKeyPattern);

export const isTenantId = (text: string): text is TenantId => isTenant(text);
export const isContainerId = (text: string): text is ContainerId => isUuid(text);
export const isPeerId = (text: string): text is PeerId => isUuid(text);
export const isKeyId = (text: string): text is KeyId => isUuid(text);
export const isNetworkName = (text: string): text is NetworkName => isNetwork(text);
export const isHostKey = (text: string): text is HostKey => isHost(text);
