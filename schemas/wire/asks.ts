/**
 * The asks that gateways, tools and other owners send to the owner of a partition, and the bodies
 * of the answers. The owner decodes every ask by this table, and readers of an answer decode its
 * body by the same entry (lib/rpc/decode.ts).
 */
import Type, { type Static, type TObject, type TProperties, type TSchema } from 'typebox';
import { OperatorFields, UpdateBody, type Container } from '../api/container.ts';
import { containerFields, type ContainerPatch } from '../api/fields/container.ts';
import type { ListCursor } from '../api/cursor.ts';
import type { Conditions } from '../api/etag.ts';
import { DrainShare } from '../api/drain.ts';
import { HostUpdateBody, HostView, TenantHost, type HostUpdate } from '../api/host.ts';
import { NetworkView } from '../api/network.ts';
import { KeyView, type KeyRecord } from '../api/keys/key.ts';
import { nullable } from '../api/nullable.ts';
import { Policy, type PolicyView } from '../api/policy.ts';
import { PeerView, type PeerKeys, type PeerRecord, type PeerToken, type PeerTokenView } from '../api/peer.ts';
import type { PeerLinkView } from '../api/peer-link.ts';
import { TenantSettings, TenantSummary, type QuotaView, type TenantView } from '../api/tenant.ts';
import { TenantName, type TenantNetwork } from '../api/tenant-network.ts';
import type {
  ContainerId,
  HostKey,
  KeyId,
  NetworkName,
  OperationId,
  PeerId,
  PeerTokenId,
  Region,
  TenantId,
} from '../ids.ts';
import {
  ContainerTrace,
  Enrolment,
  FindFilter,
  FoundContainers,
  OverviewFilter,
  OverviewPage,
  WatchPage,
  WatchPosition,
  LeasePage,
  Learned,
  LinkGrant,
  LoginMaterial,
  PeerCount,
  PeerGrant,
  PeerThere,
  PlaceShape,
  RecentEvents,
  RecentLines,
  Reservation,
  RevocationLines,
  RevocationPage,
  SessionPlace,
  SecretMaterial,
  SigningKeyPage,
  StaleSecrets,
  dataOf,
  fieldsOf,
  StatusSeen,
  keyPageOf,
  materialOf,
  open,
} from './answers.ts';
import {
  ContainerSpecShape,
  DeclarationShape,
  MetadataShape,
  KeptCertificateShape,
  NetworkRecordShape,
  NetworkSettingsShape,
  PeerRecordShape,
  PeerRevocationShape,
  PeerTokenShape,
  RevocationShape,
  SecretPlaceShape,
  id,
  madeNetwork,
  madePeer,
  peerKeys,
  peerOnServer,
  shape,
} from './shapes.ts';
import { Note, type Cause } from './audit.ts';
import { protocolVersion } from './version.ts';
import type { Once } from '../records/kept-answer.ts';
import type { Sealed } from '../records/sealed.ts';
import { StoredSpec, SpecPlan } from '../api/spec.ts';
import { ContainerSecrets, type LoginView, type SecretView } from '../api/secret.ts';

const text = Type.String();
const number = Type.Number();
const flag = Type.Boolean();
const sealed = id<Sealed>();
/** Of a VPN server, or of one of its peers (IkeCredentials). */
const ikeGiven = Type.Object({ id: text, certificate: text, serial: text });

/** An ask, and the JSON of the body of a successful answer. */
interface Entry<P extends TProperties, A> {
  readonly ask: TObject<P>;
  readonly answer: A;
}
const ask = <P extends TProperties, A>(properties: P, answer: A): Entry<P, A> => ({
  ask: Type.Object(properties),
  answer,
});

declare const body: unique symbol;
/** The body goes to an HTTP client as the owner wrote it; no program reads it. `S` documents it. */
interface Forwarded<S extends TSchema> {
  readonly [body]?: S;
}
const forwarded = <S extends TSchema>(): Forwarded<S> => ({});
/** No body. */
type Nothing = ReturnType<typeof Type.Undefined>;

const ofTenant = { tenant: id<TenantId>() };
const ofContainer = { ...ofTenant, id: id<ContainerId>() };
/** Of a write: its host looks again at what the tag names. */
const pulling = { pull: Type.Optional(Type.Literal('always')) };
const ofHost = { host: id<HostKey>() };
const ofPeer = { ...ofTenant, peer: id<PeerId>() };
const ofNetwork = { network: id<NetworkName>() };
const ofPartition = { partition: number };
/** An agent, as its subject names it. */
const hostSender = Type.Object({ host: id<HostKey>(), user: text });
/** For a peer. Not under `tenant`, which would route the ask to the tenant's partition. */
const by = { by: Type.Object(ofPeer) };
/** The version of the asker's copy of the record, if it has one. */
const copy = { known: Type.Optional(text) };
const page = {
  limit: number,
  before: nullable(shape<ListCursor>()(Type.Object({ insertedAtMs: number, id: id<ListCursor['id']>() }))),
};

/** Only containers with one of these labels: `key`, or `key=value`. */
const labelled = { labels: Type.Optional(Type.Array(text)) };

/** An absent field keeps its value. */
export type PeerUpdate = Partial<Pick<PeerRecord, 'name' | 'enabled' | 'expiresAtMs' | 'routes' | 'dns'>>;
const PeerUpdateShape = shape<PeerUpdate>()(
  Type.Partial(
    Type.Object({
      name: text,
      enabled: flag,
      expiresAtMs: nullable(number),
      routes: nullable(Type.Array(text)),
      dns: nullable(Type.Array(text)),
    }),
  ),
);

const MadeKey = shape<Omit<KeyRecord, 'kind' | 'tenant'>>()(
  Type.Object({
    id: id<KeyId>(),
    name: text,
    scopes: Type.Array(text),
    subject: text,
    issuedAtS: number,
    expiresAtS: number,
  }),
);

const revoked = {
  revoked: Type.Unsafe<readonly Static<typeof PeerRevocationShape>[]>(Type.Array(PeerRevocationShape)),
};
/** Facts about a peer that its network keeps. `revoked`: certificates to refuse from now on. */
const PeerNotice = Type.Union([
  Type.Object({ ...revoked, ...peerOnServer, there: Type.Literal(true), index: number }),
  Type.Object({ ...revoked, there: Type.Literal(false), generation: number }),
]);
export type PeerNotice = Static<typeof PeerNotice>;

const reads = {
  'container.list': ask({ ...ofTenant, ...page, ...labelled }, forwarded<TSchema>()),
  'container.get': ask(ofContainer, forwarded<typeof Container>()),
  /** As `container.list`, with what each has beside what runs. */
  'container.overview': ask(
    {
      ...ofTenant,
      ...page,
      ...labelled,
      only: Type.Optional(OverviewFilter),
      include: Type.Optional(Type.Array(text)),
    },
    OverviewPage,
  ),
  /** Its items with their status, newest first; or those that changed after a position. */
  'container.watch': ask(
    {
      ...ofTenant,
      ...labelled,
      only: Type.Optional(OverviewFilter),
      from: Type.Union([Type.Object({ before: page.before }), Type.Object({ after: WatchPosition })]),
    },
    WatchPage,
  ),
  'metadata.get': ask(ofContainer, dataOf(MetadataShape)),
  /** Of containers that are there, or were within seven days. `more`: of the last ids, too. */
  'metadata.list': ask(
    { ...ofTenant, ids: Type.Array(id<ContainerId>()) },
    keyPageOf(Type.Object({ id: id<ContainerId>(), ...MetadataShape.properties })),
  ),
  'policy.get': ask(ofContainer, forwarded<typeof PolicyView>()),
  'spec.get': ask(ofContainer, dataOf(StoredSpec)),
  /** The effect that `spec.create` (`isNew`) or `spec.put` would have. */
  'spec.plan': ask(
    {
      ...ofContainer,
      declaration: DeclarationShape,
      isNew: Type.Optional(Type.Literal(true)),
      ...pulling,
    },
    Type.Object({ data: StoredSpec, plan: SpecPlan }),
  ),
  'container.status': ask(ofContainer, dataOf(StatusSeen)),
  'container.versions': ask(ofContainer, forwarded<TSchema>()),
  'container.trace': ask(ofContainer, dataOf(ContainerTrace)),
  'container.session': ask(ofContainer, dataOf(SessionPlace)),
  'container.inspect': ask(ofContainer, forwarded<TSchema>()),
  /**
   * Events that the stream EVENTS may not show yet: not published, or published a moment ago.
   * `container`: `null` for all of the tenant's. `from`: the newest before an event's id (`null`
   * for the newest of all), or the oldest after one (empty for the oldest of all).
   */
  'event.recent': ask(
    {
      ...ofTenant,
      container: nullable(id<ContainerId>()),
      from: Type.Union([Type.Object({ before: nullable(text) }), Type.Object({ after: text })]),
      limit: number,
    },
    dataOf(RecentEvents),
  ),
  /**
   * The same of lines of the audit that the stream AUDIT may not show yet: the newest before a line
   * (`null` for the newest of all).
   */
  'audit.recent': ask({ ...ofTenant, before: nullable(text), limit: number }, dataOf(RecentLines)),
  'tenant.quota': ask({ ...ofTenant, region: text }, forwarded<typeof QuotaView>()),
  /** Hosts of the tenant's regions, by key. `after`: the last key of the page before, or empty. */
  'tenant.hosts': ask({ ...ofTenant, limit: number, after: text }, keyPageOf(TenantHost)),
  'tenant.network': ask(ofTenant, forwarded<typeof TenantNetwork>()),
  /** Names in the network of the tenant, by `keyOfName`, as `tenant.hosts`. */
  'tenant.names': ask({ ...ofTenant, limit: number, after: text }, keyPageOf(TenantName)),
  /** Tenants of one partition of which something is stored, by id; `after` as in `host.list`. */
  'tenant.list': ask({ ...ofPartition, limit: number, after: text }, keyPageOf(fieldsOf(TenantSummary, 'id'))),
  /**
   * Containers of one partition from a place on. `next`: the beginning of the next page; null at
   * the end. A page may be short, and `next` there nevertheless.
   */
  'container.find': ask(
    { ...ofPartition, limit: number, from: nullable(PlaceShape), only: FindFilter },
    FoundContainers,
  ),
  'tenant.get': ask(ofTenant, forwarded<typeof TenantView>()),
  /** `drain_total`: of a drained host, as far as it was known when the drain began. */
  'host.get': ask(ofHost, dataOf(Type.Object({ draining: flag, drain_total: Type.Optional(number) }))),
  /** Containers of a drained host that are left in one partition. */
  'host.drain': ask({ ...ofPartition, of: id<HostKey>() }, dataOf(DrainShare)),
  /** Hosts of one partition, by key. `after`: the last key of the page before, or empty. */
  'host.list': ask({ ...ofPartition, limit: number, after: text }, keyPageOf(fieldsOf(HostView, 'key'))),
  /** `after`: the `next` of an earlier page; `null` for the beginning. */
  'revocation.list': ask({ ...ofPartition, after: nullable(text) }, RevocationPage),
  /** `endpoints`: true if the asker may know from where devices connect. */
  'peer.list': ask({ ...ofTenant, ...page, endpoints: Type.Optional(flag) }, forwarded<TSchema>()),
  'peer.get': ask({ ...ofPeer, endpoints: Type.Optional(flag) }, forwarded<typeof PeerView>()),
  /** Answers what the create would: name taken, over quota, or `ok`. Creates nothing. */
  'peer.check': ask({ ...ofTenant, name: text }, forwarded<Nothing>()),
  /**
   * Record from which files are made. `tokenHash`: the asker used a token of the peer, which may
   * have ended since it was resolved; then the answer is `unauthenticated`.
   */
  'peer.material': ask({ ...ofPeer, ...copy, tokenHash: Type.Optional(text) }, materialOf(PeerRecordShape)),
  /** Answers `unauthenticated` for every invalid token, whatever the reason. */
  'token.resolve': ask({ ...ofPartition, hash: text }, dataOf(PeerGrant)),
  'peer.link.list': ask(ofPeer, forwarded<TSchema>()),
  /**
   * The grant of a one-time link. `tokenHash`: of the download token that the asker's browser gets
   * for it. `unauthenticated` as of `token.resolve`, and if another browser was first.
   */
  'link.resolve': ask({ ...ofPartition, hash: text, tokenHash: text }, dataOf(LinkGrant)),
  'peer.count': ask(ofPartition, dataOf(PeerCount)),
  'network.get': ask(ofNetwork, dataOf(fieldsOf(NetworkView, 'name', 'tenants'))),
  /** Networks of one partition, by name, as `host.list`. */
  'network.list': ask(
    { ...ofPartition, limit: number, after: text },
    keyPageOf(
      fieldsOf(
        NetworkView,
        'name',
        'endpoint',
        'wireguard_port',
        'ipv4_pool',
        'ipv6_pool',
        'ca_certificate',
        'server_certificate',
      ),
    ),
  ),
  'network.material': ask({ ...ofNetwork, ...copy }, materialOf(NetworkRecordShape)),
  /** `after`: the first index of the page. */
  'network.leases': ask({ ...ofNetwork, after: number }, LeasePage),
  /** `after`: the last serial of the page before, or empty. */
  'network.revocations': ask({ ...ofNetwork, after: text }, RevocationLines),
  'secret.stale': ask({ ...ofPartition, keyId: text }, dataOf(StaleSecrets)),
  'secret.list': ask(ofTenant, forwarded<TSchema>()),
  /** Material that a gateway needs to seal the next value. */
  'secret.material': ask({ ...ofTenant, name: text }, dataOf(SecretMaterial)),
  'login.list': ask(ofTenant, forwarded<TSchema>()),
  'login.material': ask({ ...ofTenant, registry: text }, dataOf(LoginMaterial)),
  'container.secrets': ask(ofContainer, forwarded<typeof ContainerSecrets>()),
  /**
   * The answer to a POST with an `Idempotency-Key`, by the key and hashes of the request and of the
   * asker; `null` if there is none. `invalid`: of another request. `conflict`: it can't be
   * repeated.
   */
  'answer.get': ask(
    { ...ofTenant, key: text, request: text, by: text },
    dataOf(nullable(Type.Object({ body: text, sealed: nullable(sealed) }))),
  ),
  'key.list': ask(ofTenant, forwarded<TSchema>()),
  /** To the owner of `signingPartition` alone. */
  'signing_key.list': ask(ofPartition, dataOf(SigningKeyPage)),
  /** For the host that serves the peer's network: its preshared key, and its certificate. */
  'peer.unseal': ask({ ...ofPeer, by: hostSender }, dataOf(Type.Object({ sealed, ike: ikeGiven }))),
  /** For the host that serves the network: its private keys, and its certificate. */
  'network.unseal': ask(
    { ...ofNetwork, by: hostSender },
    dataOf(Type.Object({ sealed, ike: Type.Object({ ...ikeGiven.properties, sealed }) })),
  ),
  /**
   * Value or login that an agent asked a gateway for (unseal.ts); `null` if there is no login.
   * `by`: its subject. `forbidden`, also if the container does not need it.
   */
  'secret.unseal': ask(
    {
      ...ofTenant,
      container: id<ContainerId>(),
      by: hostSender,
      secret: Type.Optional(Type.Object({ name: text, version: number })),
      registry: Type.Optional(text),
    },
    dataOf(nullable(Type.Object({ version: number, sealed, username: Type.Optional(text) }))),
  ),
  /**
   * Contents of files, in base64, in the order of their hashes. `host`: an agent asks by a gateway
   * (unseal.ts), for this container; `forbidden`, also if the container does not have the file.
   */
  'file.get': ask(
    {
      ...ofTenant,
      hashes: Type.Array(text),
      host: Type.Optional(Type.Object({ container: id<ContainerId>(), by: hostSender })),
    },
    dataOf(Type.Array(text)),
  ),
};

const writes = {
  'container.create': ask(
    {
      ...ofContainer,
      spec: ContainerSpecShape,
      idempotency: nullable(Type.Object({ key: text, bodyHash: text })),
      /** It is not started yet. */
      stopped: Type.Optional(Type.Literal(true)),
    },
    forwarded<typeof Container>(),
  ),
  'container.update': ask(
    { ...ofContainer, patch: Type.Unsafe<ContainerPatch>(open(UpdateBody)), ...pulling },
    forwarded<typeof Container>(),
  ),
  /** An absent field stays as it is. `labels`: a merge patch of them. */
  'metadata.put': ask(
    { ...ofContainer, fields: MetadataShape, labels: Type.Optional(containerFields.labels.patch) },
    dataOf(MetadataShape),
  ),
  'policy.put': ask({ ...ofContainer, policy: Policy }, forwarded<typeof PolicyView>()),
  'spec.put': ask({ ...ofContainer, declaration: DeclarationShape, ...pulling }, dataOf(StoredSpec)),
  /** `container.create` with a document. */
  'spec.create': ask(
    {
      ...ofContainer,
      declaration: DeclarationShape,
      idempotency: nullable(Type.Object({ key: text, bodyHash: text })),
      ...pulling,
    },
    forwarded<typeof Container>(),
  ),
  'container.rollback': ask({ ...ofContainer, version: number }, forwarded<typeof StoredSpec>()),
  'container.start': ask(ofContainer, forwarded<typeof Container>()),
  'container.stop': ask(ofContainer, forwarded<typeof Container>()),
  'container.delete': ask(ofContainer, forwarded<typeof Container>()),
  'container.operate': ask({ ...ofContainer, fields: open(OperatorFields) }, forwarded<typeof Container>()),
  /**
   * `repair`: replaces a damaged record with this revocation. Without it a damaged record is a
   * `conflict`.
   */
  'tenant.put': ask(
    { ...ofTenant, settings: open(TenantSettings), repair: Type.Optional(nullable(RevocationShape)) },
    forwarded<typeof TenantView>(),
  ),
  /** `once`: refused if this very token is revoked already. */
  'tenant.revoke': ask(
    { ...ofTenant, revocation: RevocationShape, once: Type.Optional(Type.Boolean()) },
    forwarded<TSchema>(),
  ),
  'host.create': ask({ ...ofHost, region: id<Region>(), joinTokenHash: text }, dataOf(fieldsOf(HostView))),
  'host.join_token': ask({ ...ofHost, joinTokenHash: text }, dataOf(fieldsOf(HostView))),
  'host.update': ask(
    /** `placed`: number of containers on a host that is drained from now on. */
    { ...ofHost, update: Type.Unsafe<HostUpdate>(open(HostUpdateBody)), placed: Type.Optional(number) },
    forwarded<typeof HostView>(),
  ),
  /**
   * `conflict` if the host is neither drained nor lost, unless forced. `dead`: the operator states
   * that nothing runs there.
   */
  'host.remove': ask(
    { ...ofHost, force: Type.Optional(flag), dead: Type.Optional(flag) },
    forwarded<typeof HostView>(),
  ),
  'host.enrol': ask({ ...ofHost, joinTokenHash: text, publicKey: text }, dataOf(Enrolment)),
  /** The gateway has checked that the key signed it. `atMs`: the time that the agent names. */
  'host.renew': ask({ ...ofHost, publicKey: text, atMs: number, nonce: text }, dataOf(Enrolment)),
  'peer.create': ask({ ...ofPeer, made: Type.Object(madePeer) }, dataOf(fieldsOf(PeerView))),
  'peer.update': ask({ ...ofPeer, update: PeerUpdateShape }, forwarded<typeof PeerView>()),
  /**
   * New keys, password and tokens: revokes the earlier certificate and ends every earlier token.
   * `conflict` if `replaces` is no longer the serial in use.
   */
  'peer.rotate': ask(
    {
      ...ofPeer,
      replaces: text,
      keys: shape<PeerKeys>()(Type.Object(peerKeys)),
      p12Password: sealed,
      tokens: Type.Unsafe<readonly PeerToken[]>(Type.Array(PeerTokenShape)),
    },
    dataOf(fieldsOf(PeerView)),
  ),
  /** Certifies the same key for longer. `conflict` as above. */
  'peer.certify': ask({ ...ofPeer, replaces: text, certificate: KeptCertificateShape }, dataOf(PeerRecordShape)),
  'peer.password': ask({ ...ofPeer, p12Password: sealed }, forwarded<typeof PeerView>()),
  'peer.token.create': ask({ ...ofPeer, token: PeerTokenShape }, forwarded<typeof PeerTokenView>()),
  'peer.token.remove': ask({ ...ofPeer, token: id<PeerTokenId>() }, forwarded<Nothing>()),
  'peer.link.create': ask(
    {
      ...ofPeer,
      link: Type.Object({ id: id<PeerTokenId>(), hash: text, insertedAtMs: number, expiresAtMs: number }),
    },
    forwarded<typeof PeerLinkView>(),
  ),
  'peer.link.remove': ask({ ...ofPeer, link: id<PeerTokenId>() }, forwarded<Nothing>()),
  /** Makes the download token good, as `link.resolve` says. `link`: for the audit. */
  'peer.link.redeem': ask({ ...ofPeer, link: id<PeerTokenId>(), hash: text, tokenHash: text }, dataOf(LinkGrant)),
  'peer.remove': ask(ofPeer, forwarded<Nothing>()),
  /**
   * From a network whose reservation has lapsed, or whose lease no peer has confirmed since a
   * restore. A peer that does not exist gets a tombstone, and the network may release the address.
   */
  'peer.forgo': ask(ofPeer, dataOf(PeerThere)),
  'network.create': ask({ ...ofNetwork, made: Type.Object(madeNetwork) }, forwarded<typeof NetworkView>()),
  /**
   * `server`: a new certificate, if the endpoint changed. `conflict` if the pools change.
   * `keepsTenants`: the list of tenants stays, whatever the settings say.
   */
  'network.put': ask(
    {
      ...ofNetwork,
      settings: NetworkSettingsShape,
      server: nullable(KeptCertificateShape),
      keepsTenants: Type.Optional(flag),
    },
    forwarded<typeof NetworkView>(),
  ),
  /** Renews the certificate. `conflict` if `replaces` is no longer the serial in use. */
  'network.certify': ask(
    { ...ofNetwork, which: Type.Enum(['ca', 'server']), replaces: text, certificate: KeptCertificateShape },
    dataOf(NetworkRecordShape),
  ),
  /**
   * `by`: the host that serves it from now on; `null` if none does. `conflict` if it serves another
   * one whose pools overlap.
   */
  'network.serve': ask({ ...ofNetwork, by: nullable(id<HostKey>()) }, dataOf(fieldsOf(NetworkView, 'servers'))),
  'network.remove': ask(ofNetwork, forwarded<Nothing>()),
  /** The same peer always gets the same address. */
  'network.reserve': ask({ ...ofNetwork, ...by }, dataOf(Reservation)),
  /** Releases a reservation; an address that has become a lease stays. */
  'network.release': ask({ ...ofNetwork, ...by }, forwarded<Nothing>()),
  /**
   * From the peer's actor, repeated until it is acknowledged. The network ignores an older
   * generation, and refuses what was sent before a restore.
   */
  'network.learn': ask({ ...ofNetwork, ...by, told: PeerNotice, incarnation: number }, dataOf(nullable(Learned))),
  /** `precondition_failed`: the version is not the next one (any more); see `secret.material`. */
  'secret.put': ask(
    {
      ...{ ...ofTenant, name: text, version: number, sealed, binary: Type.Optional(Type.Literal(true)) },
      /** `only`: the value is stored. `over`: of the current version, which is no longer staged. */
      stage: Type.Optional(Type.Enum(['only', 'over'])),
    },
    forwarded<typeof SecretView>(),
  ),
  'secret.remove': ask({ ...ofTenant, name: text }, forwarded<Nothing>()),
  /** Contents of files, in base64, before the document that names them by their hashes. */
  'file.put': ask(
    { ...ofTenant, files: Type.Array(Type.Object({ sha256: text, content: text, bytes: number })) },
    forwarded<Nothing>(),
  ),
  /** As `secret.put`. */
  'login.put': ask(
    { ...ofTenant, registry: text, version: number, username: text, sealed },
    forwarded<typeof LoginView>(),
  ),
  'login.remove': ask({ ...ofTenant, registry: text }, forwarded<Nothing>()),
  'container.secrets.put': ask({ ...ofContainer, secrets: ContainerSecrets }, forwarded<typeof ContainerSecrets>()),
  'key.create': ask({ ...ofTenant, made: MadeKey }, dataOf(fieldsOf(KeyView))),
  /**
   * Revokes its token. The revocation ends at `untilMs` of the answer, which is not later than that
   * of the ask.
   */
  'key.remove': ask(
    { ...ofTenant, key: id<KeyId>(), revocation: RevocationShape },
    dataOf(Type.Object({ untilMs: number })),
  ),
  /**
   * Makes a key the current one. `replaces`: the current one until now; `null` if there is none.
   * `precondition_failed` if that is not so any more. `lifeMaxMs`: longest lifetime of a token.
   */
  'signing_key.put': ask(
    {
      ...ofPartition,
      key: Type.Object({ id: text, sealed }),
      replaces: nullable(text),
      lifeMaxMs: number,
      endOthers: flag,
    },
    dataOf(SigningKeyPage),
  ),
  /** Puts these lines into the audit. */
  'audit.note': ask({ ...ofTenant, notes: Type.Array(Note) }, forwarded<Nothing>()),
  'audit.note_operator': ask({ ...ofPartition, notes: Type.Array(Note) }, forwarded<Nothing>()),
  /** Replaces the secrets that still equal `before`. */
  'secret.replace': ask(
    {
      ...ofPartition,
      items: Type.Unsafe<
        readonly { readonly place: Static<typeof SecretPlaceShape>; readonly before: Sealed; readonly after: Sealed }[]
      >(Type.Array(Type.Object({ place: SecretPlaceShape, before: sealed, after: sealed }))),
    },
    dataOf(Type.Object({ replaced: number })),
  ),
};

export const asks = { ...reads, ...writes };
export type AskType = keyof typeof asks;
export const isAskType = (type: unknown): type is AskType => typeof type === 'string' && Object.hasOwn(asks, type);
export const isWriteType = (type: AskType): type is keyof typeof writes => Object.hasOwn(writes, type);

/**
 * Asks that owners of the last release do not know, and the version of the protocol that has them.
 * An older owner is not asked (docs/upgrades.md).
 */
export type NewAsks = Partial<Readonly<Record<AskType, number>>>;
const newAsks: NewAsks = {};

/** The version of the protocol from which on owners know the ask. */
export const protocolOfAsk = ({ type }: Pick<Question, 'type'>, known: NewAsks = newAsks): number =>
  known[type] ?? protocolVersion - 1;

/** The HTTP request that an ask is part of. */
export interface Origin {
  /** Its id. */
  readonly rid: string;
  /** Its trace: the `traceparent` of the span that asks (trace.ts). */
  readonly trace?: string;
  /** A write of the request's resource is refused as `precondition_failed` unless they are met. */
  readonly when?: Conditions;
  /** The answer of the request's write is kept for the client that sends it again. */
  readonly repeatable?: Once;
  /** A successful answer has the `ResourceHead` of the resource. */
  readonly head?: true;
}
/** Time that the sender of an ask will wait, in milliseconds, and the request that waits. */
export interface AskContext extends Origin {
  readonly budgetMs: number;
}
/** The owner stores the outcome of a write under its operation id. */
interface Write {
  readonly op: OperationId;
  /**
   * The write leaves a line in the audit. Absent if it is a part of another write, or nobody asked
   * for it.
   */
  readonly cause?: Cause;
}
type FieldsOf<Type extends AskType> = { type: Type } & Static<(typeof asks)[Type]['ask']>;

export type ReadAsk = { [Type in keyof typeof reads]: AskContext & FieldsOf<Type> }[keyof typeof reads];
export type WriteAsk = { [Type in keyof typeof writes]: AskContext & Write & FieldsOf<Type> }[keyof typeof writes];
export type Ask = ReadAsk | WriteAsk;
export type RecentAsk = FieldsOf<'event.recent'>;
export type RecentLinesAsk = FieldsOf<'audit.recent'>;

/** Types of asks whose answer a program reads. */
export type ReadableType = { [Type in AskType]: (typeof asks)[Type]['answer'] extends TSchema ? Type : never }[AskType];
/** The body of a successful answer. */
export type AnswerOf<Type extends ReadableType> = (typeof asks)[Type]['answer'] extends infer S
  ? S extends TSchema
    ? Static<S>
    : never
  : never;

/** An ask before it is sent. Distributes over the union, so that each type keeps its own fields. */
export type Question = Ask extends infer A ? (A extends Ask ? Omit<A, 'budgetMs'> : never) : never;

/** The key whose partition an ask goes to, or the partition itself. */
export const addressOf = (ask: Question): string | number =>
  'tenant' in ask ? ask.tenant : 'host' in ask ? ask.host : 'network' in ask ? ask.network : ask.partition;
