/** Bearer tokens that a program has in its own settings, such as those of its metrics. */
import { createHash, timingSafeEqual } from 'node:crypto';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/**
 * True if a header `Authorization` has one of the tokens (RFC 6750). Compares digests, so that the
 * time it takes does not show how much of a token was right.
 */
export function isBearerOf(tokens: readonly string[], authorization: string | undefined): boolean {
  const [, given] = /^Bearer +(.+)$/i.exec(authorization ?? '') ?? [];
  if (given === undefined) return false;
  const digestOfGiven = digest(given);
  return tokens.filter((token) => timingSafeEqual(digest(token), digestOfGiven)).length > 0;
}
