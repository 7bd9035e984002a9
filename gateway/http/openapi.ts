/** The route table as an OpenAPI 3.1 document. Pure. */
import {
  commonErrors,
  authErrors,
  pathParameters,
  scopeText,
  type OperatorScope,
  type Route,
} from '../../schemas/routes.ts';
import { errorStatus, quotaDimensions, successStatus, type ErrorCode } from '../../schemas/errors.ts';
import { cookieName } from '../auth/credentials.ts';

type Json = Readonly<Record<string, unknown>>;

const jsonContent = (schema: unknown): Json => ({ 'application/json': { schema } });

/** `/tenants/:tenant` → `/tenants/{tenant}` */
const templateOf = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}');

const parameterNames = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name]) => name ?? '');

const errorSchema = (code: ErrorCode): Json => {
  const named = { error: { const: code } };
  switch (code) {
    case 'over_quota':
      return {
        type: 'object',
        required: ['error', 'detail'],
        properties: {
          ...named,
          detail: {
            type: 'object',
            required: ['dimension', 'requested', 'max'],
            properties: {
              dimension: { enum: quotaDimensions },
              requested: { type: 'integer' },
              max: { type: 'integer' },
            },
          },
        },
      };
    case 'invalid':
      return {
        type: 'object',
        required: ['error', 'details'],
        properties: {
          ...named,
          details: {
            type: 'object',
            description: 'Faults by field; `_` is the body as a whole.',
            additionalProperties: { type: 'array', items: { type: 'string' } },
          },
        },
      };
    default:
      return { type: 'object', required: ['error'], properties: { ...named, message: { type: 'string' } } };
  }
};

const requestIdHeader: Json = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } };

const etagHeader: Json = { ETag: { schema: { type: 'string' } } };

function headersOf(status: number): Json {
  if (status === 429 || status === 503) return { ...requestIdHeader, 'Retry-After': { schema: { type: 'integer' } } };
  if (status === 405) return { ...requestIdHeader, Allow: { schema: { type: 'string' } } };
  return requestIdHeader;
}

/** One response for each status; two codes of one status (403) share it. */
function errorResponses(codes: readonly ErrorCode[]): Json {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set(codes)) {
    byStatus.set(errorStatus[code], [...(byStatus.get(errorStatus[code]) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => {
      const schemas = ofStatus.map((code) => ({ $ref: `#/components/schemas/Error_${code}` }));
      const [only] = schemas;
      return [
        String(status),
        {
          description: ofStatus.join(' or '),
          headers: headersOf(status),
          content: jsonContent(schemas.length === 1 ? only : { oneOf: schemas }),
        },
      ];
    }),
  );
}

function successResponse(route: Route): Json {
  const schema =
    route.bare === true
      ? route.data
      : {
          type: 'object',
          required: ['data'],
          properties: { data: route.data, ...route.beside },
        };
  const streamed = route.streams === true ? { 'text/event-stream': { schema: { type: 'string' } } } : {};
  const content =
    route.media === undefined
      ? { ...jsonContent(schema), ...streamed }
      : Object.fromEntries(route.media.map((type) => [type, { schema: route.data }]));
  return {
    [String(successStatus[route.success])]: {
      description: route.success,
      headers: route.tagged === true ? { ...requestIdHeader, ...etagHeader } : requestIdHeader,
      ...(route.success === 'no_content' ? {} : { content }),
    },
    ...(route.conditional === true
      ? { [String(successStatus.not_modified)]: { description: 'not_modified', headers: requestIdHeader } }
      : {}),
  };
}

function parametersOf(route: Route): Json[] {
  const inPath = parameterNames(route.path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: pathParameters[name as keyof typeof pathParameters],
  }));
  const inQuery = Object.entries(route.query ?? {}).map(([name, { schema, description, fallback }]) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: fallback === undefined ? schema : { ...schema, default: fallback },
  }));
  const resume = { name: 'Last-Event-ID', in: 'header', required: false, schema: { type: 'string' } };
  const idempotency = {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: 'A repeated key with the same body returns the same container for 24 hours.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  };
  const ifMatch = {
    name: 'If-Match',
    in: 'header',
    required: false,
    description: 'ETags: the change is made only while the container has one of them.',
    schema: { type: 'string' },
  };
  return [
    ...inPath,
    ...inQuery,
    ...(route.streams === true ? [resume] : []),
    ...(route.name === 'container.create' ? [idempotency] : []),
    ...(route.patches === true ? [ifMatch] : []),
  ];
}

/**
 * A token in the URL is a query parameter of its route (`token`), and takes the place of other
 * credentials.
 */
function securityOf({ access }: Route): Json {
  switch (access) {
    case 'public':
      return { security: [] };
    case 'download':
      return { security: [{ bearer: [] }, { cookie: [] }, { url_token: [] }] };
    case 'pac':
      return { security: [{ url_token: [] }] };
    case 'tenant':
    case 'operator':
      return {};
  }
}

const tagOf = ({ access }: Route): string => (access === 'download' || access === 'pac' ? 'file' : access);

const scopesText = (scopes: readonly OperatorScope[]): string =>
  `Scope: ${(['operator', ...scopes] as const).map(scopeText).join(', ')}.`;

function bodyOf({ body, patches }: Route): Json {
  if (body === undefined) return {};
  const content = jsonContent(body);
  const patch = patches === true ? { 'application/merge-patch+json': { schema: body } } : {};
  return { requestBody: { required: true, content: { ...content, ...patch } } };
}

function operationOf(route: Route): Json {
  const codes = [...route.errors, ...commonErrors, ...(route.access === 'public' ? [] : authErrors)];
  return {
    operationId: route.name.replaceAll('.', '_'),
    summary: route.summary,
    ...(route.scopes === undefined ? {} : { description: scopesText(route.scopes) }),
    tags: [tagOf(route)],
    ...securityOf(route),
    parameters: parametersOf(route),
    ...bodyOf(route),
    responses: { ...successResponse(route), ...errorResponses(codes) },
  };
}

export function openApiDocument(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    (paths[templateOf(route.path)] ??= {})[route.method.toLowerCase()] = operationOf(route);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Longshore',
      version,
      description: 'Containers of many tenants on a fleet of hosts. The tenant is the token’s, never the body’s.',
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { cookie: [] }],
    tags: [
      { name: 'tenant', description: 'With a tenant’s token.' },
      { name: 'operator', description: 'With a token that has a scope of the operator.' },
      { name: 'file', description: 'With a tenant’s token, or with a token of the peer in the URL.' },
      { name: 'public', description: 'Without credentials.' },
    ],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        cookie: { type: 'apiKey', in: 'cookie', name: cookieName },
        url_token: { type: 'apiKey', in: 'query', name: 'token' },
      },
      headers: {
        RequestId: { description: 'The id of this request, in every log line about it.', schema: { type: 'string' } },
      },
      schemas: Object.fromEntries(
        (Object.keys(errorStatus) as ErrorCode[]).map((code) => [`Error_${code}`, errorSchema(code)]),
      ),
    },
  };
}
