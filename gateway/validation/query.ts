/** Query parameters by the schemas of the route table. Pure. */
import type { FieldErrors } from '../../schemas/errors.ts';
import type { QueryValue, Route } from '../../schemas/routes.ts';
import type { Validated } from './faults.ts';

export type QueryValues = Readonly<Record<string, QueryValue | undefined>>;
export type QueryReader = (query: string) => Validated<QueryValues>;

/** The part of JSON Schema that the route table uses for parameters. */
interface ParameterSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}

type Read = { readonly ok: true; readonly value: QueryValue } | { readonly ok: false; readonly fault: string };

const integerText = /^-?\d{1,15}$/;

function readParameter(schema: ParameterSchema, text: string): Read {
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
      return schema.pattern === undefined || new RegExp(schema.pattern).test(text)
        ? { ok: true, value: text }
        : { ok: false, fault: `must match ${schema.pattern}` };
  }
}

/** Unknown parameters are ignored; if one comes twice, the first counts. */
export function queryReader(route: Pick<Route, 'query'>): QueryReader {
  const parameters = Object.entries(route.query ?? {});
  const fallbacks = Object.fromEntries(parameters.map(([name, { fallback }]) => [name, fallback]));
  const none: Validated<QueryValues> = { ok: true, value: fallbacks };
  return (query) => {
    if (query === '' || parameters.length === 0) return none;
    const given = new URLSearchParams(query);
    const values: Record<string, QueryValue | undefined> = { ...fallbacks };
    const faults: FieldErrors = {};
    for (const [name, { schema }] of parameters) {
      const text = given.get(name);
      if (text === null) continue;
      const read = readParameter(schema, text);
      if (read.ok) values[name] = read.value;
      else faults[name] = [read.fault];
    }
    return Object.keys(faults).length === 0 ? { ok: true, value: values } : { ok: false, faults };
  };
}
