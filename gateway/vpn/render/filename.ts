/** File names of downloads. A peer's name keeps only letters, digits, `-` and `_`. */
import type { PeerId } from '../../../schemas/ids.ts';
import { fitPeerId, Unfit } from './fit.ts';

/**
 * wg-quick and Android name an interface after the file, and such a name has at most 15 characters.
 */
const baseChars = 15;

/** Names that Windows reserves for devices, with any extension, and Linux for all interfaces. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d|all|default|lo)$/i;

const baseOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^A-Za-z0-9_]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, baseChars)
    .replace(/-+$/, '');

/** Returns `<base>.<extension>`. The base is valid for wg-quick and on every platform. */
export function fileName(name: string, id: PeerId, extension: string): string {
  if (!/^[a-z0-9]{1,16}$/.test(extension)) throw new Unfit('extension');
  const base = baseOf(name);
  // A UUIDv7 ends with random digits; those that were made within a minute begin alike.
  return `${base === '' || reserved.test(base) ? `peer-${fitPeerId(id).slice(-8)}` : base}.${extension}`;
}

/**
 * The value of Content-Disposition (RFC 6266) for a name from `fileName`: plain ASCII, nothing to
 * escape.
 */
export function attachment(file: string): string {
  if (!/^[A-Za-z0-9_-]+\.[a-z0-9]+$/.test(file)) throw new Unfit('file name');
  return `attachment; filename="${file}"`;
}
