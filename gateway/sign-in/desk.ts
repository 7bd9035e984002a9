/** Parts that all kinds of sign-in share. */
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { failure } from '../http/respond.ts';
import type { Cookies } from './cookies.ts';
import type { Envelopes } from './envelope.ts';
import type { ProviderClaims, Rule } from './mapping.ts';
import type { PersonSessions } from './sessions.ts';

export interface Desk {
  /** The URL before the paths of this API. */
  readonly base: string;
  readonly rules: readonly Rule[];
  readonly cookies: Cookies;
  readonly envelopes: Envelopes;
  readonly sessions: PersonSessions;
  readonly nowMs: () => number;
}

export const away = failure(
  'unavailable',
  'the identity provider does not answer; people who are signed in stay so. Try again in a few minutes',
);

const refusals: Readonly<Record<string, string>> = {
  access_denied: 'you, or the identity provider, did not allow the sign-in; try again, or ask the operator',
  invalid_grant: 'this sign-in was used already, or is too old; sign in again',
};

/** Words for the person; the operator's log has the reason in full. */
export const refusalOf = (why: string): string =>
  refusals[why] ?? 'the answer of the identity provider was refused; sign in again, or ask the operator why';

export function noTenant(subject: string, tenant: TenantId | null): string {
  const which = tenant === null ? 'in no tenant' : `not in tenant ${tenant}`;
  return `you are ${which} here (your name at the identity provider is ${subject}); ask the operator to add you`;
}

/** The beginning of a choice: the time at which the provider identified the person. */
export const chosenFromMs = ({ untilMs }: { readonly untilMs: number }): number => untilMs - limits.signInChoiceMs;

export const subjectOf = ({ sub }: ProviderClaims): string => (typeof sub === 'string' ? sub : '');
