/**
 * Decides what tenants ask of their VPN peers, and what networks ask about them. Pure: see turn.ts.
 */
import { limits } from '../../../schemas/limits.ts';
import type { PeerCount } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import {
  peerStateOf,
  type PeerProblem,
  type PeerRecord,
  type PeerRevocation,
  type PeerTombstoneRecord,
} from '../../../schemas/api/peer.ts';
import { insertionMs } from '../order.ts';
import { materialOf } from '../material.ts';
import { page } from '../page.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { damagedTenant } from '../tenant/decide.ts';
import { excessInTenant, refuseExcess } from '../tenant/quota.ts';
import { tooManyPeersGone } from '../tenant/remembered.ts';
import {
  answer,
  conflict,
  data,
  invalid,
  noChanges,
  repeatable,
  type Changes,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { changed, damaged, find, kept, revokeAll, shown, told } from './transitions.ts';
import { isAcknowledged } from '../vpn-state.ts';
import { notGood, scopeOf } from './tokens.ts';
import { peerView, unacknowledgedOf } from './view.ts';

export { certify, password, rotate } from './keys.ts';
export { linkCreate, linkList, linkRedeem, linkRemove, linkResolve } from './links.ts';
export { resolve, tokenCreate, tokenRemove } from './tokens.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const nameTaken = invalid({ name: ['has already been taken'] });

/** The refusal of a further peer of this name; `undefined` if the tenant can have one. */
function refusalOf(tenant: TenantView, name: string, context: TurnContext): Turn | undefined {
  if (tenant.settingsDamaged) return damagedTenant;
  if (tenant.peers.names.has(name)) return nameTaken;
  const over = excessInTenant(tenant, { vpn_peers: 1 });
  return over === undefined ? tooManyPeersGone(tenant, context) : refuseExcess(over);
}

export const check = (state: PartitionView, ask: Of<'peer.check'>, context: TurnContext): Turn =>
  refusalOf(state.tenant(ask.tenant), ask.name, context) ?? answer(data('ok', null));

/** Idempotent by the peer's id as well. Its address was reserved for it before (ADR 7). */
export function create(state: PartitionView, ask: Of<'peer.create'>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  const { records, tombstones, newest } = tenant.peers;
  const before = records.get(ask.peer);
  if (before !== undefined) return answer(shown('created', before, context));
  if (tenant.peers.damaged.has(ask.peer)) return damaged;
  // Its reservation has lapsed, or it was made and removed: the address may be another's by now.
  if (tombstones.has(ask.peer)) return conflict('removing', 'this peer was removed; create another');
  const refusal = refusalOf(tenant, ask.made.name, context);
  if (refusal !== undefined) return refusal;
  const insertedAtMs = insertionMs(newest, ask.peer, context.nowMs);
  const record: PeerRecord = {
    ...ask.made,
    kind: 'peer',
    id: ask.peer,
    tenant: ask.tenant,
    enabled: true,
    renewed: [],
    revoked: [],
    generation: 1,
    told: 0,
    insertedAtMs,
    updatedAtMs: insertedAtMs,
  };
  return answer(shown('created', record, context), told(record));
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

export function update(state: PartitionView, ask: Of<'peer.update'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const { name, enabled, expiresAtMs, routes, dns } = ask.update;
  const holder = name === undefined ? undefined : state.tenant(ask.tenant).peers.names.get(name);
  if (holder !== undefined && holder !== record.id) return nameTaken;
  const next = {
    name: name ?? record.name,
    enabled: enabled ?? record.enabled,
    expiresAtMs: expiresAtMs === undefined ? record.expiresAtMs : expiresAtMs,
    routes: routes === undefined ? record.routes : routes,
    dns: dns === undefined ? record.dns : dns,
  };
  const isOfFiles =
    next.name !== record.name ||
    next.expiresAtMs !== record.expiresAtMs ||
    !isSame(next.routes, record.routes) ||
    !isSame(next.dns, record.dns);
  if (!isOfFiles && next.enabled === record.enabled) return answer(shown('ok', record, context));
  const filesChangedAtMs = isOfFiles ? context.nowMs : (record.filesChangedAtMs ?? record.updatedAtMs);
  return changed(record, { ...next, filesChangedAtMs }, context);
}

/**
 * Removes a peer. Its name and its place under the cap are free at once, its address once the
 * network has acknowledged the removal.
 */
export function remove(state: PartitionView, ask: Of<'peer.remove'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const tombstone: PeerTombstoneRecord = {
    kind: 'peer_tombstone',
    id: record.id,
    tenant: record.tenant,
    network: record.network,
    generation: record.generation + 1,
    told: false,
    revoked: revokeAll(record, 'cessationOfOperation', context),
    goneAtMs: context.nowMs,
  };
  return answer({ code: 'no_content', body: '' }, told(tombstone));
}

/**
 * A network has an old reservation for it, or a lease that no peer has confirmed since a restore.
 * An existing peer is reported to the network once more. A peer that does not exist is barred from
 * ever existing, so that its address can go to another.
 */
export function tombstoneAbsent(state: PartitionView, ask: Of<'peer.forgo'>, context: TurnContext): Turn {
  const { peers } = state.tenant(ask.tenant);
  if (peers.damaged.has(ask.peer)) return damaged;
  const there = (isThere: boolean, changes: Changes): Turn => answer(repeatable('ok', { there: isThere }), changes);
  const record = peers.records.get(ask.peer);
  if (record !== undefined) {
    return there(true, isAcknowledged(record, state.vpn.incarnation) ? told({ ...record, told: 0 }) : noChanges);
  }
  if (peers.tombstones.has(ask.peer)) return there(false, noChanges);
  const tombstone: PeerTombstoneRecord = {
    kind: 'peer_tombstone',
    id: ask.peer,
    tenant: ask.tenant,
    network: null,
    generation: 0,
    told: true,
    revoked: [],
    goneAtMs: context.nowMs,
  };
  return there(false, { ...noChanges, records: [tombstone] });
}

/**
 * Marks the revocations that the network acknowledged. They stay, because a restore may make the
 * network forget them.
 */
function acknowledged(revoked: readonly PeerRevocation[], sent: ReadonlySet<string>, incarnation: number) {
  const marked = revoked.map((one) => (sent.has(one.serial) ? { ...one, toldIn: incarnation } : one));
  const heard = marked.filter(({ toldIn }) => toldIn === incarnation);
  const over = new Set(heard.slice(0, Math.max(0, heard.length - limits.peerRevocationsKept)));
  return marked.filter((one) => !over.has(one));
}

/** The network has acknowledged this generation, and the revocations that were sent with it. */
export function acknowledge(state: PartitionView, sent: PeerRecord | PeerTombstoneRecord): Changes {
  const { peers } = state.tenant(sent.tenant);
  const { incarnation: toldIn } = state.vpn;
  const serials = new Set(sent.revoked.map(({ serial }) => serial));
  if (sent.kind === 'peer_tombstone') {
    const now = peers.tombstones.get(sent.id);
    if (now === undefined || isAcknowledged(now, toldIn)) return noChanges;
    const revoked = acknowledged(now.revoked, serials, toldIn);
    return { ...noChanges, records: [{ ...now, told: true, toldIn, revoked }] };
  }
  const now = peers.records.get(sent.id);
  if (now === undefined || now.generation < sent.generation) return noChanges;
  const isOfNow = (now.toldIn ?? 0) === toldIn;
  const isNews = unacknowledgedOf(now.revoked, toldIn).some(({ serial }) => serials.has(serial));
  if (isOfNow && now.told >= sent.generation && !isNews) return noChanges;
  const { problem: _solved, ...rest } = now;
  const revoked = acknowledged(now.revoked, serials, toldIn);
  return kept({ ...rest, told: isOfNow ? Math.max(now.told, sent.generation) : sent.generation, toldIn, revoked });
}

/**
 * Its network refuses it, and its tenant has to see that. The outbox keeps telling the network
 * until it accepts.
 */
export function refusedBy(state: PartitionView, sent: PeerRecord, problem: PeerProblem): Changes {
  const now = state.tenant(sent.tenant).peers.records.get(sent.id);
  const isSame = now?.generation === sent.generation && now.problem === problem;
  return now === undefined || isSame || now.generation !== sent.generation ? noChanges : kept({ ...now, problem });
}

export function get(state: PartitionView, ask: Of<'peer.get'>, context: TurnContext): Turn {
  const found = find(state, ask);
  return 'refusal' in found
    ? found.refusal
    : answer(data('ok', peerView(found.record, context, ask.endpoints ?? false)));
}

/**
 * Also answers for a disabled or expired peer, unless a token asks: the gateway decides what such a
 * peer may still do.
 */
export function material(state: PartitionView, ask: Of<'peer.material'>, { nowMs }: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const { tokenHash } = ask;
  return tokenHash === undefined || scopeOf(record, tokenHash, nowMs) !== undefined
    ? answer(materialOf(record, ask.known))
    : notGood;
}

export const list = (state: PartitionView, ask: Of<'peer.list'>, context: TurnContext): Turn =>
  page(state.tenant(ask.tenant).peers.records, {
    ...ask,
    maxBytes: limits.vpnPageBytes,
    render: (record) => JSON.stringify(peerView(record, context, ask.endpoints ?? false)),
  });

/** Counts the peers of all tenants of the partition, for metrics. */
export function count(state: PartitionView, { nowMs }: TurnContext): Turn {
  const counts = { active: 0, disabled: 0, expired: 0 };
  let earliest: number | null = null;
  for (const { peers } of state.tenants()) {
    for (const record of peers.records.values()) {
      const peerState = peerStateOf(record, nowMs);
      counts[peerState]++;
      const { notAfterMs } = record.certificate;
      if (peerState === 'active' && (earliest === null || notAfterMs < earliest)) earliest = notAfterMs;
    }
  }
  return answer(data('ok', { ...counts, earliest } satisfies PeerCount));
}
