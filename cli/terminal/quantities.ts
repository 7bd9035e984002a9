/** Amounts as people write them, in the form that the API takes. Pure. */

/** `2` → `2.0`: the API takes only numbers with a decimal. */
export const cpuIn = (text: string): string => (/^\d{1,3}$/.test(text) ? `${text}.0` : text);

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
 * those of Docker. What is no size stays as it is.
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

/** Of a size in the form of the API, such as `64m`. */
export const bytesIn = (size: string): number =>
  Number.parseFloat(size) * (unitBytes[size.replace(/^[\d.]+/, '')] ?? 1);

export const cpuPattern = '^\\d{1,3}(?:\\.\\d{1,3})?$';
export const memoryPattern = '^(?:[1-9]\\d*\\.?|\\d*\\.\\d+) ?(?:[bB]|[kmgtpKMGTP][iI]?[bB]?)?$';
