/**
 * WireGuard configurations. They use only keys that every official client knows, each once: Apple's
 * clients fail on others and on duplicates. They contain no comment and no name, because two
 * clients cut lines at `#`, and a shell runs `PostUp`.
 */
import { parseCidr, serverIndex, addressAt } from '../../../../schemas/cidr.ts';
import { poolsOf, type NetworkRecord } from '../../../../schemas/api/network.ts';
import { fitAddress, fitCidr, fitInteger, fitKey, fitPort, Unfit } from '../fit.ts';
import { bracketed } from '../../../../schemas/host-name.ts';
import { dnsOf, endpointOf, mtuOf, routesOf, searchDomainsOf, type Subject } from '../subject.ts';

export interface ClientKeys {
  readonly privateKey: string;
  readonly presharedKey: string;
}

export interface WireguardPeer {
  readonly publicKey: string;
  readonly presharedKey: string;
  readonly ipv4: string;
  readonly ipv6: string | null;
}

/** Keeps a NAT's mapping open, as WireGuard's quick start does. */
const keepaliveSeconds = 25;

type Line = readonly [key: string, value: string | number];

/** A value never contains a line end or a comment. */
function line([key, value]: Line): string {
  const text = String(value);
  if (!/^[A-Za-z0-9+/=.:,[\] -]+$/.test(text)) throw new Unfit(key);
  return `${key} = ${text}\n`;
}

const section = (name: string, lines: readonly Line[]): string => `[${name}]\n${lines.map(line).join('')}`;

const hostRoutes = (ipv4: string, ipv6: string | null): string =>
  [`${fitAddress(ipv4)}/32`, ...(ipv6 === null ? [] : [`${fitAddress(ipv6)}/128`])].join(', ');

/** The device's file, for `wg-quick`, the apps and the QR code. */
export function clientConf(subject: Subject, keys: ClientKeys): string {
  const { peer, network } = subject;
  // wg-quick and the apps take what is no address for a search domain.
  const dns = [...dnsOf(subject), ...searchDomainsOf(subject)];
  const mtu = mtuOf(subject);
  return [
    section('Interface', [
      ['PrivateKey', fitKey(keys.privateKey)],
      ['Address', hostRoutes(peer.ipv4, peer.ipv6)],
      ...(dns.length === 0 ? [] : [['DNS', dns.join(', ')] as const]),
      ...(mtu === null ? [] : [['MTU', mtu] as const]),
    ]),
    section('Peer', [
      ['PublicKey', fitKey(network.wireguard.publicKey)],
      ['PresharedKey', fitKey(keys.presharedKey)],
      ['AllowedIPs', routesOf(subject).join(', ')],
      ['Endpoint', `${bracketed(endpointOf(network))}:${fitPort(network.settings.wireguard_port)}`],
      ['PersistentKeepalive', keepaliveSeconds],
    ]),
  ].join('\n');
}

/** The server's own address in a pool, with the pool's prefix. */
function serverAddress(pool: string): string {
  const cidr = parseCidr(fitCidr(pool));
  if (cidr === undefined) throw new Unfit('pool');
  return `${addressAt(cidr, serverIndex)}/${cidr.prefix}`;
}

/** The VPN server's file, for `wg-quick up`, and for `wg syncconf` after `wg-quick strip`. */
export function serverConf(network: NetworkRecord, privateKey: string, peers: readonly WireguardPeer[]): string {
  const { wireguard_port: port, mtu } = network.settings;
  return [
    section('Interface', [
      ['PrivateKey', fitKey(privateKey)],
      ['Address', poolsOf(network.settings).map(serverAddress).join(', ')],
      ['ListenPort', fitPort(port)],
      ...(mtu === null ? [] : [['MTU', fitInteger(mtu, 1280, 1500)] as const]),
    ]),
    ...peers.map((peer) =>
      section('Peer', [
        ['PublicKey', fitKey(peer.publicKey)],
        ['PresharedKey', fitKey(peer.presharedKey)],
        ['AllowedIPs', hostRoutes(peer.ipv4, peer.ipv6)],
      ]),
    ),
  ].join('\n');
}
