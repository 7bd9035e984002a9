/** Lengths of time as Go and Compose write them, with days and weeks: `250ms`, `12h`, `1h30m`. */
const units = {
  w: 604_800_000,
  d: 86_400_000,
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  // Micro sign and Greek mu.
  µs: 1e-3,
  μs: 1e-3,
  ns: 1e-6,
} as const;

const part = String.raw`(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w)`;
const whole = new RegExp(`^(?:${part})+$`);

/** In milliseconds; `undefined` if it is not a duration. */
export function parseDuration(text: string): number | undefined {
  if (!whole.test(text)) return undefined;
  const parts = [...text.matchAll(new RegExp(part, 'g'))];
  const sumMs = parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit as keyof typeof units], 0);
  // Without the dust of floating point.
  return Number(sumMs.toFixed(6));
}

const written = ['d', 'h', 'm', 's', 'ms'] as const;

/** A whole number of milliseconds in the largest unit, up to days, that holds it. */
export function durationText(ms: number): string {
  const unit = written.find((name) => ms >= units[name] && ms % units[name] === 0) ?? 's';
  return `${ms / units[unit]}${unit}`;
}
