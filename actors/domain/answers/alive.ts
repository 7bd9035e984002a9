/** The request that an `Idempotency-Key` belongs to now. Pure. */
import type { ContainerRecord, TombstoneRecord } from '../../../schemas/api/container.ts';
import type { AnswerRecord } from '../../../schemas/records/kept-answer.ts';
import type { TenantView } from '../tenant/state.ts';
import { invalid, type TurnContext } from '../turn.ts';

type Created = (ContainerRecord | TombstoneRecord) & {
  readonly idempotency: NonNullable<ContainerRecord['idempotency']>;
};

/** The container that a create with this key has made. */
export function createdBy(tenant: TenantView, key: string, { expiryMs }: TurnContext): Created | undefined {
  const id = tenant.idempotency.get(key);
  const record = id === undefined ? undefined : (tenant.containers.get(id) ?? tenant.tombstones.get(id));
  if (record?.idempotency == null || record.idempotency.untilMs <= expiryMs) return undefined;
  // Safe: it was looked at.
  return record as Created;
}

/** The answer that is kept under this key. */
export function answerTo({ answers }: TenantView, key: string, { expiryMs }: TurnContext): AnswerRecord | undefined {
  const kept = answers.get(key);
  return kept === undefined || kept.untilMs <= expiryMs ? undefined : kept;
}

export const usedByAnother = invalid({ idempotency_key: ['was used with a different body'] });
