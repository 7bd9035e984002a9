/**
 * The address of a connection's other end, from its bytes. uWebSockets.js has no place to keep it,
 * so each request asks for it again; the engine's own text of it, made for each request, took a
 * fiftieth of a read. So texts of IPv4 addresses are kept here.
 */
import { LRUCache } from 'lru-cache';
import { limits } from '../../../schemas/limits.ts';

/** The last of the three words before an IPv4 address within IPv6 (RFC 4291 section 2.5.5.2). */
const mappedMark = 0xffff;

/** An IPv4 address as a number, also of one that is mapped into IPv6. */
function ipv4In(bytes: DataView): number | undefined {
  if (bytes.byteLength === 4) return bytes.getInt32(0);
  if (bytes.byteLength !== 16) return undefined;
  const isMapped = bytes.getInt32(0) === 0 && bytes.getInt32(4) === 0 && bytes.getInt32(8) === mappedMark;
  return isMapped ? bytes.getInt32(12) : undefined;
}

const dotted = (ipv4: number): string => [24, 16, 8, 0].map((bits) => (ipv4 >>> bits) & 0xff).join('.');

/** All eight groups in full. */
const inGroups = (bytes: ArrayBuffer): string =>
  Buffer.from(bytes)
    .toString('hex')
    .replace(/.{4}(?=.)/g, '$&:');

/** Reads addresses; '' for that of a connection that has ended. */
export function addressReader(): (bytes: ArrayBuffer) => string {
  const texts = new LRUCache<number, string>({ max: limits.addressesRemembered });
  return (bytes) => {
    const ipv4 = ipv4In(new DataView(bytes));
    if (ipv4 === undefined) return inGroups(bytes);
    const known = texts.get(ipv4);
    if (known !== undefined) return known;
    const text = dotted(ipv4);
    texts.set(ipv4, text);
    return text;
  };
}
