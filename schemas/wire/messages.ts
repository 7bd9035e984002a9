/**
 * What the programs say to one another.
 *
 * Gateway → owner of a partition: a batch of asks, a line of JSON each; the answers come in one or
 * more parts, a line each: `<index>\t<outcome code>\t<body>`, in any order, the body being the JSON
 * of the HTTP response (JSON.stringify never writes a raw newline or tab). A batch is answered when
 * every index is. Both ends are ours and of one version, so an ask is not checked again field by
 * field.
 *
 * Agent ↔ actors: checked on both sides, for a host is not trusted (invariant A7).
 */
import Type, { type Static } from 'typebox';
import {
  ConfigFile,
  Observation,
  Port,
  PullPolicy,
  SecretRef,
  type ContainerSpec,
  type Idempotency,
  type OperatorFields,
} from '../api/container.ts';
import { isOutcomeCode, type OutcomeCode } from '../errors.ts';
import type { Event } from '../api/event.ts';
import { Capacity, HostFault, type DirectoryEntry, type HostUpdate } from '../api/host.ts';
import {
  ContainerId,
  type HostKey,
  type NetworkName,
  type PeerId,
  type PeerTokenId,
  TenantId,
  isContainerId,
  type OperationId,
  type Region,
} from '../ids.ts';
import { limits } from '../limits.ts';
import type {
  CertificateRef,
  KeptCertificate,
  NetworkRecord,
  NetworkSettings,
  PeerOnServer,
  Sealed,
} from '../api/network.ts';
import type { PeerKeys, PeerProblem, PeerRecord, PeerRevocation, PeerToken, SecretPlace } from '../api/peer.ts';
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

/**
 * Where a page ended: the list goes on with what is older than this one, whether or not it is still
 * there.
 */
export interface ListCursor {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
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
     * `conflict` where `replaces` is no longer the serial in use. A gateway of the last release
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

/** A page of what one partition has, in the order of its keys. */
export interface KeyPage<T> {
  readonly data: readonly T[];
  readonly more: boolean;
}

/** Answer to `network.learn`: why the peer can't be as it says; null: it is. */
export interface Learned {
  readonly problem: PeerProblem | null;
}

/** Answer to `peer.count`. */
export interface PeerCount {
  readonly active: number;
  readonly disabled: number;
  readonly expired: number;
  /** Of the certificates in use of active peers, the one that ends first. */
  readonly earliest: CertificateRef['notAfterMs'] | null;
}

export type Ask = ReadAsk | WriteAsk;

/** The key whose partition an ask goes to, or the partition itself. */
export const addressOf = (ask: Ask): string | number =>
  'tenant' in ask ? ask.tenant : 'host' in ask ? ask.host : 'network' in ask ? ask.network : ask.partition;

/**
 * Answer to `event.recent`, oldest first. What is not in it and was committed before is in the
 * stream.
 */
export interface RecentEvents {
  readonly events: readonly Event[];
  /** There are more on the side that was asked for. */
  readonly more: boolean;
  /** Number of the newest journal entry that is committed. */
  readonly last: number;
}

export interface ContainerTrace {
  readonly history: readonly HostKey[];
  readonly gone: boolean;
}

/**
 * What a host gets for its join token. The JWT is a NATS user JWT of the HOSTS account for the
 * agent's own nkey.
 */
export interface Enrolment {
  readonly host: HostKey;
  readonly region: Region;
  readonly cluster: string;
  readonly natsUrls: readonly string[];
  readonly jwt: string;
}

/**
 * In place of an outcome, by a subscriber that does not own the partition, or has just given it
 * away: ask again, a write under the same operation id. Another subscriber may have executed the
 * ask.
 */
export const notOwner = 'not_owner';
export type AnswerCode = OutcomeCode | typeof notOwner;

export interface Answer {
  readonly index: number;
  readonly code: AnswerCode;
  /** JSON of the HTTP response's body; empty for none. */
  readonly body: string;
}

export const encodeAsks = (asks: readonly string[]): string => asks.join('\n');
export const encodeAsk = (ask: Ask): string => JSON.stringify(ask);
export const decodeAsks = (payload: string): Ask[] => payload.split('\n').map((line) => JSON.parse(line) as Ask);

export const encodeAnswer = (answer: Answer): string => `${answer.index}\t${answer.code}\t${answer.body}`;

const isAnswerCode = (code: string): code is AnswerCode => code === notOwner || isOutcomeCode(code);

/** Throws where the payload is none of ours. */
export function decodeAnswers(payload: string): Answer[] {
  return payload.split('\n').map((line) => {
    const code = line.indexOf('\t');
    const body = line.indexOf('\t', code + 1);
    const index = Number(line.slice(0, code));
    const name = line.slice(code + 1, body);
    if (code < 1 || body < 0 || !Number.isInteger(index) || !isAnswerCode(name)) throw new Error('malformed answer');
    return { index, code: name, body: line.slice(body + 1) };
  });
}

// Agent ↔ actors

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/**
 * `agent.<host>.<user key>.hello` (request): an agent that starts asks for a session. Answered by
 * the owner of the host's partition. Agents with credentials of the last release say this and all
 * below on `host.<host>.<verb>`.
 */
export const Hello = Type.Object({
  v: Type.Literal(1),
  agent_version: Type.String({ maxLength: 64 }),
  capacity: Capacity,
  /**
   * The session that this agent holds; absent at its start, and from agents of the last release.
   */
  session: Type.Optional(Count),
  /**
   * Of all sessions that this host has used: what it is given is above that, also after a restore.
   */
  highest_session: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 52 })),
  /** How long after losing contact this agent has stopped every container; null: it never does. */
  stops_after_ms: Type.Optional(Type.Union([Count, Type.Null()])),
  /** Asks for new credentials for this key, which must be the one that is enrolled. */
  renew_key: Type.Optional(Type.String({ pattern: '^U[A-Z2-7]{55}$' })),
  /**
   * On `host.<host>.hello`: this agent wants nothing but credentials that name its key in their
   * subjects (ADR 22).
   */
  wants_bound: Type.Optional(Type.Literal(true)),
});
export type Hello = Static<typeof Hello>;

export const HelloAnswer = Type.Union([
  Type.Object({
    ok: Type.Literal(true),
    cluster: Type.String(),
    partitions: Type.Integer({ minimum: 1 }),
    session: Count,
    orphan_word: Count,
    /** New credentials, where they were asked for and are due to this key. */
    jwt: Type.Optional(Type.String({ minLength: 1 })),
  }),
  /**
   * `superseded`: an agent that started later, or whose key was enrolled in place of the sender's,
   * holds the session of this host, and is heard.
   */
  Type.Object({
    ok: Type.Literal(false),
    error: Type.Enum(['unknown_host', 'fenced', 'invalid', 'unavailable', 'superseded']),
  }),
]);
export type HelloAnswer = Static<typeof HelloAnswer>;

/**
 * A container that a host has, as its labels name it. `placement`: the generation that it was made
 * under.
 */
export const Stranger = Type.Object({ tenant: TenantId, id: ContainerId, placement: Count });
export type Stranger = Static<typeof Stranger>;

/**
 * `agent.<host>.<user key>.sync` (request, an answer in parts from the owner of every partition).
 */
export const SyncAsk = Type.Object({
  v: Type.Literal(1),
  /** Only these partitions, where the bell named one; absent: all. */
  partitions: Type.Optional(Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 256 })),
  /** What the agent holds, by partition: `[epoch, revision]`. */
  held: Type.Record(Type.String({ pattern: '^\\d{1,3}$' }), Type.Tuple([Count, Count])),
  /** Containers of ours on the engine that the agent's desired set does not know: may they go? */
  strangers: Type.Optional(Type.Array(Stranger, { maxItems: limits.syncStrangers })),
});
export type SyncAsk = Static<typeof SyncAsk>;

/** A container as its host should have it. */
export const DesiredContainer = Type.Object({
  tenant: TenantId,
  id: ContainerId,
  generation: Count,
  /**
   * Generation of the placement on this host; what was made under another is not this container
   * (Placement.since).
   */
  placement: Count,
  desired: Type.Enum(['running', 'stopped', 'removed']),
  name: Type.String(),
  registry: Type.String(),
  repository: Type.Union([Type.String(), Type.Null()]),
  tag: Type.Union([Type.String(), Type.Null()]),
  digest: Type.Union([Type.String(), Type.Null()]),
  pull_policy: PullPolicy,
  ports: Type.Array(Port),
  env: Type.Record(Type.String(), Type.String()),
  cpu_millis: Count,
  mem_bytes: Count,
  /**
   * What it may write. Absent from actors of the last release, and for what was declared before
   * there was a limit.
   */
  disk_bytes: Type.Optional(Count),
  secret_refs: Type.Array(SecretRef),
  config_files: Type.Array(ConfigFile),
});
export type DesiredContainer = Static<typeof DesiredContainer>;

/**
 * One part of one partition's answer. `same`: what the agent holds is what there is, and the lists
 * are empty. `hold`: containers whose record is damaged, which every host leaves as they are.
 */
export const SyncAnswer = Type.Object({
  v: Type.Literal(1),
  cluster: Type.String(),
  partitions: Type.Integer({ minimum: 1 }),
  partition: Type.Integer({ minimum: 0 }),
  /** Of the cluster: where it rises, what was told before has been forgotten, and is told again. */
  incarnation: Type.Optional(Count),
  epoch: Count,
  revision: Count,
  part: Type.Integer({ minimum: 0 }),
  parts: Type.Integer({ minimum: 1 }),
  same: Type.Boolean(),
  containers: Type.Array(DesiredContainer),
  hold: Type.Array(ContainerId),
  /**
   * Of the strangers that the agent named: those that were placed elsewhere or deleted since. True
   * of this version.
   */
  gone: Type.Optional(
    Type.Array(Type.Object({ id: ContainerId, placement: Count }), { maxItems: limits.syncStrangers }),
  ),
  /**
   * An operator threw this host out: it stops its containers, and nothing else in this answer
   * counts.
   */
  fenced: Type.Optional(Type.Literal(true)),
  /** From the owner of the host's own partition: see HostRecord.orphanWord. */
  orphan_word: Type.Union([Count, Type.Null()]),
  /** From the same: the operator empties this host. Read by agents of the last release only. */
  draining: Type.Union([Type.Boolean(), Type.Null()]),
});
export type SyncAnswer = Static<typeof SyncAnswer>;

/**
 * `agent.<host>.<user key>.report` (request), the containers of one partition; answered by its
 * owner after the commit. One without containers asks whether the session is still the newest.
 */
export const Report = Type.Object({
  v: Type.Literal(1),
  partition: Type.Integer({ minimum: 0 }),
  session: Count,
  items: Type.Array(
    Type.Object({
      tenant: TenantId,
      id: ContainerId,
      generation: Count,
      seq: Count,
      /**
       * `gone`: removed as asked, or refused at admission (then `observation.reason` is
       * `rejected`).
       */
      gone: Type.Boolean(),
      observation: Observation,
    }),
    { maxItems: limits.reportItems },
  ),
});
export type Report = Static<typeof Report>;
export type ReportItem = Report['items'][number];

export const ReportAnswer = Type.Union([
  Type.Object({ ok: Type.Literal(true) }),
  Type.Object({ ok: Type.Literal(false), error: Type.Enum(['invalid', 'unavailable', 'stale_session']) }),
]);
export type ReportAnswer = Static<typeof ReportAnswer>;

/** In place of an engine's name and version in a heartbeat: it does not answer. */
export const engineAway = 'unavailable';

/** `agent.<host>.<user key>.beat`: not acknowledged; every actors process hears it. */
export const Beat = Type.Object({
  v: Type.Literal(1),
  session: Count,
  used: Capacity,
  engine: Type.String({ maxLength: 128, description: '"docker 28.2.2", or "unavailable".' }),
  orphans_held: Count,
  /** Absent from agents of the last release. */
  faults: Type.Optional(Type.Array(HostFault, { maxItems: limits.hostFaults })),
});
export type Beat = Static<typeof Beat>;

/**
 * Owner of a partition → every actors process: its hosts. `full`: all that it has; else those that
 * changed. Ordered by (epoch, revision).
 */
export interface DirectoryMessage {
  readonly partition: number;
  readonly epoch: number;
  readonly revision: number;
  readonly full: boolean;
  /**
   * A full one that fits no message comes in parts, and counts when all are there. Absent: it is
   * the only one.
   */
  readonly part?: number;
  readonly parts?: number;
  readonly entries: readonly DirectoryEntry[];
  readonly removed: readonly HostKey[];
  /** In a full one: hosts whose record is damaged. Nothing is decided about what runs there. */
  readonly unreadable: readonly HostKey[];
}

/**
 * A doorbell says where to look, and for the sake of a log line whose request rang it; never what
 * is desired.
 */
export interface Doorbell {
  readonly partition: number;
  readonly rid: string | null;
}

/** A list's cursor as a client sees it: base64url of `<insertedAtMs>.<id>`. */
export const encodeCursor = ({ insertedAtMs, id }: ListCursor): string =>
  btoa(`${insertedAtMs}.${id}`).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Undefined where the text is no cursor of ours. */
export function decodeCursor(text: string): ListCursor | undefined {
  // A length of 1 modulo 4 is no base64, and atob throws at it.
  if (!/^[A-Za-z0-9_-]{20,100}$/.test(text) || text.length % 4 === 1) return undefined;
  const [, ms, id] = /^(\d{1,15})\.(.+)$/.exec(atob(text.replaceAll('-', '+').replaceAll('_', '/'))) ?? [];
  return ms !== undefined && id !== undefined && isContainerId(id) ? { insertedAtMs: Number(ms), id } : undefined;
}

/** The cursor of a list by key: base64url of the last key shown. */
export const encodeKeyCursor = (key: string): string =>
  btoa(key).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Undefined where the text is no cursor of ours. */
export function decodeKeyCursor(text: string, isKey: (key: string) => boolean): string | undefined {
  if (!/^[A-Za-z0-9_-]{2,100}$/.test(text) || text.length % 4 === 1) return undefined;
  const key = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return isKey(key) ? key : undefined;
}
