/**
 * Networks and addresses as text and as numbers. A peer's place in a pool is one number, its index,
 * which gives both its IPv4 and its IPv6 address. Index 0 is the network itself, index 1 the VPN
 * server.
 */

/** Addresses are 32 or 128 bits; `base` has the bits after the prefix clear. */
export interface Cidr {
  readonly family: 4 | 6;
  readonly base: bigint;
  readonly prefix: number;
}

const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/**
 * Dotted decimal without leading zeros (see RFC 6943, section 3.1.1); undefined for any other text.
 */
function parseIpv4(text: string): bigint | undefined {
  const parts = text.split('.');
  if (parts.length !== 4) return undefined;
  let value = 0n;
  for (const part of parts) {
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    value = (value << 8n) | BigInt(part);
  }
  return value;
}

/** RFC 4291 section 2.2, without the form that ends in an IPv4 address and without a zone. */
function parseIpv6(text: string): bigint | undefined {
  const halves = text.split('::');
  if (halves.length > 2) return undefined;
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  let value = 0n;
  for (const group of [...head, ...Array.from({ length: missing }, () => '0'), ...tail]) {
    if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
    value = (value << 16n) | BigInt(`0x${group}`);
  }
  return value;
}

/** `undefined` if the text is not an address. */
export function parseAddress(text: string): { readonly family: 4 | 6; readonly value: bigint } | undefined {
  const family = text.includes(':') ? 6 : 4;
  const value = family === 4 ? parseIpv4(text) : parseIpv6(text);
  return value === undefined ? undefined : { family, value };
}

/**
 * RFC 5952: lower case, and `::` for the longest run of at least two zeros (the first of equals).
 */
export function formatAddress(family: 4 | 6, value: bigint): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.');
  const groups = Array.from({ length: 8 }, (_, index) => ((value >> BigInt(112 - 16 * index)) & 0xffffn).toString(16));
  let [start, length] = [0, 0];
  for (let from = 0; from < 8; from++) {
    let to = from;
    while (to < 8 && groups[to] === '0') to++;
    if (to - from > length) [start, length] = [from, to - from];
  }
  return length < 2
    ? groups.join(':')
    : `${groups.slice(0, start).join(':')}::${groups.slice(start + length).join(':')}`;
}

/**
 * `10.86.0.0/24`; `undefined` if the text is not a network, or if bits after the prefix are set.
 */
export function parseCidr(text: string): Cidr | undefined {
  const [addressText = '', prefixText = '', ...rest] = text.split('/');
  const address = parseAddress(addressText);
  if (address === undefined || rest.length > 0 || !/^(?:0|[1-9]\d{0,2})$/.test(prefixText)) return undefined;
  const { family, value } = address;
  const prefix = Number(prefixText);
  if (prefix > bitsOf(family) || value & ((1n << BigInt(bitsOf(family) - prefix)) - 1n)) return undefined;
  return { family, base: value, prefix };
}

/** Writes the same network always as the same text. */
export const formatCidr = ({ family, base, prefix }: Cidr): string => `${formatAddress(family, base)}/${prefix}`;

export const addressAt = ({ family, base }: Cidr, index: number): string => formatAddress(family, base + BigInt(index));

/** Index of the VPN server itself. */
export const serverIndex = 1;

/**
 * Peers' indexes go from 2 to this, both included; in IPv4 the last address of a network is its
 * broadcast.
 */
export const lastIndex = ({ prefix }: Cidr): number => 2 ** (32 - prefix) - 2;

export const contains = (outer: Cidr, inner: Cidr): boolean =>
  outer.family === inner.family &&
  outer.prefix <= inner.prefix &&
  inner.base >> BigInt(bitsOf(inner.family) - outer.prefix) ===
    outer.base >> BigInt(bitsOf(inner.family) - outer.prefix);

export const overlap = (one: Cidr, other: Cidr): boolean => contains(one, other) || contains(other, one);

/** Without networks that lie in others. */
export const outermost = (cidrs: readonly Cidr[]): readonly Cidr[] =>
  cidrs.filter((one) => !cidrs.some((other) => other !== one && contains(other, one)));

/** Number of its addresses. */
const sizeOf = ({ family, prefix }: Cidr): bigint => 1n << BigInt(bitsOf(family) - prefix);

/**
 * Routes that cover a whole family, such as its two halves, as one: programs treat only `/0` as
 * everything. Those that lie in another of the routes stay.
 */
export function wholeRoutes(routes: readonly Cidr[]): readonly Cidr[] {
  return ([4, 6] as const).reduce((all, family) => {
    const parts = outermost(all.filter((route) => route.family === family));
    const everything: Cidr = { family, base: 0n, prefix: 0 };
    const size = parts.reduce((sum, part) => sum + sizeOf(part), 0n);
    return parts.length > 1 && size === sizeOf(everything)
      ? [everything, ...all.filter((route) => !parts.includes(route))]
      : all;
  }, routes);
}

/**
 * The first route that leads packets to the tunnel's own end into the tunnel: `wg-quick` exempts
 * them from `/0` alone. Undefined for a name, whose addresses are not known.
 */
export function loopOf(endpoint: string, routes: readonly string[]): string | undefined {
  const host = hostCidr(endpoint);
  const loop = wholeRoutes(routes.flatMap((text) => parseCidr(text) ?? [])).find(
    (route) => host !== undefined && route.prefix > 0 && contains(route, host),
  );
  return loop && formatCidr(loop);
}

/** An address as the network of it alone; undefined if it is not an address. */
export function hostCidr(text: string): Cidr | undefined {
  const address = parseAddress(text);
  return address && { family: address.family, base: address.value, prefix: address.family === 4 ? 32 : 128 };
}

/** Addresses of the asking machine itself, of a group, or of nobody: no resolver is there. */
const unusable = ['0.0.0.0/8', '127.0.0.0/8', '224.0.0.0/3', '::/127', '::ffff:0:0/96', 'ff00::/8'].map((text) => {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(`${text} is no network`);
  return cidr;
});

/** True if a resolver can have this address. */
export function isResolver(address: string): boolean {
  const host = hostCidr(address);
  return host !== undefined && !unusable.some((range) => contains(range, host));
}
