/** The network that an ask is about. Pure. */
import type { NetworkName } from '../../../schemas/ids.ts';
import type { NetworkRecord } from '../../../schemas/api/network.ts';
import type { KnownNetwork } from './state.ts';
import type { PartitionView } from '../state.ts';
import { refuse, type Turn } from '../turn.ts';

export const damaged = refuse('internal', 'the record of this network is damaged; contact support with the request id');

export interface Found {
  readonly network: KnownNetwork;
  readonly record: NetworkRecord;
}

/** It, or the refusal that takes its place. */
export function find(state: PartitionView, ask: { readonly network: NetworkName }): Found | { readonly refusal: Turn } {
  const network = state.vpn.network(ask.network);
  if (network.isDamaged) return { refusal: damaged };
  const { record } = network;
  return record === undefined ? { refusal: refuse('not_found') } : { network, record };
}
