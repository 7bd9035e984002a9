/** A line of the audit: a write, a refused write, a sign-in or a session. Kept for `auditAgeMs`. */
import Type, { type Static } from 'typebox';
import type { TenantId } from '../../ids.ts';
import { nullable } from '../nullable.ts';

const optional = (description: string) => Type.Optional(Type.String({ description }));

/** Author of an action, and the address of the client. */
export const Author = Type.Object(
  {
    tenant: nullable(Type.Unsafe<TenantId>(Type.String({ description: 'Tenant of the token.' }))),
    subject: nullable(
      Type.String({ description: 'The `sub` of the token; null where a join token or a one-time link was used.' }),
    ),
    token: nullable(
      Type.String({ description: 'The `jti` of the token, which is the id of an API token; or its short hash.' }),
    ),
    address: nullable(
      Type.String({ description: 'The address of the client; null for a tenant where an operator did it.' }),
    ),
  },
  { additionalProperties: false },
);
export type Author = Static<typeof Author>;

const SessionDetail = Type.Object(
  {
    started_at: Type.String({ format: 'date-time' }),
    bytes_in: Type.Integer({ description: 'Bytes received from the client.' }),
    bytes_out: Type.Integer({ description: 'Bytes sent to the client.' }),
    exit_code: nullable(Type.Integer()),
    reason: Type.String({ description: 'Reason for the end of the session.' }),
  },
  { additionalProperties: false },
);

/** Details; never a value that was sent. */
export const AuditDetail = Type.Object(
  {
    fields: Type.Optional(
      Type.Array(Type.String(), { description: 'Fields with faults, if the outcome is `invalid`.' }),
    ),
    scope: optional('Scope that the token lacks, if the outcome is `forbidden`.'),
    dimension: optional('Of `over_quota`: the cap that would be exceeded.'),
    session: Type.Optional(SessionDetail),
  },
  { additionalProperties: false },
);
export type AuditDetail = Static<typeof AuditDetail>;

export const AuditLine = Type.Object(
  {
    id: Type.String({
      description: '`<partition>-<commit>-<index>`: the same line has the same id wherever it is read.',
    }),
    ts: Type.String({ format: 'date-time' }),
    action: Type.String({
      description:
        'The operation, as in the OpenAPI document, such as `container.create`; or `sign_in`, `sign_out`, `container.exec.ended`, `container.forward.ended`, `container.run.ended`.',
    }),
    outcome: Type.String({ description: '`done`, or the code of the refusal, such as `forbidden`.' }),
    tenant: nullable(
      Type.Unsafe<TenantId>(
        Type.String({ description: 'Tenant that the action concerns. Null if it concerns operators only.' }),
      ),
    ),
    by: Author,
    request_id: Type.String(),
    target: Type.Record(Type.String(), Type.String(), {
      description:
        'Object of the action: the path parameters, and the id of a created object. For `sign_in`, `by` is `browser`, `device` or `link`, and `from` is the address that began the sign-in of a device.',
    }),
    detail: nullable(AuditDetail),
  },
  { additionalProperties: false },
);
export type AuditLine = Static<typeof AuditLine>;

/** The line as a client sees it: without the address of an operator. */
export const seenBy = (tenant: TenantId, line: AuditLine): AuditLine => ({
  ...line,
  by: authorSeenBy(tenant, line.by),
});

export const authorSeenBy = (tenant: TenantId, by: Author): Author =>
  by.tenant === null || by.tenant === tenant ? by : { ...by, address: null };
