/**
 * Takes what peers' actors report to their network, and decides about reservations without a peer
 * (ADR 7). Pure.
 */
import { keys } from '../../../schemas/records/buckets.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import type { Learned } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { LeaseRecord, RevokedRecord } from '../../../schemas/api/network.ts';
import type { PeerRevocation } from '../../../schemas/api/peer.ts';
import { isConfirmed, type KnownNetwork } from './state.ts';
import type { PartitionView } from '../state.ts';
import {
  answer,
  noChanges,
  refuse,
  repeatable,
  type Changes,
  type SuccessReply,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { find } from './find.ts';

type Learn = Extract<Ask, { type: 'network.learn' }>;

const heardOf = (problem: Learned['problem']): SuccessReply => repeatable('ok', { problem } satisfies Learned);
const heard = heardOf(null);

/**
 * Revocations in a message always count; they never end before their certificate. A message with an
 * older generation than the lease's is ignored. So is a message that comes after its peer was
 * removed, when there is no lease to compare with: a removal revokes the peer's certificate, so a
 * message that still names a revoked certificate as current is out of date.
 *
 * After a restore the peer's record and the network's may be of different moments, and each may
 * lack what the other has (ADR 13). Then the peer's message replaces a lease from before the
 * restore, whatever its generation, and certificates that only the network knows are revoked. If
 * the peer's own certificate was revoked before the restore, or another peer has its address, the
 * answer says so, and the tenant sees it.
 */
export function learn(state: PartitionView, ask: Learn, { nowMs }: Pick<TurnContext, 'nowMs'>): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { network } = found;
  const { incarnation } = state.vpn;
  if (ask.incarnation !== incarnation)
    return refuse('unavailable', 'this message was sent before the cluster was restored');
  const { by, told } = ask;
  const before = network.leaseOf(by.tenant, by.peer);
  const isOfBefore = before !== undefined && !isConfirmed(before, incarnation);
  const unknown = isOfBefore ? unknownTo(before, told, nowMs) : [];
  const revoked = [...told.revoked, ...unknown]
    .filter(({ serial }) => !network.isRevoked(serial))
    .map((one) => revokedOf(ask.network, one, incarnation));
  const only: Changes = { ...noChanges, records: revoked };
  if (!told.there) {
    return answer(heard, before === undefined ? only : { ...only, deletes: [keyOf(before)] });
  }
  if (before?.state.phase === 'held' && !isOfBefore) {
    if (told.generation <= before.state.generation) return answer(heard, only);
  } else {
    const inUse = told.certificates.at(-1)?.serial;
    if (inUse !== undefined && network.isRevoked(inUse)) {
      const writtenIn = network.refusable().revoked.get(inUse)?.writtenIn ?? 0;
      return writtenIn === incarnation ? answer(heard, only) : keysLost(ask, network, { before, nowMs, only });
    }
  }
  const holder = network.lease(told.index);
  if (holder !== undefined && holder !== before) {
    // Without a restore only a message from before its peer was gone can say so: no sender waits
    // for this answer.
    return isConfirmed(holder, incarnation)
      ? answer(heardOf('address'), only)
      : {
          ...refuse('unavailable', 'the network is asking whether the holder of this address still exists; try again'),
          changes: only,
        };
  }
  const lease = leaseOf(ask, told, incarnation);
  const moved = before !== undefined && before.index !== told.index ? [keyOf(before)] : [];
  return answer(heard, { ...only, records: [...revoked, lease], deletes: moved });
}

const revokedOf = (network: NetworkName, one: Omit<PeerRevocation, 'toldIn'>, writtenIn: number): RevokedRecord => ({
  kind: 'revoked',
  network,
  serial: one.serial,
  notAfterMs: one.notAfterMs,
  atMs: one.atMs,
  reason: one.reason,
  ...(writtenIn === 0 ? {} : { writtenIn }),
});

/** Certificates of a lease that its peer does not name: a restore undid their change. */
function unknownTo(lease: LeaseRecord, told: Learn['told'] | undefined, nowMs: number): PeerRevocation[] {
  const named = new Set(told?.there === true ? told.certificates.map(({ serial }) => serial) : []);
  for (const { serial } of told?.revoked ?? []) named.add(serial);
  const certificates = lease.state.phase === 'held' ? lease.state.certificates : [];
  return certificates
    .filter(({ serial }) => !named.has(serial))
    .map(({ serial, notAfterMs }) => ({ serial, notAfterMs, atMs: nowMs, reason: 'superseded' }));
}

/** The peer's current keys are lost. Its address stays reserved until the peer has new keys. */
function keysLost(
  ask: Learn,
  network: KnownNetwork,
  { before, nowMs, only }: { before: LeaseRecord | undefined; nowMs: number; only: Changes },
): Turn {
  const { told, by, incarnation: confirmedIn } = ask;
  const isReserved = before?.state.phase === 'reserved' && isConfirmed(before, confirmedIn);
  const isFree = told.there && network.lease(told.index) === undefined;
  if (!told.there || isReserved || (before === undefined && !isFree)) return answer(heardOf('keys'), only);
  const { index } = before ?? told;
  const state = { phase: 'reserved', atMs: nowMs } as const;
  const lease: LeaseRecord = { kind: 'lease', network: ask.network, index, ...by, state, confirmedIn };
  return answer(heardOf('keys'), { ...only, records: [...only.records, lease] });
}

const keyOf = ({ network, index }: LeaseRecord): string => keys.lease(network, index);

const leaseOf = (
  { network, by }: Learn,
  told: Extract<Learn['told'], { there: true }>,
  confirmedIn: number,
): LeaseRecord => ({
  kind: 'lease',
  network,
  index: told.index,
  tenant: by.tenant,
  peer: by.peer,
  state: {
    phase: 'held',
    generation: told.generation,
    enabled: told.enabled,
    expiresAtMs: told.expiresAtMs,
    wireguardPublicKey: told.wireguardPublicKey,
    presharedKey: told.presharedKey,
    localId: told.localId,
    certificates: told.certificates,
  },
  ...(confirmedIn === 0 ? {} : { confirmedIn }),
});

/**
 * Called when the tenant's actor answers that the peer is not there: the address is free, if it is
 * still this one that has it. The certificates of a lease that was held before a restore are
 * refused.
 */
export function lapse(state: PartitionView, asked: LeaseRecord, { nowMs }: Pick<TurnContext, 'nowMs'>): Changes {
  const network = state.vpn.network(asked.network);
  const lease = network.lease(asked.index);
  if (lease === undefined || lease.peer !== asked.peer || lease.tenant !== asked.tenant) return noChanges;
  if (lease.state.phase === 'held' && isConfirmed(lease, state.vpn.incarnation)) return noChanges;
  const records = unknownTo(lease, undefined, nowMs)
    .filter(({ serial }) => !network.isRevoked(serial))
    .map((one) => revokedOf(asked.network, one, state.vpn.incarnation));
  return { ...noChanges, records, deletes: [keyOf(lease)] };
}
