/**
 * A profile for strongSwan's Android app, which reads JSON (`VpnProfileImportActivity`) and asks
 * for the bundle's password at the import.
 */
import { fitPeerId } from '../fit.ts';
import { strongEsp, strongIke } from '../../../../schemas/ike-proposals.ts';
import {
  caOf,
  dnsOf,
  endpointOf,
  isFullTunnel,
  localIdOf,
  mtuOf,
  shownName,
  usableRoutes,
  type Subject,
} from '../subject.ts';

export function sswan(subject: Subject, p12: Uint8Array): string {
  const { peer, network } = subject;
  const server = endpointOf(network);
  const mtu = mtuOf(subject);
  const dns = peer.dns === null ? [] : dnsOf(subject);
  return JSON.stringify({
    uuid: fitPeerId(peer.id),
    name: shownName(peer),
    type: 'ikev2-cert',
    remote: { addr: server, id: server, cert: Buffer.from(caOf(network).der).toString('base64') },
    local: { id: localIdOf(peer.localId), p12: Buffer.from(p12).toString('base64') },
    'ike-proposal': strongIke,
    'esp-proposal': strongEsp,
    // Without this setting all traffic goes into the tunnel, and families without an address are
    // cut off.
    ...(isFullTunnel(subject) ? {} : { 'split-tunneling': { subnets: usableRoutes(subject) } }),
    ...(dns.length === 0 ? {} : { 'dns-servers': dns }),
    ...(mtu === null ? {} : { mtu }),
  });
}
