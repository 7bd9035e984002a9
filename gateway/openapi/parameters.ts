/** Parameters of routes as components of the OpenAPI document. Pure. */
import { isConditional, isRepeatable, pathParameters, type Route } from '../../schemas/routes.ts';
import type { Json } from './references.ts';

export interface Parameter extends Json {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
}

const inPath = ({ path }: Route): Parameter[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: pathParameters[name as keyof typeof pathParameters],
  }));

const inQuery = ({ query = {} }: Route): Parameter[] =>
  Object.entries(query).map(([name, { schema, description, fallback, required = false }]) => ({
    name,
    in: 'query',
    required,
    description,
    schema: fallback === undefined ? schema : { ...schema, default: fallback },
  }));

const inHeader = (name: string, description: string, schema: Json = { type: 'string' }): Parameter => ({
  name,
  in: 'header',
  required: false,
  description,
  schema,
});

const resume = inHeader('Last-Event-ID', 'Of a stream: the `id` of the last frame that was received.');
const idempotency = inHeader(
  'Idempotency-Key',
  'For 24 hours, the same request with the same key gets the answer of the first one, and changes nothing. An answer that shows a secret is given again only to the same token, and ends with what it is of.',
  { type: 'string', minLength: 1, maxLength: 255 },
);
const ifMatch = inHeader('If-Match', 'ETags: 412 unless the resource has one of them; `*`: unless there is one.');
const ifNone = inHeader('If-None-Match', 'ETags: 412 if the resource has one of them; `*`: if there is one.');
const ifChanged = inHeader('If-None-Match', 'ETags: 304 if the answer still has one of them.');

/** Those that `If-Match` can name nothing for do without it. */
const conditionsOf = (route: Route): Parameter[] => {
  if (route.method === 'GET') return route.conditional === true ? [ifChanged] : [];
  return isConditional(route) && route.withoutPrior !== true ? [ifMatch, ifNone] : [];
};

export const parametersOf = (route: Route): Parameter[] => [
  ...inPath(route),
  ...inQuery(route),
  ...(route.streams === 'resumable' ? [resume] : []),
  ...(isRepeatable(route) ? [idempotency] : []),
  ...conditionsOf(route),
];

const keyOf = (parameter: Parameter): string => `${parameter.in}.${parameter.name}`;

/** Those that several routes have, and that mean the same in all of them; by `<place>.<name>`. */
export function sharedParameters(routes: readonly Route[]): ReadonlyMap<string, Parameter> {
  const all = new Map<string, Parameter[]>();
  for (const parameter of routes.flatMap(parametersOf)) {
    all.set(keyOf(parameter), [...(all.get(keyOf(parameter)) ?? []), parameter]);
  }
  const isShared = (same: readonly Parameter[]): boolean =>
    same.length > 1 && new Set(same.map((parameter) => JSON.stringify(parameter))).size === 1;
  return new Map([...all].flatMap(([key, same]) => (isShared(same) && same[0] ? [[key, same[0]] as const] : [])));
}

export const referenceTo = (shared: ReadonlyMap<string, Parameter>, parameter: Parameter): Json =>
  shared.has(keyOf(parameter)) ? { $ref: `#/components/parameters/${keyOf(parameter)}` } : parameter;
