/**
 * Addresses outside the public internet, which containers may not reach and no public registry has:
 * the IANA registries of special-purpose IPv4 and IPv6 addresses (RFC 6890). Pure.
 */
import { BlockList } from 'node:net';
import { formatAddress, parseCidr } from '../../schemas/cidr.ts';

/**
 * Link-local: the metadata services of clouds answer at 169.254.169.254, with the credentials of
 * the machine.
 */
export const linkLocal = { ipv4: '169.254.0.0/16', ipv6: 'fe80::/10' } as const;

/** No two of them overlap: nftables takes them as one set. */
export const privateIpv4: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  linkLocal.ipv4,
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/** `64:ff9b::/96` leads through a NAT64 to the IPv4 address in its last bits (RFC 6052). */
const throughNat64 = (ipv4: string): string => {
  const cidr = parseCidr(ipv4);
  if (cidr === undefined) throw new Error(`${ipv4} is not a network`);
  return `${formatAddress(6, (0x64ff9bn << 96n) + cidr.base)}/${96 + cidr.prefix}`;
};

/**
 * `::/32` holds loopback, the unspecified address and those that contain an IPv4 address as it is.
 */
export const privateIpv6: readonly string[] = [
  '::/32',
  ...privateIpv4.map(throughNat64),
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  linkLocal.ipv6,
  'fec0::/10',
  'ff00::/8',
];

function blockListOf(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [base = '', prefix] = range.split('/');
    list.addSubnet(base, Number(prefix), family);
  }
  return list;
}
/**
 * Two lists: in a shared one, Node would match every IPv4 address with `::/32`, by its form as an
 * IPv6 address.
 */
const privateAddresses = { ipv4: blockListOf('ipv4', privateIpv4), ipv6: blockListOf('ipv6', privateIpv6) };

/** @param address in the form that a resolver returns */
export function isPublicAddress(address: string): boolean {
  const family = address.includes(':') ? 'ipv6' : 'ipv4';
  return !privateAddresses[family].check(address, family);
}
