/**
 * The desired state of a host's kernel for the tenant network (ADR 51): the addresses of the
 * containers that run here, and who may reach whom. The agent sends it whole; the program
 * `longshore-net` keeps the last one on disk and makes the kernel so.
 */
import Type, { type Static } from 'typebox';
import { nullable } from '../api/nullable.ts';
import { ContainerId, HostKey, NetworkName, TenantId } from '../ids.ts';
import { ContainerMember } from './members.ts';
import { HostEnd, MeshEnd } from './mesh.ts';
import { IkeCredentials } from './unseal.ts';
import { WireguardKey } from './wireguard-key.ts';

const Ipv4 = Type.String({ format: 'ipv4' });
const Ipv6 = Type.String({ format: 'ipv6' });

const sandbox = {
  /** The file of its network namespace, as the engine names it. */
  namespace: Type.String({ pattern: '^/[^\\0]+$', maxLength: 4096 }),
  /** Another one after each start of the sandbox. */
  run: Type.String({ minLength: 1, maxLength: 256 }),
};

/** Addresses of a container, for its life. `ipv4` is null where the cluster has none to give. */
const addresses = { ipv4: nullable(Ipv4), ipv6: Ipv6 };

/** A container that runs on this host. */
export const Attachment = Type.Object({
  id: ContainerId,
  tenant: TenantId,
  ...sandbox,
  ...addresses,
});
export type Attachment = Static<typeof Attachment>;

/** A container of a tenant that has containers here: what its names lead to. */
export const NamedMember = Type.Object({ ...ContainerMember.properties, ...addresses });
export type NamedMember = Static<typeof NamedMember>;

const ikeIdentity = { id: IkeCredentials.properties.id, certificate: IkeCredentials.properties.certificate };

/** A VPN network that tenants with containers here have peers in, or that this host serves. */
export const VpnNetwork = Type.Object({
  name: NetworkName,
  /** That serves it. */
  host: HostKey,
  pools: Type.Array(Type.String(), { minItems: 1, maxItems: 2 }),
  /** `true` if its peers reach the internet by the way out of the host that serves it. */
  internet: Type.Optional(Type.Boolean()),
  /** `null` if another host serves it, or if its key is not here yet. */
  server: nullable(
    Type.Object({
      port: Type.Integer({ minimum: 1, maximum: 65_535 }),
      mtu: nullable(Type.Integer({ minimum: 1280, maximum: 9216 })),
      private_key: WireguardKey,
      /** The keys for IKEv2; absent if they are not here. */
      ike: Type.Optional(Type.Object({ ...ikeIdentity, private_key: IkeCredentials.properties.certificate })),
    }),
  ),
  peers: Type.Array(
    Type.Object({
      tenant: TenantId,
      ipv4: Ipv4,
      ipv6: nullable(Ipv6),
      /** The public one. */
      key: WireguardKey,
      /**
       * `null` if another host serves it, or if it is not here yet; the peer then does not connect.
       */
      preshared_key: nullable(WireguardKey),
      /** Its identity in IKEv2; absent if it is not here, or if another host serves the network. */
      ike: Type.Optional(Type.Object(ikeIdentity)),
    }),
  ),
});
export type VpnNetwork = Static<typeof VpnNetwork>;

export const DesiredNetwork = Type.Object({
  v: Type.Literal(1),
  /** The agent: its cluster and its host. Desired states of another agent are refused. */
  owner: Type.String({ minLength: 1, maxLength: 512 }),
  /** Ranges of the cluster, as CIDR; `ipv4` is null where the operator gave none. */
  ranges: Type.Object({ ipv4: nullable(Type.String()), ipv6: Type.String() }),
  mtu: Type.Integer({ minimum: 1280, maximum: 9216 }),
  attached: Type.Array(Attachment),
  /** Other hosts; `null` if this host is in no mesh. */
  mesh: nullable(
    Type.Object({
      /** UDP port of this host's end. */
      port: Type.Integer({ minimum: 1, maximum: 65_535 }),
      /** Of two hosts that claim one key, the first here has it. */
      ends: Type.Array(HostEnd),
    }),
  ),
  /** Of every tenant of an attached container. */
  members: Type.Array(NamedMember),
  vpn: Type.Array(VpnNetwork),
  /** The sandbox by which VPN peers reach the internet; absent: there is none. */
  way_out: Type.Optional(Type.Object(sandbox)),
});
export type DesiredNetwork = Static<typeof DesiredNetwork>;

const Bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** By VPN network that this host serves: its peers, as its interface reports them. */
export const ServedPeers = Type.Record(
  Type.String(),
  Type.Object({
    /** Another one for each interface that is made; its counters begin at 0. */
    link: Type.String({ minLength: 1 }),
    peers: Type.Array(
      Type.Object({
        /** The public one. */
        key: WireguardKey,
        /** Seconds since 1970; 0: none. */
        handshake: Bytes,
        rx_bytes: Bytes,
        tx_bytes: Bytes,
        endpoint: nullable(Type.String()),
      }),
    ),
  }),
);
export type ServedPeers = Static<typeof ServedPeers>;

/** The names that `longshore-net` gives to the resolvers of its host. It holds no key. */
export const KnownNames = Type.Object({
  ranges: DesiredNetwork.properties.ranges,
  /** The containers and the VPN peers that ask here. */
  askers: Type.Array(
    Type.Object({
      tenant: TenantId,
      /** The project whose aliases it knows beside the names of its tenant; `null` if none. */
      project: nullable(Type.String()),
      ipv4: nullable(Ipv4),
      ipv6: nullable(Ipv6),
    }),
  ),
  members: Type.Array(NamedMember),
});
export type KnownNames = Static<typeof KnownNames>;

/** The answer of `longshore-net` after a pass. */
export const NetworkState = Type.Object({
  /** By container: `null`, or why it is not attached. */
  attached: Type.Record(Type.String(), nullable(Type.String())),
  /** This host's end of the mesh; `null` if none was asked for. */
  mesh: nullable(
    Type.Object({
      /** Its public key. */
      key: MeshEnd.properties.key,
      /** `null`, or why the mesh does not work. */
      message: nullable(Type.String()),
    }),
  ),
  /** By VPN network that this host serves: `null`, or why it does not work. */
  vpn: Type.Record(Type.String(), nullable(Type.String())),
  /** The reason why the way out does not work; absent if it works, or if none was asked for. */
  way_out: Type.Optional(Type.String()),
});
export type NetworkState = Static<typeof NetworkState>;
