/** Amounts as people write them, in the form that the API takes. Pure. */

/** `2` → `2.0`: the API takes only numbers with a decimal. */
export const cpuIn = (text: string): string => (/^\d{1,3}$/.test(text) ? `${text}.0` : text);

/** `64Mi` and `64MB` → `64m`. All units are powers of 1024, as those of Docker. */
export const memoryIn = (text: string): string =>
  text.replace(/^(\d+)([kmg])i?b?$/i, (_, number: string, unit: string) => `${number}${unit.toLowerCase()}`);

export const cpuPattern = '^\\d{1,3}(?:\\.\\d{1,3})?$';
export const memoryPattern = '^[1-9]\\d*(?:[bB]|[kmgKMG][iI]?[bB]?)?$';
