/** Defaults of body fields. A default is written only in the schema, where OpenAPI shows it too. */
import type { Static, TSchema } from 'typebox';
import { Check } from 'typebox/value';

/** @throws if the schema has no default, or does not accept its own. */
export function defaultOf<S extends TSchema>(schema: S): Static<S> {
  const value: unknown = 'default' in schema ? schema.default : undefined;
  if (Check(schema, value)) return value;
  throw new Error(`a default is missing or wrong: ${JSON.stringify(schema)}`);
}
