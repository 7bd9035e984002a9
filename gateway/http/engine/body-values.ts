/**
 * Whether JSON holds more keys and items than a bound, seen without parsing it: what a parser makes
 * of them costs up to a hundred times as much as their bytes. Pure. Text that is not JSON has as
 * many as it seems to; the parser refuses it.
 */
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openList = 0x5b;
const openMap = 0x7b;

/**
 * Every value but the first of its list or map comes after a comma; the first comes after the
 * opening.
 */
export function hasMoreValues(json: Uint8Array, max: number): boolean {
  if (json.byteLength <= max) return false;
  let values = 0;
  let inString = false;
  for (let at = 0; at < json.byteLength; at++) {
    const byte = json[at];
    if (inString) {
      if (byte === backslash) at++;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if ((byte === comma || byte === openList || byte === openMap) && ++values > max) return true;
  }
  return false;
}
