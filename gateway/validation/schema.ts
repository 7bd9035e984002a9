/** Bodies by the schemas of the route table. Pure. */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { Check } from 'typebox/value';
import { limits } from '../../schemas/limits.ts';
import { fieldErrors, type Validated } from './faults.ts';

// typebox reports eight errors by default; a body may have more, and all are reported.
Settings.Set({ maxErrors: limits.decodeErrors });

/** The part of JSON Schema that says where a body's lists and maps are. */
interface ListSchema {
  readonly uniqueItems?: boolean;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly anyOf?: readonly ListSchema[];
  readonly properties?: Readonly<Record<string, ListSchema>>;
}

/**
 * The body, with each list and map cut one item after its bound. typebox needs time in the square
 * of a list's length to report on `uniqueItems`, and compares items to their full depth: half a MiB
 * of equal items would block the process for minutes. The items of our unique lists are not
 * objects, so replacing an object among them by `null` leaves it just as wrong.
 */
function shortened(schema: ListSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = [schema, ...(schema.anyOf ?? [])].find(({ maxItems }) => maxItems !== undefined);
    const items: unknown[] = list?.maxItems === undefined ? value : value.slice(0, list.maxItems + 1);
    return list?.uniqueItems === true ? items.map((item) => (typeof item === 'object' ? null : item)) : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const branches = [schema, ...(schema.anyOf ?? [])];
  const { properties } = branches.find((one) => one.properties !== undefined) ?? {};
  const { maxProperties = limits.bodyFaults } = branches.find((one) => one.maxProperties !== undefined) ?? {};
  const short: [string, unknown][] = [];
  let others = 0;
  for (const [key, item] of Object.entries(value) as [string, unknown][]) {
    const inner = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (inner !== undefined) short.push([key, shortened(inner, item)]);
    else if (others++ <= maxProperties) short.push([key, item]);
  }
  return Object.fromEntries(short);
}

/**
 * A validator for bodies of one schema; reports the faults of `limits.bodyFaults` fields at most.
 */
export function bodyValidator<S extends TSchema>(schema: S): (body: unknown) => Validated<Static<S>> {
  const compiled = Compile(schema);
  return (body) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      return { ok: false, faults: { _: ['must be an object'] } };
    }
    if (compiled.Check(body)) return { ok: true, value: body };
    return { ok: false, faults: fieldErrors(compiled.Errors(shortened(schema, body))) };
  };
}

/**
 * The default of a field, which is written in the schema alone, where OpenAPI shows it too.
 * @throws if the schema has none, or does not accept its own
 */
export function defaultOf<S extends TSchema>(schema: S): Static<S> {
  const value: unknown = 'default' in schema ? schema.default : undefined;
  if (Check(schema, value)) return value;
  throw new Error(`a default is missing or wrong: ${JSON.stringify(schema)}`);
}
