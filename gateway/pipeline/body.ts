/** The body of a request: its type and length, its bytes, and the JSON in them. */
import { DecodeError, decodeJson } from '../../lib/decode.ts';
import { limits } from '../../schemas/limits.ts';
import type { BodyResult } from '../http/engine/body.ts';
import { hasMoreValues } from '../http/engine/body-values.ts';
import type { Exchange, RequestHead } from '../http/engine/engine.ts';
import { bodyRefusals, notJson, tooLarge, tooManyValues, wrongType } from '../http/refusals.ts';
import type { Result } from '../http/respond.ts';
import type { AppRoute } from './app-route.ts';
import type { RequestContext, Step } from './request.ts';

const jsonType = /^application\/json *(?:; *charset *= *"?utf-8"? *)?$/i;
/** RFC 7396 */
const patchType = /^application\/(?:merge-patch\+)?json *(?:; *charset *= *"?utf-8"? *)?$/i;

/** Refuses a body by its headers, before any of it has arrived. */
export function judgeBody(
  { head, bodyBytes }: Exchange,
  { bodyBoundBytes: maxBytes, patches }: Pick<AppRoute, 'bodyBoundBytes' | 'patches'>,
): Result | undefined {
  const { contentType } = head.headers;
  if (bodyBytes !== undefined && bodyBytes > maxBytes) return tooLarge;
  // A chunked body without a type may be empty, so `parseBody` checks it once it has arrived.
  const type = patches === true ? patchType : jsonType;
  const isTyped = contentType === undefined ? bodyBytes === undefined || bodyBytes === 0 : type.test(contentType);
  return isTyped ? undefined : wrongType;
}

/** The JSON of a body, or the refusal of a body that is not JSON. */
export function parseBody(head: RequestHead, body: Uint8Array): Result | { readonly value: unknown } {
  if (head.headers.contentType === undefined && body.byteLength > 0) return wrongType;
  if (hasMoreValues(body, limits.bodyValues)) return tooManyValues;
  try {
    return { value: decodeJson(body) };
  } catch (error) {
    if (error instanceof DecodeError) return notJson;
    throw error;
  }
}

function take(request: RequestContext, body: BodyResult): Result | undefined {
  if (typeof body === 'string') return request.refused(body, bodyRefusals);
  const parsed = parseBody(request.exchange.head, body);
  if ('code' in parsed) return parsed;
  request.json = parsed.value;
  return undefined;
}

export const readBody: Step = (request) => {
  const { exchange, route } = request;
  if (route.validateBody === undefined) return undefined;
  const refusal = judgeBody(exchange, route);
  if (refusal !== undefined) return refusal;
  return new Promise<BodyResult>((resolve) => exchange.readBody(resolve)).then((body) => take(request, body));
};
