/** The answer to a POST with an `Idempotency-Key`, kept for the client that sends it again. */
import Type, { type Static } from 'typebox';
import type { ContainerId, TenantId } from '../ids.ts';
import type { Sealed } from './sealed.ts';

/** Bytes that one counts for beside its texts. */
const keptAnswerBytes = 300;

/** The part of a write by which its request may be repeated. */
export const Once = Type.Object({
  /** As the client has sent it. */
  key: Type.String(),
  /** Hash of the route, path, query and body. */
  request: Type.String(),
  /** Of an answer that shows a secret. */
  secret: Type.Optional(
    Type.Object({
      /** Hash of the subject and the id of the token: nobody else gets the answer. */
      by: Type.String(),
      /** The secret fields of the answer, as JSON. */
      sealed: Type.Unsafe<Sealed>(Type.String()),
      /** Id of the resource with which the answer ends: `<peer>`, `<peer>/<token>`, `<key>`. */
      of: Type.String(),
    }),
  ),
});
export type Once = Readonly<Static<typeof Once>>;

/** Kept for `idempotencyTtlMs`. Creates of containers keep their keys in the container's record. */
export interface AnswerRecord {
  readonly kind: 'answer';
  readonly tenant: TenantId;
  /** Of `Once`. */
  readonly key: string;
  readonly request: string;
  /** A container's view is made again from its record. */
  readonly answer:
    { readonly kind: 'container'; readonly id: ContainerId } | { readonly kind: 'body'; readonly body: string };
  /** Absent if it shows no secret; `null` if the resource is gone, or has other secrets. */
  readonly secret?: { readonly by: string; readonly sealed: Sealed | null; readonly of: string };
  readonly updatedAtMs: number;
  readonly untilMs: number;
}

/** Bytes that an answer counts for: its texts, and what a small one takes besides. */
export const answerBytes = ({ key, request, answer, secret }: AnswerRecord): number =>
  keptAnswerBytes +
  key.length +
  request.length +
  (answer.kind === 'body' ? answer.body.length : answer.id.length) +
  (secret?.sealed?.length ?? 0);
