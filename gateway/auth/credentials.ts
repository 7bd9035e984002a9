/** Finds a request's token, and decides whether its cookie is accepted. Pure. */
import type { RequestHeaders } from '../http/engine/guard.ts';
import { limits } from '../../schemas/limits.ts';

export const cookieName = '_dro_token';

export type Credentials =
  | { readonly kind: 'none' }
  /** There is a token, but not in the form of one. */
  | { readonly kind: 'malformed' }
  | { readonly kind: 'token'; readonly token: string; readonly from: 'bearer' | 'cookie' };

const none: Credentials = { kind: 'none' };
const malformed: Credentials = { kind: 'malformed' };
const bearerScheme = /^bearer(?: +|$)/i;
/** JWS compact serialization (RFC 7515 section 7.1). */
const compactJws = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

const judge = (token: string, from: 'bearer' | 'cookie'): Credentials =>
  token.length <= limits.tokenBytes && compactJws.test(token) ? { kind: 'token', token, from } : malformed;

/** The first cookie of this name: browsers send the most specific first (RFC 6265 section 5.4). */
export function cookieValue(header: string, name: string): string | undefined {
  let from = 0;
  while (from < header.length) {
    const semicolon = header.indexOf(';', from);
    const end = semicolon < 0 ? header.length : semicolon;
    const pair = header.slice(from, end).trim();
    if (pair.startsWith(name) && pair[name.length] === '=') {
      const value = pair.slice(name.length + 1);
      return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
    }
    from = end + 1;
  }
  return undefined;
}

/** The token of a Bearer header; without one, the cookie, also if the header has another scheme. */
export function credentialsOf(headers: RequestHeaders): Credentials {
  const { authorization, cookie } = headers;
  if (authorization !== undefined) {
    const scheme = bearerScheme.exec(authorization);
    if (scheme !== null) return judge(authorization.slice(scheme[0].length).trim(), 'bearer');
  }
  const token = cookie === undefined ? undefined : cookieValue(cookie, cookieName);
  return token === undefined ? none : judge(token, 'cookie');
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

function sameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const url = new URL(origin);
  // Behind a TLS terminator the client's scheme is unknown, so either default port fits.
  const { host: expected } = URL.canParse(`${url.protocol}//${host}`) ? new URL(`${url.protocol}//${host}`) : url;
  return (url.protocol === 'http:' || url.protocol === 'https:') && url.host === expected && expected !== '';
}

/** Whether the page that made the request is one of ours, as its browser says. */
export const isOwnOrigin = ({ origin, host }: RequestHeaders): boolean =>
  origin !== undefined && sameOrigin(origin, host);

/**
 * A browser also sends the cookie with requests that another site makes. Such requests with an
 * unsafe method are refused; `Sec-Fetch-Site` shows them, or Origin in browsers that do not send
 * it.
 */
export function isCrossSite(method: string, from: 'bearer' | 'cookie', headers: RequestHeaders): boolean {
  if (from === 'bearer' || safeMethods.has(method)) return false;
  const { secFetchSite, origin, host } = headers;
  if (secFetchSite !== undefined) return secFetchSite !== 'same-origin' && secFetchSite !== 'none';
  return origin !== undefined && !sameOrigin(origin, host);
}
