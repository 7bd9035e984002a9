/**
 * Settings for IKEv2 clients as JSON, version 1, without secrets: the key is in the PKCS#12 bundle.
 */
import { X509Certificate } from 'node:crypto';
import { timestamp } from '../../../../lib/time/timestamp.ts';
import { fitPeerId } from '../fit.ts';
import { linksOf } from '../links.ts';
import { platformsOf, type Platforms } from './platforms.ts';
import { espProposals, ikeProposals, type EspProposal, type IkeProposal } from '../../../../schemas/ike-proposals.ts';
import {
  caOf,
  dnsOf,
  searchDomainsOf,
  endpointOf,
  isFullTunnel,
  localIdOf,
  mtuOf,
  routesOf,
  shownName,
  type Subject,
} from '../subject.ts';

export interface Profile {
  readonly version: 1;
  readonly peer_id: string;
  readonly name: string;
  /** RFC 3339. */
  readonly expires_at: string | null;
  readonly server: {
    readonly address: string;
    readonly remote_id: string;
    readonly ca: { readonly pem: string; readonly sha256: string; readonly common_name: string };
  };
  readonly client: {
    readonly local_id: string;
    readonly auth: 'certificate';
    readonly certificate: {
      /** `rsa-2048`. */
      readonly key_type: string;
      readonly serial: string;
      readonly not_after: string;
      readonly p12_url: string;
    };
  };
  readonly ike: readonly IkeProposal[];
  readonly esp: readonly EspProposal[];
  readonly dns: readonly string[];
  readonly search_domains: readonly string[];
  readonly routes: { readonly mode: 'full' | 'split'; readonly include: readonly string[] };
  readonly mtu: number | null;
  readonly platforms: Platforms;
}

function keyTypeOf(pem: string): string {
  const { asymmetricKeyType = 'unknown', asymmetricKeyDetails } = new X509Certificate(pem).publicKey;
  return [asymmetricKeyType, asymmetricKeyDetails?.modulusLength ?? asymmetricKeyDetails?.namedCurve]
    .filter((part) => part !== undefined)
    .join('-');
}

export function profileOf(subject: Subject): Profile {
  const { peer, network } = subject;
  const ca = caOf(network);
  const server = endpointOf(network);
  return {
    version: 1,
    peer_id: fitPeerId(peer.id),
    name: shownName(peer),
    expires_at: peer.expiresAtMs === null ? null : timestamp(peer.expiresAtMs),
    server: {
      address: server,
      remote_id: server,
      ca: { pem: network.ca.pem, sha256: ca.sha256, common_name: ca.commonName },
    },
    client: {
      local_id: localIdOf(peer.localId),
      auth: 'certificate',
      certificate: {
        key_type: keyTypeOf(peer.certificate.pem),
        serial: peer.certificate.serial,
        not_after: timestamp(peer.certificate.notAfterMs),
        p12_url: linksOf(subject).p12,
      },
    },
    ike: ikeProposals,
    esp: espProposals,
    dns: dnsOf(subject),
    search_domains: searchDomainsOf(subject),
    routes: { mode: isFullTunnel(subject) ? 'full' : 'split', include: routesOf(subject) },
    mtu: mtuOf(subject),
    platforms: platformsOf(subject, ca.commonName),
  };
}
