/** The errors of the API as components of the OpenAPI document. Pure. */
import { conflictReasons, errorStatus, quotaDimensions, type ErrorCode } from '../../schemas/errors.ts';
import type { Json } from './references.ts';

const codes = Object.keys(errorStatus) as ErrorCode[];

/** `not_found` → `NotFound` */
const pascal = (code: ErrorCode): string =>
  code.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());

const nameOf = (code: ErrorCode): string => `Error${pascal(code)}`;

const closed = (code: ErrorCode, properties: Json, required: readonly string[] = []): Json => ({
  type: 'object',
  required: ['error', ...required],
  properties: { error: { const: code }, ...properties },
  additionalProperties: false,
});

const message = { message: { type: 'string', description: 'For people; it may change at any time.' } };

function errorSchema(code: ErrorCode): Json {
  switch (code) {
    case 'over_quota': {
      const properties = {
        dimension: { enum: quotaDimensions },
        requested: { type: 'integer', description: 'The total that the request would reach.' },
        max: { type: 'integer' },
      };
      const detail = { type: 'object', required: Object.keys(properties), properties, additionalProperties: false };
      return closed(code, { detail }, ['detail']);
    }
    case 'invalid':
      return closed(
        code,
        {
          details: {
            type: 'object',
            description: 'Faults by field; `_` is the body as a whole.',
            additionalProperties: { type: 'array', items: { type: 'string' } },
          },
        },
        ['details'],
      );
    case 'forbidden': {
      const scope = { type: 'string', description: 'A scope that would open the route.' };
      const detail = { type: 'object', required: ['scope'], properties: { scope }, additionalProperties: false };
      return closed(code, { detail, ...message });
    }
    case 'conflict': {
      const properties = {
        max: { type: 'integer', description: 'With `too_many`: the largest allowed number.' },
        containers: { type: 'array', items: { type: 'string' }, description: 'With `in_use`: the first that use it.' },
      };
      const reason = {
        anyOf: [{ enum: conflictReasons }, { type: 'string' }],
        description: 'For programs; absent during an upgrade.',
      };
      return closed(code, { reason, detail: { type: 'object', properties }, ...message });
    }
    case 'rate_limited':
      return closed(code, { ...message, retry_after_seconds: { type: 'integer', description: 'As `Retry-After`.' } });
    default:
      return closed(code, message);
  }
}

export const errorSchemas: Json = Object.fromEntries(codes.map((code) => [nameOf(code), errorSchema(code)]));

const header = (name: string): Json => ({ $ref: `#/components/headers/${name}` });

/** Of answers to a caller whose tenant is known. */
export const rateHeaders = { 'RateLimit-Policy': header('RateLimitPolicy'), RateLimit: header('RateLimit') };

function headersOf(status: number): Json {
  const every = { 'X-Request-Id': header('RequestId'), 'Longshore-Version': header('Version') };
  if (status === 401) return { ...every, 'WWW-Authenticate': header('Challenge') };
  const requestId = { ...every, ...rateHeaders };
  if (status === 429 || status === 503) return { ...requestId, 'Retry-After': header('RetryAfter') };
  if (status === 405) return { ...requestId, Allow: header('Allow') };
  return requestId;
}

/** The form of an error: JSON for programs, a page for people. */
type Form = 'json' | 'page';

function responseOf(ofStatus: readonly ErrorCode[], form: Form): Json {
  const [first = 'internal'] = ofStatus;
  if (form === 'page') {
    return {
      description: ofStatus.join(' or '),
      headers: { ...headersOf(errorStatus[first]), 'Set-Cookie': header('SetCookie') },
      content: { 'text/html; charset=utf-8': { schema: { type: 'string' } } },
    };
  }
  const schemas = ofStatus.map((code) => ({ $ref: `#/components/schemas/${nameOf(code)}` }));
  const schema = schemas.length === 1 ? schemas[0] : { oneOf: schemas };
  return {
    description: ofStatus.join(' or '),
    headers: headersOf(errorStatus[first]),
    content: { 'application/json': { schema } },
  };
}

export interface ErrorResponses {
  /** One response for each status; two codes of one status (403) share it. */
  readonly of: (codes: readonly ErrorCode[], form: Form) => Json;
  /** Those that `of` has named. */
  readonly components: Json;
}

export function errorResponses(): ErrorResponses {
  const components: Record<string, Json> = {};
  const of = (listed: readonly ErrorCode[], form: Form): Json => {
    const byStatus = new Map<number, ErrorCode[]>();
    // In the order of the catalogue, so that the same codes always have the same name.
    for (const code of codes.filter((one) => listed.includes(one))) {
      byStatus.set(errorStatus[code], [...(byStatus.get(errorStatus[code]) ?? []), code]);
    }
    return Object.fromEntries(
      [...byStatus].map(([status, ofStatus]) => {
        const name = `${ofStatus.map(pascal).join('Or')}${form === 'page' ? 'Page' : ''}`;
        components[name] ??= responseOf(ofStatus, form);
        return [String(status), { $ref: `#/components/responses/${name}` }];
      }),
    );
  };
  return { of, components };
}
