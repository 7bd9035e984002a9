/**
 * Cause of a write: a gateway adds it to the ask, so that the owner can put a line into the audit
 * with the same commit.
 */
import Type, { type Static } from 'typebox';
import { Author, AuditDetail } from '../api/audit/line.ts';
import type { ErrorCode, OutcomeCode } from '../errors.ts';
import { isSuccessCode } from '../errors.ts';
import { limits } from '../limits.ts';
import { visible } from '../visible.ts';

/** Faulty fields of a request that a line names. */
const auditFields = 20;

/** The request of the API that a write belongs to. */
export const Cause = Type.Object({
  by: Type.Object(Author.properties),
  /** The name of the route. */
  action: Type.String(),
  target: Type.Record(Type.String(), Type.String()),
});
export type Cause = Static<typeof Cause>;

/** A line about something that is no write of its owner: a refusal of a gateway, a session. */
export const Note = Type.Object({
  ...Cause.properties,
  outcome: Type.String(),
  detail: Type.Union([Type.Object(AuditDetail.properties), Type.Null()]),
});
export type Note = Static<typeof Note>;

/**
 * Outcomes of writes that leave no line here. A write may have been executed after `timeout`, and
 * then its owner has one. Nobody is known who was not authenticated.
 */
const withoutLine: ReadonlySet<OutcomeCode> = new Set<OutcomeCode>([
  'unavailable',
  'internal',
  'timeout',
  'unauthenticated',
]);

/** The gateway seals another version and asks again, all in one request. */
const sealedAgain: ReadonlySet<string> = new Set(['secret.put', 'login.put']);

export const leavesLine = (code: OutcomeCode, type?: string): boolean =>
  !withoutLine.has(code) && !(code === 'precondition_failed' && type !== undefined && sealedAgain.has(type));

export const outcomeOf = (code: OutcomeCode): 'done' | ErrorCode => (isSuccessCode(code) ? 'done' : code);

const fieldsOf = (details: object): string[] =>
  Object.keys(details)
    .slice(0, auditFields)
    .map((field) => visible(field).slice(0, limits.auditTextChars));

/** Details of a refusal for the audit: names of fields, never their values. */
export function detailOf(code: OutcomeCode, body: string | Uint8Array): AuditDetail | null {
  if (code !== 'invalid' && code !== 'forbidden' && code !== 'over_quota') return null;
  // A body of our own (errors.ts).
  const { details, detail } = JSON.parse(body.toString() || '{}') as {
    readonly details?: object;
    readonly detail?: { readonly scope?: string; readonly dimension?: string };
  };
  if (details !== undefined) return { fields: fieldsOf(details) };
  if (detail?.scope !== undefined) return { scope: detail.scope };
  return detail?.dimension === undefined ? null : { dimension: detail.dimension };
}
