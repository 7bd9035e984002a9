/**
 * The rules that keep containers from the host and from private networks, as one table of nftables.
 * It decides about packets of one bridge only, so tables of several agents and the engine's own
 * rules coexist: a packet that one table drops stays dropped; one that it accepts still passes the
 * others. Pure.
 */
import { privateIpv4, privateIpv6 } from './addresses.ts';
import type { EgressRule } from './egress.ts';
import { networkName, type Owner } from '../docker/ownership.ts';
import { deniedCounters, type DeniedCounter } from '../metrics.ts';

export interface FirewallPlan {
  readonly table: string;
  /** The interface of the containers' bridge. */
  readonly bridge: string;
  /**
   * The networks of the bridge, as CIDR, from which containers have their addresses. Empty if
   * unknown.
   */
  readonly subnets: readonly string[];
  /** Exceptions from the rules for private networks; the first match decides, allowances first. */
  readonly allow: readonly EgressRule[];
  readonly deny: readonly EgressRule[];
  /**
   * Name servers of the host: a container's queries leave from its own address, where its resolver
   * is not on loopback.
   */
  readonly resolvers: readonly string[];
}

/** A name for nftables that is unique to this cluster and host, as the network's name is. */
export const firewallTable = (owner: Owner): string => networkName(owner).replaceAll('-', '_');

const familyOf = (address: string): 4 | 6 => (address.includes(':') ? 6 : 4);
const daddr = (family: 4 | 6): string => (family === 4 ? 'ip daddr' : 'ip6 daddr');

function matchOf({ cidr, family, service }: EgressRule): string {
  if (service === null) return `${daddr(family)} ${cidr}`;
  const { protocol, from, to } = service;
  return `${daddr(family)} ${cidr} ${protocol} dport ${from === to ? from : `${from}-${to}`}`;
}

/**
 * The same rule for ports that the engine publishes on an address of the host. Without
 * `docker-proxy`, such a packet has a container as its destination here; the kernel remembers the
 * original one.
 */
function publishedMatchOf({ cidr, family, service }: EgressRule): string {
  const original = `ct status dnat ct original ${daddr(family)} ${cidr}`;
  if (service === null) return original;
  const { protocol, from, to } = service;
  return `${original} meta l4proto ${protocol} ct original proto-dst ${from === to ? from : `${from}-${to}`}`;
}

/**
 * These let a program in a container fail at once, each time, and not after a time-out: the kernel
 * sends few ICMP errors a second to one address, and any number of resets.
 */
const refusals = ['meta l4proto tcp reject with tcp reset', 'reject with icmpx type admin-prohibited'];
const refuse = 'goto refusing';

/**
 * A program may send from any address of its container, such as that of the tenant network: with
 * such an address the engine would let the packet out unchanged.
 */
function foreignSources(subnets: readonly string[]): string[] {
  if (subnets.length === 0) return [];
  const own = (family: 4 | 6): string[] => subnets.filter((subnet) => familyOf(subnet) === family);
  const isForeign = (family: 4 | 6): string => {
    const source = family === 4 ? 'ip saddr' : 'ip6 saddr';
    return own(family).length === 0 ? `meta nfproto ipv${family}` : `${source} != { ${own(family).join(', ')} }`;
  };
  return ([4, 6] as const).map(isForeign);
}

/**
 * Input for `nft -f -`, which applies all or nothing: it replaces the previous table at once.
 *
 * Packets between two containers of the bridge pass these rules only while the kernel hands bridged
 * packets to the IP hooks (br_netfilter, `bridge-nf-call-iptables`).
 */
export function firewallRules({ table, bridge, subnets, allow, deny, resolvers }: FirewallPlan): string {
  const allowances = [
    ...resolvers.flatMap((address) =>
      (['udp', 'tcp'] as const).map((protocol) => `${daddr(familyOf(address))} ${address} ${protocol} dport 53 accept`),
    ),
    ...allow.map((rule) => `${matchOf(rule)} accept`),
  ];
  const denied = (counter: DeniedCounter, verdict: string): string => `counter name denied_${counter} ${verdict}`;
  const chain = (name: string, lines: readonly string[]): string =>
    [`  chain ${name} {`, ...lines.map((line) => `    ${line}`), '  }'].join('\n');
  return [
    `table inet ${table} {`,
    '}',
    `delete table inet ${table}`,
    `table inet ${table} {`,
    ...deniedCounters.map((name) => `  counter denied_${name} {\n  }`),
    chain('refusing', refusals),
    chain('from_containers', [
      ...foreignSources(subnets).map((match) => `${match} ${denied('network', 'drop')}`),
      'ct state established,related accept',
      ...allow.map((rule) => `${publishedMatchOf(rule)} accept`),
      `oifname "${bridge}" ${denied('container', 'drop')}`,
      ...allowances,
      `ip daddr { ${privateIpv4.join(', ')} } ${denied('network', refuse)}`,
      `ip6 daddr { ${privateIpv6.join(', ')} } ${denied('network', refuse)}`,
      ...deny.map((rule) => `${matchOf(rule)} ${denied('network', refuse)}`),
    ]),
    chain('to_host', [
      'ct state established,related accept',
      // IPv6 does not work without these: neighbours are found, and groups are joined.
      'icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, mld-listener-report, mld2-listener-report } accept',
      ...allowances,
      denied('host', refuse),
    ]),
    chain('to_containers', [
      'ct state established,related accept',
      // Ports that the engine publishes. A neighbour may also send to a container's own address,
      // and reach every port of it.
      'ct status dnat accept',
      denied('inbound', 'drop'),
    ]),
    chain('forward', [
      'type filter hook forward priority -10; policy accept;',
      `iifname "${bridge}" goto from_containers`,
      `oifname "${bridge}" goto to_containers`,
    ]),
    chain('input', ['type filter hook input priority -10; policy accept;', `iifname "${bridge}" goto to_host`]),
    '}',
    '',
  ].join('\n');
}

const counts = /packets (\d+) bytes \d+/g;

/** The output of `nft list table`, without the parts that change by themselves. */
export const withoutCounts = (listed: string): string => listed.replaceAll(counts, 'packets 0 bytes 0');

/** The number of packets that were refused since the table was made. */
export function deniedPackets(listed: string): Readonly<Record<DeniedCounter, number>> {
  const of = (name: DeniedCounter): number => {
    const found = new RegExp(`counter denied_${name} \\{\\s*(?:comment "[^"]*"\\s*)?packets (\\d+) bytes`).exec(listed);
    return Number(found?.[1] ?? 0);
  };
  return Object.fromEntries(deniedCounters.map((name) => [name, of(name)])) as Record<DeniedCounter, number>;
}
