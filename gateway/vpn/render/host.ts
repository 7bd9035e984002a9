/**
 * Where a server is: a DNS name or an address. One grammar for what is asked for and for what is
 * written into files.
 */
import { formatAddress, parseAddress } from '../../../schemas/cidr.ts';

const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const nameChars = 253;

/**
 * RFC 1123 section 2.1, in lower case, without the root's dot. The last label has a letter, so that
 * nothing is a name to one program and an address to another (RFC 3696 section 2); undefined for
 * anything else.
 */
export function dnsName(text: string): string | undefined {
  const name = text.toLowerCase();
  const labels = name.split('.');
  const fits =
    name.length <= nameChars && labels.every((part) => label.test(part)) && /[a-z]/.test(labels.at(-1) ?? '');
  // Also what inet_aton would take for a number.
  return fits && !/^0x[0-9a-f]*$/.test(labels.at(-1) ?? '') ? name : undefined;
}

/** A name in lower case or an address as RFC 5952 writes it; undefined where it is neither. */
export function hostOf(text: string): string | undefined {
  const address = parseAddress(text);
  return address === undefined ? dnsName(text) : formatAddress(address.family, address.value);
}

/** As it stands before a port. */
export const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host);
