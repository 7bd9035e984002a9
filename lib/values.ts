/**
 * Looks into JSON by hand. TypeBox takes longer to load than all of a simple command, so what every
 * command reads is not decoded by a schema.
 */

export type Values = Readonly<Record<string, unknown>>;

export const isValues = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Empty: it is no object. */
export const valuesIn = (value: unknown): Values => (isValues(value) ? value : {});

export const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
export const numberIn = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
