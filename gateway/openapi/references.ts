/** Puts `$ref` in the place of schemas that have a name (schemas/components.ts). Pure. */
import { isValues, type Values } from '../../lib/values.ts';

export type Json = Values;

export interface References {
  /** The value with a reference for each named schema in it. */
  readonly refer: (value: unknown) => unknown;
  /** Every named schema, with references for those in it. */
  readonly schemas: Json;
}

const textOf = (schema: unknown): string => JSON.stringify(schema);

/** TypeBox leaves out the type of its values, which generators of clients look for. */
const isEnumeration = (value: Json): boolean => Array.isArray(value['enum']) && !('type' in value);

/** Keywords about the place of a schema, which may stand beside a reference. */
const annotations = ['description', 'default'] as const;

function withoutAnnotations(schema: Json): Json {
  const rest = { ...schema };
  for (const annotation of annotations) delete rest[annotation];
  return rest;
}

const annotationsOf = (schema: Json): Json =>
  Object.fromEntries(annotations.filter((name) => name in schema).map((name) => [name, schema[name]]));

function namesBy(named: Json, textFor: (schema: unknown) => string): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const [name, schema] of Object.entries(named)) {
    names.set(textFor(schema), [...(names.get(textFor(schema)) ?? []), name]);
  }
  return names;
}

/**
 * Copies count as what they are copied from: TypeBox copies a schema that becomes optional.
 * @throws Error if two names stand for the same schema
 */
export function referencesTo(named: Json): References {
  const byText = namesBy(named, textOf);
  const byRest = namesBy(named, (schema) => textOf(isValues(schema) ? withoutAnnotations(schema) : schema));
  for (const names of byText.values()) {
    if (names.length > 1) throw new Error(`${names.join(' and ')} are names of the same schema`);
  }
  const inside = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(refer);
    if (!isValues(value)) return value;
    const entries = Object.entries(value).map(([key, item]) => [key, refer(item)] as const);
    return Object.fromEntries(isEnumeration(value) ? [['type', 'string'], ...entries] : entries);
  };
  const refer = (value: unknown): unknown => {
    if (!isValues(value)) return inside(value);
    const [exact] = byText.get(textOf(value)) ?? [];
    if (exact !== undefined) return { $ref: `#/components/schemas/${exact}` };
    const [name, other] = byRest.get(textOf(withoutAnnotations(value))) ?? [];
    if (name === undefined || other !== undefined) return inside(value);
    return { $ref: `#/components/schemas/${name}`, ...annotationsOf(value) };
  };
  const schemas = Object.fromEntries(Object.entries(named).map(([name, schema]) => [name, inside(schema)]));
  return { refer, schemas };
}
