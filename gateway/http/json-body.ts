/** Checks the type and length of a request's JSON body, and parses it. */
import { DecodeError, decodeJson } from '../../lib/decode.ts';
import { limits } from '../../schemas/limits.ts';
import type { BodyResult } from './engine/body.ts';
import { hasMoreValues } from './engine/body-values.ts';
import type { Exchange, RequestHead } from './engine/engine.ts';
import { notJson, tooLarge, tooManyValues, wrongType } from './refusals.ts';
import type { AppRoute } from './app-route.ts';
import type { Result } from './respond.ts';

const jsonType = /^application\/json *(?:; *charset *= *"?utf-8"? *)?$/i;
/** RFC 7396 */
const patchType = /^application\/(?:merge-patch\+)?json *(?:; *charset *= *"?utf-8"? *)?$/i;

export const readBody = (exchange: Exchange): Promise<BodyResult> =>
  new Promise((resolve) => exchange.readBody(resolve));

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
