/**
 * Whether JSON holds more keys and items than a bound, found without parsing it: the values that a
 * parser makes take up to a hundred times as much memory as their bytes. Pure. For text that is not
 * JSON the count means nothing; the parser refuses it.
 */
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openList = 0x5b;
const openMap = 0x7b;

/**
 * Counts commas and opening brackets: the first value of a list or map follows its opening bracket,
 * every other one a comma.
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
