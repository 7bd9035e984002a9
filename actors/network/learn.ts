/** What a network is told by its peers' actors, and what becomes of reservations that no peer came of (ADR 7). Pure. */
import { keys } from '../../schemas/buckets.ts';
import type { Ask } from '../../schemas/messages.ts';
import type { LeaseRecord, RevokedRecord } from '../../schemas/network.ts';
import type { KnownNetwork } from '../network-state.ts';
import type { PartitionView } from '../state.ts';
import { answer, noChanges, refuse, repeatable, type Changes, type Turn } from '../turn.ts';
import { find } from './find.ts';

type Learn = Extract<Ask, { type: 'network.learn' }>;

const heard = repeatable('ok', null);

/**
 * Revocations count whatever else is told; they never end before their certificate. A generation that is older than the
 * one held is ignored. So is one that comes after its peer is gone, when there is no lease to tell by: a peer's removal
 * revokes its certificate, so who still calls a revoked one its own speaks of what was.
 */
export function learn(state: PartitionView, ask: Learn): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { network } = found;
  const { by, told } = ask;
  const revoked = told.revoked
    .filter(({ serial }) => !network.isRevoked(serial))
    .map(({ serial, notAfterMs, atMs, reason }): RevokedRecord => {
      return { kind: 'revoked', network: ask.network, serial, notAfterMs, atMs, reason };
    });
  const only: Changes = { ...noChanges, records: revoked };
  const before = network.leaseOf(by.tenant, by.peer);
  if (!told.there) {
    return answer(heard, before === undefined ? only : { ...only, deletes: [keyOf(before)] });
  }
  const inUse = told.certificates.at(-1)?.serial;
  const isPast =
    before?.state.phase === 'held'
      ? told.generation <= before.state.generation
      : inUse !== undefined && network.isRevoked(inUse);
  if (isPast) return answer(heard, only);
  const holder = network.lease(told.index);
  // It can't be: an address is lent again only when the peer before is gone for ever. So this is told, not mended.
  if (holder !== undefined && holder !== before) {
    return { ...refuse('conflict', 'another peer has this address'), changes: only };
  }
  const lease = leaseOf(ask, told);
  const moved = before !== undefined && before.index !== told.index ? [keyOf(before)] : [];
  return answer(heard, { ...only, records: [...revoked, lease], deletes: moved });
}

const keyOf = ({ network, index }: LeaseRecord): string => keys.lease(network, index);

const leaseOf = ({ network, by }: Learn, told: Extract<Learn['told'], { there: true }>): LeaseRecord => ({
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
});

/** The tenant's actor has forgone the peer: the address is free, if it is still this reservation that has it. */
export function lapse(network: KnownNetwork, reservation: LeaseRecord): Changes {
  const lease = network.lease(reservation.index);
  const isIt =
    lease?.state.phase === 'reserved' && lease.peer === reservation.peer && lease.tenant === reservation.tenant;
  return isIt ? { ...noChanges, deletes: [keyOf(lease)] } : noChanges;
}
