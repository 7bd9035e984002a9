/** The pages of a sign-in. Pure. */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { Identity } from '../auth/claims.ts';
import { escaped, page } from '../http/html.ts';
import type { Result } from '../http/respond.ts';
import type { Kept } from './envelope.ts';

const button = (action: string, text: string): string =>
  `<form method="post" action="${escaped(action)}"><button>${escaped(text)}</button></form>`;
const link = (to: string, text: string): string => `<p><a href="${escaped(to)}">${escaped(text)}</a></p>`;

/** @param base the URL before the paths of this API; empty: that of the page */
export const tenantsPage = (base: string, subject: string, tenants: readonly string[]): Result =>
  page(
    'Choose a tenant',
    `<p>You are ${escaped(subject)}. For which tenant do you sign in?</p>` +
      tenants.map((tenant) => button(`${base}/login/tenants/${tenant}`, tenant)).join(''),
  );

export const signedInPage = (base: string, identity: Identity, canSignIn: boolean): Result =>
  page(
    'Signed in',
    `<p>You are signed in as <b>${escaped(identity.subject)}</b> in tenant <b>${escaped(identity.tenant)}</b>, ` +
      `until ${timestamp(identity.expiresAtS * 1000)}.</p>` +
      `<p>Scopes: ${escaped(identity.scopes.length === 0 ? 'everything of the tenant' : identity.scopes.join(', '))}.</p>` +
      button(`${base}/logout`, 'Sign out') +
      (canSignIn ? link(`${base}/login`, 'Sign in again, or for another tenant') : ''),
  );

const minutesAgo = (ms: number): string => {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  return minutes === 0 ? 'less than a minute ago' : minutes === 1 ? 'a minute ago' : `${minutes} minutes ago`;
};

/**
 * The client that began a sign-in by device gets its session, and may have sent this link to
 * somebody else. Only what this server knows itself is here: a name that the command line gives
 * could be any.
 */
export function devicePage(
  ask: Pick<Kept<'ask'>, 'from' | 'userCode' | 'continueAt' | 'atMs'>,
  viewer: string,
  nowMs: number,
): Result {
  const isSame = ask.from === viewer;
  return page(
    'Sign in a command line',
    `<p>A command line at the address <b>${escaped(ask.from)}</b> asked to sign in ${minutesAgo(nowMs - ask.atMs)}. ` +
      `${isSame ? 'That is the address of this browser, too.' : `This browser is at another address: <b>${escaped(viewer)}</b>.`}</p>` +
      '<p>If you continue, <b>it acts as you</b>, from wherever it is. Continue only if you ran ' +
      `<code>longshore login</code> yourself just now, and it shows the code <b>${escaped(ask.userCode)}</b>. ` +
      'If somebody sent you this link, close the page, and tell your operator.</p>' +
      link(ask.continueAt, `Continue at ${new URL(ask.continueAt).host}`),
  );
}

export const signedOutPage = (base: string, canSignIn: boolean): Result =>
  page('Signed out', `<p>You are not signed in.</p>${canSignIn ? link(`${base}/login`, 'Sign in') : ''}`);
