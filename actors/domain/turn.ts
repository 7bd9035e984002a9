/**
 * What a decision is given and what it gives back. `decide(state, message, context)` is a pure
 * function: it reads, and says what should change, what to answer, and what to do once the change
 * is committed (invariant A3).
 */
import type { ContainerRecord, ContainerStatus, ObservationOrder, PullProgress } from '../../schemas/api/container.ts';
import {
  errorBody,
  type ConflictDetail,
  type ConflictReason,
  type FieldErrors,
  type PlainCode,
  type SuccessCode,
} from '../../schemas/errors.ts';
import type { EventType } from '../../schemas/api/event.ts';
import type { LoginRecord } from '../../schemas/api/secret.ts';
import type { Capacity, DirectoryEntry, HostFault } from '../../schemas/api/host.ts';
import type { ContainerId, HostKey, NetworkName, PeerId, Region, TenantId } from '../../schemas/ids.ts';
import type { HostRoom, PeerSeen } from '../../schemas/wire/host.ts';
import type { NetworkServer } from '../../schemas/wire/network-server.ts';
import type { Reply, SuccessReply } from '../runtime/domain.ts';
import type { StateRecord } from './records.ts';
import type { Ipv4Slice } from '../../schemas/tenant-network.ts';

export { isEmpty, isSuccess, type Reply, type SuccessReply } from '../runtime/domain.ts';

/**
 * - `up`: heard from lately.
 * - `silent`: no heartbeat for `hostUnknownMs`.
 * - `lost`: its actor has said so. - `removed`: the operator has taken it out.
 * - `fenced`: taken out by force; what was placed there may still run.
 * - `unheard`: this process knows nothing of it yet (it had no time to hear a heartbeat), or its
 *   record is damaged; decide nothing because of that.
 */
export type HostCondition = 'up' | 'silent' | 'lost' | 'fenced' | 'removed' | 'unheard';

/** The reason that containers of a host have when it is lost, or was taken out. */
export type HostLoss = 'host_lost' | 'host_removed';

export interface FleetHost {
  readonly key: HostKey;
  readonly region: Region;
  readonly condition: HostCondition;
  /** False while cordoned or draining. */
  readonly schedulable: boolean;
  readonly draining: boolean;
  /** False while its container engine does not answer. */
  readonly hasEngine: boolean;
  /** False while its agent reports faults. */
  readonly isSound: boolean;
  readonly capacity: Capacity | null;
  /** What is placed there, as far as this process knows. */
  readonly used: Capacity;
  /** Ports that no container has; null: it does not say. */
  readonly freePorts: number | null;
  /** Of the engine's disk; null: it does not say. */
  readonly freeDiskBytes: number | null;
}

/** The read-only copy of the host directory that every actors process keeps. */
export interface FleetView {
  host(key: HostKey): FleetHost | undefined;
  condition(key: HostKey): HostCondition;
  /** The key of the agent that is enrolled; null: none is. Undefined: not known here. */
  enrolledKey(key: HostKey): string | null | undefined;
  /** Wall time of the last heartbeat; null when none was heard by this process. */
  lastHeardMs(key: HostKey): number | null;
  beat(key: HostKey): {
    readonly used: Capacity;
    readonly engine: string;
    readonly orphansHeld: number;
    readonly volumesLeft: number;
    readonly faults: readonly HostFault[];
    readonly room: HostRoom;
  } | null;
  hostsIn(region: Region): readonly HostKey[];
  /** The host that serves the network, as far as it is known here; undefined: none does. */
  server(network: NetworkName): NetworkServer | undefined;
  servers(): Iterable<NetworkServer>;
  /** Whether one more container may leave this drained host now. */
  mayLeave(key: HostKey): boolean;
  /** What any host is believed to offer at most, unless its operator has said otherwise. */
  readonly ceiling: Capacity;
}

export interface TenantIpv4 {
  /** Of the cluster, as CIDR. */
  readonly range: string;
  readonly sliceOf: (tenant: TenantId) => Ipv4Slice;
}

export interface TurnContext {
  /** Id of the cluster. */
  readonly cluster: string;
  readonly nowMs: number;
  /**
   * The time that has certainly come: `nowMs` may have jumped. What time ends is deleted by this
   * one (ADR 13).
   */
  readonly expiryMs: number;
  /**
   * How long this memory has served, by a clock that never steps: what must last for a while is
   * measured by it, and never by `nowMs`, which stands still while the wall clock is set back.
   */
  readonly servedMs: number;
  /** Where containers get IPv4 addresses; undefined: they get none. */
  readonly tenantIpv4?: TenantIpv4 | undefined;
  readonly fleet: FleetView;
  /** How a host saw a VPN peer last. Absent: no host says anything. */
  readonly peerSeen?: ((peer: PeerId) => PeerSeen | undefined) | undefined;
  /** Null: no request causes the turn. */
  readonly requestId: string | null;
  /** Where the request is traced: a `traceparent`. */
  readonly trace?: string | undefined;
}

export interface EventDraft {
  readonly type: EventType;
  readonly container: ContainerRecord;
  readonly status: ContainerStatus;
}

/** Done after the commit; all of them may be lost, and none is harmful twice. */
export type Effect =
  | { readonly kind: 'doorbell'; readonly host: HostKey }
  /** Hosts of the tenant must hear of its members. `rung`: the host whose doorbell rings anyway. */
  | { readonly kind: 'members'; readonly tenant: TenantId; readonly rung: HostKey | null }
  | { readonly kind: 'changed'; readonly tenant: TenantId; readonly id: ContainerId }
  | { readonly kind: 'directory'; readonly host: HostKey; readonly entry: DirectoryEntry | null }
  /** Who serves the network; null: no host. */
  | { readonly kind: 'server'; readonly network: NetworkName; readonly server: NetworkServer | null }
  /** Another partition must learn of a change; the outbox finds it in the records. */
  | { readonly kind: 'outbox' };

export interface Changes {
  readonly records: readonly StateRecord[];
  readonly deletes: readonly string[];
  readonly events: readonly EventDraft[];
  readonly effects: readonly Effect[];
  readonly heard?: Heard;
}

export interface SecretOf {
  readonly tenant: TenantId;
  readonly name: string;
}

/** Containers of a tenant that wait for a host and need the same of it; `name` says what. */
export interface Alike {
  readonly tenant: TenantId;
  readonly name: string;
  readonly containers: ReadonlyMap<ContainerId, ContainerRecord>;
}

/**
 * When this owner last knew that a preparation gets on (`servedMs`); `since` is the preparation's.
 */
export interface PreparationSeen {
  readonly since: number;
  readonly atMs: number;
}

/**
 * What memory keeps and nothing commits: the order of a report that repeats what is stored, how far
 * a pull is, that a preparation gets on, since when a run is up (`servedMs`), that a secret, a
 * login or alike containers have had their turn (tenant/turns.ts), that no container waits for a
 * login any more, or as what the containers of a host are shown.
 */
export type Heard =
  | { readonly id: ContainerId; readonly order: ObservationOrder }
  | { readonly id: ContainerId; readonly pull: PullProgress }
  | { readonly id: ContainerId; readonly preparation: PreparationSeen }
  | { readonly id: ContainerId; readonly upSinceMs: number }
  | { readonly served: SecretOf | LoginRecord | Alike }
  | { readonly tried: LoginRecord }
  | { readonly host: HostKey; readonly loss: HostLoss | undefined };

export const noChanges: Changes = { records: [], deletes: [], events: [], effects: [] };

export interface Turn {
  readonly reply: Reply;
  readonly changes: Changes;
}

export const data = (code: SuccessCode, value: unknown): SuccessReply => ({
  code,
  body: JSON.stringify({ data: value }),
});

/** The reply of a turn that is idempotent by itself. */
export const repeatable = (code: SuccessCode, value: unknown): SuccessReply => ({
  ...data(code, value),
  isIdempotent: true,
});

export const refuse = (code: PlainCode, message?: string): Turn => ({
  reply: { code, body: errorBody(message === undefined ? { error: code } : { error: code, message }) },
  changes: noChanges,
});

export const conflict = (reason: ConflictReason, message: string, detail?: ConflictDetail): Turn => ({
  reply: {
    code: 'conflict',
    body: errorBody({ error: 'conflict', reason, message, ...(detail === undefined ? {} : { detail }) }),
  },
  changes: noChanges,
});

/** Not now, but after a time: 429 with `Retry-After`. */
export const refuseFor = (waitMs: number, message: string): Turn => {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const body = errorBody({ error: 'rate_limited', message, retry_after_seconds: seconds });
  return { reply: { code: 'rate_limited', body }, changes: noChanges };
};

export const invalid = (details: FieldErrors): Turn => ({
  reply: { code: 'invalid', body: errorBody({ error: 'invalid', details }) },
  changes: noChanges,
});

export const answer = (reply: Reply, changes: Changes = noChanges): Turn => ({ reply, changes });
