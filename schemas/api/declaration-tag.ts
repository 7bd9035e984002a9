/**
 * The ETag of a container: it changes with what is declared, and not with the status, so that a
 * client that changes a declaration which it has read loses nobody else's change. Pure.
 */
import { hashesOf, hexWord } from '../text-hash.ts';

/** Fields that the owner writes behind the declared ones of a container. */
const afterDeclared = ',"status":"';
const envelope = '{"data":';

/** @param json of a container, as its owner writes it */
export const declarationTag = (json: string): string =>
  `"${hashesOf(json.slice(0, json.lastIndexOf(afterDeclared)))
    .map(hexWord)
    .join('')}"`;

/** @param body of an answer that is one container */
export const declarationTagOf = (body: string): string => declarationTag(body.slice(envelope.length));
