/** What the files of a peer are made from, and what several of them say alike. */
import type { NetworkRecord } from '../../schemas/network.ts';
import type { PeerRecord } from '../../schemas/peer.ts';

export interface Subject {
  readonly peer: PeerRecord;
  readonly network: NetworkRecord;
  /** Where devices reach the gateway, without a slash at its end. */
  readonly baseUrl: string;
}

/** What the peer says for itself, or the network for all. */
export const routesOf = ({ peer, network }: Subject): readonly string[] => peer.routes ?? network.settings.routes;
export const dnsOf = ({ peer, network }: Subject): readonly string[] => peer.dns ?? network.settings.dns;
