/** What of many measurements is told. */

/** `part` of 0 is the smallest, 1 the largest; NaN of none. Sorts what it is given. */
export function quantile(values: Float64Array | number[], part: number): number {
  values.sort((one, other) => one - other);
  return values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? NaN;
}

export const median = (values: readonly number[]): number => quantile([...values], 0.5);

/** Three figures that count, as people write them: 76000, 1130, 4.41. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return digits > 0 ? value.toFixed(Math.min(digits, 4)) : String(Number(value.toPrecision(3)));
}

export const ratio = (value: number, base: number): string => `${(value / base).toFixed(2)} ×`;
