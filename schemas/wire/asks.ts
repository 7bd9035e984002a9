/**
 * What gateways, tools and other owners ask the owner of a partition.
 */
import type { ContainerSpec, Idempotency, OperatorFields } from '../api/container.ts';
import type { ListCursor } from '../api/cursor.ts';
import type { HostUpdate } from '../api/host.ts';
import type { ContainerId, TenantId, HostKey, NetworkName, PeerId, PeerTokenId, OperationId, Region } from '../ids.ts';
import type { KeptCertificate, NetworkRecord, NetworkSettings, PeerOnServer, Sealed } from '../api/network.ts';
import type { PeerKeys, PeerRecord, PeerRevocation, PeerToken, SecretPlace } from '../api/peer.ts';
import type { Revocation, TenantSettings } from '../api/tenant.ts';

/** Rides on every ask: the id of the HTTP request, and how long its sender still waits. */
interface Ride {
  readonly rid: string;
  readonly budgetMs: number;
}
interface OfTenant {
  readonly tenant: TenantId;
}
interface OfContainer extends OfTenant {
  readonly id: ContainerId;
}
interface OfHost {
  readonly host: HostKey;
}
interface OfPeer extends OfTenant {
  readonly peer: PeerId;
}
/** `by`: whose request it is; not `tenant`, which would be the key that the ask goes by. */
interface OfNetwork {
  readonly network: NetworkName;
}
interface ByPeer {
  readonly by: { readonly tenant: TenantId; readonly peer: PeerId };
}
interface Write {
  readonly op: OperationId;
}

/**
 * What the stream EVENTS may not show yet: committed and not published, or published a moment ago.
 * `container`: null for all of the tenant's. `from`: the newest before an event's id (null: of
 * all), or the oldest after one (empty: of all).
 */
export interface RecentAsk {
  readonly type: 'event.recent';
  readonly tenant: TenantId;
  readonly container: ContainerId | null;
  readonly from: { readonly before: string | null } | { readonly after: string };
  readonly limit: number;
}

export type ReadAsk = Ride &
  (
    | ({ type: 'container.list'; limit: number; before: ListCursor | null } & OfTenant)
    | ({ type: 'container.get' } & OfContainer)
    | ({ type: 'container.status' } & OfContainer)
    /** Body: `ContainerTrace`. Answers for seven days after the container is gone. */
    | ({ type: 'container.trace' } & OfContainer)
    | ({ type: 'container.inspect' } & OfContainer)
    /** Body: `{"data":RecentEvents}`. */
    | RecentAsk
    | ({ type: 'tenant.quota'; region: string } & OfTenant)
    | ({ type: 'tenant.get' } & OfTenant)
    | ({ type: 'host.get' } & OfHost)
    /** Body: `KeyPage` of HostView: hosts of one partition by key, from after this one on. */
    | { type: 'host.list'; partition: number; limit: number; after: string }
    /**
     * Body: `RevocationPage` of the tenants of one partition: what changed since `after`, which is
     * the `next` of an earlier page; null: all.
     */
    | { type: 'revocation.list'; partition: number; after: string | null }
    | ({ type: 'peer.list'; limit: number; before: ListCursor | null } & OfTenant)
    | ({ type: 'peer.get' } & OfPeer)
    /**
     * Answered as the create itself would be, short of making anything: name taken, over quota, or
     * `ok`.
     */
    | ({ type: 'peer.check'; name: string } & OfTenant)
    /**
     * Body: `{"data":PeerRecord}`: what files are made from. `tokenHash`: asked with a token of the
     * peer, which may have ended since it was resolved; then `unauthenticated`.
     */
    | ({ type: 'peer.material'; tokenHash?: string } & OfPeer)
    /**
     * Body: `{"data":PeerGrant}`; `unauthenticated` for every token that is not good, whatever the
     * reason.
     */
    | { type: 'token.resolve'; partition: number; hash: string }
    /** Body: `{"data":PeerCount}` of the tenants of one partition. */
    | { type: 'peer.count'; partition: number }
    | ({ type: 'network.get' } & OfNetwork)
    /**
     * Body: `KeyPage` of NetworkView: networks of one partition by name, from after this one on.
     */
    | { type: 'network.list'; partition: number; limit: number; after: string }
    /** Body: `{"data":NetworkRecord}`. */
    | ({ type: 'network.material' } & OfNetwork)
    /**
     * Body: `{"data":[LeaseRecord...],"next":index|null}`: leases that are held, by index, from
     * `after` on.
     */
    | ({ type: 'network.leases'; after: number } & OfNetwork)
    /**
     * Body: `{"data":[RevocationEntry...],"next":serial|null,"now_ms":n}`, by serial, from `after`
     * on.
     */
    | ({ type: 'network.revocations'; after: string } & OfNetwork)
    /**
     * Body: `{"data":[StaleSecret...]}`: at most a page of those that are not sealed under this
     * key.
     */
    | { type: 'secret.stale'; partition: number; keyId: string }
  );

export type WriteAsk = Ride &
  Write &
  (
    | ({
        type: 'container.create';
        spec: ContainerSpec;
        idempotency: Pick<Idempotency, 'key' | 'bodyHash'> | null;
      } & OfContainer)
    | ({ type: 'container.start' } & OfContainer)
    | ({ type: 'container.stop' } & OfContainer)
    | ({ type: 'container.delete' } & OfContainer)
    | ({ type: 'container.operate'; fields: OperatorFields } & OfContainer)
    /**
     * `repair`: take the place of a damaged record, with this revocation; without it, `conflict`
     * where it is damaged.
     */
    | ({ type: 'tenant.put'; settings: TenantSettings; repair?: Revocation | null } & OfTenant)
    | ({ type: 'tenant.revoke'; revocation: Revocation } & OfTenant)
    | ({ type: 'host.create'; region: Region; joinTokenHash: string } & OfHost)
    | ({ type: 'host.join_token'; joinTokenHash: string } & OfHost)
    | ({ type: 'host.update'; update: HostUpdate } & OfHost)
    /**
     * `conflict` where it is neither drained nor lost, unless forced; `dead`: the operator knows
     * that nothing runs there.
     */
    | ({ type: 'host.remove'; force?: boolean; dead?: boolean } & OfHost)
    /** Body: `{"data":Enrolment}`. */
    | ({ type: 'host.enrol'; joinTokenHash: string; publicKey: string } & OfHost)
    | ({
        type: 'peer.create';
        made: Pick<
          PeerRecord,
          | 'name'
          | 'network'
          | 'index'
          | 'ipv4'
          | 'ipv6'
          | 'expiresAtMs'
          | 'routes'
          | 'dns'
          | 'localId'
          | 'p12Password'
          | 'tokens'
          | 'wireguard'
          | 'certificate'
        >;
      } & OfPeer)
    | ({ type: 'peer.update'; update: PeerUpdate } & OfPeer)
    /**
     * New keys, password and tokens; the certificate before is revoked, every token before ends.
     * `conflict` where `replaces` is no longer the serial in use. A gateway from before 0.1.0
     * sends neither password nor tokens.
     */
    | ({
        type: 'peer.rotate';
        replaces: string;
        keys: PeerKeys;
        p12Password?: Sealed;
        tokens?: readonly PeerToken[];
      } & OfPeer)
    /** The same key, certified for longer. `conflict` as above. Body: `{"data":PeerRecord}`. */
    | ({ type: 'peer.certify'; replaces: string; certificate: KeptCertificate } & OfPeer)
    | ({ type: 'peer.password'; p12Password: Sealed } & OfPeer)
    | ({ type: 'peer.token.create'; token: PeerToken } & OfPeer)
    | ({ type: 'peer.token.remove'; token: PeerTokenId } & OfPeer)
    | ({ type: 'peer.remove' } & OfPeer)
    /**
     * From a network whose reservation has lapsed, or whose lease no peer has confirmed since a
     * restore: body `{"data":{"there":bool}}`; where it is not, it shall never be.
     */
    | ({ type: 'peer.forgo' } & OfPeer)
    | ({
        type: 'network.create';
        made: Pick<NetworkRecord, 'settings' | 'wireguard' | 'ca' | 'server' | 'nameConstraints'>;
      } & OfNetwork)
    /**
     * `server`: a new certificate where the endpoint changed. `conflict` where the pools change.
     * `keepsTenants`: the tenants of now stay, whatever the settings say.
     */
    | ({
        type: 'network.put';
        settings: NetworkSettings;
        server: KeptCertificate | null;
        keepsTenants?: boolean;
      } & OfNetwork)
    /**
     * Renewal. `conflict` where `replaces` is no longer the serial in use. Body:
     * `{"data":NetworkRecord}`.
     */
    | ({ type: 'network.certify'; which: 'ca' | 'server'; replaces: string; certificate: KeptCertificate } & OfNetwork)
    | ({ type: 'network.remove' } & OfNetwork)
    /** Body: `{"data":Reservation}`. The same peer gets the same address however often it asks. */
    | ({ type: 'network.reserve' } & OfNetwork & ByPeer)
    /** Gives back a reservation; one that has become a lease stays. */
    | ({ type: 'network.release' } & OfNetwork & ByPeer)
    /**
     * From the peer's actor, until it is acknowledged: what the network should hold of it. Older
     * ones are ignored, and those from before a restore are refused. Body:
     * `{"data":{"problem":PeerProblem|null}}`.
     */
    | ({ type: 'network.learn'; told: PeerTold; incarnation?: number } & OfNetwork & ByPeer)
    /** Replaces what is still as `before`; body `{"data":{"replaced":n}}`. */
    | {
        type: 'secret.replace';
        partition: number;
        items: readonly { readonly place: SecretPlace; readonly before: Sealed; readonly after: Sealed }[];
      }
  );

/** What is absent stays as it is. */
export type PeerUpdate = Partial<Pick<PeerRecord, 'name' | 'enabled' | 'expiresAtMs' | 'routes' | 'dns'>>;

export type PeerTold = {
  /** To be refused from now on. */
  readonly revoked: readonly PeerRevocation[];
} & (
  | ({ readonly there: true; readonly index: number } & PeerOnServer)
  | { readonly there: false; readonly generation: number }
);

export type Ask = ReadAsk | WriteAsk;

/** The key whose partition an ask goes to, or the partition itself. */
export const addressOf = (ask: Ask): string | number =>
  'tenant' in ask ? ask.tenant : 'host' in ask ? ask.host : 'network' in ask ? ask.network : ask.partition;
