/**
 * Containers: what a tenant declares, what is stored, and what is returned. A tenant sees only the
 * sixteen fields of `Container`; operator-only fields are in `ContainerRecord.operator`.
 */
import Type, { type Static } from 'typebox';
import { ContainerId, HostKey, TenantId, envKeyPattern } from '../ids.ts';
import type { Region } from '../ids.ts';
import { limits } from '../limits.ts';
import { containerStatuses, restartPolicies } from '../words.ts';
import {
  changeable,
  containerFields,
  digestPattern,
  metadataNames,
  optionalOf,
  PullPolicy,
  schemasOf,
  settable,
  shown,
  shownOf,
  versioned,
  type ContainerSpec,
  type Metadata,
  type VersionedName,
} from './fields/container.ts';
import { nullable } from './nullable.ts';
import { HealthView, type Policy } from './policy.ts';
import { SecretUses, type ContainerSecrets } from './secret.ts';
import { StoredSpec } from './spec.ts';
import { Author } from './audit/line.ts';

export type ContainerStatus = (typeof containerStatuses)[number];
export const ContainerStatus = Type.Enum([...containerStatuses]);

export type DesiredState = 'running' | 'stopped' | 'removed';

/**
 * The fields of a create body. All others are ignored; null in an optional field counts as absent.
 */
export const CreateBody = Type.Object(
  schemasOf(settable, ({ given, fallback }) => (fallback === undefined ? given : Type.Optional(given))),
  { additionalProperties: true },
);

/**
 * A JSON merge patch (RFC 7396) of what a container is made from: null brings the default back, and
 * in `env` removes the key.
 */
export const UpdateBody = Type.Partial(
  Type.Object(
    schemasOf(changeable, ({ patch }) => nullable(patch)),
    { additionalProperties: false },
  ),
);

const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339, UTC, milliseconds.' });

/** A container as a tenant sees it: these sixteen fields and no others. */
export const Container = Type.Object(
  {
    id: ContainerId,
    tenant_id: TenantId,
    ...shownOf(shown),
    status: ContainerStatus,
    inserted_at: Timestamp,
    updated_at: Timestamp,
  },
  { additionalProperties: false },
);
export type Container = Static<typeof Container>;

/** `GET /:id/project` */
export const ProjectView = Type.Object({ project: containerFields.project.shown }, { additionalProperties: false });
export const ProjectBody = Type.Object(
  { project: nullable(containerFields.project.given) },
  { additionalProperties: false },
);

/** Reasons of a status. The first explanation of a failure stays until an attempt gets further. */
export const reasons = [
  'no_host',
  'completed',
  'exited',
  'crash_loop',
  'oom_killed',
  'disk_limit',
  'image_missing',
  'image_not_found',
  'image_auth',
  'image_pull',
  'image_invalid',
  'registry_not_allowed',
  'image_refused',
  'create_failed',
  'start_failed',
  'secret_missing',
  'port_unavailable',
  'rejected',
  'host_fault',
  'engine_unavailable',
  'unhealthy',
  'host_silent',
  'host_lost',
  'host_removed',
] as const;
export type Reason = (typeof reasons)[number];
export const Reason = Type.Enum([...reasons]);

/** Address at which a published port is reachable. */
export const PortAddress = Type.Object({
  port: Type.String({ maxLength: 16, description: 'Container port with its protocol: "80/tcp".' }),
  address: Type.String({ maxLength: 128, description: 'Host address and port: "192.0.2.7:32768".' }),
});
export type PortAddress = Static<typeof PortAddress>;

/** The image that a container runs. */
export const ImageSeen = Type.Object({
  digest: Type.String({ pattern: digestPattern, description: 'Digest that its tag named on its host.' }),
  resolved_at: Timestamp,
});
export type ImageSeen = Static<typeof ImageSeen>;

/** A container's place in the tenant network, as its host reports it (ADR 51). */
export const NetworkSeen = Type.Object({
  state: Type.Enum(['ready', 'unavailable']),
  message: nullable(Type.String({ maxLength: 1024 })),
  /** It was made before its host had the network, and finds no names until it is made again. */
  made_before: Type.Optional(Type.Literal(true)),
});
export type NetworkSeen = Static<typeof NetworkSeen>;

/** A container as its host last observed it, as reported and as stored. Times are RFC 3339. */
export const Observation = Type.Object({
  status: ContainerStatus,
  reason: nullable(Reason),
  message: nullable(Type.String({ maxLength: 1024 })),
  exit_code: nullable(Type.Integer()),
  restart_count: Type.Integer({ minimum: 0 }),
  next_retry_at: nullable(Timestamp),
  started_at: nullable(Timestamp),
  addresses: Type.Array(PortAddress, { maxItems: 2 * limits.ports }),
  /**
   * In back-off: ends, and starts or pulls that failed, in a row. Absent if its host does not say.
   */
  failures: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  /**
   * Paths of its volumes on this host (ADR 46). Absent if there are none, or if its agent does not
   * say.
   */
  volumes: Type.Optional(
    Type.Array(Type.String({ maxLength: limits.volumePathChars }), { maxItems: limits.imageVolumes }),
  ),
  /**
   * With `image_auth`: the version of the login that its registry refused for good; 0 if the pull
   * had none. Absent if its agent tries again by itself, or does not say.
   */
  refused_login: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  /**
   * Of the copy that is there. Absent if it came from no registry, or if its agent does not say.
   */
  image: Type.Optional(ImageSeen),
  /**
   * Its place in the tenant network. Absent if its host has none, or if it was not attached yet.
   */
  network: Type.Optional(NetworkSeen),
});
export type Observation = Static<typeof Observation>;

/** Ends of the program itself, or starts that it fails: a slow start is not one. */
const ends: ReadonlySet<string> = new Set(['exited', 'crash_loop', 'oom_killed', 'unhealthy', 'start_failed']);

/** It fails again and again: the third end in a row counts, whatever its reason. */
export const isLooping = (seen: { status: string; reason: string | null; failures?: number | undefined }): boolean =>
  seen.status === 'backoff' &&
  (seen.reason === 'crash_loop' || ((seen.failures ?? 0) >= limits.loopEnds && ends.has(seen.reason ?? '')));

/** Progress of the pull of a container's image, as reported by the engine of its host. */
export const PullProgress = Type.Object(
  {
    layers: Type.Integer({ minimum: 0, description: 'Layers of the image that the engine has named so far.' }),
    bytes: Type.Integer({ minimum: 0, description: 'Bytes fetched; layers already on the host are not counted.' }),
    total: nullable(
      Type.Integer({
        minimum: 0,
        description: 'Bytes of the layers whose size is known; rises as more layers begin. Null if none is known.',
      }),
    ),
  },
  { description: 'Progress of the pull, while the status is `pulling` and the host has reported it.' },
);
export type PullProgress = Static<typeof PullProgress>;

/**
 * Phases of an update:
 * - `preparing`: the host pulls the new image and makes the new container; the old one runs.
 * - `verifying`: the new one has taken its place, and must stay up.
 * - `done`: the new one stays. - `rolled_back`: it failed, and the old one is back.
 */
export const updatePhases = ['preparing', 'verifying', 'done', 'rolled_back'] as const;
export type UpdatePhase = (typeof updatePhases)[number];

/**
 * Beside those, of an update that is over and has nothing to go back to:
 * - `failed`: the new version stays, and does not run. - `stopped`: it was stopped before it had
 *   proved itself.
 */
const updatePhasesShown = [...updatePhases, 'failed', 'stopped'] as const;
export type UpdatePhaseShown = (typeof updatePhasesShown)[number];

/** Fields of a container that an update changes, with their values. */
export const Changed = Type.Partial(
  Type.Object({
    ...shownOf(versioned),
    health: HealthView,
    secrets: SecretUses,
  }),
);
export type Changed = Static<typeof Changed>;

/** The newest update of a container. */
export const UpdateView = Type.Object(
  {
    phase: Type.Enum([...updatePhasesShown]),
    generation: Type.Integer({ description: 'Generation that the update created.' }),
    last_generation: Type.Integer({
      description: 'Newest generation whose outcome is that of the update: what came while it was under way.',
    }),
    from: Type.Unsafe<Changed>({ ...Changed, description: 'Changed fields, before the update.' }),
    to: Type.Unsafe<Changed>({ ...Changed, description: 'Changed fields, after the update.' }),
    reason: nullable(Reason),
    message: nullable(Type.String()),
    at: Timestamp,
    pull: Type.Optional(
      Type.Unsafe<PullProgress>({
        ...PullProgress,
        description: 'Progress of the pull, while the update is preparing and the host has reported it.',
      }),
    ),
    unmoved: Type.Optional(
      Type.Literal(true, {
        description: 'With `pull=always`: the tag names the image that ran already, and nothing was replaced.',
      }),
    ),
  },
  { additionalProperties: false, description: 'Newest update; absent if there was none.' },
);
export type UpdateView = Static<typeof UpdateView>;

export const LeftVolumes = Type.Object(
  {
    host_key: HostKey,
    volumes: Type.Array(Type.String()),
    left_at: Timestamp,
  },
  {
    description:
      'Data left on a host that the container was moved from. It is removed 7 days later, or with the container. A container that returns before then has it again.',
  },
);
export type LeftVolumes = Static<typeof LeftVolumes>;

export const MoveView = Type.Object(
  {
    host_key: HostKey,
    phase: Type.Enum(['preparing', 'stopping', 'failed'], {
      description:
        'The host gets it ready while it runs on; its former host stops it; the host that its tenant asked for could not take it.',
    }),
    reason: nullable(Reason),
    generation: Type.Optional(Type.Integer({ description: 'Of the write that asked for it.' })),
  },
  { description: 'Move to another host: under way, or the last one that was asked for and failed.' },
);
export type MoveView = Static<typeof MoveView>;

/** The reason why a container is not in the network of its tenant, or lacks something there. */
export const networkReasons = ['not_attached', 'too_many_members', 'no_ipv4', 'made_before_network'] as const;

export const NetworkView = Type.Object(
  {
    ipv4: nullable(Type.String({ description: 'Null where the cluster gives none.' })),
    ipv6: Type.String({ description: 'Address for its life, also on another host.' }),
    names: Type.Array(Type.String(), { description: 'Names that lead to it; none where DNS does not allow its name.' }),
    state: Type.Enum(['ready', 'unavailable']),
    reason: nullable(Type.Enum([...networkReasons])),
    message: nullable(Type.String()),
  },
  {
    additionalProperties: false,
    description: 'Its place in the network of its tenant. Null if it declares none.',
  },
);
export type NetworkView = Static<typeof NetworkView>;

/** `GET /:id/status` */
export const ContainerStatusView = Type.Object(
  {
    id: ContainerId,
    status: ContainerStatus,
    desired: Type.Enum(['running', 'stopped', 'removed']),
    generation: Type.Integer(),
    host_key: nullable(HostKey),
    observed_status: nullable(ContainerStatus),
    observed_at: nullable(Timestamp),
    reason: nullable(Reason),
    message: nullable(Type.String()),
    exit_code: nullable(Type.Integer()),
    restart_count: Type.Integer(),
    next_retry_at: nullable(Timestamp),
    started_at: nullable(Timestamp),
    addresses: Type.Array(PortAddress),
    up_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: limits.waitStableMaxSeconds,
        description:
          'Shortest time for which the present run is known to be up. Absent if it is not up, or its host is silent.',
      }),
    ),
    observed_generation: Type.Optional(
      Type.Integer({ description: 'Newest generation that the host has reported; 0 if none.' }),
    ),
    restart_policy: Type.Optional(Type.Enum([...restartPolicies])),
    failures: Type.Optional(
      Type.Integer({ minimum: 0, description: 'In `backoff`: ends, and starts or pulls that failed, in a row.' }),
    ),
    volumes: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Paths that the image declares as `VOLUME`. An update on the same host keeps their data.',
      }),
    ),
    image: Type.Optional(
      Type.Unsafe<ImageSeen>({
        ...ImageSeen,
        description:
          'The image to which its host resolved the tag. Absent until the host has made it, or if it cannot tell.',
      }),
    ),
    network: Type.Optional(nullable(NetworkView)),
    left: Type.Optional(
      Type.Unsafe<LeftVolumes>({ ...LeftVolumes, description: 'The newest of `left_on`. Absent if there is none.' }),
    ),
    left_on: Type.Optional(
      Type.Array(LeftVolumes, {
        maxItems: limits.leftHosts,
        description: 'Other hosts that have data of the container, newest first. Absent if there are none.',
      }),
    ),
    move: Type.Optional(MoveView),
    pull: Type.Optional(PullProgress),
    update: Type.Optional(UpdateView),
    ...optionalOf(metadataNames),
  },
  { additionalProperties: false },
);
export type ContainerStatusView = Static<typeof ContainerStatusView>;

/** An item of `GET /api/v2/containers`. */
export const ContainerItem = Type.Object(
  {
    container: Container,
    status: Type.Optional(
      Type.Unsafe<ContainerStatusView>({ ...ContainerStatusView, description: 'With `include=status`.' }),
    ),
    spec: Type.Optional(
      Type.Unsafe<StoredSpec>({ ...StoredSpec, description: 'With `include=spec`; of files, the hashes.' }),
    ),
    etag: Type.Optional(Type.String({ description: 'With `include=spec`: its ETag, for `If-Match`.' })),
    ...shownOf(metadataNames),
  },
  { additionalProperties: false },
);

/**
 * Outcomes of a declaration:
 * - `done`: it runs as declared, or has run to its end with exit code 0.
 * - `rolled_back`: what ran before is back. - `superseded`: another update came after it.
 * - `failed`: it does not run, or crashes again and again. - `stopped`, `removed`: as asked.
 */
export const waitOutcomes = ['done', 'rolled_back', 'failed', 'stopped', 'removed', 'superseded'] as const;
export type WaitOutcome = (typeof waitOutcomes)[number];

/** `GET /:id/wait` */
export const WaitedStatusView = Type.Object(
  {
    ...ContainerStatusView.properties,
    outcome: Type.Optional(Type.Enum([...waitOutcomes], { description: 'Outcome, with `until=settled`.' })),
  },
  { additionalProperties: false },
);
export type WaitedStatusView = Static<typeof WaitedStatusView>;

/** `GET /:id/versions`: what the container declared, and what became of it. */
export const ContainerVersion = Type.Object(
  {
    version: Type.Integer({ minimum: 1, description: 'Counts the versions of this container, from 1.' }),
    generation: Type.Integer({ description: 'Generation that came with it.' }),
    at: Timestamp,
    by: Type.Union([Author, Type.Null()], { description: 'Author of the declaration. Null if no longer known.' }),
    request_id: nullable(Type.String()),
    outcome: nullable(
      Type.Enum(['done', 'rolled_back', 'failed', 'stopped', 'superseded'], {
        description: 'Null until it is known.',
      }),
    ),
    reason: nullable(Reason),
    digest: Type.Optional(Type.String({ description: 'Digest that its tag named on its host. Absent if not known.' })),
    spec: Type.Unsafe<StoredSpec>({
      ...StoredSpec,
      description:
        'The document of that version, with the hashes of its files; host, labels, project and desired state are those of now.',
    }),
  },
  { additionalProperties: false },
);
export type ContainerVersion = Static<typeof ContainerVersion>;
export type VersionOutcome = Pick<ContainerVersion, 'outcome' | 'reason'>;

/** The content of a version, which a roll-back restores. */
export type VersionContent = Pick<Required<ContainerSpec>, VersionedName> & {
  readonly policy: Policy;
  readonly secrets: ContainerSecrets;
  /** `null` if there is none (`ContainerSpec.repull`). */
  readonly repull: number | null;
};

/** A version as it is stored. */
export interface PastVersion extends Partial<VersionOutcome> {
  readonly version: number;
  readonly generation: number;
  readonly atMs: number;
  readonly by: Author | null;
  readonly requestId: string | null;
  /** Digest of the image that it ran with. Absent if it is not known. */
  readonly digest?: string;
  /** The fields in which it differs from the version after it. */
  readonly differs: Partial<VersionContent>;
}

/** Newest first; at most `containerVersions` and `versionsBytes`. */
export interface PastVersions {
  /** Hash of what the record declared with the last of them. */
  readonly base: string;
  readonly list: readonly PastVersion[];
}

/** `POST /:id/rollback` */
export const RollbackBody = Type.Object(
  { version: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) },
  { additionalProperties: false },
);

/** A container in an operator's list. */
export const OperatorContainer = Type.Object(
  { container: Container, status: ContainerStatusView },
  { additionalProperties: false },
);
export type OperatorContainer = Static<typeof OperatorContainer>;

/** A file that an operator puts into a container before it starts. */
export const ConfigFile = Type.Object(
  {
    path: Type.String({ pattern: '^/[^\\u0000]{1,255}$', description: 'Absolute path inside the container.' }),
    content: Type.String({ maxLength: 65536 }),
    mode: Type.Optional(Type.Integer({ minimum: 0, maximum: 0o777, default: 0o444 })),
  },
  { additionalProperties: false },
);
export type ConfigFile = Static<typeof ConfigFile>;

/**
 * An environment variable whose value is a secret that the hosts keep. The control plane stores
 * only its name.
 */
export const SecretRef = Type.Object(
  {
    env: Type.String({ pattern: envKeyPattern }),
    secret: Type.String({
      pattern: '^[A-Za-z0-9_-]{1,64}$',
      description: 'Name of a file in the secrets folder of the hosts.',
    }),
  },
  { additionalProperties: false },
);
export type SecretRef = Static<typeof SecretRef>;

/** Fields that only an operator may set, and that tenants never see. */
export const OperatorFields = Type.Object(
  {
    pull_policy: Type.Optional(PullPolicy),
    secret_refs: Type.Optional(Type.Array(SecretRef, { maxItems: 64 })),
    config_files: Type.Optional(Type.Array(ConfigFile, { maxItems: 16 })),
  },
  { additionalProperties: false },
);
export type OperatorFields = Static<typeof OperatorFields>;

/** `GET /operator/tenants/:tenant/containers/:id` */
export const ContainerInspection = Type.Object(
  {
    container: Container,
    status: ContainerStatusView,
    secret_refs: Type.Array(SecretRef),
    config_files: Type.Array(ConfigFile),
    secrets: SecretUses,
    reconciler: Type.Record(Type.String(), Type.Unknown(), {
      description: 'Internal state of the reconciler; its fields may change with any release.',
    }),
  },
  { additionalProperties: false },
);

/** Orders observations lexicographically; older ones are ignored. */
export interface ObservationOrder {
  readonly generation: number;
  readonly session: number;
  readonly seq: number;
}

/**
 * A container as it is stored. Only the container's actor writes `desired` and `generation`
 * (invariant A2).
 */
export interface ContainerRecord {
  readonly kind: 'container';
  readonly id: ContainerId;
  readonly tenant: TenantId;
  readonly spec: ContainerSpec;
  readonly secretRefs: readonly SecretRef[];
  readonly configFiles: readonly ConfigFile[];
  /** Bytes that the container may write to its host's disk. Absent if no limit applies. */
  readonly diskBytes?: number;
  /**
   * Its address in the tenant network, for its life. `null` if none was free. Absent if the cluster
   * gave none when it was made and last updated.
   */
  readonly ipv4?: string | null;
  /** Absent until somebody sets it: `defaultPolicy` applies. */
  readonly policy?: Policy;
  /** Absent if it has none. The versions are those that it is made from (ADR 37). */
  readonly secrets?: SecretUses;
  readonly desired: DesiredState;
  /**
   * Rises with every change of what is wanted: start, stop, delete, placement, operator fields,
   * retry.
   */
  readonly generation: number;
  /**
   * That of the newest start, or of the create. Absent if it is not known, as in records of before
   * 0.2.0.
   */
  readonly startSince?: number;
  readonly placement: Placement;
  /** Hosts that the container has been placed on, newest last. Reads of its logs use only these. */
  readonly history: readonly HostKey[];
  /** Hosts whose admission refused the container; forgotten after `rejectionTtlMs`. */
  readonly rejections: readonly { readonly host: HostKey; readonly atMs: number }[];
  readonly observed: Observation;
  readonly observedOrder: ObservationOrder;
  readonly observedAtMs: number | null;
  readonly insertedAtMs: number;
  readonly updatedAtMs: number;
  readonly idempotency: Idempotency | null;
  /** While it runs on: another host gets a copy ready (ADR 32). */
  readonly preparing?: Preparation;
  /** Until the host that it was moved from has stopped it; none starts it before (ADR 32). */
  readonly leaving?: Leaving;
  /** Volumes on the other host that it was on last (ADR 46). */
  readonly left?: LeftBehind;
  /**
   * On those before, newest first; also what it had left on its present host. Absent if there are
   * none.
   */
  readonly leftBefore?: readonly LeftBehind[];
  /** The newest update (ADR 35). */
  readonly update?: Update;
  readonly cause?: Cause;
  /** Absent if what it declares has not changed. In no list, no event and no desired set. */
  readonly versions?: PastVersions;
  /** Its host, if that is silent and an event has said so. */
  readonly silentOn?: HostKey;
}

/**
 * The request that made a generation, for the logs and the traces of its host (ADR 44). One of an
 * earlier generation says nothing: a release that does not know the field keeps it.
 */
export interface Cause {
  readonly generation: number;
  readonly requestId: string;
  /** Trace of the request: a `traceparent`. */
  readonly trace?: string;
}

/**
 * Parts from which the engine's container is made. An update replaces them; a roll-back brings them
 * back.
 */
export type Version = Pick<ContainerRecord, 'spec' | 'secretRefs' | 'configFiles'> & {
  readonly policy: Policy;
  readonly secrets: SecretUses;
};

export interface Update {
  /** The generation that it came with. */
  readonly since: number;
  readonly phase: UpdatePhase;
  readonly from: Changed;
  readonly to: Changed;
  /** Reason of the roll-back. */
  readonly reason: Reason | null;
  readonly message: string | null;
  /** Start of its phase. */
  readonly atMs: number;
  /**
   * Over (`done`), but the new version is not known to run. What its host says of this generation
   * and later ones is about that version.
   */
  readonly unproven?: number;
  /**
   * Over: the newest generation that came before. If absent, that is `since`, as in records of
   * before 0.2.0.
   */
  readonly lastGeneration?: number;
  /** Over: it looked again at a tag that names the image that ran already, which runs on. */
  readonly unmoved?: true;
  /** Only while it is under way: it runs until the new version does, and again if that fails. */
  readonly previous?: Version;
}

/** A copy that is made on another host and not started. */
export interface Preparation {
  readonly host: HostKey;
  readonly region: Region;
  /** The generation of the placement that the copy is made for (Placement.since). */
  readonly since: number;
  /** Its start. One from before a restore may have become a placement that is forgotten. */
  readonly atMs: number;
  /** Its tenant has asked for this host. Absent if the platform chose it. */
  readonly chosenBy?: 'tenant';
  /** With that: the generation of the container then. */
  readonly generation?: number;
  /** The copy is there, but the container could not move at once. */
  readonly isReady?: true;
  /** Present if it was given up, for this reason; `null` if the container stays where it is. */
  readonly givenUp?: Reason | null;
}

/** Paths of volumes that stay on a host. */
export interface LeftBehind {
  readonly host: HostKey;
  readonly volumes: readonly string[];
  /** When it left the host. */
  readonly atMs: number;
}

export interface Leaving {
  readonly host: HostKey;
  /** Of the placement there. */
  readonly since: number;
  readonly atMs: number;
}

/**
 * `atMs`: when the container was placed on a host or taken off it. Absent in records of an older
 * release, and if it was never placed.
 */
export type Placement =
  | {
      readonly phase: 'unplaced';
      readonly atMs?: number;
      /** Every copy was made under an earlier placement. */
      readonly since?: number;
      /** The host that it was lost with, and the placement there: its copy may still run. */
      readonly lostWith?: { readonly host: HostKey; readonly since: number };
    }
  /**
   * `since` is the generation of the placement: an agent adopts only containers that were made
   * under it.
   */
  | {
      readonly phase: 'placed';
      readonly host: HostKey;
      /** The host's region at the placement; the container counts in the caps of that region. */
      readonly region: Region;
      readonly since: number;
      readonly chosenBy: 'tenant' | 'platform';
      readonly atMs?: number;
    };

/**
 * The operation id that the client gave with the create (`Idempotency-Key`), honoured until
 * `untilMs`.
 */
export interface Idempotency {
  readonly key: string;
  readonly bodyHash: string;
  readonly untilMs: number;
}

/** Remains of a deleted container: the right to read its logs and events for `tombstoneTtlMs`. */
export interface TombstoneRecord {
  readonly kind: 'tombstone';
  readonly id: ContainerId;
  readonly tenant: TenantId;
  /** For what its host says later that it used. Absent if a release before 0.2.0 removed it. */
  readonly name?: string;
  readonly history: readonly HostKey[];
  /** Absent if it had none. */
  readonly metadata?: Partial<Metadata>;
  readonly goneAtMs: number;
  readonly idempotency: Idempotency | null;
  /** The address that it had; it rests. */
  readonly ipv4?: string;
}
