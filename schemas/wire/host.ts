/**
 * Messages between agents and actors. Both sides check them, because a host is not trusted
 * (invariant A7).
 */
import Type, { type Static } from 'typebox';
import { ConfigFile, Observation, PullProgress, Reason, SecretRef, updatePhases } from '../api/container.ts';
import { optionalOf, partNames, Port, PullPolicy } from '../api/fields/container.ts';
import { Capacity, HostFault } from '../api/host.ts';
import { Policy } from '../api/policy.ts';
import { SecretUses } from '../api/secret.ts';
import { nullable } from '../api/nullable.ts';
import { ContainerId, PeerId, tenantIdPattern, TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { UsageItem, UsageSource } from '../records/usage.ts';
import { Member } from './members.ts';
import { EndSaid, MeshEnd } from './mesh.ts';
import { ServerSaid } from './network-server.ts';

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/**
 * Part of every message: the sender's version of the protocol (version.ts). `v` is the form of the
 * message.
 */
const Protocol = Type.Optional(Type.Integer());

/**
 * `agent.<host>.<user key>.hello` (request): an agent that starts asks for a session. The owner of
 * the host's partition answers.
 */
export const Hello = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
  agent_version: Type.String({ maxLength: 64 }),
  capacity: Capacity,
  /** The agent's current session; absent when it starts. */
  session: Type.Optional(Count),
  /** The highest session that this host has used. The new one is above it, even after a restore. */
  highest_session: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 ** 52 })),
  /**
   * Time after losing contact by which this agent has stopped every container; `null` if it never
   * does.
   */
  stops_after_ms: Type.Optional(Type.Union([Count, Type.Null()])),
  /** Requests new credentials for this key, which must be the enrolled one. */
  renew_key: Type.Optional(Type.String({ pattern: '^U[A-Z2-7]{55}$' })),
});
export type Hello = Static<typeof Hello>;

export const HelloAnswer = Type.Union([
  Type.Object({
    protocol: Protocol,
    ok: Type.Literal(true),
    cluster: Type.String(),
    partitions: Type.Integer({ minimum: 1 }),
    session: Count,
    orphan_word: Count,
    /** New credentials, if the agent requested them and they are due for this key. */
    jwt: Type.Optional(Type.String({ minLength: 1 })),
  }),
  /**
   * `superseded`: another agent has the session of this host and sends heartbeats. It started
   * later, or its key was enrolled in place of the sender's.
   */
  Type.Object({
    protocol: Protocol,
    ok: Type.Literal(false),
    error: Type.Enum(['unknown_host', 'fenced', 'invalid', 'unavailable', 'superseded']),
    /** The reason, for the agent's log. */
    message: Type.Optional(Type.String({ maxLength: 1000 })),
  }),
]);
export type HelloAnswer = Static<typeof HelloAnswer>;

/**
 * A container on a host, as its labels name it. `placement`: the generation that it was made under.
 */
export const Stranger = Type.Object({ tenant: TenantId, id: ContainerId, placement: Count });
export type Stranger = Static<typeof Stranger>;

/** Of a set of one partition (set-digest.ts). */
const Digest = Type.String({ maxLength: 64 });

/** `agent.<host>.<user key>.sync` (request): the owner of every partition answers, in parts. */
export const SyncAsk = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
  /** Sync only these partitions, as a doorbell named them; if absent, all. */
  partitions: Type.Optional(Type.Array(Type.Integer({ minimum: 0 }), { maxItems: 256 })),
  /** Versions that the agent holds, by partition: `[epoch, revision]`. */
  held: Type.Record(Type.String({ pattern: '^\\d{1,3}$' }), Type.Tuple([Count, Count])),
  /**
   * Longshore's containers on the engine that the agent's desired set does not know: may it remove
   * them?
   */
  strangers: Type.Optional(Type.Array(Stranger, { maxItems: limits.syncStrangers })),
  /**
   * By partition, the digest that came with the set of that version; absent, or absent of one that
   * is held, if the agent has none.
   */
  digests: Type.Optional(Type.Record(Type.String({ pattern: '^\\d{1,3}$' }), Digest)),
  /**
   * By tenant, the version and the digest of the members that the agent holds, and the digest of
   * the ends of the mesh that came with them: `[epoch, revision, digest, mesh]`. Absent if the host
   * has no tenant network.
   */
  members: Type.Optional(
    Type.Record(Type.String({ pattern: tenantIdPattern }), Type.Tuple([Count, Count, Digest, Digest])),
  ),
});
export type SyncAsk = Static<typeof SyncAsk>;

/** Parts from which a container is made. */
const versionFields = {
  registry: Type.String(),
  repository: Type.Union([Type.String(), Type.Null()]),
  tag: Type.Union([Type.String(), Type.Null()]),
  digest: Type.Union([Type.String(), Type.Null()]),
  pull_policy: PullPolicy,
  /**
   * Its image is pulled, also if it is here (`ContainerSpec.repull`). If absent, `pull_policy`
   * decides.
   */
  repull: Type.Optional(Count),
  ports: Type.Array(Port),
  env: Type.Record(Type.String(), Type.String()),
  cpu_millis: Count,
  mem_bytes: Count,
  secret_refs: Type.Array(SecretRef),
  config_files: Type.Array(ConfigFile),
  /** Absent for the default. */
  policy: Type.Optional(Policy),
  /** Secrets of the tenant (ADR 37); absent if there are none. */
  secrets: Type.Optional(SecretUses),
  /** Absent if all of it is the image's. */
  ...optionalOf(partNames),
};
const DesiredVersion = Type.Object(versionFields);
export type DesiredVersion = Static<typeof DesiredVersion>;

/** A container as its host should run it. */
export const DesiredContainer = Type.Object({
  tenant: TenantId,
  id: ContainerId,
  generation: Count,
  /**
   * Generation of the placement on this host. A container made under another generation is not this
   * one (Placement.since).
   */
  placement: Count,
  desired: Type.Enum(['running', 'stopped', 'removed']),
  /** Generation of its newest start. Absent if it is not known: its record is of before 0.2.0. */
  start: Type.Optional(Count),
  /**
   * With `stopped`: the host makes the container and does not start it, and reports `stopped` when
   * it is there.
   */
  prepare: Type.Optional(Type.Literal(true)),
  name: Type.String(),
  ...versionFields,
  /** Bytes that it may write to disk. Absent where no limit was declared. */
  disk_bytes: Type.Optional(Count),
  /**
   * The other fields come in the place of `previous`, which runs on until the new container is made
   * and runs again if that fails (ADR 35).
   */
  update: Type.Optional(Type.Object({ since: Count, previous: DesiredVersion })),
  /**
   * The request that made this generation, and where it is traced: a `traceparent`. Absent where no
   * request did.
   */
  cause: Type.Optional(Type.Object({ request_id: Type.String(), trace: Type.Optional(Type.String()) })),
});
export type DesiredContainer = Static<typeof DesiredContainer>;

/** The container as another version of it, which may lack what this one has. */
export function asVersion(container: DesiredContainer, version: DesiredVersion): DesiredContainer {
  const others = Object.entries(container).filter(([name]) => !Object.hasOwn(versionFields, name));
  return { ...(Object.fromEntries(others) as Omit<DesiredContainer, keyof DesiredVersion>), ...version };
}

/**
 * One part of one partition's answer. `same`: the agent's set is current, and the lists are empty.
 * `hold`: containers whose record is damaged, which every host leaves as they are.
 */
export const SyncAnswer = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
  cluster: Type.String(),
  partitions: Type.Integer({ minimum: 1 }),
  partition: Type.Integer({ minimum: 0 }),
  /**
   * The cluster's incarnation. If it has risen, a restore has lost earlier reports, and the agent
   * repeats them.
   */
  incarnation: Type.Optional(Count),
  epoch: Count,
  revision: Count,
  part: Type.Integer({ minimum: 0 }),
  parts: Type.Integer({ minimum: 1 }),
  same: Type.Boolean(),
  /**
   * `[epoch, revision]` that the agent named: `containers` are those that were added or changed
   * since, and `removed` those that are no longer in the set; `hold` is whole.
   */
  since: Type.Optional(Type.Tuple([Count, Count])),
  removed: Type.Optional(Type.Array(ContainerId)),
  /** Of the whole set of this version; absent where the set is the same. */
  digest: Type.Optional(Digest),
  /**
   * `[partition, epoch, revision]` of other partitions of the same owner, for which this answer
   * would be the same.
   */
  also: Type.Optional(Type.Array(Type.Tuple([Count, Count, Count]), { maxItems: limits.syncSame })),
  containers: Type.Array(DesiredContainer),
  hold: Type.Array(ContainerId),
  /**
   * Tenants whose members are others than the agent holds. `since`: the revision that it named, and
   * `members` has those that were added or changed since, `members_gone` those that went; absent:
   * `members` has all. `mesh`: digest of the ends of the hosts that they are on.
   */
  tenants: Type.Optional(
    Type.Array(
      Type.Object({ tenant: TenantId, revision: Count, since: Type.Optional(Count), digest: Digest, mesh: Digest }),
    ),
  ),
  members: Type.Optional(Type.Array(Member)),
  members_gone: Type.Optional(Type.Array(Type.Object({ tenant: TenantId, id: Type.Union([ContainerId, PeerId]) }))),
  /** Ends of hosts that these tenants have members on, as far as the hosts were heard. */
  mesh: Type.Optional(Type.Array(EndSaid)),
  /** Servers of the VPN networks that these tenants have peers in. */
  servers: Type.Optional(Type.Array(ServerSaid)),
  /** Tenants in the ask whose members are none of this host's business any more. */
  tenants_gone: Type.Optional(Type.Array(TenantId)),
  /**
   * Those of the named strangers that were since placed elsewhere or deleted, as of this version.
   */
  gone: Type.Optional(
    Type.Array(
      Type.Object({
        id: ContainerId,
        placement: Count,
        /** Nobody wants what it wrote on this host. */
        deleted: Type.Optional(Type.Literal(true)),
      }),
      { maxItems: limits.syncStrangers },
    ),
  ),
  /**
   * An operator removed this host: it stops its containers, and ignores the rest of this answer.
   */
  fenced: Type.Optional(Type.Literal(true)),
  /** From the owner of the host's own partition: see HostRecord.orphanWord. */
  orphan_word: Type.Union([Count, Type.Null()]),
  /**
   * From the owner of the host's own partition: the public key that signs credentials of hosts now.
   * An agent whose credentials another key signed asks for others.
   */
  signer: Type.Optional(Type.String({ pattern: '^A[A-Z2-7]{55}$' })),
  /** Range in which containers get IPv4 addresses, as CIDR. Absent if they get none. */
  tenant_ipv4: Type.Optional(Type.String({ maxLength: 18 })),
});
export type SyncAnswer = Static<typeof SyncAnswer>;

/**
 * `agent.<host>.<user key>.report` (request): the containers of one partition. Its owner answers
 * after the commit. A report without containers asks whether the session is still the newest.
 */
export const Report = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
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
      /** It has run to its end, and its policy does not start it again. */
      ended: Type.Optional(Type.Literal(true)),
      /** The placement that it is prepared for. */
      prepared: Type.Optional(Count),
      /** Phase of the update that came with this generation or before; `since` names it. */
      update: Type.Optional(
        Type.Object({
          since: Count,
          phase: Type.Enum([...updatePhases]),
          reason: nullable(Reason),
          message: nullable(Type.String({ maxLength: 1024 })),
          /** With `rolled_back`: the tag names the image that runs, so nothing was replaced. */
          unmoved: Type.Optional(Type.Literal(true)),
        }),
      ),
      observation: Observation,
    }),
    { maxItems: limits.reportItems },
  ),
  /**
   * Progress of the pulls of these containers. Owners keep it in memory alone, and answer without a
   * commit.
   */
  pulls: Type.Optional(
    Type.Array(Type.Object({ tenant: TenantId, id: ContainerId, generation: Count, ...PullProgress.properties }), {
      maxItems: limits.reportItems,
    }),
  ),
});
export type Report = Static<typeof Report>;
export type ReportItem = Report['items'][number];
export type PullItem = NonNullable<Report['pulls']>[number];

export const ReportAnswer = Type.Union([
  Type.Object({ protocol: Protocol, ok: Type.Literal(true) }),
  Type.Object({
    protocol: Protocol,
    ok: Type.Literal(false),
    error: Type.Enum(['invalid', 'unavailable', 'stale_session']),
    /**
     * With `unavailable`: places of the items that can't be taken now; the others are. If absent,
     * send all of them again.
     */
    later: Type.Optional(Type.Array(Count, { maxItems: limits.reportItems })),
  }),
]);
export type ReportAnswer = Static<typeof ReportAnswer>;

/** In a heartbeat, in place of the engine's name and version: the engine does not answer. */
export const engineAway = 'unavailable';

/** Room for containers beside `capacity`, as far as the agent knows it. */
export const HostRoom = Type.Object({
  /** Ports of the host that no container has. Absent with `LONGSHORE_SANDBOX=off`. */
  ports: Type.Optional(Count),
  /**
   * Of the engine's disk, in steps of `limits.roomDiskStepBytes`. Absent where the agent cannot see
   * the disk.
   */
  disk_bytes: Type.Optional(Count),
});
export type HostRoom = Static<typeof HostRoom>;

/** `agent.<host>.<user key>.beat`: not acknowledged. Every actors process learns of it. */
export const Beat = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
  session: Count,
  used: Capacity,
  engine: Type.String({ maxLength: 128, description: '"docker 28.2.2", or "unavailable".' }),
  orphans_held: Count,
  /** Containers that have left volumes here. */
  volumes_left: Count,
  faults: Type.Array(HostFault, { maxItems: limits.hostFaults }),
  room: HostRoom,
  /** Absent if other hosts do not reach its containers. */
  mesh: Type.Optional(MeshEnd),
});
export type Beat = Static<typeof Beat>;

/** A VPN peer as the WireGuard interface of its server has it. */
export const PeerSeen = Type.Object({
  tenant: TenantId,
  id: PeerId,
  /** `null` if there was none since the interface was made. */
  handshake_at_ms: nullable(Count),
  /** Since the interface was made, or the peer was let in again. */
  rx_bytes: Count,
  tx_bytes: Count,
  /** Address and port from which it was heard last. */
  endpoint: nullable(Type.String({ maxLength: 64 })),
});
export type PeerSeen = Static<typeof PeerSeen>;

/**
 * `agent.<host>.<user key>.usage` (request): usage of containers and traffic of VPN peers of one
 * partition, in absolute sums. Its owner answers when the stream USAGE has them. How peers were
 * seen last is in its memory alone.
 */
export const UsageReport = Type.Object({
  v: Type.Literal(1),
  protocol: Protocol,
  partition: Type.Integer({ minimum: 0 }),
  source: UsageSource,
  items: Type.Array(UsageItem, { maxItems: limits.usageReportItems }),
  /** Peers that have changed since the last report. Absent if the sender does not say. */
  seen: Type.Optional(Type.Array(PeerSeen, { maxItems: limits.usageReportItems })),
});
export type UsageReport = Static<typeof UsageReport>;

const Places = Type.Array(Count, { maxItems: limits.usageReportItems });
export const UsageAnswer = Type.Union([
  Type.Object({
    protocol: Protocol,
    ok: Type.Literal(true),
    /** Places of items that are not the sender's to report, which it drops. */
    refused: Type.Optional(Places),
    /** Places of items that can't be taken now, which it sends again later. */
    later: Type.Optional(Places),
    /**
     * Those of `later` whose hour is too far from the owner's clock, and of which the owner has
     * nothing. Whose clock is wrong is not known.
     */
    outOfTime: Type.Optional(Places),
    /** Of the owner's memory: to one that is new, the agent sends all peers again. */
    memory: Type.String({ maxLength: 64 }),
  }),
  Type.Object({ protocol: Protocol, ok: Type.Literal(false), error: Type.Enum(['invalid', 'unavailable']) }),
]);
export type UsageAnswer = Static<typeof UsageAnswer>;
