/**
 * The ETag of a container: it changes with what is declared, and not with the status, so that a
 * client that changes a declaration which it has read loses nobody else's change. Pure.
 */
import { hashesOf, hexWord } from '../text-hash.ts';

/** Fields that the owner writes behind the declared ones of a container. */
const afterDeclared = ',"status":"';
const envelope = '{"data":';

/** The ETag of a text, such as the document of a container. */
export const hashTag = (json: string): string => `"${hashesOf(json).map(hexWord).join('')}"`;

/** @param json of a container, as its owner writes it */
export const declarationTag = (json: string): string => hashTag(json.slice(0, json.lastIndexOf(afterDeclared)));

/** @param body of an answer that is one container */
export const declarationTagOf = (body: string): string => declarationTag(body.slice(envelope.length));

/** What an owner writes behind a document that is only planned. */
const afterSpec = ',"plan":{"action":';

/** @param body of an answer that is the document of a container */
export function specTagOf(body: string): string {
  const end = body.lastIndexOf(afterSpec);
  return hashTag(body.slice(envelope.length, end < 0 ? -1 : end));
}
