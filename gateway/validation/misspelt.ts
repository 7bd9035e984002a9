/** Keys that a request has by mistake: ignored, and close to one that would count. Pure. */
import { meant } from '../../lib/validation/misspelt.ts';

/** Any other could not stand in a header as it is. */
const plainKey = /^[\w-]{2,40}$/;
/** So many are named; the rest of a long body is not looked at. */
const keysNamed = 8;

/** The value of the header `Longshore-Warning`; undefined: nothing looks misspelt. */
export function warningOf(ignored: readonly string[], known: readonly string[]): string | undefined {
  const words = ignored.flatMap((key) => {
    const name = plainKey.test(key) ? meant(key, known) : undefined;
    return name === undefined ? [] : [`"${key}" is ignored: did you mean "${name}"?`];
  });
  return words.length === 0 ? undefined : words.slice(0, keysNamed).join(' ');
}
