/**
 * nftables rules for the VPN server (nft 0.9.8 or newer). Peers of one tenant cannot reach those of
 * another, and no peer reaches more than its network's settings allow. The file replaces its own
 * table in one transaction and touches no other. The rules look up a peer's tenant by its address,
 * so a packet from an unknown address is dropped even if its tunnel still stands. A packet between
 * peers carries its tenant's number in its mark for the length of one rule, so the rules grow with
 * the number of peers and not with its square.
 */
import { addressAt, formatCidr, outermost, parseAddress, serverIndex, type Cidr } from '../../../../schemas/cidr.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import type { NetworkRecord } from '../../../../schemas/api/network.ts';
import { fitAddress, fitNetworkName, fitPort, fitTenant, Unfit } from '../fit.ts';
import { isInterfaceOfOthers } from '../../../../schemas/interface-name.ts';
import { cidrOf, opensPrivate, reserved, type Family } from '../ranges.ts';

/** A peer that may connect. */
export interface FilteredPeer {
  readonly tenant: TenantId;
  readonly ipv4: string;
  readonly ipv6: string | null;
}

/** A set of intervals may not overlap. */
const texts = (cidrs: readonly Cidr[]): string[] => outermost(cidrs).map(formatCidr);

/** nft's names of the two families. */
const words = {
  4: { address: 'ip', type: 'ipv4_addr', ping: 'icmp type echo-request' },
  6: { address: 'ip6', type: 'ipv6_addr', ping: 'icmpv6 type echo-request' },
} as const;

type Line = string;
const block = (head: string, lines: readonly Line[]): Line[] => [`${head} {`, ...lines.map((line) => `  ${line}`), '}'];

/** nft does not accept an empty list of elements, so an empty set has none. */
const collection = (head: string, type: string, elements: readonly string[]): Line[] =>
  block(head, [type, ...(elements.length === 0 ? [] : ['elements = {', `${elements.join(',\n')}`, '}'])]);

const intervals = (name: string, family: Family, cidrs: readonly Cidr[]): Line[] =>
  collection(`set ${name}${family}`, `type ${words[family].type}; flags interval`, texts(cidrs));

interface NumberedPeer {
  readonly address: string;
  readonly tenant: number;
}

/** Counts each packet before it is dropped. */
const counters = ['spoofed', 'unknown_peer', 'other_tenant', 'not_routed', 'server', 'inbound'] as const;
const drop = (why: (typeof counters)[number]): Line => `counter name ${why} drop`;

/** Ports of DNS, and of DNS over TLS. */
const dnsPorts = '{ 53, 853 }';

/**
 * Linux' type of an interface without link-layer addresses (ARPHRD_NONE), which every interface of
 * WireGuard is. A network card, a bridge or a loopback of the same name is none, and no rule here
 * is about its packets.
 */
const tunnelType = 65534;

interface Rules {
  readonly family: Family;
  readonly pool: Cidr;
  readonly peers: readonly NumberedPeer[];
  readonly network: NetworkRecord;
}

/** Rules that open the resolvers and the proxy of the network's settings, at any address. */
function services({ family, network }: Rules): Line[] {
  const { address } = words[family];
  const { dns, proxy } = network.settings;
  const resolvers = dns.map(fitAddress).filter((text) => familyOf(text) === family);
  return [
    ...(resolvers.length === 0
      ? []
      : [`${address} daddr { ${resolvers.join(', ')} } meta l4proto { tcp, udp } th dport ${dnsPorts} accept`]),
    // A proxy that is given by its name is reached through the routes.
    ...(proxy === null || parseAddress(proxy.host)?.family !== family
      ? []
      : [`${address} daddr ${fitAddress(proxy.host)} tcp dport ${fitPort(proxy.port)} accept`]),
  ];
}

const familyOf = (address: string): Family => (address.includes(':') ? 6 : 4);

function setsOf({ family, peers, network }: Rules): Line[] {
  const { type } = words[family];
  const routes = network.settings.routes.map(cidrOf).filter((route) => route.family === family);
  return [
    ...collection(
      `set peers${family}`,
      `type ${type}`,
      peers.map(({ address }) => address),
    ),
    ...collection(
      `map tenant_of${family}`,
      `type ${type} : mark`,
      peers.map(({ address, tenant }) => `${address} : ${tenant}`),
    ),
    ...collection(
      `set members${family}`,
      `type ${type} . mark`,
      peers.map(({ address, tenant }) => `${address} . ${tenant}`),
    ),
    ...intervals('routes', family, routes),
    ...intervals('named', family, routes.filter(opensPrivate)),
    ...intervals('reserved', family, reserved[family]),
  ];
}

function chainsOf(rules: Rules): Line[] {
  const { family, pool } = rules;
  const { address, ping } = words[family];
  const poolText = formatCidr(pool);
  const known = `${address} saddr != @peers${family} ${drop('unknown_peer')}`;
  return [
    ...block(`chain from_peer${family}`, [
      'jump through_tunnel',
      known,
      `${address} daddr ${poolText} goto between_peers${family}`,
      `${address} daddr @named${family} accept`,
      ...services(rules),
      `${address} daddr @reserved${family} ${drop('not_routed')}`,
      `${address} daddr @routes${family} accept`,
      drop('not_routed'),
    ]),
    ...block(`chain between_peers${family}`, [
      'meta mark set 0',
      `meta mark set ${address} saddr map @tenant_of${family}`,
      `${address} daddr @routes${family} ${address} daddr . meta mark @members${family} meta mark set 0 accept`,
      drop('other_tenant'),
    ]),
    ...block(`chain to_server${family}`, [
      known,
      'ct direction reply ct state established,related accept',
      `${address} daddr ${addressAt(pool, serverIndex)} ${ping} accept`,
      ...services(rules),
      drop('server'),
    ]),
  ];
}

/** @param peers all peers that may connect, in a stable order */
export function serverNftables(network: NetworkRecord, peers: readonly FilteredPeer[]): string {
  const name = fitNetworkName(network.name);
  const table = `table inet longshore-${name}`;
  const { ipv4_pool: ipv4Pool, ipv6_pool: ipv6Pool } = network.settings;
  const tenants = [...new Set(peers.map(({ tenant }) => fitTenant(tenant)))].toSorted();
  const numbers = new Map(tenants.map((tenant, index) => [tenant, index + 1]));
  const peersIn = (family: Family): NumberedPeer[] =>
    peers.flatMap(({ tenant, ipv4, ipv6 }) => {
      const address = family === 4 ? ipv4 : ipv6;
      return address === null ? [] : [{ address: fitAddress(address), tenant: numbers.get(tenant) ?? 0 }];
    });
  const families: Rules[] = [{ family: 4, pool: cidrOf(ipv4Pool), peers: peersIn(4), network }];
  if (ipv6Pool !== null) families.push({ family: 6, pool: cidrOf(ipv6Pool), peers: peersIn(6), network });
  if (families.some(({ family, pool }) => pool.family !== family)) throw new Unfit('pool');

  const each = (line: (address: string, pool: string, family: Family) => Line): Line[] =>
    families.map(({ family, pool }) => line(words[family].address, formatCidr(pool), family));
  const tunnel = `iifname "${name}" iiftype ${tunnelType}`;
  const tunnels = [tunnel, 'iifname "ipsec*"', 'meta ipsec exists'];
  // From the tunnel, but not from an address of the pools. A network of an older release may have
  // the name of another program's interface, such as tun0, whose packets are not from here.
  const foreign = isInterfaceOfOthers(name) ? [] : [`${tunnel} ${drop('spoofed')}`];
  return [
    `# Rules for the peers of the network ${name}. Made by Longshore: fetch it again, do not edit it.`,
    ...tenants.map((tenant, index) => `# mark ${index + 1}: ${tenant}`),
    // nft refuses to delete an absent table, so it is added first. The whole file is one
    // transaction.
    table,
    `delete ${table}`,
    ...block(table, [
      ...counters.map((counter) => `counter ${counter} {}`),
      ...families.flatMap(setsOf),
      // A peer's address outside a tunnel, such as on a neighbour's wire, is spoofed.
      ...block('chain through_tunnel', [...tunnels.map((match) => `${match} return`), drop('spoofed')]),
      ...families.flatMap(chainsOf),
      ...block(
        'chain from_tunnel',
        each((address, pool, family) => `${address} saddr ${pool} goto to_server${family}`),
      ),
      // Answers to connections that a peer opened; nothing else from outside.
      ...block('chain to_peer', ['ct direction reply ct state established,related accept', drop('inbound')]),
      ...block('chain forward', [
        'type filter hook forward priority filter; policy accept;',
        ...each((address, pool, family) => `${address} saddr ${pool} goto from_peer${family}`),
        ...foreign,
        ...each((address, pool) => `${address} daddr ${pool} goto to_peer`),
      ]),
      ...block('chain input', [
        'type filter hook input priority filter; policy accept;',
        'iifname "lo" accept',
        // Tunnels alone: if a network around the server has addresses of the pools, too, no rule
        // here may cut the server off from it.
        ...tunnels.map((match) => `${match} jump from_tunnel`),
        ...foreign,
      ]),
    ]),
    '',
  ].join('\n');
}
