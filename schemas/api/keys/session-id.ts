/** The ids of the tokens of sessions. */

/** No key has such an id: theirs are UUIDs. */
const sessionPrefix = 'session.';
/** Of a session that counts in a cookie only beside the twin of that cookie. */
const twinnedPrefix = 'session.host.';
export const sessionIdOf = (uuid: string): string => `${sessionPrefix}${uuid}`;
export const twinnedSessionIdOf = (uuid: string): string => `${twinnedPrefix}${uuid}`;
export const needsTwin = (tokenId: string | undefined): boolean => tokenId?.startsWith(twinnedPrefix) === true;
export const isSessionId = (tokenId: string | undefined): tokenId is string =>
  tokenId?.startsWith(sessionPrefix) === true;
