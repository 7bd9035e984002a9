/**
 * The address of a server: a DNS name or an IP address. Validation and files share this grammar.
 */
import { formatAddress, parseAddress } from './cidr.ts';

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const nameChars = 253;

/**
 * Normalizes a DNS name (RFC 1123 section 2.1): lower case, without the root's dot; undefined for
 * anything else. The last label has a letter, so that no program takes the name for an address (RFC
 * 3696 section 2).
 */
export function dnsName(text: string): string | undefined {
  const name = text.toLowerCase();
  const labels = name.split('.');
  const fits =
    name.length <= nameChars && labels.every((part) => label.test(part)) && /[a-z]/.test(labels.at(-1) ?? '');
  // inet_aton reads a hexadecimal label as a number.
  return fits && !/^0x[0-9a-f]*$/.test(labels.at(-1) ?? '') ? name : undefined;
}

/** A name in lower case or an address in the form of RFC 5952; undefined if it is neither. */
export function hostOf(text: string): string | undefined {
  const address = parseAddress(text);
  return address === undefined ? dnsName(text) : formatAddress(address.family, address.value);
}

/** The host as it is written before a port. */
export const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host);
