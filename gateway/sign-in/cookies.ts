/** Cookies of sign-in, and paths to return to. Pure. */
import { cookieName, cookieValues, twinName, twinOf } from '../auth/credentials.ts';
import type { RequestHeaders } from '../http/engine/guard.ts';

/** Longest path to which a sign-in returns. */
const signInReturnChars = 1024;

/**
 * `Lax`: sent when the provider sends the person back, and not with what other sites post.
 * `Secure`: unless people come by http, which the configuration allows on a loopback address alone,
 * and where not every browser keeps a `Secure` cookie.
 */
export class Cookies {
  /** True if a session has a twin: only a `Secure` cookie may have its prefix. */
  readonly isSecure: boolean;

  constructor(publicUrl: string | undefined) {
    this.isSecure = publicUrl?.startsWith('https:') === true;
  }

  /** No other host of the domain can set a cookie with this prefix (RFC 6265bis 4.1.3.2). */
  get #stepName(): string {
    return this.isSecure ? '__Host-longshore_sign_in' : 'longshore_sign_in';
  }

  #cookie(name: string, value: string, maxAgeMs: number): string {
    const age = Math.floor(maxAgeMs / 1000);
    return `${name}=${value}; Path=/; Max-Age=${age}; HttpOnly; SameSite=Lax${this.isSecure ? '; Secure' : ''}`;
  }

  session(token: string, lifeMs: number): readonly string[] {
    const cookie = this.#cookie(cookieName, token, lifeMs);
    return this.isSecure ? [cookie, this.#cookie(twinName, twinOf(token), lifeMs)] : [cookie];
  }

  endSession(): readonly string[] {
    const cookie = this.#cookie(cookieName, '', 0);
    return this.isSecure ? [cookie, this.#cookie(twinName, '', 0)] : [cookie];
  }

  step(sealed: string, lifeMs: number): string {
    return this.#cookie(this.#stepName, sealed, lifeMs);
  }

  endStep(): string {
    return this.#cookie(this.#stepName, '', 0);
  }

  stepOf({ cookie }: RequestHeaders): string | undefined {
    return cookie === undefined ? undefined : [...cookieValues(cookie, this.#stepName)][0];
  }
}

const anyOrigin = 'http://origin.invalid';

/**
 * The path as a browser would read it; undefined if it leads to another origin, as `//host` and
 * `/\host` do.
 */
export function localPath(text: string): string | undefined {
  if (!text.startsWith('/') || text.length > signInReturnChars) return undefined;
  const url = URL.canParse(text, anyOrigin) ? new URL(text, anyOrigin) : undefined;
  if (url === undefined || url.origin !== anyOrigin) return undefined;
  // `/.//host` is read as `//host`.
  const path = `${url.pathname}${url.search}${url.hash}`;
  return path.startsWith('//') ? undefined : path;
}
