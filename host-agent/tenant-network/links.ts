/**
 * The interfaces of the tenant network, as input for `ip -batch`. A container has `ls0` in its
 * sandbox, beside the engine's own interface; the other end lies in the router namespace. Both ends
 * know each other's hardware address, so nobody asks by ARP or neighbour discovery, and nobody can
 * lie in an answer. Pure.
 */
import { createHash } from 'node:crypto';
import { linkOf } from './link-names.ts';
import { poolsOf } from './vpn.ts';
import type { Attachment, DesiredNetwork } from '../../schemas/wire/net.ts';

export const wayOutMac = '02:00:00:00:00:02';
/** Behind that interface, as the router sees it. */
const wayOutAddress = '169.254.1.2';

/** The hardware address of all ends in the router namespace: each link is a network of its own. */
const routerMac = 'ee:ee:ee:ee:ee:ee';
/** The router's addresses in every container. */
const gateway = { ipv4: '169.254.1.1', ipv6: 'fe80::1' } as const;
export const containerLink = 'ls0';
/** Marks routes to VPN peers in a container, which come and go (rtnetlink(7), `rtm_protocol`). */
const poolProtocol = 188;

/** A locally administered address that follows from the container's id. */
export function macOf(id: string): string {
  const bytes = createHash('sha256').update(id).digest().subarray(0, 5);
  return ['02', ...Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'))].join(':');
}

const lines = (all: readonly (string | false)[]): string => all.filter((line) => line !== false).join('\n') + '\n';

/** Runs in the router namespace. @param namespace a path of the sandbox's namespace */
export function makeLink(link: string, mac: string, namespace: string, mtu: number): string {
  const peer = `peer name ${containerLink} mtu ${mtu} address ${mac} netns ${namespace}`;
  return lines([`link add ${link} mtu ${mtu} address ${routerMac} type veth ${peer}`]);
}

/** Runs in the router namespace. May be repeated. */
export function routerSide(attachment: Attachment): string {
  const { id, ipv4, ipv6 } = attachment;
  const link = linkOf(attachment);
  const mac = macOf(id);
  return lines([
    // The kernel's table of neighbours is one for all namespaces, and questions fill it.
    `link set ${link} arp off up`,
    `addr replace ${gateway.ipv6}/64 dev ${link} nodad`,
    ipv4 !== null && `neigh replace ${ipv4} lladdr ${mac} dev ${link} nud permanent`,
    `neigh replace ${ipv6} lladdr ${mac} dev ${link} nud permanent`,
    ipv4 !== null && `route replace ${ipv4}/32 dev ${link}`,
    `route replace ${ipv6}/128 dev ${link}`,
  ]);
}

/** Removes the routes to VPN peers that `containerSide` adds. */
export const withoutPools = ['-4', '-6']
  .map((family) => `ip ${family} route flush dev ${containerLink} proto ${poolProtocol}`)
  .join(' && ');

/** Runs in the sandbox's namespace. May be repeated. */
export function containerSide(
  { tenant, ipv4, ipv6 }: Attachment,
  desired: Pick<DesiredNetwork, 'ranges' | 'vpn'>,
): string {
  const { ranges } = desired;
  const hasIpv4 = ipv4 !== null && ranges.ipv4 !== null;
  const toPeers = poolsOf(desired, tenant).map((pool) =>
    pool.includes(':')
      ? `route replace ${pool} via ${gateway.ipv6} dev ${containerLink} src ${ipv6} proto ${poolProtocol}`
      : hasIpv4 && `route replace ${pool} via ${gateway.ipv4} dev ${containerLink} src ${ipv4} proto ${poolProtocol}`,
  );
  return lines([
    hasIpv4 && `addr replace ${ipv4}/32 dev ${containerLink}`,
    `addr replace ${ipv6}/128 dev ${containerLink} nodad`,
    `link set ${containerLink} up`,
    hasIpv4 && `neigh replace ${gateway.ipv4} lladdr ${routerMac} dev ${containerLink} nud permanent`,
    `neigh replace ${gateway.ipv6} lladdr ${routerMac} dev ${containerLink} nud permanent`,
    hasIpv4 && `route replace ${gateway.ipv4} dev ${containerLink} scope link`,
    hasIpv4 && `route replace ${ranges.ipv4} via ${gateway.ipv4} dev ${containerLink} src ${ipv4}`,
    `route replace ${ranges.ipv6} via ${gateway.ipv6} dev ${containerLink} src ${ipv6}`,
    ...toPeers,
  ]);
}

/**
 * In the router namespace, as often as you like. Addresses of the cluster that nobody has do not
 * lead out.
 */
export const wayOutRouterSide = (link: string, { ipv4 }: DesiredNetwork['ranges']): string =>
  lines([
    `link set ${link} up`,
    ipv4 !== null && `route replace unreachable ${ipv4} metric 4096`,
    `neigh replace ${wayOutAddress} lladdr ${wayOutMac} dev ${link} nud permanent`,
    `route replace default via ${wayOutAddress} dev ${link} onlink`,
  ]);

/** In the namespace of the way out, as often as you like. @param pools of the peers that use it */
export const wayOutSide = (pools: readonly string[]): string =>
  lines([
    `link set ${containerLink} up`,
    `neigh replace ${gateway.ipv4} lladdr ${routerMac} dev ${containerLink} nud permanent`,
    `route replace ${gateway.ipv4} dev ${containerLink} scope link`,
    ...pools.map((pool) => `route replace ${pool} via ${gateway.ipv4} dev ${containerLink} proto ${poolProtocol}`),
  ]);

export type Sysctl = readonly [path: string, value: string];

/** Set once in the router namespace. */
export const routerSysctls: readonly Sysctl[] = [
  ['ipv4/ip_forward', '1'],
  ['ipv6/conf/all/forwarding', '1'],
  // Makes an end's addresses usable at once, and keeps it from making its own.
  ['ipv6/conf/default/accept_dad', '0'],
  ['ipv6/conf/default/addr_gen_mode', '1'],
  ['ipv4/conf/all/rp_filter', '0'],
  ['ipv4/conf/default/rp_filter', '0'],
  // Every refusal gets an answer.
  ['ipv4/icmp_ratelimit', '0'],
  ['ipv6/icmp/ratelimit', '0'],
];

/** Set in the namespace of the way out. */
export const wayOutSysctls: readonly Sysctl[] = [['ipv4/ip_forward', '1']];

/** Set in a sandbox's namespace when `ls0` is there. The engine switches IPv6 off in it. */
export const containerSysctls: readonly Sysctl[] = [
  ['ipv6/conf/lo/disable_ipv6', '0'],
  [`ipv6/conf/${containerLink}/disable_ipv6`, '0'],
  [`ipv6/conf/${containerLink}/accept_ra`, '0'],
  [`ipv6/conf/${containerLink}/accept_dad`, '0'],
  [`ipv6/conf/${containerLink}/addr_gen_mode`, '1'],
];
