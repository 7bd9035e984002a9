/**
 * VPN networks in the router namespace: one interface of WireGuard for each that this host serves.
 * A peer is in the tenant network by its own address, as a container is. Pure.
 */
import type { DesiredNetwork, ServedPeers, VpnNetwork } from '../../schemas/wire/net.ts';

/** The configuration for `wg syncconf`. */
export function vpnConfiguration({ peers }: VpnNetwork, server: NonNullable<VpnNetwork['server']>): string {
  const lines = peers.flatMap(({ key, ipv4, ipv6, preshared_key: preshared }) => {
    if (preshared === null) return [];
    const allowed = [`${ipv4}/32`, ...(ipv6 === null ? [] : [`${ipv6}/128`])];
    return ['[Peer]', `PublicKey = ${key}`, `PresharedKey = ${preshared}`, `AllowedIPs = ${allowed.join(', ')}`];
  });
  return ['[Interface]', `PrivateKey = ${server.private_key}`, `ListenPort = ${server.port}`, ...lines, ''].join('\n');
}

const noEndpoint = '(none)';

/** @param lines lines about peers, as printed by `wg show <interface> dump` */
export const peersIn = (lines: readonly string[]): ServedPeers[string]['peers'] =>
  lines.filter(Boolean).map((line) => {
    const [key = '', , endpoint = noEndpoint, , handshake, rx, tx] = line.split('\t');
    return {
      key,
      handshake: Number(handshake),
      rx_bytes: Number(rx),
      tx_bytes: Number(tx),
      endpoint: endpoint === noEndpoint ? null : endpoint,
    };
  });

/**
 * The pools of the networks that have peers of this tenant, from which they reach its containers.
 */
export const poolsOf = ({ vpn }: Pick<DesiredNetwork, 'vpn'>, tenant: string): string[] =>
  vpn.flatMap(({ peers, pools }) => (peers.some((peer) => peer.tenant === tenant) ? pools : []));
