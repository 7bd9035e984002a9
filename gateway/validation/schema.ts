/**
 * Queries and bodies against the schemas of the route table, with words of our own: a library's
 * words change with the library. The create body has a file of its own (container.ts).
 */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import type { QueryParameter, Route } from '../../schemas/routes.ts';
import type { Validated } from './container.ts';

// Eight by default; a body may be wrong in more places than that, and all are reported.
Settings.Set({ maxErrors: limits.decodeErrors });

export type QueryValues = Readonly<Record<string, string | number | boolean | undefined>>;
export type QueryReader = (query: string) => Validated<QueryValues>;

/** What a parameter's schema says, as far as the route table uses JSON Schema. */
interface ParameterSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: string | number | boolean;
}

type Taken =
  { readonly ok: true; readonly value: string | number | boolean } | { readonly ok: false; readonly fault: string };

const integerText = /^-?\d{1,15}$/;

function takeParameter(schema: ParameterSchema, text: string): Taken {
  const { minimum = -Infinity, maximum = Infinity } = schema;
  if (schema.enum !== undefined) {
    return schema.enum.includes(text)
      ? { ok: true, value: text }
      : { ok: false, fault: `must be one of ${schema.enum.join(', ')}` };
  }
  switch (schema.type) {
    case 'integer': {
      const value = Number(text);
      return integerText.test(text) && value >= minimum && value <= maximum
        ? { ok: true, value }
        : { ok: false, fault: `must be an integer from ${minimum} to ${maximum}` };
    }
    case 'boolean':
      return text === 'true' || text === 'false'
        ? { ok: true, value: text === 'true' }
        : { ok: false, fault: 'must be true or false' };
    default:
      return { ok: true, value: text };
  }
}

/**
 * Parameters that the route does not know are ignored; of one that comes twice the first counts.
 */
export function queryReader(route: Route): QueryReader {
  const parameters = Object.entries(route.query ?? {}).map(
    ([name, { schema }]: [string, QueryParameter]) => [name, schema as ParameterSchema] as const,
  );
  const defaults = Object.fromEntries(parameters.map(([name, schema]) => [name, schema.default]));
  const none: Validated<QueryValues> = { ok: true, value: defaults };
  return (query) => {
    if (query === '' || parameters.length === 0) return none;
    const given = new URLSearchParams(query);
    const values: Record<string, string | number | boolean | undefined> = { ...defaults };
    const faults: FieldErrors = {};
    for (const [name, schema] of parameters) {
      const text = given.get(name);
      if (text === null) continue;
      const taken = takeParameter(schema, text);
      if (taken.ok) values[name] = taken.value;
      else faults[name] = [taken.fault];
    }
    return Object.keys(faults).length === 0 ? { ok: true, value: values } : { ok: false, faults };
  };
}

type SchemaError = ReturnType<ReturnType<typeof Compile>['Errors']>[number];

const typeWords: Readonly<Record<string, string>> = {
  string: 'must be a string',
  integer: 'must be an integer',
  number: 'must be a number',
  boolean: 'must be true or false',
  array: 'must be a list',
  object: 'must be an object',
};

/**
 * `/region_caps/eu/containers` → `region_caps.eu.containers`; JSON Pointer's own escapes undone
 * (RFC 6901).
 */
const fieldOf = (pointer: string, ...below: string[]): string =>
  [
    ...pointer
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
    ...below,
  ].join('.') || '_';

const listed = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/**
 * The fields that an error is about and what to say of them; none where another error says it
 * better.
 */
function wordsOf(error: SchemaError): readonly (readonly [field: string, message: string])[] {
  const { keyword, instancePath } = error;
  const params = error.params as Readonly<Record<string, unknown>>;
  const here = (message: string): [[string, string]] => [[fieldOf(instancePath), message]];
  switch (keyword) {
    case 'required':
      return listed(params['requiredProperties']).map((name) => [fieldOf(instancePath, name), "can't be blank"]);
    case 'additionalProperties':
      return listed(params['additionalProperties']).map((name) => [fieldOf(instancePath, name), 'is not known']);
    case 'type':
      // The other branch of "or null".
      return params['type'] === 'null' ? [] : here(typeWords[String(params['type'])] ?? 'is invalid');
    case 'pattern':
    case 'format':
      return here('has invalid format');
    case 'enum':
      return here(`must be one of ${listed(params['allowedValues']).join(', ')}`);
    case 'minimum':
      return here(`must be at least ${String(params['limit'])}`);
    case 'maximum':
      return here(`must be at most ${String(params['limit'])}`);
    case 'minLength':
    case 'minItems':
      return here("can't be blank");
    case 'maxLength':
      return here(`must be at most ${String(params['limit'])} characters`);
    case 'maxItems':
      return here(`must be at most ${String(params['limit'])} items`);
    case 'maxProperties':
      return here(`must be at most ${String(params['limit'])} keys`);
    case 'uniqueItems':
      return here('must be distinct');
    case 'anyOf':
    case 'boolean':
      return [];
    default:
      return here('is invalid');
  }
}

/** What of JSON Schema a body's lists and maps are found by. */
interface ListSchema {
  readonly uniqueItems?: boolean;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly anyOf?: readonly ListSchema[];
  readonly properties?: Readonly<Record<string, ListSchema>>;
}

/**
 * The body with its lists and maps no longer than it takes to see that they are too long, and no
 * more unknown keys than are told of. To tell the faults of a list takes the square of its length
 * (typebox on `uniqueItems`), and half a MiB of equal items would hold up everybody for minutes; a
 * thousand unknown keys are told no better than a few. To compare items it goes as deep as they do;
 * those of ours are plain, and whatever is not is as wrong as `null`.
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

const depthOf = (field: string): number => field.split('.').length;

/**
 * Faults up to a bound, of the outer fields first: that a list is too long says more than each of
 * its items. Fields are named by what fits on a line, for a name may be the whole body.
 */
function toldFaults(found: readonly (readonly [field: string, message: string])[]): FieldErrors {
  const faults = new Map<string, Set<string>>();
  for (const [field, message] of found.toSorted(([one], [other]) => depthOf(one) - depthOf(other))) {
    const name = field.length > limits.faultFieldChars ? `${field.slice(0, limits.faultFieldChars)}…` : field;
    if (faults.size >= limits.bodyFaults && !faults.has(name)) continue;
    faults.set(name, (faults.get(name) ?? new Set()).add(message));
  }
  if (faults.size === 0) faults.set('_', new Set(['is invalid']));
  return Object.fromEntries([...faults].map(([field, messages]) => [field, [...messages]]));
}

/** A validator for bodies of one schema; faults at once, up to `limits.bodyFaults` fields. */
export function bodyValidator<S extends TSchema>(schema: S): (body: unknown) => Validated<Static<S>> {
  const compiled = Compile(schema);
  return (body) => {
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      return { ok: false, faults: { _: ['must be an object'] } };
    }
    if (compiled.Check(body)) return { ok: true, value: body };
    return { ok: false, faults: toldFaults(compiled.Errors(shortened(schema as ListSchema, body)).flatMap(wordsOf)) };
  };
}
