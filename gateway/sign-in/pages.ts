/** What people see during a sign-in. Pure. */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { Identity } from '../auth/claims.ts';
import { escaped, page } from '../http/html.ts';
import type { Result } from '../http/respond.ts';

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

export const signedOutPage = (base: string, canSignIn: boolean): Result =>
  page('Signed out', `<p>You are not signed in.</p>${canSignIn ? link(`${base}/login`, 'Sign in') : ''}`);
