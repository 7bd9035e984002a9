/** The cause of a write in the audit: its author and its action. Pure. */
import type { Author } from '../../schemas/api/audit/line.ts';
import { limits } from '../../schemas/limits.ts';
import { routes, type Route } from '../../schemas/routes.ts';
import { visible } from '../../schemas/visible.ts';
import type { Cause } from '../../schemas/wire/audit.ts';
import type { Identity } from '../auth/claims.ts';

/** Of a token, a path or a header: a stranger may have chosen it, and an operator reads it. */
const cut = (text: string): string => visible(text).slice(0, limits.auditTextChars);

/**
 * Routes whose requests leave a line by themselves. A handshake is a GET that acts. A sign-in has
 * no caller before it has succeeded, and notes itself.
 */
export const isAudited = ({
  method,
  access,
  upgrades,
  ownToken,
}: Pick<Route, 'method' | 'access' | 'upgrades' | 'ownToken'>): boolean =>
  upgrades === true || (method !== 'GET' && (access !== 'public' || ownToken !== undefined));

/** The values of a line's `action`. */
export const actions: readonly string[] = [
  ...routes.filter(isAudited).map(({ name }) => name),
  ...routes.filter((route) => 'upgrades' in route).map(({ name }) => `${name}.ended`),
  'sign_in',
  'sign_out',
];

export const authorOf = (identity: Identity | undefined, address: string): Author => ({
  tenant: identity?.tenant ?? null,
  subject: identity === undefined ? null : cut(identity.subject),
  token: identity === undefined ? null : cut(identity.tokenName),
  address: cut(address),
});

export function causeOf(
  action: string,
  params: Readonly<Record<string, string>>,
  identity: Identity | undefined,
  address: string,
): Cause {
  const target: Record<string, string> = {};
  for (const name in params) target[name] = cut(params[name] ?? '');
  return { by: authorOf(identity, address), action, target };
}
