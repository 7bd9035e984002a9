/** The body of a request: its type and length, its bytes, and the JSON in them. */
import { DecodeError, decodeJson } from '../../lib/decode.ts';
import { limits } from '../../schemas/limits.ts';
import type { BodyResult } from '../http/engine/body.ts';
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

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openList = 0x5b;
const openMap = 0x7b;

/**
 * Whether JSON holds more keys and items than a bound, found without parsing it: the values that a
 * parser makes take up to a hundred times as much memory as their bytes. For text that is not JSON
 * the count means nothing; the parser refuses it. Counts commas and opening brackets: the first
 * value of a list or map follows its opening bracket, every other one a comma.
 */
export function hasMoreValues(json: Uint8Array, max: number): boolean {
  if (json.byteLength <= max) return false;
  let values = 0;
  let inString = false;
  for (let at = 0; at < json.byteLength; at++) {
    const byte = json[at];
    if (inString) {
      if (byte === backslash) at++;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if ((byte === comma || byte === openList || byte === openMap) && ++values > max) return true;
  }
  return false;
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
