import type { ServedPeer } from '../network/tenant-network.ts';
import type { PeerCounted } from './ledger.ts';
import type { UsageStore } from './store.ts';

/**
 * Counts the traffic of VPN peers until now. A peer whose owner is not known yet, as after a start
 * of the agent, keeps its last known one.
 * @param peers all that this host serves
 */
export function countPeers({ ledger, moment, touch }: UsageStore, peers: readonly ServedPeer[]): void {
  const before = ledger.state().peers;
  const counted = peers.flatMap((peer): [string, PeerCounted][] => {
    const { key, of = before?.get(key), link, handshake, rx_bytes: rxBytes, tx_bytes: txBytes, endpoint } = peer;
    if (of === undefined) return [];
    const handshakeAtMs = handshake === 0 ? null : handshake * 1000;
    return [[key, { tenant: of.tenant, id: of.id, link, rxBytes, txBytes, handshakeAtMs, endpoint }]];
  });
  ledger.countPeers(new Map(counted), moment());
  if (ledger.hasChanged) touch();
}
