/** What the files of a peer are made from, and what several of them say alike. */
import { X509Certificate } from 'node:crypto';
import type { NetworkRecord } from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import { fitAddress, fitCidr, fitHost, fitInteger, Unfit } from './fit.ts';

export interface Subject {
  readonly peer: PeerRecord;
  readonly network: NetworkRecord;
  /** Where devices reach the gateway, without a slash at its end. */
  readonly baseUrl: string;
}

const isIpv6 = (text: string): boolean => text.includes(':');

/** What the peer says for itself, or the network for all. */
export const routesOf = ({ peer, network }: Subject): string[] => (peer.routes ?? network.settings.routes).map(fitCidr);
export const dnsOf = ({ peer, network }: Subject): string[] => (peer.dns ?? network.settings.dns).map(fitAddress);
export const mtuOf = ({ network }: Subject): number | null =>
  network.settings.mtu === null ? null : fitInteger(network.settings.mtu, 1280, 1500);

/** Those of families that there are addresses in; all, where that would leave none. */
export function inFamilies(routes: readonly string[], hasIpv6: boolean): readonly string[] {
  const usable = routes.filter((route) => hasIpv6 || !isIpv6(route));
  return usable.length > 0 ? usable : routes;
}

/** For clients that want a source address for each route. */
export const usableRoutes = (subject: Subject): readonly string[] =>
  inFamilies(routesOf(subject), subject.peer.ipv6 !== null);

/** Whether everything that the peer has an address for goes through the tunnel. */
export const isFullTunnel = (subject: Subject): boolean => {
  const routes = new Set(routesOf(subject));
  return routes.has('0.0.0.0/0') && (subject.peer.ipv6 === null || routes.has('::/0'));
};

/**
 * Where the server is, which is also what it calls itself in IKEv2 and what its certificate is for.
 */
export const endpointOf = ({ settings }: NetworkRecord): string => fitHost(settings.endpoint);

/**
 * What the peer calls itself in IKEv2, a DNS name. An address would be another kind of identity.
 */
export function localIdOf(localId: string): string {
  const name = fitHost(localId);
  if (!/[a-z]/.test(name) || isIpv6(name)) throw new Unfit('local id');
  return name;
}

export interface CaFacts {
  readonly commonName: string;
  readonly der: Uint8Array;
  /** SHA-256 of the certificate, lower-case hex. */
  readonly sha256: string;
}

export function caOf({ ca }: NetworkRecord): CaFacts {
  const certificate = new X509Certificate(ca.pem);
  const { CN: commonName } = certificate.toLegacyObject().subject;
  if (typeof commonName !== 'string') throw new Unfit('authority: it has no one common name');
  return {
    commonName,
    der: certificate.raw,
    sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  };
}

/**
 * Control and format characters, lone surrogates, what is private or unassigned, and line and
 * paragraph separators.
 */
const unshown = /[\p{C}\p{Zl}\p{Zp}]/gu;
const nameChars = 64;

/** The name as a profile shows it to a person; each format escapes it once more. */
export function shownName({ name, id }: Pick<PeerRecord, 'name' | 'id'>): string {
  const shown = [...name.replaceAll(unshown, '')].slice(0, nameChars).join('').trim();
  return shown === '' ? `peer-${id.slice(-8)}` : shown;
}
