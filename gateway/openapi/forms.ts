/**
 * Schemas in the forms that generators of clients read right. Maps are `additionalProperties` with
 * `propertyNames`, since some drop what `patternProperties` names. Fields of requests have no
 * `default`, which some take for "required". Schemas of answers are open: a later release may add
 * fields and values (docs/api-stability.md). Pure.
 */
import { isValues } from '../../lib/values.ts';
import type { Json } from './references.ts';

/** The use of a schema. `closed`: an answer of this very release, and no other. */
type Reading = 'asked' | 'parameter' | 'answered' | 'closed';

const prefix = '#/components/schemas/';
const nameIn = (ref: unknown): string | undefined =>
  typeof ref === 'string' && ref.startsWith(prefix) ? ref.slice(prefix.length) : undefined;

/** Keywords whose values are data, and no schemas. */
const dataWords: ReadonlySet<string> = new Set(['example', 'examples', 'const', 'enum', 'default', 'required']);

const anyName = '^.*$';

function asMap({ patternProperties, additionalProperties: _, ...rest }: Json): Json {
  const [[pattern, value] = [anyName, {}], ...others] = Object.entries(patternProperties as Json);
  if (others.length > 0) throw new Error(`a map has keys of several forms: ${pattern}`);
  return { ...rest, ...(pattern === anyName ? {} : { propertyNames: { pattern } }), additionalProperties: value };
}

function withoutDefault({ default: value, ...rest }: Json): Json {
  const { description = '' } = rest;
  const text = `${String(description)} Default: \`${JSON.stringify(value)}\`.`.trim();
  return /default/i.test(String(description)) ? rest : { ...rest, description: text };
}

const isOfTexts = (schema: Json): boolean =>
  Array.isArray(schema['enum']) && schema['enum'].every((item) => typeof item === 'string');

/** Any of these values, and those that a later release adds. */
const openEnumeration = ({ enum: values, type: _, ...rest }: Json): Json => ({
  ...rest,
  anyOf: [{ type: 'string', enum: values }, { type: 'string' }],
});

function rewritten(schema: Json, reading: Reading): Json {
  let made = schema;
  if (isValues(made['patternProperties'])) made = asMap(made);
  if (reading === 'asked' && 'default' in made) made = withoutDefault(made);
  if (reading !== 'answered') return made;
  if (isOfTexts(made)) made = openEnumeration(made);
  if (made['additionalProperties'] !== false) return made;
  const { additionalProperties: _, ...rest } = made;
  return rest;
}

/** @param rename of the named schemas that it refers to */
function mapped(value: unknown, reading: Reading, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => mapped(item, reading, rename));
  if (!isValues(value)) return value;
  const inside = Object.entries(value).map(([key, item]) => {
    if (dataWords.has(key) && !(key === 'required' && !Array.isArray(item))) return [key, item];
    const name = key === '$ref' ? nameIn(item) : undefined;
    if (name !== undefined) return [key, `${prefix}${rename(name)}`];
    // Names of fields are no keywords.
    if (key === 'properties' && isValues(item)) {
      const fields = Object.entries(item).map(([field, one]) => [field, mapped(one, reading, rename)]);
      return [key, Object.fromEntries(fields) as Json];
    }
    return [key, mapped(item, reading, rename)];
  });
  return rewritten(Object.fromEntries(inside) as Json, reading);
}

/** Names of schemas that a value refers to. */
function* namesIn(value: unknown): Generator<string, void, void> {
  if (Array.isArray(value)) for (const item of value) yield* namesIn(item);
  if (!isValues(value)) return;
  for (const [key, item] of Object.entries(value)) {
    const name = key === '$ref' ? nameIn(item) : undefined;
    if (name === undefined) yield* namesIn(item);
    else yield name;
  }
}

/** Names of those that a value refers to, and of those that these refer to. */
function reachable(from: unknown, schemas: Json): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (value: unknown): void => {
    for (const name of namesIn(value)) {
      if (found.has(name)) continue;
      found.add(name);
      visit(schemas[name]);
    }
  };
  visit(from);
  return found;
}

const textOf = (value: unknown): string => JSON.stringify(value);
const same = (name: string): string => name;

/** Of the schemas that requests and answers share: those that are not the same for both. */
function twoForms(shared: readonly string[], schemas: Json): ReadonlySet<string> {
  const isOther = (name: string): boolean =>
    textOf(mapped(schemas[name], 'asked', same)) !== textOf(mapped(schemas[name], 'answered', same));
  const found = new Set(shared.filter(isOther));
  for (let before = -1; before !== found.size;) {
    before = found.size;
    for (const name of shared) if ([...namesIn(schemas[name])].some((inside) => found.has(inside))) found.add(name);
  }
  return found;
}

interface Operation extends Json {
  readonly parameters?: unknown;
  readonly requestBody?: unknown;
  readonly responses?: unknown;
}

interface Parts {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly parameters: Json;
  readonly responses: Json;
  readonly schemas: Json;
}

/**
 * @param isClosed schemas of answers have the fields and values of this release alone: for clients
 *   of the same release, and for tests
 */
export function inForms({ paths, parameters, responses, schemas }: Parts, isClosed: boolean): Parts {
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  const asked = reachable(
    [operations.map(({ parameters, requestBody }) => [parameters, requestBody]), parameters],
    schemas,
  );
  const answered = reachable([operations.map(({ responses: of }) => of), responses], schemas);
  const shared = [...asked].filter((name) => answered.has(name));
  const split = isClosed ? new Set<string>() : twoForms(shared, schemas);
  const given = (name: string): string => (split.has(name) ? `${name}Input` : name);
  const shown: Reading = isClosed ? 'closed' : 'answered';
  const operationOf = (operation: Operation): Operation => ({
    ...operation,
    parameters: mapped(operation.parameters, 'parameter', given),
    ...(operation.requestBody === undefined ? {} : { requestBody: mapped(operation.requestBody, 'asked', given) }),
    responses: mapped(operation.responses, shown, same),
  });
  const each = <T, R>(of: Readonly<Record<string, T>>, make: (item: T) => R) =>
    Object.fromEntries(Object.entries(of).map(([key, item]) => [key, make(item)] as const));
  const named = Object.entries(schemas).flatMap(([name, schema]) => {
    const one = [name, mapped(schema, answered.has(name) ? shown : 'asked', answered.has(name) ? same : given)];
    return split.has(name) ? [one, [given(name), mapped(schema, 'asked', given)]] : [one];
  });
  return {
    paths: each(paths, (path) => each(path, operationOf)),
    parameters: mapped(parameters, 'parameter', given) as Json,
    responses: mapped(responses, shown, same) as Json,
    schemas: Object.fromEntries(named) as Json,
  };
}
