/** Longshore as the runtime runs it: the decisions, the memory and the records of this folder. */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { ContainerRecord, TombstoneRecord } from '../../schemas/api/container.ts';
import { isMetadataEvent } from '../../schemas/api/event.ts';
import { isHostKey, isNetworkName, type HostKey, type NetworkName, type TenantId } from '../../schemas/ids.ts';
import { keys } from '../../schemas/records/buckets.ts';
import type { Ask } from '../../schemas/wire/asks.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { OutgoingEvent } from '../runtime/journal/codec.ts';
import {
  isSuccess,
  wholePartition,
  type DirtyMarks,
  type Domain,
  type EventHead,
  type RecordFormat,
} from '../runtime/domain.ts';
import { bodyAgain } from './container/decide.ts';
import { otherHostsOf } from './container/moving.ts';
import { decideRead, decideWrite } from './decide.ts';
import { linesOf } from './audit/lines.ts';
import { isWellFormed } from './record-shapes.ts';
import { headed } from './preconditions/decide.ts';
import { PartitionState, type PartitionView, type PlacementLedger } from './state.ts';
import { recordKey, type StateRecord } from './records.ts';
import {
  answer,
  refuse,
  type Changes,
  type Effect,
  type EventDraft,
  type FleetView,
  type Heard,
  type Prepared,
  type TurnContext,
} from './turn.ts';
import { isOfNetwork } from './records.ts';

export interface Longshore {
  readonly View: PartitionView;
  readonly State: PartitionState;
  readonly Record: StateRecord;
  readonly Event: EventDraft;
  readonly Effect: Effect;
  readonly Heard: Heard;
  readonly Context: TurnContext;
  readonly Prepared: Prepared;
}

// Dirty keys of readers, besides those of single records.

/** The key of a host's desired state in this partition. */
export const hostDirtyKey = (host: HostKey): string => `on ${host}`;
export const tenantDirtyKey = (tenant: string): string => `of ${tenant}`;
const networkDirtyKey = (network: NetworkName): string => `net ${network}`;

const dirtyKeyAround = (ask: Ask): string =>
  'tenant' in ask ? tenantDirtyKey(ask.tenant) : 'network' in ask ? networkDirtyKey(ask.network) : wholePartition;

/** Marks what a record makes dirty, and raises the revisions of hosts, before it is put. */
function touch(state: PartitionState, record: StateRecord, marks: DirtyMarks): void {
  marks.markDirty(recordKey(record));
  switch (record.kind) {
    // Written with the record of its host, which is dirty then; surveys read the whole partition.
    case 'revoked_key':
      return;
    // Reads of it look at the whole partition.
    case 'signing_key':
      return;
    case 'host':
      // A sync of this host carries the operator's approval to remove its orphans.
      marks.markDirty(hostDirtyKey(record.key));
      return;
    case 'network':
      marks.markDirty(networkDirtyKey(record.name));
      return;
    case 'lease':
    case 'revoked':
      marks.markDirty(networkDirtyKey(record.network));
      return;
    case 'tenant':
    case 'secret':
    case 'secret_floor':
    case 'login':
    case 'file':
    case 'key':
    case 'answer':
    case 'peer':
    case 'peer_tombstone':
      marks.markDirty(tenantDirtyKey(record.tenant));
      return;
    case 'container':
    case 'tombstone':
      marks.markDirty(tenantDirtyKey(record.tenant));
      raise(state, record, marks);
      return;
  }
}

/** The update that its host is to carry out, by its `since`. */
const sinceOf = (record: ContainerRecord | undefined): number | undefined =>
  record?.update?.previous === undefined ? undefined : record.update.since;

/** Raises the revision of the hosts whose desired set changes with this record. */
function raise(state: PartitionState, record: ContainerRecord | TombstoneRecord, marks: DirtyMarks): void {
  const before = state.tenant(record.tenant).containers.get(record.id);
  const after = record.kind === 'container' ? record : undefined;
  const isMoving = before?.preparing !== after?.preparing || before?.leaving !== after?.leaving;
  const isOther = before?.generation !== after?.generation || sinceOf(before) !== sinceOf(after);
  if (!isOther && !isMoving) return;
  const hosts = new Set<HostKey>();
  for (const side of [before, after]) {
    if (side === undefined) continue;
    if (side.placement.phase === 'placed') hosts.add(side.placement.host);
    for (const host of otherHostsOf(side)) hosts.add(host);
  }
  for (const host of hosts) {
    marks.markDirty(hostDirtyKey(host));
    state.raiseRevision(host, record.id);
  }
}

/** Kinds of records whose deletion changes what is kept of their tenant. */
const ofTenant: ReadonlySet<string> = new Set(['peer', 'secret', 'login', 'file', 'key', 'answer']);

/**
 * Marks what a deletion makes dirty: reads of a host, a tenant or a network show all of their
 * records.
 */
function touchDeleted(key: string, marks: DirtyMarks): void {
  marks.markDirty(key);
  const [kind, first = ''] = key.split('.');
  // A sync tells a host that it was removed, and its agent then stops its containers.
  if (kind === 'host' && isHostKey(first)) marks.markDirty(hostDirtyKey(first));
  if (isOfNetwork(kind) && isNetworkName(first)) marks.markDirty(networkDirtyKey(first));
  else if (kind !== undefined && ofTenant.has(kind)) marks.markDirty(tenantDirtyKey(first));
}

/** The event in its wire form; the id stays the same over redelivery. */
function outgoingEvent(
  { type, container, status }: EventDraft,
  { id, nowMs, requestId, by }: EventHead,
): OutgoingEvent {
  const { observed, placement, update } = container;
  const silent = { reason: 'host_silent', message: null, exit_code: null } as const;
  const isBack =
    (type === 'update_failed' && update?.phase === 'rolled_back') || (type === 'updated' && update?.unmoved === true);
  const why = type === 'status_unknown' ? silent : isBack ? { ...update, exit_code: null } : observed;
  return {
    subject: subjects.event(container.tenant, container.id),
    event: {
      id,
      ts: timestamp(nowMs),
      type,
      message: isMetadataEvent(type) ? null : why.message,
      container_id: container.id,
      name: container.spec.name,
      generation: container.generation,
      host_key: placement.phase === 'placed' ? placement.host : null,
      status,
      reason: why.reason,
      exit_code: why.exit_code,
      request_id: requestId,
    },
    ...(by === undefined ? {} : { by }),
  };
}

/** @returns effects that notify the hosts of a tenant of each change of one of its members */
function apply(
  state: PartitionState,
  { records: changed, deletes, effects }: Changes,
  marks: DirtyMarks,
): readonly Effect[] {
  const rung = new Set(effects.flatMap((effect) => (effect.kind === 'doorbell' ? [effect.host] : [])));
  const follow: Effect[] = [];
  const onMember = (tenant: TenantId, host: HostKey | null, left?: NetworkName): void => {
    follow.push({ kind: 'members', tenant, rung: host !== null && rung.has(host) ? host : null, left });
  };
  for (const record of changed) {
    touch(state, record, marks);
    state.put(record, onMember);
  }
  for (const key of deletes) {
    state.delete(key, onMember);
    touchDeleted(key, marks);
  }
  return follow;
}

function effectKey(effect: Effect): string {
  switch (effect.kind) {
    case 'changed':
      return `changed ${effect.tenant} ${effect.id}`;
    case 'members':
      return `members ${effect.tenant} ${effect.rung ?? ''} ${effect.left ?? ''}`;
    case 'outbox':
      return 'outbox';
    case 'server':
      return `server ${effect.network}`;
    case 'doorbell':
    case 'directory':
      return `${effect.kind} ${effect.host}`;
  }
}

function createdMs(record: StateRecord): number {
  switch (record.kind) {
    case 'container':
    case 'peer':
      return record.insertedAtMs;
    case 'tombstone':
    case 'peer_tombstone':
      return record.goneAtMs;
    case 'answer':
      return record.updatedAtMs;
    // By their index, so that a network goes on allocating after the highest.
    case 'lease':
      return record.index;
    default:
      return 0;
  }
}
const idOf = (record: StateRecord): string => ('id' in record ? record.id : recordKey(record));

export const records: RecordFormat<StateRecord> = {
  isKey: (key) =>
    /^(?:tenant|container|host|peer|network|lease|revoked|revoked_key|secret|secret_floor|login|file|key|signing_key|answer)\./.test(
      key,
    ),
  isNewKey: (key) => /^(?:secret|secret_floor|login|key|signing_key)\./.test(key),
  isNewestKey: (key) => /^(?:file|answer)\./.test(key),
  isRecord: isWellFormed,
  keyOf: recordKey,
  /** The order of creation, so that a tenant's list keeps it. */
  compare: (one, other) => createdMs(one) - createdMs(other) || (idOf(one) < idOf(other) ? -1 : 1),
};

/** Applies a change of state that is kept in memory only. */
export function applyHeard(state: PartitionState, heard: Heard): void {
  if ('pull' in heard) state.handlePullProgress(heard.id, heard.pull);
  else if ('preparation' in heard) state.seePreparation(heard.id, heard.preparation);
  else if ('upSinceMs' in heard) state.seeUp(heard.id, heard.upSinceMs);
  else if ('served' in heard) state.served(heard.served);
  else if ('tried' in heard) state.loginTried(heard.tried);
  else if ('departure' in heard) state.depart(heard.host, heard.departure);
  else if ('loss' in heard) state.showLoss(heard.host, heard.loss);
  else state.applyOrder(heard.id, heard.order);
}

export interface DomainOptions {
  readonly cluster: string;
  /** The incarnation of the cluster: see schemas/records/cluster.ts. */
  readonly incarnation: number;
  readonly fleet: FleetView;
  readonly ledger: PlacementLedger;
  /** Absent if containers get no IPv4 addresses. */
  readonly tenantIpv4?: TurnContext['tenantIpv4'];
  readonly peerSeen?: TurnContext['peerSeen'];
}

export function createDomain(options: DomainOptions): Domain<Longshore> {
  const { cluster, incarnation, fleet, ledger, tenantIpv4, peerSeen } = options;
  return {
    // Named one by one: `...times` took a sixth of the time of a read.
    context: ({ nowMs, expiryMs, servedMs }, origin) => ({
      nowMs,
      expiryMs,
      servedMs,
      cluster,
      fleet,
      tenantIpv4,
      peerSeen,
      requestId: origin?.rid ?? null,
      trace: origin?.trace,
    }),
    read: decideRead,
    write: decideWrite,
    failed: refuse('internal'),
    isFinal: ({ type }, reply) =>
      isSuccess(reply)
        ? reply.isIdempotent !== true
        : // Messages between partitions are repeated until they succeed.
          reply.code !== 'unavailable' && type !== 'network.learn' && type !== 'peer.forgo',
    repeated: (state, { tenant, id }, context, ask) => {
      const body = bodyAgain(state, tenant, id, context);
      return body === undefined
        ? undefined
        : headed(state, ask, answer({ code: 'ok', body, repeat: { kind: 'container', tenant, id } })).reply.body;
    },

    dirtyKeyOf: (ask) => ('id' in ask ? keys.container(ask.tenant, ask.id) : dirtyKeyAround(ask)),
    dirtyKeyAround,
    dirtyKeyOfRepeat: ({ tenant, id }) => keys.container(tenant, id),

    open: ({ epoch, last }) => new PartitionState(ledger, { epoch, incarnation, revision: last }),
    put: (state, record) => state.put(record),
    remove: (state, key) => state.delete(key),
    quarantine: (state, key) => state.quarantine(key),
    apply,
    applyHeard,
    all: (state) => state.records(),
    release: (state) => state.release(),
    newestMs: (state) => state.newestMs,
    records,

    event: outgoingEvent,
    lines: linesOf,
    effectKey,
  };
}
