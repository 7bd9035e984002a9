/**
 * Addresses and names of the tenant network (ADR 51). IPv6 addresses are not allocated: they follow
 * from the ids of the cluster and of the container, so every program knows them without asking.
 * Pure.
 */
import { addressAt, formatAddress, formatCidr, parseCidr, type Cidr } from './cidr.ts';
import type { ContainerId } from './ids.ts';
import type { Cluster } from './records/cluster.ts';
import { hashesOf } from './text-hash.ts';

/** The first byte of unique local addresses, and bits of the global id (RFC 4193, section 3.1). */
const uniqueLocal = 0xfdn;
const globalIdBits = 40n;
const prefix = 48;
/** The subnet of the cluster's range that has containers. */
const containers = 1n;

function rangeOf(cluster: string): Cidr {
  const [first, second] = hashesOf(cluster);
  const globalId = ((BigInt(first) << 32n) | BigInt(second)) >> (64n - globalIdBits);
  return { family: 6, base: ((uniqueLocal << globalIdBits) | globalId) << 80n, prefix };
}

/** The /48 of a cluster, as CIDR. */
export const ipv6RangeOf = (cluster: string): string => formatCidr(rangeOf(cluster));

/** Ranges of containers' addresses, as CIDR; `ipv4` is `null` if the operator gave none. */
export interface TenantRanges {
  readonly ipv4: string | null;
  readonly ipv6: string;
}

export const tenantRangesOf = ({ id, tenantIpv4 }: Pick<Cluster, 'id' | 'tenantIpv4'>): TenantRanges => ({
  ipv4: tenantIpv4 ?? null,
  ipv6: ipv6RangeOf(id),
});

/**
 * The address of a container, for its life. The last 64 bits are those of its id, of which 62 are
 * random (RFC 9562, section 5.7).
 */
export function ipv6Of(cluster: string, id: ContainerId): string {
  const bits = BigInt(`0x${id.replaceAll('-', '').slice(-16)}`);
  return formatAddress(6, rangeOf(cluster).base | (containers << 64n) | bits);
}

/**
 * Places of the two resolvers in each range of the cluster, as in 10.192.0.53 and fd5e::53; two, so
 * that one may restart.
 */
const resolverPlaces = { 4: [53, 54], 6: [0x53, 0x54] } as const;

/** Addresses of the first or the second resolver, in these ranges. */
export function resolverAddresses(ranges: readonly (string | null)[], which: 0 | 1): string[] {
  return ranges.flatMap((text) => {
    const range = text === null ? undefined : parseCidr(text);
    return range === undefined ? [] : [addressAt(range, resolverPlaces[range.family][which])];
  });
}

/** Prefixes that the cluster's IPv4 range may have. */
const ipv4Prefixes = { min: 8, max: 16 } as const;
/** The first addresses of the range are nobody's: two are the resolvers'. */
const ipv4Reserved = 64;

/** Addresses, as numbers of 32 bits. */
export interface Ipv4Slice {
  readonly first: number;
  readonly count: number;
}

/** `undefined` if the text is no range from which a cluster may give its containers addresses. */
export function ipv4RangeIn(text: string): Cidr | undefined {
  const range = parseCidr(text);
  const { min, max } = ipv4Prefixes;
  return range?.family === 4 && range.prefix >= min && range.prefix <= max ? range : undefined;
}

/** The part of the range that one partition gives its tenants' containers addresses of. */
export function ipv4SliceOf(range: Cidr, partition: number, partitions: number): Ipv4Slice {
  const count = Math.floor(2 ** (32 - range.prefix) / partitions);
  const first = Number(range.base) + partition * count;
  const before = partition === 0 ? ipv4Reserved : 0;
  // In IPv4 the last address of a network is its broadcast.
  const after = partition === partitions - 1 ? 1 : 0;
  return { first: first + before, count: count - before - after };
}

/** The domain of a tenant's names: `web.internal`. */
export const internalDomain = 'internal';

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * A container's name as DNS knows it (RFC 1035, section 2.3.1, and RFC 1123, section 2.1);
 * `undefined` if it cannot be one.
 */
export function labelOf(name: string): string | undefined {
  const lower = name.toLowerCase();
  return label.test(lower) ? lower : undefined;
}

interface Named {
  readonly id: ContainerId;
  readonly name: string;
}

const isLower = ({ name }: Named): boolean => name === name.toLowerCase();

/**
 * Of two containers that DNS knows by one label, such as `web` and `Web`, whether the first has it:
 * the one whose name is the label, else the older.
 */
export const hasLabelBefore = (one: Named, other: Named): boolean =>
  isLower(one) === isLower(other) ? one.id < other.id : isLower(one);
