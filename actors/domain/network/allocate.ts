/**
 * Allocates addresses: a reservation, which becomes a lease when the peer's actor reports the peer
 * (ADR 7). Pure.
 */
import type { Ask } from '../../../schemas/wire/asks.ts';
import { servesTenant, type LeaseRecord, type Reservation } from '../../../schemas/api/network.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, noChanges, refuse, repeatable, type Reply, type Turn, type TurnContext } from '../turn.ts';
import { find } from './find.ts';
import { lastOf } from './view.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/** The same peer always gets the same address. */
export function reserve(state: PartitionView, ask: Of<'network.reserve'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { network, record } = found;
  const { by } = ask;
  // A tenant must not learn of a network that it may not use.
  if (!servesTenant(record.settings, by.tenant)) return refuse('not_found');
  const reply = (index: number): Reply => repeatable('ok', { network: record, index } satisfies Reservation);
  const held = network.leaseOf(by.tenant, by.peer);
  if (held !== undefined) return answer(reply(held.index));
  const index = network.freeIndex(lastOf(record));
  if (index === undefined)
    return conflict(
      'too_many',
      'the network has no free address; remove peers, or ask the operator for a larger network',
    );
  const lease: LeaseRecord = {
    kind: 'lease',
    network: ask.network,
    index,
    ...by,
    state: { phase: 'reserved', atMs: context.nowMs },
    ...(state.vpn.incarnation === 0 ? {} : { confirmedIn: state.vpn.incarnation }),
  };
  return answer(reply(index), { ...noChanges, records: [lease] });
}

/**
 * No request waits for this peer any more. A late retry may still create it, so the reservation is
 * made to lapse, and goes as soon as the tenant's actor answers that the peer does not exist,
 * mostly at once.
 */
export function release(state: PartitionView, ask: Of<'network.release'>): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { by } = ask;
  const lease = found.network.leaseOf(by.tenant, by.peer);
  const done = repeatable('ok', null);
  if (lease?.state.phase !== 'reserved') return answer(done);
  const lapsed: LeaseRecord = { ...lease, state: { phase: 'reserved', atMs: 0 } };
  return answer(done, { ...noChanges, records: [lapsed], effects: [{ kind: 'outbox' }] });
}
