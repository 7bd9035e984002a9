/**
 * Messages of VICI, the protocol by which strongSwan's daemon is configured: a tree of sections,
 * values and lists (strongSwan, src/libcharon/plugins/vici/README.md). Pure.
 */

/** A value is text, or bytes such as a certificate. */
export type Value = string | Uint8Array;
export interface Section {
  readonly [name: string]: Element;
}
export type Element = Value | readonly Value[] | Section;

/** As it is read: each value as text. */
export interface ReadSection {
  readonly [name: string]: string | readonly string[] | ReadSection;
}

export class ViciError extends Error {
  override readonly name = 'ViciError';
}

const kinds = { sectionStart: 1, sectionEnd: 2, keyValue: 3, listStart: 4, listItem: 5, listEnd: 6 } as const;
/** The daemon's own messages are four deep. */
const mostDepth = 16;

export function encodeMessage(message: Section): Buffer {
  const parts: Buffer[] = [];
  const addSection = (section: Section): void => {
    for (const [name, element] of Object.entries(section)) {
      if (isValue(element)) parts.push(named(kinds.keyValue, name), value(element));
      else if (isList(element)) {
        parts.push(named(kinds.listStart, name));
        for (const item of element) parts.push(Buffer.from([kinds.listItem]), value(item));
        parts.push(Buffer.from([kinds.listEnd]));
      } else {
        parts.push(named(kinds.sectionStart, name));
        addSection(element);
        parts.push(Buffer.from([kinds.sectionEnd]));
      }
    }
  };
  addSection(message);
  return Buffer.concat(parts);
}

const isValue = (element: Element): element is Value => typeof element === 'string' || element instanceof Uint8Array;
const isList = (element: Element): element is readonly Value[] => Array.isArray(element);

function named(kind: number, name: string): Buffer {
  const text = Buffer.from(name);
  if (text.length > 0xff) throw new ViciError(`the name ${name.slice(0, 40)}… is too long`);
  return Buffer.concat([Buffer.from([kind, text.length]), text]);
}

function value(given: Value): Buffer {
  const bytes = Buffer.from(given);
  if (bytes.length > 0xffff) throw new ViciError(`a value has ${bytes.length} bytes`);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** @throws ViciError: it is no whole message */
export function decodeMessage(bytes: Buffer): ReadSection {
  let at = 0;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new ViciError('a message ends within an element');
    return bytes.subarray(at, (at += length));
  };
  const nameOf = (): string => take(take(1).readUInt8()).toString();
  const valueOf = (): string => take(take(2).readUInt16BE()).toString();
  const listOf = (): string[] => {
    const items: string[] = [];
    for (;;) {
      const kind = take(1).readUInt8();
      if (kind === kinds.listEnd) return items;
      if (kind !== kinds.listItem) throw new ViciError(`a list has an element of the kind ${kind}`);
      items.push(valueOf());
    }
  };
  const elementOf = (kind: number, depth: number): ReadSection[string] => {
    switch (kind) {
      case kinds.keyValue:
        return valueOf();
      case kinds.listStart:
        return listOf();
      case kinds.sectionStart:
        return sectionOf(depth + 1);
      default:
        throw new ViciError(`a section has an element of the kind ${kind}`);
    }
  };
  const sectionOf = (depth: number): ReadSection => {
    if (depth > mostDepth) throw new ViciError('a message is too deep');
    const entries: [string, ReadSection[string]][] = [];
    for (;;) {
      if (depth === 0 && at === bytes.length) break;
      const kind = take(1).readUInt8();
      if (kind === kinds.sectionEnd && depth > 0) break;
      // The name comes first.
      const name = namedKinds.has(kind) ? nameOf() : '';
      entries.push([name, elementOf(kind, depth)]);
    }
    // An assignment would lose an element of the name `__proto__`.
    return Object.fromEntries(entries);
  };
  return sectionOf(0);
}

const namedKinds: ReadonlySet<number> = new Set([kinds.keyValue, kinds.listStart, kinds.sectionStart]);
