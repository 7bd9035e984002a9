/**
 * Looks into JSON by hand: where it is more than a schema can say, and where TypeBox would take
 * longer to load than all of a simple command of the command line.
 */

/** Values of a JSON object. */
export type Values = Readonly<Record<string, unknown>>;

export const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Empty: it is no JSON object. */
export const valuesIn = (value: unknown): Values => (isValues(value) ? value : {});

export const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
export const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/** Merges key by key; a given value wins, and a list is replaced as a whole. */
export function merged(before: Values, given: Values): Values {
  const entries = Object.entries(given).map(([key, value]) => {
    const stored = before[key];
    return [key, isValues(stored) && isValues(value) ? merged(stored, value) : value] as const;
  });
  return { ...before, ...Object.fromEntries(entries) };
}
