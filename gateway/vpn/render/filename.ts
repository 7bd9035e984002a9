/**
 * Names of downloads. Of what the user calls the peer only letters, digits, `-` and `_` are left.
 */
import type { PeerId } from '../../../schemas/ids.ts';
import { fitPeerId, Unfit } from './fit.ts';

/**
 * wg-quick and Android make an interface of the name, and an interface's name has 15 characters.
 */
const baseChars = 15;

/** What Windows keeps for devices, with whatever extension, and Linux for all interfaces. */
const reserved = /^(?:con|prn|aux|nul|com\d|lpt\d|all|default|lo)$/i;

const baseOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^A-Za-z0-9_]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, baseChars)
    .replace(/-+$/, '');

/** `<base>.<extension>`, the base being fit for wg-quick and for every platform's files. */
export function fileName(name: string, id: PeerId, extension: string): string {
  if (!/^[a-z0-9]{1,16}$/.test(extension)) throw new Unfit('extension');
  const base = baseOf(name);
  // The end of a UUIDv7 is random; its beginning is shared by all that were made within a minute.
  return `${base === '' || reserved.test(base) ? `peer-${fitPeerId(id).slice(-8)}` : base}.${extension}`;
}

/**
 * Value of Content-Disposition (RFC 6266) for a name that `fileName` gave: plain ASCII, nothing to
 * escape.
 */
export function attachment(file: string): string {
  if (!/^[A-Za-z0-9_-]+\.[a-z0-9]+$/.test(file)) throw new Unfit('file name');
  return `attachment; filename="${file}"`;
}
