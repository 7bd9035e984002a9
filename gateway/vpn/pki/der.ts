/**
 * Encodes DER (ITU-T X.690): short names for the functions of node-forge. It parses only
 * certificates of our own, and only the borders between elements.
 */
import forge from 'node-forge';

const { asn1 } = forge;
const { Class, Type } = asn1;

export type Element = forge.asn1.Asn1;

/** node-forge stores bytes in strings, one character for each. */
const binary = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

const primitive = (type: forge.asn1.Type, bytes: Uint8Array): Element =>
  asn1.create(Class.UNIVERSAL, type, false, binary(bytes));

export const encode = (element: Element): Buffer => Buffer.from(asn1.toDer(element).getBytes(), 'latin1');

export const sequence = (...items: readonly Element[]): Element =>
  asn1.create(Class.UNIVERSAL, Type.SEQUENCE, true, [...items]);

/** X.690 section 11.6: a set in the order of its encodings. */
export const setOf = (...items: readonly Element[]): Element =>
  asn1.create(
    Class.UNIVERSAL,
    Type.SET,
    true,
    items.toSorted((one, other) => Buffer.compare(encode(one), encode(other))),
  );

export const objectId = (dotted: string): Element =>
  asn1.create(Class.UNIVERSAL, Type.OID, false, asn1.oidToDer(dotted).getBytes());

const unsigned = (hex: string): Buffer => {
  const even = hex.length % 2 === 0 ? hex : `0${hex}`;
  const minimal = even.replace(/^(?:00)+(?=..)/, '');
  // A first bit of one would make the number negative.
  return Buffer.from(/^[89a-f]/i.test(minimal) ? `00${minimal}` : minimal, 'hex');
};

/** Encodes a number that is not negative. */
export const integer = (value: number | bigint): Element => primitive(Type.INTEGER, unsigned(value.toString(16)));
export const integerOfHex = (hex: string): Element => primitive(Type.INTEGER, unsigned(hex));
export const enumerated = (value: number): Element => primitive(Type.ENUMERATED, unsigned(value.toString(16)));
export const isTrue = (): Element => primitive(Type.BOOLEAN, Uint8Array.of(0xff));
export const nothing = (): Element => primitive(Type.NULL, new Uint8Array());
export const octets = (bytes: Uint8Array): Element => primitive(Type.OCTETSTRING, bytes);
export const utf8 = (text: string): Element => primitive(Type.UTF8, Buffer.from(text));

/**
 * Big-endian UTF-16. Characters beyond the first plane become two units, which all readers of
 * PKCS#12 expect.
 */
export const bmp = (text: string): Element => asn1.create(Class.UNIVERSAL, Type.BMPSTRING, false, text);

/** A bit string. @param unusedBits number of bits of the last byte that do not belong to it */
export const bits = (bytes: Uint8Array, unusedBits = 0): Element =>
  primitive(Type.BITSTRING, Buffer.concat([Uint8Array.of(unusedBits), bytes]));

/** X.690 section 11.2.2: named bits end with the last one that is set. */
export function namedBits(numbers: readonly number[]): Element {
  const last = Math.max(...numbers);
  const bytes = Buffer.alloc(Math.floor(last / 8) + 1);
  for (const number of numbers) bytes[number >> 3] = (bytes[number >> 3] ?? 0) | (0x80 >> (number & 7));
  return bits(bytes, 7 - (last & 7));
}

export const explicit = (tag: number, ...items: readonly Element[]): Element =>
  asn1.create(Class.CONTEXT_SPECIFIC, tag, true, [...items]);

export const implicit = (tag: number, bytes: Uint8Array): Element =>
  asn1.create(Class.CONTEXT_SPECIFIC, tag, false, binary(bytes));

/**
 * RFC 5280 section 4.1.2.5: two digits for the year to 2049, four from then on; whole seconds, UTC.
 */
export function time(ms: number): Element {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]/g, '').slice(0, 14);
  return digits < '2050'
    ? primitive(Type.UTCTIME, Buffer.from(`${digits.slice(2)}Z`))
    : primitive(Type.GENERALIZEDTIME, Buffer.from(`${digits}Z`));
}

const headerBytes = (der: Uint8Array): number => {
  const [, length = 0] = der;
  return length < 0x80 ? 2 : 2 + (length & 0x7f);
};

const totalBytes = (der: Uint8Array): number => {
  const header = headerBytes(der);
  const length = header === 2 ? (der[1] ?? 0) : Buffer.from(der.subarray(2, header)).readUIntBE(0, header - 2);
  return header + length;
};

/** Splits a sequence of our own into its elements, each with its tag and length. */
export function elementsOf(der: Uint8Array): Uint8Array[] {
  const elements: Uint8Array[] = [];
  for (let rest = der.subarray(headerBytes(der), totalBytes(der)); rest.length > 0;) {
    const length = totalBytes(rest);
    elements.push(rest.subarray(0, length));
    rest = rest.subarray(length);
  }
  return elements;
}

const sequenceTag = 0x30;

/** Wraps elements that are in DER already into a sequence. */
export const sequenceOf = (der: Uint8Array): Element =>
  // Marked as primitive, so that node-forge copies the content.
  asn1.create(Class.UNIVERSAL, sequenceTag as forge.asn1.Type, false, binary(der));

/** Takes a sequence that is in DER already. */
export function ready(der: Uint8Array): Element {
  if (der[0] !== sequenceTag) throw new Error('not a sequence');
  return sequenceOf(der.subarray(headerBytes(der)));
}
