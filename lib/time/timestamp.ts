/** The last that was made: a turn writes the same time several times, half a microsecond each. */
let [lastMs, lastText] = [NaN, ''];

/** RFC 3339, UTC, milliseconds. */
export function timestamp(ms: number): string {
  if (ms !== lastMs) [lastMs, lastText] = [ms, new Date(ms).toISOString()];
  return lastText;
}
