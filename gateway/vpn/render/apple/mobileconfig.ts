/**
 * A configuration profile for iOS, iPadOS and macOS: an IKEv2 connection (`com.apple.vpn.managed`),
 * the client's bundle and the authority. Keys and their values are those of Apple's device
 * management schema. The bundle's password is not in it; the device asks for it when the profile is
 * installed.
 */
import { v5 as uuidOf } from 'uuid';
import { fitNetworkName, fitPeerId } from '../fit.ts';
import { plist, type Plist } from './plist.ts';
import { caOf, dnsOf, endpointOf, localIdOf, mtuOf, searchDomainsOf, shownName, type Subject } from '../subject.ts';

/** The largest MTU that iOS accepts for IKEv2. */
const mtuMax = 1400;

const minutesOfDay = 24 * 60;
const childMinutes = 60;

const security = (lifetimeMinutes: number): Plist => ({
  EncryptionAlgorithm: 'AES-256',
  IntegrityAlgorithm: 'SHA2-256',
  DiffieHellmanGroup: 14,
  LifeTimeInMinutes: lifetimeMinutes,
});

function ikev2(subject: Subject, identity: string, caName: string): Plist {
  const { peer, network } = subject;
  const server = endpointOf(network);
  const mtu = mtuOf(subject);
  return {
    RemoteAddress: server,
    RemoteIdentifier: server,
    LocalIdentifier: localIdOf(peer.localId),
    AuthenticationMethod: 'Certificate',
    CertificateType: 'RSA',
    PayloadCertificateUUID: identity,
    ServerCertificateIssuerCommonName: caName,
    ExtendedAuthEnabled: 0,
    EnablePFS: 1,
    DeadPeerDetectionRate: 'Medium',
    IKESecurityAssociationParameters: security(minutesOfDay),
    ChildSecurityAssociationParameters: security(childMinutes),
    ...(mtu === null ? {} : { MTU: Math.min(mtu, mtuMax) }),
  };
}

const dnsSettings = (resolvers: string[], searchDomains: string[]): Plist => ({
  DNSProtocol: 'Cleartext',
  ServerAddresses: resolvers,
  ...(searchDomains.length === 0 ? {} : { SearchDomains: searchDomains }),
});

export function mobileconfig(subject: Subject, p12: Uint8Array): string {
  const { peer, network } = subject;
  const id = fitPeerId(peer.id);
  const name = shownName(peer);
  const networkName = fitNetworkName(network.name);
  const ca = caOf(network);
  const searchDomains = searchDomainsOf(subject);
  // Without this setting the device uses the server's resolvers, and no search domain.
  const hasDns = searchDomains.length > 0 || (peer.dns !== null && peer.dns.length > 0);
  const identifier = `internal.${networkName}.${id}`;
  /** The same for the same peer, so that a new installation replaces the profile before. */
  const payload = (type: string, part: string, displayName: string): Record<string, Plist> => ({
    PayloadType: type,
    PayloadVersion: 1,
    PayloadIdentifier: part === 'profile' ? identifier : `${identifier}.${part}`,
    PayloadUUID: uuidOf(part, id),
    PayloadDisplayName: displayName,
  });
  const identity = payload('com.apple.security.pkcs12', 'identity', localIdOf(peer.localId));
  return plist({
    ...payload('Configuration', 'profile', name),
    PayloadDescription: `VPN network ${networkName}`,
    PayloadRemovalDisallowed: false,
    PayloadContent: [
      {
        ...payload('com.apple.vpn.managed', 'vpn', `VPN ${networkName}`),
        UserDefinedName: name,
        VPNType: 'IKEv2',
        IKEv2: ikev2(subject, uuidOf('identity', id), ca.commonName),
        ...(hasDns ? { DNS: dnsSettings(dnsOf(subject), searchDomains) } : {}),
      },
      { ...identity, PayloadCertificateFileName: 'identity.p12', PayloadContent: p12 },
      {
        ...payload('com.apple.security.root', 'ca', ca.commonName),
        PayloadCertificateFileName: 'ca.cer',
        PayloadContent: ca.der,
      },
    ],
  });
}
