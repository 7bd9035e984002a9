/**
 * The rules of the router namespace that decide who may send to whom, as a table of nftables. The
 * tenant of a packet follows from both its interface and its source address: in IPv6 a process
 * needs no right to send from any address. It is let through to the members of that tenant alone,
 * and each of them gets it by its own interface. Connections between containers are not tracked, so
 * both directions are looked up, and a removed member is cut at once. Pure.
 */
import { linkPrefixes } from './link-names.ts';
import { containerLink } from './links.ts';
import type { Attachment } from '../../schemas/wire/net.ts';

export const tableName = 'longshore';
/** Packets of one container to the resolvers; a flood of one leaves room for the others. */
const queriesPerSecond = 1000;

/** One element of a set or a map, after the set's name: `peer4 { 10.0.0.1 . 1 }`. */
export type Element = string;

/** The elements of the sets, by a text for each member: the same text has the same elements. */
export type Elements = ReadonlyMap<string, readonly Element[]>;

/** A member, and the interface of the router namespace that leads to it. */
export interface Placed extends Pick<Attachment, 'tenant' | 'ipv4'> {
  readonly ipv6: string | null;
  readonly link: string;
  /** `true` for a VPN peer, which containers only answer. */
  readonly isPeer: boolean;
  /** `true` if it reaches the internet by the way out of this host. */
  readonly isLetOut?: boolean;
}

/** A number for each tenant, while the table lasts. The kernel marks packets with it. */
export type Marks = ReadonlyMap<string, number>;

/** Tenants keep the marks that they have; a new one gets the lowest that is free. */
export function marksOf(tenants: Iterable<string>, before: Marks): Marks {
  const wanted = new Set(tenants);
  const kept = new Map([...before].filter(([tenant]) => wanted.has(tenant)));
  const taken = new Set(kept.values());
  let next = 1;
  for (const tenant of wanted) {
    if (kept.has(tenant)) continue;
    while (taken.has(next)) next++;
    taken.add(next);
    kept.set(tenant, next);
  }
  return kept;
}

/**
 * The elements of the sets. An address belongs to one tenant: of two that claim it, the first here
 * has it.
 * @param resolvers their addresses, which every container may ask
 * @param before elements to use again, so that the cost of a change is that of the changed members
 */
export function elementsOf(
  placed: readonly Placed[],
  resolvers: readonly string[],
  marks: Marks,
  before: Elements = new Map(),
): Elements {
  const all = new Map<string, readonly Element[]>();
  const owners = new Map<string, number>();
  const own = (address: string | null, mark: number): string | null => {
    if (address === null) return null;
    const owner = owners.get(address) ?? mark;
    owners.set(address, owner);
    return owner === mark ? address : null;
  };
  for (const address of resolvers) all.set(address, [`resolver${address.includes(':') ? 6 : 4} { ${address} }`]);
  for (const member of placed) {
    const { tenant, link, isPeer, isLetOut = false } = member;
    const mark = marks.get(tenant);
    if (mark === undefined) continue;
    const [ipv4, ipv6] = [own(member.ipv4, mark), own(member.ipv6, mark)];
    const text = `${link} ${mark} ${ipv4} ${ipv6} ${isPeer} ${isLetOut}`;
    all.set(text, before.get(text) ?? elementsOfMember({ link, ipv4, ipv6, isPeer, isLetOut }, mark));
  }
  return all;
}

function elementsOfMember({ link, ipv4, ipv6, isPeer, isLetOut }: Omit<Placed, 'tenant'>, mark: number): Element[] {
  const of = (family: 4 | 6, address: string): Element[] => [
    `own${family} { "${link}" . ${address} }`,
    `tenant${family} { ${address} : ${mark} }`,
    `peer${family} { ${address} . ${mark} }`,
    ...(isPeer ? [`vpn${family} { ${address} }`] : []),
    ...(isLetOut === true ? [`out${family} { ${address} }`] : []),
  ];
  return [...(ipv4 === null ? [] : of(4, ipv4)), ...(ipv6 === null ? [] : of(6, ipv6))];
}

const setTypes = {
  own: { kind: 'set', type: (address: string) => `ifname . ${address}` },
  tenant: { kind: 'map', type: (address: string) => `${address} : mark` },
  peer: { kind: 'set', type: (address: string) => `${address} . mark` },
  resolver: { kind: 'set', type: (address: string) => address },
  vpn: { kind: 'set', type: (address: string) => address },
  out: { kind: 'set', type: (address: string) => address },
} as const;

function declarations(elements: Elements): string[] {
  const bySet = new Map<string, string[]>();
  // A VPN peer may come by two interfaces.
  for (const element of new Set([...elements.values()].flat())) {
    const at = element.indexOf(' ');
    const [set, held] = [element.slice(0, at), element.slice(at + ' { '.length, -' }'.length)];
    const of = bySet.get(set);
    if (of === undefined) bySet.set(set, [held]);
    else of.push(held);
  }
  return ([4, 6] as const).flatMap((family) =>
    Object.entries(setTypes).map(([name, { kind, type }]) => {
      const set = `${name}${family}`;
      const held = bySet.get(set);
      const holds = held === undefined ? '' : `\n    elements = { ${held.join(', ')} }`;
      return `  ${kind} ${set} {\n    type ${type(family === 4 ? 'ipv4_addr' : 'ipv6_addr')}${holds}\n  }`;
    }),
  );
}

/** The set in which the kernel counts the queries of each asker. */
const askers = (type: string, at: number): string =>
  `  set asking${at === 0 ? 4 : 6} {\n    type ${type}\n    size 65535\n    flags dynamic,timeout\n    timeout 10s\n  }`;

/**
 * Input for `nft -f -`: the whole table, in place of the last one.
 * @param mesh the interface of the mesh, which nothing passes twice
 */
export function wholeTable(elements: Elements, mesh: string): string {
  // A reset is an answer each time; the kernel sends few ICMP errors a second to one address.
  const refuse = [
    'counter name refused',
    'meta l4proto tcp reject with tcp reset',
    'reject with icmpx admin-prohibited',
  ];
  const chain = (name: string, lines: readonly string[]): string =>
    [`  chain ${name} {`, ...lines.map((line) => `    ${line}`), '  }'].join('\n');
  return [
    `table inet ${tableName} {\n}`,
    `delete table inet ${tableName}`,
    `table inet ${tableName} {`,
    '  counter spoofed {\n  }',
    '  counter refused {\n  }',
    '  counter flooded {\n  }',
    '  counter misled {\n  }',
    ...(['ipv4_addr', 'ipv6_addr'] as const).map(askers),
    ...declarations(elements),
    chain('refusing', refuse),
    chain('sources', [
      'type filter hook prerouting priority -310; policy drop;',
      'iif "lo" accept',
      // Only connections of VPN peers are tracked, because containers answer them and open none.
      ...families.flatMap(({ ip, family }) =>
        ['daddr', 'saddr'].map(
          (side) =>
            `${ip} ${side} @vpn${family} iifname . ${ip} saddr @own${family} ` +
            `meta mark set ${ip} saddr map @tenant${family} accept`,
        ),
      ),
      // From the internet; what asks for nothing is refused below.
      `iifname "${linkPrefixes.wayOut}*" ip daddr @out4 accept`,
      'iifname . ip saddr @own4 notrack meta mark set ip saddr map @tenant4 accept',
      'iifname . ip6 saddr @own6 notrack meta mark set ip6 saddr map @tenant6 accept',
      'counter name spoofed',
    ]),
    // Before routing, so that an unused address and one of another tenant look the same.
    chain('destinations', [
      'type filter hook prerouting priority -150; policy accept;',
      'iif "lo" accept',
      `iifname "${linkPrefixes.wayOut}*" ct direction reply ct state established,related accept`,
      `iifname "${linkPrefixes.wayOut}*" goto refusing`,
      ...families.flatMap(({ ip, family }) => {
        const toPeer = `${ip} saddr != @vpn${family} ${ip} daddr @vpn${family}`;
        return [
          `${toPeer} ct direction reply ct state established,related ${ip} daddr . meta mark @peer${family} accept`,
          `${toPeer} goto refusing`,
        ];
      }),
      'ip daddr . meta mark @peer4 accept',
      'ip6 daddr . meta mark @peer6 accept',
      'ip daddr @resolver4 accept',
      'ip6 daddr @resolver6 accept',
      // Every other range of the cluster has a route of its own.
      `ip saddr @out4 fib daddr oifname "${linkPrefixes.wayOut}*" accept`,
      ...refuse,
    ]),
    chain('through', [
      'type filter hook forward priority 0; policy accept;',
      `iifname "${mesh}" oifname "${mesh}" counter name refused drop`,
    ]),
    chain('to_router', [
      'type filter hook input priority 0; policy drop;',
      'iif "lo" accept',
      ...families.flatMap(({ ip, family }) => {
        const asks = `${ip} daddr @resolver${family}`;
        const flood = `${ip} saddr limit rate over ${queriesPerSecond}/second burst ${queriesPerSecond} packets`;
        return [
          `${asks} add @asking${family} { ${flood} } counter name flooded drop`,
          `${asks} udp dport 53 accept`,
          `${asks} tcp dport 53 accept`,
          `${asks} icmp${family === 4 ? '' : 'v6'} type echo-request accept`,
        ];
      }),
      ...refuse,
    ]),
    chain('own_answers', ['type filter hook output priority -300; policy accept;', 'notrack']),
    // A route may be older than the sets, or changed by hand: it leads to no other container.
    chain('deliveries', [
      'type filter hook postrouting priority 0; policy drop;',
      'oif "lo" accept',
      ...families.map(({ ip, family }) => `oifname . ${ip} daddr @own${family} accept`),
      `oifname "${linkPrefixes.wayOut}*" accept`,
      'counter name misled',
    ]),
    '}',
    '',
  ].join('\n');
}

/**
 * Input for `nft -f -` in the namespace of the way out: peers share the address that it has in the
 * engine's network, where they may do what a container may (firewall-rules.ts), and nobody reaches
 * them.
 */
export const wayOutTable = [
  `table inet ${tableName} {\n}`,
  `delete table inet ${tableName}`,
  `table inet ${tableName} {`,
  '  chain sources {',
  '    type nat hook postrouting priority 100; policy accept;',
  `    oifname != "${containerLink}" masquerade`,
  '  }',
  '  chain through {',
  '    type filter hook forward priority 0; policy drop;',
  // Its link is smaller than those of the internet, and some drop the messages that say so.
  '    tcp flags syn tcp option maxseg size set rt mtu',
  '    ct state established,related accept',
  `    iifname "${containerLink}" oifname != "${containerLink}" accept`,
  '  }',
  '}',
  '',
].join('\n');

const families = [
  { ip: 'ip', family: 4 },
  { ip: 'ip6', family: 6 },
] as const;

/** Input for `nft -f -`: the difference, all or nothing. Empty if there is none. */
export function tableChange(before: Elements, after: Elements): string {
  if (before === after) return '';
  const added = new Set(onlyIn(after, before));
  const gone = onlyIn(before, after);
  const deleted = new Set(gone);
  // Two members may have the same address.
  if (deleted.size > 0) for (const elements of after.values()) for (const element of elements) deleted.delete(element);
  if (added.size > 0) for (const element of gone) if (!deleted.has(element)) added.delete(element);
  const line = (verb: string) => (element: Element) => `${verb} element inet ${tableName} ${element}\n`;
  return [...Array.from(deleted, line('delete')), ...Array.from(added, line('add'))].join('');
}

const onlyIn = (one: Elements, other: Elements): Element[] =>
  [...one].flatMap(([text, elements]) => (other.has(text) ? [] : elements));
