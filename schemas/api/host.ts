/**
 * A fleet host, as an operator creates it, as its agent describes it, and as every actors process
 * knows it.
 */
import Type, { type Static } from 'typebox';
import { HostKey, Region } from '../ids.ts';
import { limits } from '../limits.ts';
import { nullable } from './nullable.ts';

/** The resources that a host offers to containers. */
export const Capacity = Type.Object(
  {
    cpu_millis: Type.Integer({ minimum: 0 }),
    mem_bytes: Type.Integer({ minimum: 0 }),
    containers: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
);
export type Capacity = Static<typeof Capacity>;
export type HostCeiling = Partial<Capacity>;

export const HostCreateBody = Type.Object({ key: HostKey, region: Region }, { additionalProperties: false });

const Most = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** `PATCH /hosts/:key`: any of these; `drain` implies cordon. */
export const HostUpdateBody = Type.Object(
  {
    cordoned: Type.Optional(Type.Boolean()),
    draining: Type.Optional(Type.Boolean()),
    /** Approves the removal of the held orphans (see `orphans_held`). */
    remove_orphans: Type.Optional(Type.Boolean()),
    /**
     * Ceilings of what the host may offer; with `null`, those of the platform apply (`HOST_MAX_*`
     * of the actors).
     */
    max_cpu_millis: Type.Optional(nullable(Most)),
    max_mem_bytes: Type.Optional(nullable(Most)),
    max_containers: Type.Optional(nullable(Most)),
    /**
     * Number of containers that leave the host at once; with `null`, as many as `DRAIN_AT_ONCE` of
     * the actors.
     */
    drain_at_once: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: limits.drainAtOnceMax }))),
    /** False: once its credentials have expired, only a join token brings the host back. */
    renew_expired: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
export type HostUpdate = Static<typeof HostUpdateBody>;

/** `POST /api/v2/hosts/enrol`: the only call that accepts a join token. */
export const EnrolBody = Type.Object(
  {
    join_token: Type.String({ pattern: '^lsj_[a-z0-9-]{1,63}_[A-Za-z0-9_-]{43}$' }),
    public_key: Type.String({ pattern: '^U[A-Z2-7]{55}$', description: 'Public user nkey of the agent.' }),
  },
  { additionalProperties: false },
);
export type EnrolBody = Static<typeof EnrolBody>;

/**
 * `POST /api/v2/hosts/renew`: for the enrolled key of a host whose credentials have expired. The
 * key signs what `renewalText` makes of the other fields (lib/nats/renewal.ts).
 */
export const RenewBody = Type.Object(
  {
    host_key: HostKey,
    public_key: Type.String({ pattern: '^U[A-Z2-7]{55}$', description: 'Public user nkey of the agent.' }),
    at: Type.String({
      format: 'date-time',
      description: 'Time on the agent’s clock; at most a minute from the server’s.',
    }),
    nonce: Type.String({ pattern: '^[A-Za-z0-9_-]{22,64}$', description: 'Random value, used once.' }),
    signature: Type.String({
      pattern: '^[A-Za-z0-9_-]{86}$',
      description:
        'Ed25519, base64url, by the key, of `longshore-renew-1`, `host_key`, `public_key`, `at` and `nonce`, each followed by a line feed.',
    }),
  },
  { additionalProperties: false },
);
export type RenewBody = Static<typeof RenewBody>;

export const hostStatuses = ['joining', 'up', 'unknown', 'lost', 'fenced'] as const;
export type HostStatus = (typeof hostStatuses)[number];

/**
 * A fault of a host, as its agent sees it. Kinds are open, so that an older control plane accepts
 * heartbeats of a newer agent.
 */
export const HostFault = Type.Object({
  kind: Type.String({ pattern: '^[a-z_]{1,40}$', description: 'Kind of fault, such as `state_unwritable`.' }),
  message: Type.String({ maxLength: limits.hostFaultChars }),
});
export type HostFault = Static<typeof HostFault>;

const Timestamp = Type.String({ format: 'date-time' });

export const TenantHost = Type.Object(
  { key: HostKey, region: Region },
  { additionalProperties: false, description: 'A host as its tenants see it.' },
);
export type TenantHost = Static<typeof TenantHost>;

export const HostView = Type.Object(
  {
    key: HostKey,
    region: Region,
    status: Type.Enum([...hostStatuses]),
    cordoned: Type.Boolean(),
    draining: Type.Boolean(),
    capacity: nullable(Capacity),
    max_cpu_millis: nullable(
      Type.Integer({ description: 'Ceiling set by an operator. Null if the platform’s ceiling applies.' }),
    ),
    max_mem_bytes: nullable(Type.Integer()),
    max_containers: nullable(Type.Integer()),
    drain_at_once: nullable(
      Type.Integer({
        description: 'Containers that leave the host at once in a drain. Null for the default, `DRAIN_AT_ONCE`.',
      }),
    ),
    renew_expired: Type.Boolean({
      description: 'If true, the enrolled key gets new credentials even after the old ones have expired.',
    }),
    used: nullable(Capacity),
    free_ports: nullable(
      Type.Integer({ description: 'Free ports of `PUBLISH_PORTS`. Null if unknown, or with `LONGSHORE_SANDBOX=off`.' }),
    ),
    free_disk_bytes: nullable(
      Type.Integer({
        description: 'Free bytes of the engine’s disk, in whole GiB. Null if the agent cannot see them.',
      }),
    ),
    orphans_held: Type.Integer(),
    volumes_left: Type.Integer({
      description:
        'Containers moved off this host whose volumes (`VOLUME` of their images) are still on it. The volumes are removed after 7 days, or with the container.',
    }),
    faults: Type.Array(HostFault, { description: 'Faults that the agent reports; empty if there are none.' }),
    agent_version: nullable(Type.String()),
    stops_after_ms: nullable(
      Type.Integer({
        description:
          'Time after its last contact in which a running agent has stopped every container. A fenced host that is silent for longer is removed. ' +
          'Null: never, or its agent was stopped; then only `?force=true&dead=true` removes a fenced host.',
      }),
    ),
    engine: nullable(Type.String()),
    last_heard_at: nullable(Timestamp),
    inserted_at: Timestamp,
    updated_at: Timestamp,
  },
  { additionalProperties: false },
);
export type HostView = Static<typeof HostView>;

/** A host with its one-time join token, which only this answer shows. */
export const HostWithToken = Type.Object(
  { host: HostView, join_token: Type.String(), expires_at: Timestamp },
  { additionalProperties: false },
);

/** Answer to an agent for its join token, or for its enrolled key. */
export const HostEnrolment = Type.Object(
  {
    host: HostKey,
    region: Type.String(),
    cluster: Type.String(),
    natsUrls: Type.Array(Type.String()),
    jwt: Type.String(),
  },
  { additionalProperties: false },
);

export interface HostRecord {
  readonly kind: 'host';
  readonly key: HostKey;
  readonly region: Region;
  readonly cordoned: boolean;
  readonly draining: boolean;
  readonly drainAtOnce?: number;
  /** While it is drained: how many containers it had at first, as far as that was known. */
  readonly drainTotal?: number;
  /** As its agent reports it, before the ceilings below and those of the platform. */
  readonly capacity: Capacity | null;
  /** The most that this host may offer, if an operator has set that. */
  readonly ceiling?: HostCeiling;
  readonly agentVersion: string | null;
  /**
   * The agent's public user nkey; null before it enrolled. Actors accept only messages of this key
   * (ADR 22).
   */
  readonly publicKey: string | null;
  /** `spentBy`: the key that enrolled with the token. No other key can use the token after that. */
  readonly join: { readonly tokenHash: string; readonly untilMs: number; readonly spentBy: string | null } | null;
  /** Only `false`: expired credentials are not renewed. */
  readonly renewExpired?: false;
  /** The latest renewals of expired credentials: a nonce counts once. `atMs`: the agent's time. */
  readonly renewals?: readonly { readonly nonce: string; readonly atMs: number }[];
  /** Rises each time the agent starts. */
  readonly session: number;
  readonly lostSinceMs: number | null;
  /**
   * Counts the operator's approvals to remove held orphans. An agent acts on a number that it has
   * not seen.
   */
  readonly orphanWord: number;
  /**
   * Time at which an operator removed the host by force. Actors ignore what it says, and its
   * containers stay placed there until they have stopped.
   */
  readonly fencedAtMs?: number;
  /**
   * Time after losing contact by which its agent has stopped every container; null or absent:
   * never.
   */
  readonly stopsAfterMs?: number | null;
  readonly insertedAtMs: number;
  readonly updatedAtMs: number;
}

/**
 * The key of a host that was removed or enrolled under another key, kept until every JWT signed for
 * the key has expired.
 */
export interface RevokedKeyRecord {
  readonly kind: 'revoked_key';
  /** A public user nkey. */
  readonly publicKey: string;
  readonly host: HostKey;
  /** Credentials signed until then are refused. */
  readonly atMs: number;
}

/** Facts that every actors process knows of every host. Processes observe liveness themselves. */
export interface DirectoryEntry {
  readonly key: HostKey;
  readonly region: Region;
  readonly cordoned: boolean;
  readonly draining: boolean;
  readonly drainAtOnce?: number;
  readonly capacity: Capacity | null;
  readonly ceiling?: HostCeiling;
  readonly lost: boolean;
  readonly fenced?: true;
  /** The newest session. */
  readonly session: number;
  /** As in the record. */
  readonly publicKey: string | null;
  /** Time since the sender last heard the host; absent if it never has. */
  readonly silentMs?: number;
}
