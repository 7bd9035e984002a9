/** Quantiles, and figures for tables. */

/** Sorts `values`. @param part 0 for the smallest value, 1 for the largest @returns NaN if empty */
export function quantile(values: Float64Array | number[], part: number): number {
  values.sort((one, other) => one - other);
  return values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? NaN;
}

export const median = (values: readonly number[]): number => quantile([...values], 0.5);

/** Rounds to three significant digits: 76000, 1130, 4.41. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return digits > 0 ? value.toFixed(Math.min(digits, 4)) : String(Number(value.toPrecision(3)));
}

export const ratio = (value: number, base: number): string => `${(value / base).toFixed(2)} ×`;
