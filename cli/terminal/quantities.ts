/** Amounts as people write them, in the form that the API takes. Pure. */

/** `2` → `2.0`, and `250m` of kubectl → `0.25`: the API takes only numbers with a decimal. */
export function cpuIn(text: string): string {
  const [, millis] = /^(\d{1,6})m$/.exec(text) ?? [];
  const cores = millis === undefined ? text : String(Number(millis) / 1000);
  return /^\d{1,3}$/.test(cores) ? `${cores}.0` : cores;
}

const unitBytes: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 2 ** 10,
  m: 2 ** 20,
  g: 2 ** 30,
  t: 2 ** 40,
  p: 2 ** 50,
};

/**
 * `64Mi` and `64MB` → `64m`, `1.5g` → `1536m`, `1t` → `1024g`. All units are powers of 1024, as
 * those of Docker. Another text stays unchanged.
 */
export function memoryIn(text: string): string {
  const [, number, unit = ''] = /^(\d+\.?\d*|\.\d+) ?(?:([kmgtp])i?b?|b)?$/i.exec(text) ?? [];
  if (number === undefined) return text;
  const isWhole = /^\d+$/.test(number);
  if (isWhole && unit === '') return text.replace(' ', '');
  const letter = unit.toLowerCase();
  if (isWhole && 'kmg'.includes(letter)) return `${number}${letter}`;
  const bytes = Math.floor(Number(number) * (unitBytes[letter] ?? 1));
  const whole = ['g', 'm', 'k'].find((one) => bytes > 0 && bytes % (unitBytes[one] ?? 1) === 0);
  return whole === undefined ? String(bytes) : `${bytes / (unitBytes[whole] ?? 1)}${whole}`;
}

/** Bytes of a size in the form of the API, such as `64m`. */
export const bytesIn = (size: string): number =>
  Number.parseFloat(size) * (unitBytes[size.replace(/^[\d.]+/, '')] ?? 1);

export const cpuPattern = '^\\d{1,3}(?:\\.\\d{1,3})?$';
export const memoryPattern = '^(?:[1-9]\\d*\\.?|\\d*\\.\\d+) ?(?:[bB]|[kmgtpKMGTP][iI]?[bB]?)?$';

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** `1536` → `1.5 KiB` */
export function bytesText(bytes: number): string {
  let [value, at] = [bytes, 0];
  for (; value >= 1024 && at < units.length - 1; at++) value /= 1024;
  return `${at === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[at] ?? 'B'}`;
}

/** An amount of a quota: bytes with their unit, thousandths of a core as cores. */
export function amountText(name: string, amount: number): string {
  if (name.endsWith('_bytes')) return bytesText(amount);
  return name === 'cpu_millis' ? `${amount / 1000} cores` : String(amount);
}
