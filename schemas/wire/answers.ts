/**
 * Bodies of answers that a program reads and that are not bodies of HTTP responses (schemas/api).
 * asks.ts says which ask has which.
 */
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import { ContainerStatus, ContainerStatusView, OperatorContainer } from '../api/container.ts';
import { AuditLine, Author } from '../api/audit/line.ts';
import type { Place } from '../api/cursor.ts';
import { EventBody } from '../api/event.ts';
import type { RevocationEntry } from '../api/network.ts';
import { nullable } from '../api/nullable.ts';
import { TokenScope, peerProblems } from '../api/peer.ts';
import {
  TenantId,
  type ContainerId,
  type HostKey,
  type NetworkName,
  type PeerId,
  type PeerTokenId,
  type Region,
} from '../ids.ts';
import { LeaseRecordShape, NetworkRecordShape, RevocationShape, SecretPlaceShape, id, shape } from './shapes.ts';
import type { Sealed, StaleSecret } from '../records/sealed.ts';
import { LoginView, SecretView } from '../api/secret.ts';

/** A schema of the API that accepts fields that the next release may add. */
export const open = <P extends TProperties>({ properties }: { readonly properties: P }): TObject<P> =>
  Type.Object(properties);

/**
 * The fields of a view that a program reads. The others reach the client as the owner wrote them.
 */
export const fieldsOf = <P extends TProperties, K extends keyof P & string>(
  { properties }: { readonly properties: P },
  ...names: readonly K[]
): TObject<Pick<P, K>> =>
  Type.Object(Object.fromEntries(names.map((name) => [name, properties[name]])) as unknown as Pick<P, K>);

/** Fields of a container's status that a wait reads. */
export const StatusSeen = Type.Object({
  ...fieldsOf(
    ContainerStatusView,
    'status',
    'desired',
    'generation',
    'host_key',
    'up_seconds',
    'message',
    'exit_code',
    'restart_count',
    'started_at',
    'restart_policy',
    'failures',
  ).properties,
  reason: nullable(Type.String()),
  observed_generation: Type.Integer(),
  move: Type.Optional(Type.Object({ phase: Type.String(), generation: Type.Optional(Type.Integer()) })),
  update: Type.Optional(
    Type.Object({ phase: Type.String(), generation: Type.Integer(), last_generation: Type.Integer() }),
  ),
});
export type StatusSeen = Static<typeof StatusSeen>;

/** `{"data": …}`, as in most bodies. */
export const dataOf = <S extends TSchema>(data: S) => Type.Object({ data });

/** `data` is null if the asker named the record's present version: its copy is current. */
export const materialOf = <S extends TSchema>(record: S) =>
  Type.Object({ data: nullable(record), version: Type.String() });

/** A page of the items of one partition, in the order of their keys. */
export interface KeyPage<T> {
  readonly data: readonly T[];
  readonly more: boolean;
}
export const keyPageOf = <S extends TSchema>(item: S) => Type.Object({ data: Type.Array(item), more: Type.Boolean() });

export const PlaceShape = shape<Place>()(
  Type.Object({
    tenant: id<TenantId>(),
    insertedAtMs: Type.Number(),
    id: Type.Union([id<ContainerId>(), Type.Literal('')]),
  }),
);

/** Filter of an operator's list of containers: absent fields let all pass. */
export const FindFilter = Type.Object({
  tenant: Type.Optional(id<TenantId>()),
  host: Type.Optional(id<HostKey>()),
  status: Type.Optional(ContainerStatus),
});
export type FindFilter = Static<typeof FindFilter>;

/** Filter of the overview: an absent field lets all pass. */
export const OverviewFilter = Type.Object({
  status: Type.Optional(Type.Array(Type.String())),
  name: Type.Optional(Type.Array(Type.String())),
  project: Type.Optional(Type.Array(Type.String())),
  host: Type.Optional(Type.Array(Type.String())),
});
export type OverviewFilter = Static<typeof OverviewFilter>;

/** A page of a tenant's items, as far as a gateway reads it. */
export const OverviewPage = Type.Object({
  data: Type.Array(Type.Object({ container: Type.Object({ id: id<ContainerId>(), name: Type.String() }) })),
  next_cursor: Type.Optional(Type.String()),
});

/** A place in the changes of a partition, in the memory of one owner. */
export const WatchPosition = Type.Object({ epoch: Type.Integer(), revision: Type.Integer() });
export type WatchPosition = Static<typeof WatchPosition>;

/** A page of a tenant's items, or of those that changed; `removed`: the id of one that is gone. */
export const WatchPage = Type.Object({
  data: Type.Array(
    Type.Union([Type.Object({ removed: id<ContainerId>() }), Type.Object({ container: Type.Object({}) })]),
  ),
  /** Of a page of all: as of then. */
  position: WatchPosition,
  /** Of a page of all: there are others. */
  next_cursor: Type.Optional(Type.String()),
  /** Of changes: there are others. */
  more: Type.Boolean(),
  /** The position is too old, or is not one of this memory: read all again. */
  reset: Type.Optional(Type.Enum(['expired', 'unknown'])),
});
export type WatchPage = Static<typeof WatchPage>;

/** Containers of one partition, and where the next page of it begins; null at its end. */
export const FoundContainers = Type.Object({
  data: Type.Array(fieldsOf(OperatorContainer)),
  next: nullable(PlaceShape),
});
export type FoundContainers = Static<typeof FoundContainers>;

/** The hosts that a container ran on, newest last; available for seven days after its removal. */
export const ContainerTrace = Type.Object({
  history: Type.Unsafe<readonly HostKey[]>(Type.Array(id<HostKey>())),
  gone: Type.Boolean(),
});
export type ContainerTrace = Static<typeof ContainerTrace>;

/**
 * Place where a container runs: its host, the agent's key there, and the generation of the
 * placement.
 */
export const SessionPlace = Type.Object({ host: id<HostKey>(), agent: Type.String(), placement: Type.Integer() });
export type SessionPlace = Static<typeof SessionPlace>;

/** Oldest first. Earlier events that are not among these are in the stream. */
export const RecentEvents = Type.Object({
  events: Type.Unsafe<readonly EventBody[]>(Type.Array(fieldsOf(EventBody, 'id', 'ts', 'type', 'container_id'))),
  /** Author of each of them. */
  by: Type.Array(nullable(open(Author))),
  /** True if there are more on the requested side. */
  more: Type.Boolean(),
  /** Number of the newest committed journal entry. */
  last: Type.Integer(),
});
export type RecentEvents = Static<typeof RecentEvents>;

/** Oldest first. Earlier lines that are not among these are in the stream. */
export const RecentLines = Type.Object({
  lines: Type.Unsafe<readonly AuditLine[]>(Type.Array(fieldsOf(AuditLine, 'id', 'ts', 'action', 'outcome'))),
  /** True if there are older ones that are not in the stream. */
  more: Type.Boolean(),
});
export type RecentLines = Static<typeof RecentLines>;

/**
 * Tenants whose revocations changed, and tenants whose record is damaged. `next` is the cursor of
 * the next page, even if there is nothing more for now.
 */
export const RevocationPage = Type.Object({
  data: Type.Array(RevocationShape),
  unreadable: Type.Array(TenantId),
  /**
   * This is the first page: a tenant that was unreadable and is not named now is readable again.
   */
  whole: Type.Boolean(),
  more: Type.Boolean(),
  next: Type.String(),
});
export type RevocationPage = Static<typeof RevocationPage>;

/** Grant of a token of a peer. A token can end at any time, so later asks name it again. */
export const PeerGrant = Type.Object({ tenant: id<TenantId>(), peer: id<PeerId>(), scope: TokenScope });
export type PeerGrant = Static<typeof PeerGrant>;

/**
 * Grant of a one-time link, to the first who redeems it, also when that one comes again. `untilMs`:
 * the end of its download token; `null` if nobody has redeemed it.
 */
export const LinkGrant = Type.Object({
  tenant: id<TenantId>(),
  peer: id<PeerId>(),
  link: id<PeerTokenId>(),
  name: Type.String(),
  network: id<NetworkName>(),
  untilMs: nullable(Type.Number()),
});
export type LinkGrant = Static<typeof LinkGrant>;

/** Counts the tenants of one partition. */
export const PeerCount = Type.Object({
  active: Type.Integer(),
  disabled: Type.Integer(),
  expired: Type.Integer(),
  /** Expiry of the first certificate in use by an active peer, in ms since 1970. */
  earliest: nullable(Type.Number()),
});
export type PeerCount = Static<typeof PeerCount>;

/** True if a peer exists. If it does not, it never will: its id has a tombstone. */
export const PeerThere = Type.Object({ there: Type.Boolean() });
export type PeerThere = Static<typeof PeerThere>;

/** Reason for which the network refuses the peer; `null` if it accepts the peer. */
export const Learned = Type.Object({ problem: nullable(Type.Enum([...peerProblems])) });
export type Learned = Static<typeof Learned>;

/** An address, and what a gateway needs of the network to make a peer's keys and files. */
export const Reservation = Type.Object({ network: NetworkRecordShape, index: Type.Integer() });
export type Reservation = Static<typeof Reservation>;

/** Leases in use, by index; `next`: the beginning of the next page, null at the end. */
export const LeasePage = Type.Object({ data: Type.Array(LeaseRecordShape), next: nullable(Type.Integer()) });
export type LeasePage = Static<typeof LeasePage>;

/** Lines of a certificate revocation list, by serial. `now_ms`: the owner's clock. */
export const RevocationLines = Type.Object({
  data: Type.Array(
    shape<RevocationEntry>()(
      Type.Object({
        serial: Type.String(),
        atMs: Type.Number(),
        reason: Type.Enum(['keyCompromise', 'superseded', 'cessationOfOperation', 'certificateHold']),
      }),
    ),
  ),
  next: nullable(Type.String()),
  now_ms: Type.Number(),
});
export type RevocationLines = Static<typeof RevocationLines>;

/** A page of the secrets that are not sealed under the named key. */
export const StaleSecrets = Type.Array(
  shape<StaleSecret>()(Type.Object({ place: SecretPlaceShape, sealed: id<Sealed>() })),
);

/** The version of the next value, and the newest; `sealed`: null if it is damaged. */
export const SecretMaterial = Type.Object({
  next: Type.Integer(),
  current: nullable(
    Type.Object({ version: Type.Integer(), sealed: nullable(id<Sealed>()), view: Type.Object(SecretView.properties) }),
  ),
});
export type SecretMaterial = Static<typeof SecretMaterial>;

/** The same of a login; `current` is null if it is damaged. */
export const LoginMaterial = Type.Object({
  next: Type.Integer(),
  current: nullable(
    Type.Object({
      version: Type.Integer(),
      username: Type.String(),
      sealed: id<Sealed>(),
      view: Type.Object(LoginView.properties),
    }),
  ),
});
export type LoginMaterial = Static<typeof LoginMaterial>;

/** All signing keys of the cluster. `sealed`, `insertedAtMs`: null if the record is damaged. */
export const SigningKeyPage = Type.Array(
  Type.Object({
    id: Type.String(),
    sealed: nullable(id<Sealed>()),
    insertedAtMs: nullable(Type.Number()),
    /** `null` for the current one. */
    untilMs: nullable(Type.Number()),
  }),
);
export type SigningKeyPage = Static<typeof SigningKeyPage>;

/**
 * Answer to a host's join token or enrolled key. `jwt`: a NATS user of the account HOSTS, for its
 * nkey.
 */
export const Enrolment = Type.Object({
  host: id<HostKey>(),
  region: id<Region>(),
  cluster: Type.String(),
  natsUrls: Type.Unsafe<readonly string[]>(Type.Array(Type.String())),
  jwt: Type.String(),
});
export type Enrolment = Static<typeof Enrolment>;
