/** Query parameters by the schemas of the route table. Pure. */
import { meant } from '../../lib/validation/misspelt.ts';
import { limits } from '../../schemas/limits.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import type { QueryParameter, QueryValue, Route } from '../../schemas/routes.ts';
import type { Validated } from './faults.ts';

/** Query parameters that a warning names. */
const parametersNamed = 8;

export type QueryValues = Readonly<Record<string, QueryValue | undefined>>;
export type QueryReader = (query: string) => Validated<QueryValues>;

/** The part of JSON Schema that the route table uses for parameters. */
interface ParameterSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly maxItems?: number;
  readonly items?: ParameterSchema;
}

type Read = { readonly ok: true; readonly value: QueryValue } | { readonly ok: false; readonly fault: string };

const integerText = /^-?\d{1,15}$/;

function readText({ enum: words, maxLength = Infinity, pattern }: ParameterSchema, text: string, form?: string): Read {
  if (words !== undefined && !words.includes(text)) return { ok: false, fault: `must be one of ${words.join(', ')}` };
  if (text.length > maxLength) return { ok: false, fault: `must have at most ${maxLength} characters` };
  if (text.includes('\0')) return { ok: false, fault: 'must not have a NUL' };
  return pattern === undefined || new RegExp(pattern).test(text)
    ? { ok: true, value: text }
    : { ok: false, fault: form === undefined ? `must match ${pattern}` : `must be ${form}` };
}

function readTexts(
  { maxItems = Infinity, items = {} }: ParameterSchema,
  texts: readonly string[],
  form?: string,
): Read {
  if (texts.length > maxItems) return { ok: false, fault: `must come at most ${maxItems} times` };
  const wrong = texts.map((text) => readOne(items, text, form)).find((read) => !read.ok);
  return wrong ?? { ok: true, value: texts };
}

function readParameter({ schema, form }: QueryParameter, texts: readonly [string, ...string[]]): Read {
  // Safe: the table has schemas of this part alone.
  const known = schema as ParameterSchema;
  return known.type === 'array' ? readTexts(known, texts, form) : readOne(known, texts[0], form);
}

function readOne(known: ParameterSchema, text: string, form?: string): Read {
  const { minimum = -Infinity, maximum = Infinity } = known;
  switch (known.type) {
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
      return readText(known, text, form);
  }
}

/** Any other name could not stand in a header as it is. */
const plainName = /^[\w-]{1,40}$/;

/** Faults by name: the route has no such parameter, or it came twice and is no list. */
function strangersIn(given: URLSearchParams, parameters: Readonly<Record<string, QueryParameter>>): FieldErrors {
  const known = Object.keys(parameters);
  const isList = (name: string): boolean => (parameters[name]?.schema as ParameterSchema).type === 'array';
  // A query may name fields that every object inherits, such as `constructor`.
  const faults = Object.create(null) as FieldErrors;
  for (const name of [...new Set(given.keys())].slice(0, limits.bodyFaults)) {
    const near = plainName.test(name) ? meant(name, known) : undefined;
    const shown = name.slice(0, limits.faultFieldChars);
    if (!Object.hasOwn(parameters, name))
      faults[shown] = [`is no parameter of this route${near === undefined ? '' : `: did you mean "${near}"?`}`];
    else if (!isList(name) && given.getAll(name).length > 1) faults[shown] = ['must be given only once'];
  }
  return faults;
}

/** The value of `Longshore-Warning`; `undefined` if nothing is wrong. */
function warningOf(strangers: FieldErrors): string | undefined {
  const named = Object.entries(strangers).filter(([name]) => plainName.test(name));
  const words = named.slice(0, parametersNamed).map(([name, [fault = '']]) => `"${name}" ${fault}`);
  return words.length === 0 ? undefined : words.join('; ');
}

/**
 * Parameters that the route does not have, or that come twice and are no list, are faults, because
 * a filter that is overlooked makes another list. Where the owner of the API has fixed the answers
 * they are a warning, and the first of several counts.
 */
export function queryReader(route: Pick<Route, 'query' | 'ignores'>): QueryReader {
  const table = route.query ?? {};
  const parameters = Object.entries(table);
  const fallbacks = Object.fromEntries(parameters.map(([name, { fallback }]) => [name, fallback]));
  const none: Validated<QueryValues> = { ok: true, value: fallbacks };
  const needsAny = parameters.some(([, { required }]) => required === true);
  return (query) => {
    if (query === '' && !needsAny) return none;
    const given = new URLSearchParams(query);
    const values: Record<string, QueryValue | undefined> = { ...fallbacks };
    const strangers = route.ignores === 'all' ? {} : strangersIn(given, table);
    const faults = route.ignores === undefined ? strangers : (Object.create(null) as FieldErrors);
    for (const [name, parameter] of parameters) {
      if (name in faults) continue;
      const [first, ...others] = given.getAll(name);
      if (first === undefined) {
        if (parameter.required === true) faults[name] = ['is required'];
        continue;
      }
      const read = readParameter(parameter, [first, ...others]);
      if (read.ok) values[name] = read.value;
      else faults[name] = [read.fault];
    }
    if (Object.keys(faults).length > 0) return { ok: false, faults };
    const warning = route.ignores === undefined ? undefined : warningOf(strangers);
    return { ok: true, value: values, ...(warning === undefined ? {} : { warning }) };
  };
}
