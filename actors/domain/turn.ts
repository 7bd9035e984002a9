/**
 * The input and the output of a decision. `decide(state, message, context)` is a pure function: it
 * returns the changes, the answer, and the effects to carry out once the changes are committed
 * (invariant A3).
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
 * - `lost`: its actor has declared it lost. - `removed`: the operator has taken it out.
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
  /** `false` while cordoned or draining. */
  readonly schedulable: boolean;
  readonly draining: boolean;
  /** `false` while its container engine does not answer. */
  readonly hasEngine: boolean;
  /** `false` while its agent reports faults. */
  readonly isSound: boolean;
  readonly capacity: Capacity | null;
  /** Resources placed there, as far as this process knows. */
  readonly used: Capacity;
  /** Ports that no container has; `null` if the host does not report it. */
  readonly freePorts: number | null;
  /** Free bytes of the engine's disk; `null` if the host does not report it. */
  readonly freeDiskBytes: number | null;
}

/** The read-only copy of the host directory that every actors process keeps. */
export interface FleetView {
  host(key: HostKey): FleetHost | undefined;
  condition(key: HostKey): HostCondition;
  /**
   * The key of the enrolled agent; `null` if there is none, `undefined` if it is not known here.
   */
  enrolledKey(key: HostKey): string | null | undefined;
  /** Wall time of the last heartbeat; `null` if this process heard none. */
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
  /** The host that serves the network, as far as it is known here; `undefined` if none does. */
  server(network: NetworkName): NetworkServer | undefined;
  servers(): Iterable<NetworkServer>;
  /** `true` if one more container may leave this drained host now. */
  mayLeave(key: HostKey): boolean;
  /** The maximum that any host is believed to offer, unless its operator has set another. */
  readonly ceiling: Capacity;
}

export interface TenantIpv4 {
  /** The range of the cluster, as CIDR. */
  readonly range: string;
  readonly sliceOf: (tenant: TenantId) => Ipv4Slice;
}

export interface TurnContext {
  /** Id of the cluster. */
  readonly cluster: string;
  readonly nowMs: number;
  /**
   * The time that has certainly come: `nowMs` may have jumped. Records that expire are deleted by
   * this one (ADR 13).
   */
  readonly expiryMs: number;
  /**
   * Milliseconds for which this memory has served, by a clock that never steps: durations are
   * measured by it, and never by `nowMs`, which stands still while the wall clock is set back.
   */
  readonly servedMs: number;
  /** The range of containers' IPv4 addresses; `undefined` if they get none. */
  readonly tenantIpv4?: TenantIpv4 | undefined;
  readonly fleet: FleetView;
  /** The last report of a host about a VPN peer. Absent if no host reports any. */
  readonly peerSeen?: ((peer: PeerId) => PeerSeen | undefined) | undefined;
  /** `null` if no request causes the turn. */
  readonly requestId: string | null;
  /** A `traceparent`, if the request is traced. */
  readonly trace?: string | undefined;
}

export interface EventDraft {
  readonly type: EventType;
  readonly container: ContainerRecord;
  readonly status: ContainerStatus;
}

/** Carried out after the commit; each may be lost, and none is harmful if it is repeated. */
export type Effect =
  | { readonly kind: 'doorbell'; readonly host: HostKey }
  /**
   * Notifies the hosts of the tenant of its members. `rung`: the host whose doorbell rings anyway.
   * `left`: the VPN network of a peer that has changed or gone. It may have been the tenant's last
   * one there, and the network's server must let it in no more.
   */
  | {
      readonly kind: 'members';
      readonly tenant: TenantId;
      readonly rung: HostKey | null;
      readonly left?: NetworkName | undefined;
    }
  | { readonly kind: 'changed'; readonly tenant: TenantId; readonly id: ContainerId }
  | { readonly kind: 'directory'; readonly host: HostKey; readonly entry: DirectoryEntry | null }
  /** The host that serves the network; `null` if none does. */
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

/** Some of the containers that a host has or had; the sweep gives them others. */
export interface Departure {
  /** `lost`: or taken out. */
  readonly why: 'lost' | 'drained';
  readonly of: readonly ContainerRecord[];
  /** The containers of a host come in parts. */
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The last known progress of a preparation (`servedMs`); `since` is the preparation's. */
export interface PreparationSeen {
  readonly since: number;
  readonly atMs: number;
}

/**
 * A change that memory keeps and nothing commits: the order of a report that repeats what is
 * stored, the progress of a pull or of a preparation, the start of a run (`servedMs`), a turn of a
 * secret, a login or alike containers (tenant/turns.ts), a login that no container waits for any
 * more, the loss of a host that is shown, or the containers that are to leave a host.
 */
export type Heard =
  | { readonly id: ContainerId; readonly order: ObservationOrder }
  | { readonly id: ContainerId; readonly pull: PullProgress }
  | { readonly id: ContainerId; readonly preparation: PreparationSeen }
  | { readonly id: ContainerId; readonly upSinceMs: number }
  | { readonly served: SecretOf | LoginRecord | Alike }
  | { readonly tried: LoginRecord }
  | { readonly host: HostKey; readonly loss: HostLoss | undefined }
  | { readonly host: HostKey; readonly departure: Departure | undefined };

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

/** A refusal for a time: 429 with `Retry-After`. */
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

/**
 * Values that are made before the turn for an ask that needs them: `host.enrol` and `host.renew`.
 */
export interface Prepared {
  /**
   * The clock of this process then. The time of a partition never goes back: after a jump of the
   * clock it is ahead for as long, and would refuse what was signed just now.
   */
  readonly nowMs: number;
  readonly enrolment: { readonly cluster: string; readonly natsUrls: readonly string[]; readonly jwt: string };
}
