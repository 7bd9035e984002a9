/** File names of downloads. A peer's name keeps only letters, digits, `-` and `_`. */
import type { PeerId } from '../../../schemas/ids.ts';
import { fitPeerId, Unfit } from './fit.ts';
import { isInterfaceOfOthers, isWordOfCommands } from '../../../schemas/interface-name.ts';

/**
 * wg-quick and Android name an interface after the file, and such a name has at most 15 characters.
 */
const baseChars = 15;

/**
 * Ends a name that is not the peer's own, so that no other peer has it: a UUIDv7 ends with random
 * digits; those that were made within a minute begin alike.
 */
const idChars = 8;

/** The end of such a name. */
const marked = new RegExp(`-[0-9a-f]{${idChars}}$`);

/** Names that Windows reserves for devices, with any extension, and Linux for all interfaces. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d|all|default|lo)$/i;

const trimmed = (text: string, chars: number): string => text.slice(0, chars).replace(/-+$/, '');

const asciiOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^A-Za-z0-9_]+/g, '-')
    .replace(/^-+/, '');

/**
 * The peer's name if it fits wholly. A tenant's names are distinct, but what is left of them may be
 * the same, also for Windows, which ignores case; then a part of the id follows. A name that looks
 * like one with a part of an id gets one, too.
 */
function baseOf(name: string, id: PeerId): string {
  const ascii = asciiOf(name);
  const base = trimmed(ascii, baseChars);
  const end = fitPeerId(id).slice(-idChars);
  if (base === '' || reserved.test(base)) return `peer-${end}`;
  const isFree = !isInterfaceOfOthers(base) && !isWordOfCommands(base) && !marked.test(base);
  if (base === name && base === base.toLowerCase() && isFree) return base;
  return `${trimmed(ascii, baseChars - idChars - 1)}-${end}`;
}

/** Returns `<base>.<extension>`. The base is valid for wg-quick and on every platform. */
export function fileName(name: string, id: PeerId, extension: string): string {
  if (!/^[a-z0-9]{1,16}$/.test(extension)) throw new Unfit('extension');
  return `${baseOf(name, id)}.${extension}`;
}

/**
 * The value of Content-Disposition (RFC 6266) for a name from `fileName`: plain ASCII, nothing to
 * escape.
 */
export function attachment(file: string): string {
  if (!/^[A-Za-z0-9_-]+\.[a-z0-9]+$/.test(file)) throw new Unfit('file name');
  return `attachment; filename="${file}"`;
}
