/** Lengths of time as people write them: `250ms`, `30s`, `5m`, `12h`, `30d`, `1h30m`. */
const units = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 } as const;

const part = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g;
const whole = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;

/** In milliseconds; undefined: it is no duration, or no whole number of milliseconds. */
export function parseDuration(text: string): number | undefined {
  if (!whole.test(text)) return undefined;
  let sumMs = 0;
  for (const [, count, unit] of text.matchAll(part)) sumMs += Number(count) * units[unit as keyof typeof units];
  return Number.isSafeInteger(sumMs) ? sumMs : undefined;
}

/** In the largest unit that holds it without a fraction. */
export function durationText(ms: number): string {
  const [unit, size] = Object.entries(units).find(([, size]) => ms >= size && ms % size === 0) ?? ['s', 1000];
  return `${ms / size}${unit}`;
}
