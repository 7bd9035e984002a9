/** A request that wants to go on with WebSocket (RFC 6455 section 4.2.1). Pure. */
import type { RequestHeaders } from '../guard.ts';

export interface Handshake {
  readonly key: string;
  /** As sent; the only one that there is is 13. */
  readonly version: string | undefined;
  /** The subprotocols that the client offers, the one that it likes best first. */
  readonly protocols: readonly string[];
}

/** 16 bytes in base64. */
const keyPattern = /^[A-Za-z0-9+/]{22}==$/;

const tokensIn = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((token) => token.trim())
    .filter((token) => token !== '');

const names = (value: string | undefined, token: string): boolean =>
  tokensIn(value).some((one) => one.toLowerCase() === token);

/** True if the client wants the connection to end with the reply. */
export const asksToEnd = ({ connection }: RequestHeaders): boolean => names(connection, 'close');

/**
 * Returns `undefined` for an ordinary request.
 * @param isBare it has no body, which a handshake never has: bytes that follow it are WebSocket's
 */
export function handshakeOf(method: string, headers: RequestHeaders, isBare: boolean): Handshake | undefined {
  const { webSocketKey: key, webSocketVersion: version, webSocketProtocol } = headers;
  if (key === undefined || !keyPattern.test(key) || method !== 'GET' || !isBare) return undefined;
  const isAsked = names(headers.upgrade, 'websocket') && names(headers.connection, 'upgrade');
  // With `close` it asks to go on and to end.
  if (!isAsked || asksToEnd(headers)) return undefined;
  return { key, version, protocols: tokensIn(webSocketProtocol) };
}
