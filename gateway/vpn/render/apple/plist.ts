/** Apple's property lists in XML. The output is ASCII for any input. */

export type Plist = string | number | boolean | Uint8Array | readonly Plist[] | { readonly [key: string]: Plist };

/**
 * XML 1.0 section 2.2: an XML document cannot contain any other character, not even as a reference.
 */
const notXml = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu;
const special = /[^\u{20}-\u{7E}]|[&<>"']/gu;

export const xmlText = (text: string): string =>
  text.replaceAll(notXml, '\u{FFFD}').replaceAll(special, (character) => `&#${character.codePointAt(0)};`);

const isBytes = (value: Plist): value is Uint8Array => value instanceof Uint8Array;
const isList = (value: Plist): value is readonly Plist[] => Array.isArray(value);

function element(value: Plist): string {
  if (typeof value === 'string') return `<string>${xmlText(value)}</string>`;
  if (typeof value === 'number') return `<integer>${Math.trunc(value)}</integer>`;
  if (typeof value === 'boolean') return value ? '<true/>' : '<false/>';
  if (isBytes(value)) return `<data>${Buffer.from(value).toString('base64')}</data>`;
  if (isList(value)) return `<array>\n${value.map(element).join('\n')}\n</array>`;
  const entries = Object.entries(value).map(([key, item]) => `<key>${xmlText(key)}</key>\n${element(item)}`);
  return `<dict>\n${entries.join('\n')}\n</dict>`;
}

export const plist = (value: Plist): string =>
  '<?xml version="1.0" encoding="UTF-8"?>\n' +
  '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">\n' +
  `<plist version="1.0">\n${element(value)}\n</plist>\n`;
