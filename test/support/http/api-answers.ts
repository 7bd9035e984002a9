/**
 * Holds answers of the API against its OpenAPI document: status, headers, content type and body.
 */
import { Compile } from 'typebox/schema';
import { openApiDocument } from '../../../gateway/openapi/document.ts';
import { errorStatus } from '../../../schemas/errors.ts';
import { routes } from '../../../schemas/routes.ts';

type Schema = Readonly<Record<string, unknown>>;
interface Header {
  readonly $ref?: string;
  readonly required?: boolean;
  readonly schema?: Schema;
}
interface Response {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}
type Operation = { readonly responses: Readonly<Record<string, Response>> };

const document = JSON.parse(JSON.stringify(openApiDocument(routes, '0.0.0', true))) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};

export interface Answered {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Headers of HTTP that say nothing about the API. */
const plainHeaders = new Set([
  'cache-control',
  'connection',
  'content-length',
  'content-security-policy',
  'content-type',
  'date',
  'keep-alive',
  'referrer-policy',
  'transfer-encoding',
  // The engine’s name for itself.
  'uwebsockets',
  'x-accel-buffering',
  'x-content-type-options',
]);

function resolve<T extends { readonly $ref?: string }>(value: T): T {
  const [, kind = '', name = ''] = /^#\/components\/(\w+)\/(.+)$/.exec(value.$ref ?? '') ?? [];
  return (document.components[kind]?.[name] as T | undefined) ?? value;
}

const segmentsOf = (path: string): string[] => path.replace(/\/$/, '').split('/');
const isParameter = (segment: string): boolean => segment.startsWith('{');
const templates = Object.keys(document.paths)
  .map((template) => ({ template, segments: segmentsOf(template) }))
  // `/quota` before `/{id}`
  .sort((one, other) => one.segments.filter(isParameter).length - other.segments.filter(isParameter).length);

/** A HEAD of what acts is another method, and not a GET without its body. */
const acting = new Set(routes.flatMap((route) => ('acts' in route ? [route.path.replaceAll(/:(\w+)/g, '{$1}')] : [])));

function operationOf(method: string, path: string): Operation | undefined {
  const given = segmentsOf(path.replace(/\?.*$/, ''));
  const found = templates.find(
    ({ segments }) =>
      segments.length === given.length &&
      segments.every((segment, index) => (isParameter(segment) ? given[index] !== '' : segment === given[index])),
  );
  if (found === undefined || (method === 'HEAD' && acting.has(found.template))) return undefined;
  return document.paths[found.template]?.[method === 'HEAD' ? 'get' : method.toLowerCase()];
}

const checks = new Map<string, ReturnType<typeof Compile>>();

/** Compiled once for each text of a schema; references lead into the components. */
function checkOf(schema: Schema): ReturnType<typeof Compile> {
  const text = JSON.stringify(schema);
  let check = checks.get(text);
  if (check === undefined) checks.set(text, (check = Compile({ components: document.components, ...schema })));
  return check;
}

function valueFaults(schema: Schema, value: unknown): string[] {
  const check = checkOf(schema);
  if (check.Check(value)) return [];
  const [, errors] = check.Errors(value);
  return errors.map(({ instancePath, message }) => `body${instancePath}: ${message}`);
}

function bodyFaults(schema: Schema, text: string): string[] {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return [`the body is not JSON: ${text.slice(0, 100)}`];
  }
  return valueFaults(schema, body);
}

function headerFaults(documented: Readonly<Record<string, Header>>, headers: Headers): string[] {
  const known = new Map(Object.entries(documented).map(([name, header]) => [name.toLowerCase(), resolve(header)]));
  const lacking = [...known].filter(([name, { required }]) => required === true && !headers.has(name));
  const unknown = [...headers.keys()].filter((name) => !known.has(name) && !plainHeaders.has(name));
  const wrong = [...known].filter(([name, { schema }]) => {
    const value = headers.get(name);
    return value !== null && schema?.['type'] === 'integer' && !/^\d+$/.test(value);
  });
  return [
    ...lacking.map(([name]) => `the header ${name} is missing`),
    ...unknown.map((name) => `the header ${name} is not documented`),
    ...wrong.map(([name]) => `the header ${name} is no integer`),
  ];
}

/** The documented answer to an unknown path or method: an error with a code of its own. */
const strangerOf = (status: number): Response => {
  const codes = Object.entries(errorStatus).filter(([, of]) => of === status);
  const named = Object.entries(document.components['schemas'] ?? {}).filter(([, schema]) =>
    codes.some(([code]) => JSON.stringify(schema).includes(`{"error":{"const":"${code}"}`)),
  );
  return {
    headers: {
      'X-Request-Id': { $ref: '#/components/headers/RequestId' },
      'Longshore-Version': { $ref: '#/components/headers/Version' },
      'RateLimit-Policy': { $ref: '#/components/headers/RateLimitPolicy' },
      RateLimit: { $ref: '#/components/headers/RateLimit' },
      ...(status === 401 ? { 'WWW-Authenticate': { $ref: '#/components/headers/Challenge' } } : {}),
      ...(status === 405 ? { Allow: { $ref: '#/components/headers/Allow' } } : {}),
      ...(status === 429 || status === 503 ? { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } : {}),
    },
    content: {
      'application/json': {
        schema: { oneOf: named.map(([name]) => ({ $ref: `#/components/schemas/${name}` })) },
      },
    },
  };
};

const optionsHeaders = strangerOf(errorStatus.method_not_allowed).headers ?? {};

/** Differences between an answer and the document. */
export function faultsOf({ method, path, status, headers, text }: Answered): string[] {
  // Every path has it, so the document lists it nowhere.
  if (method === 'OPTIONS' && status === 204) return headerFaults(optionsHeaders, headers);
  const operation = operationOf(method, path);
  if (operation === undefined && status < 400) return [`the document has no ${method} ${path}`];
  const documented = operation === undefined ? strangerOf(status) : operation.responses[String(status)];
  if (documented === undefined) return [`the status ${status} is not documented`];
  const { headers: documentedHeaders = {}, content } = resolve(documented);
  const faults = headerFaults(documentedHeaders, headers);
  if (content === undefined) return text === '' ? faults : [...faults, `the body is not empty: ${text.slice(0, 100)}`];
  const type = headers.get('content-type') ?? 'none';
  const media = content[type];
  if (media === undefined) return [...faults, `the content type ${type} is not documented`];
  return method === 'HEAD' || type !== 'application/json' ? faults : [...faults, ...bodyFaults(media.schema, text)];
}

/** @throws Error if the value is not what the document says of the component */
export function holdToComponent(name: string, value: unknown): void {
  const faults = valueFaults({ $ref: `#/components/schemas/${name}` }, value);
  if (faults.length > 0) throw new Error(`${name} ${JSON.stringify(value).slice(0, 300)}\n  ${faults.join('\n  ')}`);
}

/** @throws Error that names the request and every fault */
export function holdToDocument(answered: Answered): void {
  const faults = faultsOf(answered);
  if (faults.length === 0) return;
  const { method, path, status, text } = answered;
  throw new Error(`${method} ${path}: ${status} ${text.slice(0, 300)}\n  ${faults.join('\n  ')}`);
}
