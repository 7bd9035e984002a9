/**
 * Agent → any gateway, `agent.<host>.<user key>.unseal` (request): a value that one of its
 * containers needs. The gateway asks the tenant's owner whether it may have it, opens it, and seals
 * it again to the key that the agent names (ADR 37).
 *
 * The key travels in the ask, and other users of the account CP could publish on that subject. So
 * the agent signs the ask with its enrolled NATS user key, and sends the JWT by which the account
 * HOSTS gave that key to this host (lib/nats/host-proof.ts).
 */
import Type, { type Static, type TNever, type TOptional } from 'typebox';
import { registryPattern } from '../api/fields/container.ts';
import { FileHash } from '../api/fields/files-part.ts';
import { nullable } from '../api/nullable.ts';
import { SecretUse } from '../api/secret.ts';
import { ContainerId, NetworkName, PeerId, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { WireguardKey } from './wireguard-key.ts';
import { KiB } from '../limits/units.ts';

/** Of the JWT of a host's user, which has about 1,100. */
const hostJwtChars = 8 * KiB;
/** Characters of a sealed value for a host: base64 of base64 of the largest, and a margin. */
export const unsealBoxChars = 128 * KiB;
/** Characters of a certificate, or of its key. */
const pemChars = 16 * KiB;

const Protocol = Type.Optional(Type.Integer());

/** A public curve key of nkeys. */
export const CurveKey = Type.String({ pattern: '^X[A-Z2-7]{55}$' });

/**
 * That the enrolled agent of a host has asked: its signature (Ed25519, base64url), over the ask and
 * the time, by the key for which the account HOSTS issued this JWT.
 */
export const HostProof = Type.Object({
  /** By the agent's clock, in milliseconds since 1970. */
  atMs: Type.Integer({ minimum: 0 }),
  jwt: Type.String({ maxLength: hostJwtChars, pattern: '^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$' }),
  signature: Type.String({ pattern: '^[A-Za-z0-9_-]{86}$' }),
});
export type HostProof = Static<typeof HostProof>;

const askFields = {
  v: Type.Literal(1),
  protocol: Protocol,
  /** Public key that the answer is sealed to. */
  key: CurveKey,
  proof: HostProof,
};
const without = <F extends 'tenant' | 'id' | 'secret' | 'registry' | 'file' | 'peer' | 'network'>(
  ...names: readonly F[]
) =>
  Object.fromEntries(names.map((name) => [name, Type.Optional(Type.Never())])) as {
    readonly [N in F]: TOptional<TNever>;
  };
const ofContainer = {
  tenant: TenantId,
  /** The container that needs it. */
  id: ContainerId,
  ...without('peer', 'network'),
};
export const UnsealAsk = Type.Union([
  Type.Object({ ...askFields, ...ofContainer, ...without('registry', 'file'), secret: SecretUse }),
  Type.Object({
    ...askFields,
    ...ofContainer,
    ...without('secret', 'file'),
    registry: Type.String({ pattern: registryPattern, maxLength: limits.imageNameChars }),
  }),
  /** A file of its document; the content of its box is that of a secret. */
  Type.Object({ ...askFields, ...ofContainer, ...without('secret', 'registry'), file: FileHash }),
  /** The preshared key and the certificate of a VPN peer, for the host that serves its network. */
  Type.Object({
    ...askFields,
    ...without('id', 'secret', 'registry', 'file', 'network'),
    tenant: TenantId,
    peer: PeerId,
  }),
  /** The private keys and the certificate of a VPN network, for the host that serves it. */
  Type.Object({
    ...askFields,
    ...without('tenant', 'id', 'secret', 'registry', 'file', 'peer'),
    network: NetworkName,
  }),
]);
export type UnsealAsk = Static<typeof UnsealAsk>;
/** An ask before its proof. Distributes over the union. */
export type UnprovedAsk = UnsealAsk extends infer A ? (A extends UnsealAsk ? Omit<A, 'proof'> : never) : never;

/**
 * - `refused`: no container of that tenant here uses it, the sender's key is not the enrolled one,
 *   or the proof does not hold. The same ask gets the same answer until the desired set changes.
 * - `unavailable`: the owner or the gateway's vault can't say now, or the agent has to be upgraded
 *   first. Ask again after a pause, as after no answer.
 */
export const UnsealAnswer = Type.Union([
  Type.Object({
    protocol: Protocol,
    ok: Type.Literal(true),
    /** Base64url of a `SealedBox`; `null` if the tenant has no login for this registry. */
    box: nullable(Type.String({ maxLength: unsealBoxChars, pattern: '^[A-Za-z0-9_-]*$' })),
  }),
  Type.Object({
    protocol: Protocol,
    ok: Type.Literal(false),
    error: Type.Enum(['invalid', 'refused', 'unavailable']),
    /** The reason, for the agent's log and the container's message. */
    message: Type.Optional(Type.String({ maxLength: 1000 })),
  }),
]);
export type UnsealAnswer = Static<typeof UnsealAnswer>;

/**
 * A box begins with the public curve key of its sender, in its 56 characters; what nkeys sealed
 * follows.
 */
export const senderKeyBytes = 56;

/** Content of a box of a secret, as JSON. */
export const UnsealedSecret = Type.Object({ value: Type.String({ description: 'Base64.' }) });
export type UnsealedSecret = Static<typeof UnsealedSecret>;

const Pem = Type.String({ minLength: 1, maxLength: pemChars });

/** The identity of a VPN server, or of one of its peers, in IKEv2. */
export const IkeCredentials = Type.Object({
  /** Its name or address, as its certificate has it. */
  id: Type.String({ minLength: 1, maxLength: 253 }),
  certificate: Pem,
  /** Of the certificate, as in the network's record. */
  serial: Type.String({ maxLength: 64 }),
  /** Of a server alone. */
  private_key: Type.Optional(Pem),
});
export type IkeCredentials = Static<typeof IkeCredentials>;

/** Content of a box of a key of WireGuard, as JSON: base64. */
export const UnsealedKey = Type.Object({ key: WireguardKey, ike: IkeCredentials });
export type UnsealedKey = Static<typeof UnsealedKey>;

/** Content of a box of a login, as JSON. `version` rises with every change. */
export const UnsealedLogin = Type.Object({
  username: Type.String(),
  password: Type.String(),
  version: Type.Integer({ minimum: 1 }),
});
export type UnsealedLogin = Static<typeof UnsealedLogin>;
