/** The route table as an OpenAPI 3.1 document. Pure. */
import { components } from '../../schemas/components.ts';
import { errorsOf, eventStream, type Route } from '../../schemas/routes.ts';
import { scopeText } from '../../schemas/scopes.ts';
import { successStatus, type SuccessCode } from '../../schemas/errors.ts';
import { cookieName } from '../auth/credentials.ts';
import { errorResponses, errorSchemas, rateHeaders, type ErrorResponses } from './errors.ts';
import { withExamples } from './examples.ts';
import { inForms } from './forms.ts';
import { parametersOf, referenceTo, sharedParameters, type Parameter } from './parameters.ts';
import { referencesTo, type Json, type References } from './references.ts';

/** `/tenants/:tenant` → `/tenants/{tenant}` */
const templateOf = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}');

const header = (name: string): Json => ({ $ref: `#/components/headers/${name}` });

const headers = {
  RequestId: {
    description: 'The id of this request, in every log line about it.',
    required: true,
    schema: { type: 'string' },
  },
  ETag: {
    description: 'Stands for all that is declared of the resource, or for the file.',
    required: true,
    schema: { type: 'string' },
  },
  RetryAfter: { description: 'Seconds to wait.', required: true, schema: { type: 'integer', minimum: 1 } },
  Allow: { description: 'The methods of this path.', required: true, schema: { type: 'string' } },
  Warning: {
    description:
      'Names keys of the body that are ignored and look misspelt, and query parameters that are ignored; absent if there are none.',
    schema: { type: 'string' },
  },
  Location: {
    description: 'URL of the next step, or of the new resource.',
    required: true,
    schema: { type: 'string' },
  },
  Version: { description: 'The release of the gateway that answers.', required: true, schema: { type: 'string' } },
  Generation: {
    description:
      'Generation of the container after the write, for `GET /:id/wait?until=settled&generation=`; absent during an upgrade.',
    schema: { type: 'integer' },
  },
  RateLimitPolicy: {
    description: 'Requests of the tenant (`q`) in how many seconds (`w`); absent before the tenant is known.',
    schema: { type: 'string' },
  },
  RateLimit: {
    description: 'Requests that have room now (`r`), and seconds until all have (`t`), as this gateway sees it.',
    schema: { type: 'string' },
  },
  Challenge: { description: '`Bearer`, whatever is wrong.', required: true, schema: { type: 'string' } },
  SetCookie: { description: 'Of the session, or of a step of the sign-in.', schema: { type: 'string' } },
  ContentDisposition: { description: 'The name for the file; absent if it is shown.', schema: { type: 'string' } },
} as const satisfies Readonly<Record<string, Json>>;

function successHeaders(route: Route, code: SuccessCode): Json {
  return {
    'X-Request-Id': header('RequestId'),
    'Longshore-Version': header('Version'),
    ...(route.access === 'public' ? {} : rateHeaders),
    ...(route.tagged === true || route.conditional === true ? { ETag: header('ETag') } : {}),
    ...(route.warns === true || route.ignores === 'named' ? { 'Longshore-Warning': header('Warning') } : {}),
    ...(route.generates === true ? { 'Longshore-Generation': header('Generation') } : {}),
    ...(hasLocation(route, code) ? { Location: header('Location') } : {}),
    ...(route.forPeople === true ? { 'Set-Cookie': header('SetCookie') } : {}),
    ...(route.access === 'download' ? { 'Content-Disposition': header('ContentDisposition') } : {}),
  };
}

const hasLocation = ({ method, made }: Route, code: SuccessCode): boolean =>
  code === 'see_other' || (code === 'created' && (made !== undefined || method === 'PUT'));

/** The schema of a route's answer in one of its media types. */
function fileSchema({ data }: Route, media: string): unknown {
  if (media === 'application/json') return data;
  return media === eventStream ? framesOf(data) : { type: 'string' };
}

/**
 * OpenAPI 3.1 has no schema of a stream's items, so it stands where JSON Schema has that of a text.
 */
const framesOf = (frame: unknown): Json => ({
  type: 'string',
  description: 'Server-Sent Events. `data` of a frame is JSON.',
  contentMediaType: eventStream,
  contentSchema: { type: 'array', items: frame },
});

const framesElsewhere: Json = { type: 'string', description: 'Server-Sent Events, as of `/stream` below this path.' };

const objectOf = (properties: Json, required: readonly string[]): Json => ({
  type: 'object',
  required,
  properties,
  additionalProperties: false,
});

function contentOf(route: Route): Json {
  if (route.media !== undefined) {
    return Object.fromEntries(route.media.map((media) => [media, { schema: fileSchema(route, media) }]));
  }
  const wrapped = objectOf({ data: route.data, ...route.beside }, ['data']);
  return {
    'application/json': { schema: route.bare === true ? route.data : wrapped },
    ...(route.streams === undefined ? {} : { [eventStream]: { schema: framesElsewhere } }),
  };
}

const successWords = {
  switching_protocols: 'The connection goes on as a WebSocket.',
  ok: 'Done.',
  created: 'Created.',
  accepted: 'Accepted; it is done soon.',
  no_content: 'Done; the answer has no body.',
  see_other: 'Done; it goes on at another page.',
  not_modified: 'The answer is as `If-None-Match` says.',
} as const satisfies Readonly<Record<keyof typeof successStatus, string>>;

const isBodiless = ({ success }: Route): boolean =>
  success === 'no_content' || success === 'see_other' || success === 'switching_protocols';

const planned = (plans: Json): Json => ({
  description: 'With `dry_run=true`: what would be.',
  headers: { 'X-Request-Id': header('RequestId'), 'Longshore-Version': header('Version'), ...rateHeaders },
  content: { 'application/json': { schema: objectOf(plans, Object.keys(plans)) } },
});

/** Its success, and what else it may answer without an error. */
const successesOf = (route: Route): readonly SuccessCode[] => [
  route.success,
  ...(route.makes === true ? (['created'] as const) : []),
  ...(route.conditional === true ? (['not_modified'] as const) : []),
];

function successResponse(route: Route): Json {
  const responses = successesOf(route).map((code) => {
    const answer = { description: successWords[code], headers: successHeaders(route, code) };
    const hasContent = !isBodiless(route) && code !== 'not_modified';
    return [String(successStatus[code]), hasContent ? { ...answer, content: contentOf(route) } : answer] as const;
  });
  const plan = route.plans === undefined ? [] : [[String(successStatus.ok), planned(route.plans)] as const];
  return Object.fromEntries([...responses, ...plan]);
}

/** The scopes that open a route to a token that has scopes, as they are displayed. */
const openedBy = ({ access, scopes }: Route): readonly string[] => [
  ...(scopes ?? []).map(scopeText),
  ...(access === 'public' || access === 'pac' ? [] : ['operator']),
];

/** A token in the header or in the cookie, with any one of the scopes. */
const sessions = (route: Route): Json[] =>
  openedBy(route).flatMap((scope) => [{ bearer: [scope] }, { cookie: [scope] }]);

/**
 * A token in the URL is a query parameter of its route (`token`), and takes the place of other
 * credentials.
 */
function securityOf(route: Route): readonly Json[] {
  switch (route.access) {
    case 'public':
      return [];
    case 'download':
      return [...sessions(route), { url_token: [] }];
    case 'pac':
      return [{ url_token: [] }];
    case 'tenant':
    case 'operator':
      return sessions(route);
  }
}

const tagOf = ({ access }: Route): string => (access === 'download' || access === 'pac' ? 'file' : access);

function scopesText(route: Route): Json {
  const scopes = openedBy(route).join(', ');
  const or = route.access === 'operator' ? '' : '; or a token without any scope';
  return scopes === '' ? {} : { description: `Scope: ${scopes}${or}.` };
}

function bodyOf({ body, patches }: Route): Json {
  if (body === undefined) return {};
  const patch = patches === true ? { 'application/merge-patch+json': { schema: body } } : {};
  return { requestBody: { required: true, content: { 'application/json': { schema: body }, ...patch } } };
}

interface Shared {
  readonly parameters: ReadonlyMap<string, Parameter>;
  readonly errors: ErrorResponses;
}

function operationOf(route: Route, { parameters, errors }: Shared): Json {
  return {
    operationId: route.name.replaceAll('.', '_'),
    summary: route.summary,
    ...scopesText(route),
    tags: [tagOf(route)],
    security: securityOf(route),
    parameters: parametersOf(route).map((parameter) => referenceTo(parameters, parameter)),
    ...bodyOf(route),
    responses: { ...successResponse(route), ...errors.of(errorsOf(route), route.forPeople === true ? 'page' : 'json') },
  };
}

const description =
  'Containers of many tenants on a fleet of hosts. The tenant is the token’s, never the body’s. ' +
  'Beside the methods listed, every path answers OPTIONS with 204 and `Allow`, and a path with GET answers HEAD; ' +
  'but for `/login/callback` and `/login/once`, which sign in.';

const tags = [
  { name: 'tenant', description: 'With a tenant’s token.' },
  { name: 'operator', description: 'With a token that has a scope of the operator.' },
  { name: 'file', description: 'With a tenant’s token, or with a token of the peer in the URL.' },
  { name: 'public', description: 'Without credentials.' },
] as const;

const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
  cookie: { type: 'apiKey', in: 'cookie', name: cookieName },
  url_token: { type: 'apiKey', in: 'query', name: 'token' },
} as const;

/**
 * @param isClosed schemas of answers name all that this release answers, and nothing else: for
 *   clients of the same release, and for tests. Others must read more than they know.
 */
export function openApiDocument(routes: readonly Route[], version: string, isClosed = false): Json {
  const { refer, schemas }: References = referencesTo(components);
  const shared: Shared = { parameters: sharedParameters(routes), errors: errorResponses() };
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    (paths[templateOf(route.path)] ??= {})[route.method.toLowerCase()] = operationOf(route, shared);
  }
  const parts = inForms(
    {
      // Safe: references take the place of schemas alone.
      paths: refer(paths) as typeof paths,
      parameters: refer(Object.fromEntries(shared.parameters)) as Json,
      responses: shared.errors.components,
      schemas: { ...schemas, ...errorSchemas },
    },
    isClosed,
  );
  return {
    openapi: '3.1.0',
    info: { title: 'Longshore', version, description },
    servers: [{ url: '/' }],
    tags,
    // Types of our own client need none.
    paths: isClosed ? parts.paths : withExamples(parts),
    components: {
      securitySchemes,
      headers,
      parameters: parts.parameters,
      responses: parts.responses,
      schemas: parts.schemas,
    },
  };
}
