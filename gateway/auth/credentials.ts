/** Finds a request's token, and decides whether its cookie is accepted. Pure. */
import { hash } from 'node:crypto';
import type { RequestHeaders } from '../http/engine/guard.ts';
import { limits } from '../../schemas/limits.ts';

export const cookieName = '_dro_token';
/**
 * Any host of the domain can set the cookie above, also for a path, and so in front of ours. No
 * other host can set one with this prefix (RFC 6265bis 4.1.3.2): it says which token is ours.
 */
export const twinName = '__Host-longshore_session';
export const twinOf = (token: string): string => hash('sha256', token, 'base64url');

export type Credentials =
  | { readonly kind: 'none' }
  /** There is a token, but not in the form of one. */
  | { readonly kind: 'malformed' }
  | { readonly kind: 'token'; readonly token: string; readonly from: Source };

/** `twinned`: a cookie that a sign-in at this host has set. */
export type Source = 'bearer' | 'cookie' | 'twinned cookie';

const none: Credentials = { kind: 'none' };
const malformed: Credentials = { kind: 'malformed' };
const bearerScheme = /^bearer(?: +|$)/i;
/** JWS compact serialization (RFC 7515 section 7.1). */
const compactJws = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

const judge = (token: string, from: Source): Credentials =>
  token.length <= limits.tokenBytes && compactJws.test(token) ? { kind: 'token', token, from } : malformed;

/** The values of all cookies of this name; the same value counts once. */
export function cookieValues(header: string, name: string): ReadonlySet<string> {
  const values = new Set<string>();
  let from = 0;
  while (from < header.length) {
    const semicolon = header.indexOf(';', from);
    const end = semicolon < 0 ? header.length : semicolon;
    const pair = header.slice(from, end).trim();
    if (pair.startsWith(name) && pair[name.length] === '=') {
      const value = pair.slice(name.length + 1);
      values.add(value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value);
    }
    from = end + 1;
  }
  return values;
}

/** Of two tokens one may be planted, and which of them the browser sends first proves nothing. */
function ofCookies(header: string): Credentials {
  const tokens = cookieValues(header, cookieName);
  const [first, ...others] = tokens;
  if (first === undefined) return none;
  const [twin] = cookieValues(header, twinName);
  if (twin === undefined) return others.length > 0 ? malformed : judge(first, 'cookie');
  const ours = [...tokens].find((token) => twinOf(token) === twin);
  return ours === undefined ? malformed : judge(ours, 'twinned cookie');
}

/** The token of a Bearer header; without one, the cookie, also if the header has another scheme. */
export function credentialsOf(headers: RequestHeaders): Credentials {
  const { authorization, cookie } = headers;
  if (authorization !== undefined) {
    const scheme = bearerScheme.exec(authorization);
    if (scheme !== null) return judge(authorization.slice(scheme[0].length).trim(), 'bearer');
  }
  return cookie === undefined ? none : ofCookies(cookie);
}

const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

function sameOrigin(origin: string, host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(origin)) return false;
  const url = new URL(origin);
  // Behind a TLS terminator the client's scheme is unknown, so either default port fits.
  const { host: expected } = URL.canParse(`${url.protocol}//${host}`) ? new URL(`${url.protocol}//${host}`) : url;
  return (url.protocol === 'http:' || url.protocol === 'https:') && url.host === expected && expected !== '';
}

/** Checks whether the request came from a page of ours, by the headers that its browser sets. */
export const isOwnOrigin = ({ origin, host }: RequestHeaders): boolean =>
  origin !== undefined && sameOrigin(origin, host);

/**
 * A browser also sends the cookie with requests that another site makes. Such requests with an
 * unsafe method are refused; `Sec-Fetch-Site` shows them, or Origin in browsers that do not send
 * it.
 */
export function isCrossSite(method: string, from: Source, headers: RequestHeaders): boolean {
  if (from === 'bearer' || safeMethods.has(method)) return false;
  const { secFetchSite, origin, host } = headers;
  if (secFetchSite !== undefined) return secFetchSite !== 'same-origin' && secFetchSite !== 'none';
  return origin !== undefined && !sameOrigin(origin, host);
}
