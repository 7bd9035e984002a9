/** A fleet host: made, enrolled, cordoned, drained, lost, removed. Pure. */
import { timestamp } from '../../../lib/time/timestamp.ts';
import type {
  DirectoryEntry,
  HostCeiling,
  HostRecord,
  HostStatus,
  HostUpdate,
  HostView,
  RevokedKeyRecord,
} from '../../../schemas/api/host.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { withoutControls } from '../../../schemas/visible.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { Hello } from '../../../schemas/wire/host.ts';
import { wholeSeconds } from '../../../schemas/quantity.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';
import { pageByKey } from '../page.ts';
import type { PartitionView } from '../state.ts';
import {
  answer,
  conflict,
  data,
  noChanges,
  refuse,
  refuseFor,
  type Changes,
  type FleetView,
  type Prepared,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { capacityWithin, ceilingOf, faultsOfCeiling } from './ceiling.ts';
import { firstSession, isEnrolled } from './sender.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/** The part of a host that every actors process keeps. */
export const directoryEntry = (record: HostRecord): DirectoryEntry => ({
  key: record.key,
  region: record.region,
  cordoned: record.cordoned,
  draining: record.draining,
  ...(record.drainAtOnce === undefined ? {} : { drainAtOnce: record.drainAtOnce }),
  capacity: record.capacity,
  lost: record.lostSinceMs !== null,
  ...(record.fencedAtMs === undefined ? {} : { fenced: true }),
  session: record.session,
  publicKey: record.publicKey,
  ...(record.ceiling === undefined ? {} : { ceiling: record.ceiling }),
});

const stored = (record: HostRecord): Changes => ({
  records: [record],
  deletes: [],
  events: [],
  effects: [{ kind: 'directory', host: record.key, entry: directoryEntry(record) }],
});

function statusOf(record: HostRecord, fleet: FleetView): HostStatus {
  if (record.fencedAtMs !== undefined) return 'fenced';
  // Enrolled is not enough: what it offers is known when its agent has said hello.
  if (record.publicKey === null || record.capacity === null) return 'joining';
  if (record.lostSinceMs !== null) return 'lost';
  return fleet.condition(record.key) === 'up' ? 'up' : 'unknown';
}

export function hostView(record: HostRecord, fleet: FleetView): HostView {
  const beat = fleet.beat(record.key);
  const heard = fleet.lastHeardMs(record.key);
  return {
    key: record.key,
    region: record.region,
    status: statusOf(record, fleet),
    cordoned: record.cordoned,
    draining: record.draining,
    capacity: record.capacity === null ? null : capacityWithin(record.capacity, ceilingOf(record, fleet.ceiling)),
    max_cpu_millis: record.ceiling?.cpu_millis ?? null,
    max_mem_bytes: record.ceiling?.mem_bytes ?? null,
    max_containers: record.ceiling?.containers ?? null,
    drain_at_once: record.drainAtOnce ?? null,
    renew_expired: record.renewExpired ?? true,
    used: beat?.used ?? null,
    free_ports: beat?.room.ports ?? null,
    free_disk_bytes: beat?.room.disk_bytes ?? null,
    orphans_held: beat?.orphansHeld ?? 0,
    volumes_left: beat?.volumesLeft ?? 0,
    faults: [...(beat?.faults ?? []), ...faultsOfCeiling(record, fleet.ceiling, beat?.used)],
    agent_version: record.agentVersion,
    stops_after_ms: record.stopsAfterMs ?? null,
    engine: beat?.engine ?? null,
    last_heard_at: heard === null ? null : timestamp(heard),
    inserted_at: timestamp(record.insertedAtMs),
    updated_at: timestamp(record.updatedAtMs),
  };
}

const shown = (code: 'ok' | 'created' | 'accepted', record: HostRecord, context: TurnContext, changes: Changes): Turn =>
  answer(data(code, hostView(record, context.fleet)), changes);

/**
 * A number that rises, also above those that a restore has forgotten: an agent remembers the
 * highest.
 */
const raised = (number: number, { nowMs }: TurnContext): number => Math.max(number + 1, nowMs);

export function create(state: PartitionView, ask: Of<'host.create'>, context: TurnContext): Turn {
  if (state.host(ask.host) !== undefined) return conflict('exists', 'a host with this key exists');
  const record: HostRecord = {
    kind: 'host',
    key: ask.host,
    region: ask.region,
    cordoned: false,
    draining: false,
    capacity: null,
    agentVersion: null,
    publicKey: null,
    join: { tokenHash: ask.joinTokenHash, untilMs: context.nowMs + limits.joinTokenTtlMs, spentBy: null },
    // Above every session of an earlier host of this key, whose reports the containers remember.
    session: firstSession(0, context.nowMs),
    lostSinceMs: null,
    orphanWord: 0,
    insertedAtMs: context.nowMs,
    updatedAtMs: context.nowMs,
  };
  return shown('created', record, context, stored(record));
}

export function get(state: PartitionView, ask: Of<'host.get'>, context: TurnContext): Turn {
  const record = state.host(ask.host);
  if (record === undefined) return refuse('not_found');
  // The gateway asks all owners how far the drain is.
  const total = record.drainTotal === undefined ? {} : { drain_total: record.drainTotal };
  return answer(data('ok', { ...hostView(record, context.fleet), ...total }));
}

export const list = (state: PartitionView, ask: Of<'host.list'>, context: TurnContext): Turn =>
  pageByKey(state.hosts(), {
    ...ask,
    maxBytes: limits.vpnPageBytes,
    keyOf: ({ key }) => key,
    render: (record) => JSON.stringify(hostView(record, context.fleet)),
  });

const beingRemoved = (): Turn =>
  conflict('removing', 'the host is fenced, and is removed once its containers have stopped');

export function joinToken(state: PartitionView, ask: Of<'host.join_token'>, context: TurnContext): Turn {
  const record = state.host(ask.host);
  if (record === undefined) return refuse('not_found');
  if (record.fencedAtMs !== undefined) return beingRemoved();
  const next: HostRecord = {
    ...record,
    join: { tokenHash: ask.joinTokenHash, untilMs: context.nowMs + limits.joinTokenTtlMs, spentBy: null },
    updatedAtMs: context.nowMs,
  };
  return shown('created', next, context, stored(next));
}

export function update(state: PartitionView, ask: Of<'host.update'>, context: TurnContext): Turn {
  const record = state.host(ask.host);
  if (record === undefined) return refuse('not_found');
  if (record.fencedAtMs !== undefined) return beingRemoved();
  const { cordoned, draining, remove_orphans: removeOrphans } = ask.update;
  const { ceiling: before, drainAtOnce: paceBefore, drainTotal, renewExpired, ...rest } = record;
  const ceiling = changedCeiling(before, ask.update);
  const drainAtOnce = ask.update.drain_at_once === undefined ? paceBefore : ask.update.drain_at_once;
  const next: HostRecord = {
    ...rest,
    ...(drainAtOnce == null ? {} : { drainAtOnce }),
    ...(ceiling === undefined ? {} : { ceiling }),
    ...((ask.update.renew_expired ?? renewExpired ?? true) ? {} : { renewExpired: false }),
    ...((draining ?? record.draining) ? totalOf(record.draining ? drainTotal : ask.placed) : {}),
    draining: draining ?? record.draining,
    cordoned: draining === true ? true : (cordoned ?? record.cordoned),
    orphanWord: removeOrphans === true ? raised(record.orphanWord, context) : record.orphanWord,
    updatedAtMs: context.nowMs,
  };
  const rung = stored(next);
  // The agent needs to know both: the approval, and that its host is being emptied.
  const concernsAgent = removeOrphans === true || next.draining !== record.draining;
  const doorbell = concernsAgent ? [{ kind: 'doorbell' as const, host: record.key }] : [];
  return shown('ok', next, context, { ...rung, effects: [...rung.effects, ...doorbell] });
}

const totalOf = (drainTotal: number | undefined) => (drainTotal === undefined ? {} : { drainTotal });

/** Absent fields stay unchanged; `null` goes back to the platform's value. */
function changedCeiling(before: HostCeiling | undefined, update: HostUpdate): HostCeiling | undefined {
  const ceiling = {
    cpu_millis: update.max_cpu_millis === undefined ? before?.cpu_millis : update.max_cpu_millis,
    mem_bytes: update.max_mem_bytes === undefined ? before?.mem_bytes : update.max_mem_bytes,
    containers: update.max_containers === undefined ? before?.containers : update.max_containers,
  };
  const set = Object.entries(ceiling).filter(([, max]) => max != null);
  return set.length === 0 ? undefined : Object.fromEntries(set);
}

/**
 * The record of the host's key, if it has one; revocation.ts then revokes the key at the NATS
 * servers.
 */
const revokedKey = ({ key, publicKey }: HostRecord, { nowMs }: TurnContext): RevokedKeyRecord[] =>
  publicKey === null ? [] : [{ kind: 'revoked_key', publicKey, host: key, atMs: nowMs }];

/** Removes the record of a host; from here on its containers are placed elsewhere. */
const forgotten = (record: HostRecord, context: TurnContext): Changes => ({
  records: revokedKey(record, context),
  deletes: [keys.host(record.key)],
  events: [],
  effects: [{ kind: 'directory', host: record.key, entry: null }],
});

/** `true` if, as far as the control plane can know, no container of the platform runs there. */
function isEmptied(record: HostRecord, fleet: FleetView): boolean {
  // It never said hello, so no container was ever placed there.
  if (record.capacity === null) return true;
  if (record.lostSinceMs !== null) return true;
  const isUnused = fleet.beat(record.key)?.used.containers === 0 && fleet.host(record.key)?.used.containers === 0;
  return record.draining && isUnused && fleet.condition(record.key) === 'up';
}

/**
 * Removes a host: at once if it is drained or lost, or if the operator knows that it is dead.
 * Otherwise by force: then it is fenced, and forgotten when its containers have stopped, so that
 * none of them ever runs twice.
 */
export function remove(state: PartitionView, ask: Of<'host.remove'>, context: TurnContext): Turn {
  const record = state.host(ask.host);
  if (record === undefined) return refuse('not_found');
  const isForced = ask.force === true;
  if (isForced && ask.dead === true) return shown('accepted', record, context, forgotten(record, context));
  if (record.fencedAtMs !== undefined) return shown('accepted', record, context, noChanges);
  if (isEmptied(record, context.fleet)) return shown('accepted', record, context, forgotten(record, context));
  if (!isForced) {
    return conflict(
      'in_use',
      'containers may run on this host: drain it and wait until none is left, or use ?force=true to fence it',
    );
  }
  const fenced: HostRecord = { ...record, fencedAtMs: context.nowMs, updatedAtMs: context.nowMs };
  const changes = stored(fenced);
  const records = [...changes.records, ...revokedKey(record, context)];
  const doorbell = { kind: 'doorbell' as const, host: record.key };
  return shown('accepted', fenced, context, { ...changes, records, effects: [...changes.effects, doorbell] });
}

/**
 * `true` if the token is good for this host now. Checked before a key is signed for it, and decided
 * again in the turn.
 */
export function mayEnrol(state: PartitionView, ask: Of<'host.enrol'>, nowMs: number): boolean {
  const record = state.host(ask.host);
  const join = record?.join;
  if (record?.fencedAtMs !== undefined || join == null || join.untilMs <= nowMs || join.tokenHash !== ask.joinTokenHash)
    return false;
  // An agent whose answer was lost asks again with the same key, and gets it again.
  return join.spentBy === null || join.spentBy === ask.publicKey;
}

/**
 * `true` if credentials that are signed for this key now would be refused with those from before
 * the revocation. NATS compares by whole seconds, and refuses those of the second of the revocation
 * too.
 */
export const isJustRevoked = (state: PartitionView, publicKey: string, nowMs: number): boolean => {
  const revoked = state.revokedKeys().get(publicKey);
  return revoked !== undefined && wholeSeconds(nowMs) <= wholeSeconds(revoked.atMs);
};

/**
 * Spends the join token. `jwt` was signed before the turn; what it is good for begins with this
 * commit.
 */
export function enrol(
  state: PartitionView,
  ask: Of<'host.enrol'>,
  enrolment: { readonly cluster: string; readonly natsUrls: readonly string[]; readonly jwt: string },
  context: TurnContext,
): Turn {
  const record = state.host(ask.host);
  if (record === undefined || !mayEnrol(state, ask, context.nowMs)) return refuse('unauthenticated');
  // Before the turn the token was not known to be good, and nothing was signed: it is not spent for
  // that.
  if (enrolment.jwt === '') return refuse('unavailable');
  const join = record.join === null ? null : { ...record.join, spentBy: ask.publicKey };
  const isSameKey = record.publicKey === ask.publicKey;
  const next: HostRecord = {
    ...record,
    publicKey: ask.publicKey,
    session: isSameKey || record.publicKey === null ? record.session : firstSession(record.session, context.nowMs),
    join,
    updatedAtMs: context.nowMs,
  };
  // The former key is not accepted from this commit on; the servers refuse it as that of a removed
  // host.
  const replaced = isSameKey ? [] : revokedKey(record, context);
  const changes = stored(next);
  return answer(data('created', { host: record.key, region: record.region, ...enrolment }), {
    ...changes,
    records: [...changes.records, ...replaced],
  });
}

/**
 * `true` if this key may have credentials again after those before have expired. Checked before
 * they are signed, and decided again in the turn.
 */
export function mayRenew(state: PartitionView, ask: Of<'host.renew'>, nowMs: number): boolean {
  const record = state.host(ask.host);
  if (record === undefined || record.fencedAtMs !== undefined || record.renewExpired === false) return false;
  if (record.publicKey !== ask.publicKey || !(Math.abs(nowMs - ask.atMs) <= limits.renewSkewMs)) return false;
  return !record.renewals?.some(({ nonce }) => nonce === ask.nonce);
}

/** The signature is good for one answer: the nonce is used from this commit on. */
export function renew(
  state: PartitionView,
  ask: Of<'host.renew'>,
  { enrolment, nowMs }: Prepared,
  { expiryMs }: Pick<TurnContext, 'expiryMs'>,
): Turn {
  const record = state.host(ask.host);
  if (record === undefined || !mayRenew(state, ask, nowMs)) return refuse('unauthenticated');
  // Those whose nonce may still come again, whichever clock has jumped.
  const renewals = (record.renewals ?? []).filter(({ atMs }) => atMs + limits.renewSkewMs >= Math.min(nowMs, expiryMs));
  // Nobody but the holder of the key gets here.
  if (renewals.length >= limits.renewalsKept) return refuseFor(limits.renewSkewMs, 'this host renews too often');
  if (enrolment.jwt === '') return refuse('unavailable');
  const next: HostRecord = { ...record, renewals: [...renewals, { nonce: ask.nonce, atMs: ask.atMs }] };
  return answer(data('ok', { host: record.key, region: record.region, ...enrolment }), stored(next));
}

/** The enrolled agent has started: it gets a session above all before it. */
export function hello(
  state: PartitionView,
  sender: Sender,
  { agent_version: agentVersion, capacity, stops_after_ms: stopsAfterMs = null, highest_session: highest = 0 }: Hello,
  context: TurnContext,
): { readonly record: HostRecord; readonly changes: Changes } | undefined {
  const before = state.host(sender.host);
  if (before === undefined || before.fencedAtMs !== undefined || !isEnrolled(before, sender)) return undefined;
  const record: HostRecord = {
    ...before,
    capacity,
    agentVersion: withoutControls(agentVersion),
    stopsAfterMs,
    session: raised(Math.max(before.session, highest), context),
    lostSinceMs: null,
    updatedAtMs: context.nowMs,
  };
  return { record, changes: stored(record) };
}

export interface Silence extends TurnContext {
  readonly silentMs: (host: HostKey) => number;
  readonly regionIsSilent: () => boolean;
  readonly hostLostMs: number;
  /** By default, that of the limits. */
  readonly fenceMarginMs?: number;
}

/**
 * Lost after long silence, found again by a heartbeat. A change of the owner is no silence. Called
 * by the sweep.
 */
export function observeSilence(record: HostRecord, context: Silence): Changes {
  const { nowMs, fleet, silentMs, regionIsSilent, hostLostMs } = context;
  if (record.fencedAtMs !== undefined) return hasStopped(record, context) ? forgotten(record, context) : noChanges;
  const isSilent = silentMs(record.key) >= hostLostMs;
  if (record.lostSinceMs === null) {
    const isLost = isSilent && record.publicKey !== null && !regionIsSilent();
    return isLost ? stored({ ...record, lostSinceMs: nowMs, updatedAtMs: nowMs }) : noChanges;
  }
  const isFound = !isSilent && fleet.lastHeardMs(record.key) !== null;
  return isFound ? stored({ ...record, lostSinceMs: null, updatedAtMs: nowMs }) : noChanges;
}

/**
 * `true` if a fenced host's agent, where it and its engine live, has stopped every container by
 * now: by both clocks it has had no contact for as long as it takes. If it never stops them by
 * itself, only the operator can know (ADR 14).
 */
function hasStopped({ key, fencedAtMs, stopsAfterMs }: HostRecord, context: Silence): boolean {
  if (fencedAtMs === undefined || stopsAfterMs == null) return false;
  const { nowMs, silentMs, fenceMarginMs = limits.fenceMarginMs } = context;
  const untilMs = stopsAfterMs + fenceMarginMs;
  return silentMs(key) >= untilMs && nowMs - fencedAtMs >= untilMs;
}
