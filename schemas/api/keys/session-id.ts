/** The ids of the tokens of sessions. */

/** No key has such an id: theirs are UUIDs. */
const sessionPrefix = 'session.';
export const sessionIdOf = (uuid: string): string => `${sessionPrefix}${uuid}`;
export const isSessionId = (tokenId: string | undefined): tokenId is string =>
  tokenId?.startsWith(sessionPrefix) === true;
