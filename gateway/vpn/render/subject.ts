/** The input of a peer's files, and the values that several of them share. */
import { X509Certificate } from 'node:crypto';
import type { NetworkRecord } from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import { fitAddress, fitHost, fitInteger, Unfit } from './fit.ts';
import { tunnelRoutes } from './ranges.ts';

export interface Subject {
  readonly peer: PeerRecord;
  readonly network: NetworkRecord;
  /** The gateway as devices reach it, without a slash at the end. */
  readonly baseUrl: string;
}

const isIpv6 = (text: string): boolean => text.includes(':');

export const dnsOf = ({ peer, network }: Subject): string[] => (peer.dns ?? network.settings.dns).map(fitAddress);

/** They go where the resolvers go: without any, none of them can be looked up. */
export const searchDomainsOf = (subject: Subject): string[] =>
  dnsOf(subject).length === 0 ? [] : (subject.network.settings.search_domains ?? []).map(fitHost);

export const mtuOf = ({ network }: Subject): number | null =>
  network.settings.mtu === null ? null : fitInteger(network.settings.mtu, 1280, 1500);

/**
 * The peer's own routes, or else the network's; and its resolvers and the proxy that only the VPN
 * server reaches, which the routes may leave out.
 */
export function routesOf(subject: Subject): string[] {
  const { peer, network } = subject;
  const { settings } = network;
  return tunnelRoutes(settings, peer.routes ?? settings.routes, dnsOf(subject), peer.ipv6 !== null);
}

/**
 * Keeps the routes of families in which the peer has an address; all of them if none would remain.
 */
export function inFamilies(routes: readonly string[], hasIpv6: boolean): readonly string[] {
  const usable = routes.filter((route) => hasIpv6 || !isIpv6(route));
  return usable.length > 0 ? usable : routes;
}

/**
 * The same for a device whose system has IPv6 switched off: `wg-quick` fails there on an address or
 * a route of it.
 */
export const withoutIpv6 = (subject: Subject): Subject => ({
  ...subject,
  peer: {
    ...subject.peer,
    ipv6: null,
    routes: inFamilies(routesOf(subject), false),
    dns: dnsOf(subject).filter((address) => !isIpv6(address)),
  },
});

/** For clients that need a source address for each route. */
export const usableRoutes = (subject: Subject): readonly string[] =>
  inFamilies(routesOf(subject), subject.peer.ipv6 !== null);

/** True if all traffic of the peer's address families goes through the tunnel. */
export const isFullTunnel = (subject: Subject): boolean => {
  const routes = new Set(routesOf(subject));
  return routes.has('0.0.0.0/0') && (subject.peer.ipv6 === null || routes.has('::/0'));
};

/** The server's address, which is also its identity in IKEv2 and the name in its certificate. */
export const endpointOf = ({ settings }: NetworkRecord): string => fitHost(settings.endpoint);

/** The peer's identity in IKEv2, a DNS name. An address would be another type of identity. */
export function localIdOf(localId: string): string {
  const name = fitHost(localId);
  if (!/[a-z]/.test(name) || isIpv6(name)) throw new Unfit('local id');
  return name;
}

export interface CaFacts {
  readonly commonName: string;
  readonly der: Uint8Array;
  /** SHA-256 of the certificate in lower-case hex. */
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
 * Control and format characters, lone surrogates, private and unassigned characters, and line and
 * paragraph separators.
 */
const unshown = /[\p{C}\p{Zl}\p{Zp}]/gu;
const nameChars = 64;

/** The name that a profile shows; each format escapes it again. It has no joiners. */
export function shownName({ name, id }: Pick<PeerRecord, 'name' | 'id'>): string {
  const shown = [...name.replaceAll(unshown, '')].slice(0, nameChars).join('').trim();
  return shown === '' ? `peer-${id.slice(-8)}` : shown;
}
